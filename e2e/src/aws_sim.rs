//! The simulated AWS as a process of its own, with the cloud provider of the management cluster.

mod caller;
mod oracle;
mod policies;
mod seed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

pub use self::caller::{Answer, Caller, SESSION};
pub(crate) use self::caller::{all_inner, ec2_form, inner};
pub use self::oracle::{AwsCall, AwsOracle};
pub use self::policies::{ACTIONS_NOT_SENT, OPTIONAL_ACTION, allowed_actions, shipped_policy};
pub use self::seed::{
    ADMINISTRATOR, CPO, CPO_ROLE, GUEST, GUEST_ADMINISTRATOR, HO, HO_ROLE, HO_TWIN, Identity, MACHINE_ROLE, MANAGEMENT,
    REGION, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE, VPC_OWNER, ZONE_PREFIX, seed, share_vpcs,
};
pub(crate) use self::seed::{
    CPO_ACCOUNT, HO_ACCOUNT, MANAGEMENT_SUBNETS, MANAGEMENT_VPC, TOKEN_AUDIENCE, web_identity,
};
use crate::ControlPlane;
use crate::azure_sim::{Preset, serving};
use crate::process::{Process, Program};

const START: Duration = Duration::from_secs(60);

/// What the simulator prints when it is up.
#[derive(Debug, Deserialize)]
struct Addresses {
    aws: String,
    control: String,
    ca: PathBuf,
}

/// A running simulated AWS with the cloud controller of a cluster. Dropping it ends both.
#[derive(Debug)]
pub struct AwsSim {
    cloud_controller: Process,
    _simulator: Process,
    endpoint: String,
    ca_file: PathBuf,
    oracle: AwsOracle,
}

impl AwsSim {
    /// Starts the simulator with a seed (see [`seed()`]), and the cloud controller of `control_plane`, which puts load
    /// balancers into the management account.
    ///
    /// # Errors
    ///
    /// One of them does not come up, or the simulator refuses the seed.
    pub async fn start(
        awssim: &Path,
        dir: &Path,
        preset: Preset,
        control_plane: &ControlPlane,
        seed: &Value,
    ) -> Result<Self> {
        let address = control_plane.listens().address();
        let simulator = serving(awssim, dir, preset, address).spawn("awssim", dir)?;
        let addresses: Addresses = serde_json::from_str(&simulator.first_line(START).await?)?;
        let oracle = AwsOracle::new(addresses.control.clone());
        oracle.seed(seed).await?;
        let cloud_controller =
            cloud_controller(awssim, control_plane, &addresses.control).spawn("cloud-controller", dir)?;
        cloud_controller.first_line(START).await?;
        Ok(Self {
            cloud_controller,
            _simulator: simulator,
            endpoint: addresses.aws,
            ca_file: addresses.ca,
            oracle,
        })
    }

    /// Base URL of all services.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Certificate authority of all services.
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// The simulator's control API.
    pub fn oracle(&self) -> &AwsOracle {
        &self.oracle
    }

    /// Ends the cloud controller, so that the cluster has no cloud provider.
    pub fn end_cloud_controller(&self) {
        self.cloud_controller.kill();
    }
}

fn cloud_controller(awssim: &Path, control_plane: &ControlPlane, control: &str) -> Program {
    let program = Program::new(awssim)
        .without_our_environment()
        .arg("cloud-controller")
        .flag("kubeconfig", control_plane.kubeconfig_path())
        .flag("control", control)
        .flag("account", MANAGEMENT)
        .flag("region", REGION)
        .flag("vpc", MANAGEMENT_VPC);
    let subnets = MANAGEMENT_SUBNETS.iter();
    subnets.fold(program, |program, (id, _)| program.flag("subnet", id))
}
