//! The [`Target`] that is always available, made of the test control plane and the simulated Azure, and what only the
//! simulator can report about it.

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::azure_sim::{self, AzureSim, Preset};
use crate::control_plane::Listens;
use crate::crds::Platform;
use crate::hyperlink::Role;
use crate::run_dir::RunDir;
use crate::{ControlPlane, Target, roles};

/// One call that reached ARM, as the journal has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// The call's number, which counts up by one.
    pub seq: u64,
    /// When the call arrived.
    pub time: Timestamp,
    /// The HTTP method: `GET`, `PUT`, …
    pub method: String,
    /// The URL's path, without the query.
    pub path: String,
    /// The query, api-version included.
    #[serde(default)]
    pub query: String,
    /// Client id of the caller.
    #[serde(default)]
    pub principal: Option<String>,
    /// HTTP status of the answer.
    pub status: u16,
    /// ARM's error code.
    #[serde(default)]
    pub code: Option<String>,
    /// Whether the call changed anything.
    pub changed: bool,
    /// The resource type that was addressed: `Microsoft.Network/privateEndpoints`, …
    pub resource_kind: String,
}

impl Call {
    /// Whether the call asked for a change: any method but GET and HEAD.
    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD")
    }
}

/// Whether a name leads to a Service.
#[derive(Clone, Debug, Deserialize)]
pub struct Reachable {
    /// Whether the name leads to a Service.
    pub ok: bool,
    /// The address that the name resolves to.
    #[serde(default)]
    pub address: Option<String>,
    /// The hops that work, from the name on.
    pub path: Vec<Hop>,
    /// Why the next hop does not work.
    #[serde(default)]
    pub why: Option<String>,
}

/// One hop on the path from a name to a Service.
#[derive(Clone, Debug, Deserialize)]
pub struct Hop {
    /// The kind of hop: `zone`, `link`, `record`, `endpoint`, `connection`, `link_service`, `frontend` or `service`.
    pub hop: String,
    /// The resource's ARM id; for the last hop, the Service's name.
    pub id: String,
}

/// Reads and changes Azure behind Hyperlink's back.
#[async_trait]
pub trait Oracle: Send + Sync {
    /// Whether a worker in that VNet reaches a Service under that name.
    async fn reachable(&self, vnet: &str, name: &str) -> Result<Reachable>;
    /// All resources whose id begins with `prefix`, in ARM's form.
    async fn resources(&self, prefix: &str) -> Result<Vec<Value>>;
    /// Creates or replaces a resource; returns when the resource exists.
    async fn drift_put(&self, id: &str, resource: &Value) -> Result<()>;
    /// Deletes a resource; returns when the resource is gone.
    async fn drift_delete(&self, id: &str) -> Result<()>;
}

/// An oracle that also records every call to ARM.
#[async_trait]
pub trait Journal: Oracle {
    /// The calls to ARM after the one numbered `since`.
    async fn journal(&self, since: u64) -> Result<Vec<Call>>;

    /// The number of the last call so far; 0 if there is none.
    async fn last_call(&self) -> Result<u64> {
        Ok(self.journal(0).await?.last().map_or(0, |call| call.seq))
    }
}

/// How a role of Hyperlink authenticates to Azure.
#[derive(Clone, Debug)]
pub enum Credential {
    /// HyperShift's credentials file with a client secret.
    SecretFile {
        /// Path of the credentials file.
        path: PathBuf,
    },
    /// A federated ServiceAccount token.
    WorkloadIdentity {
        /// Tenant id of the identity.
        tenant: String,
        /// Client id of the identity.
        client: String,
        /// Path of the token file.
        token_file: PathBuf,
    },
}

/// Where Azure is, and which resources exist there before any hosted cluster.
///
/// Outside the simulator there is one subscription and one identity, which are used for all of these.
#[derive(Clone, Debug)]
pub struct Azure {
    /// Base URL of ARM.
    pub arm: String,
    /// Base URL of the token issuer.
    pub authority: String,
    /// Audience of the tokens.
    pub audience: String,
    /// Certificate authority of ARM and of the token issuer, unless the system trusts it.
    pub ca_file: Option<PathBuf>,
    /// Tenant of everything.
    pub tenant: String,
    /// Region of everything.
    pub location: String,
    /// Subscription of the management cluster.
    pub management_subscription: String,
    /// Resource group of its load balancer.
    pub management_group: String,
    /// ARM id of its VNet.
    pub management_vnet: String,
    /// Subscription of the hosted clusters.
    pub guest_subscription: String,
    /// Another subscription, for some of the hosted clusters.
    pub other_guest_subscription: String,
    /// A subscription that may connect to every Private Link Service with a NAT subnet of its own.
    pub additional_subscription: String,
    /// The identity of the HO role.
    pub ho: Credential,
    /// Another identity with the rights of the HO role.
    pub ho_twin: Credential,
    /// The identity of the CPO role.
    pub cpo: Credential,
    /// Another identity with the rights of the CPO role.
    pub cpo_twin: Credential,
    /// The identity of HyperShift's own operator.
    pub go_ho: Credential,
    /// The identity of HyperShift's own control-plane-operator.
    pub go_cpo: Credential,
}

/// The test control plane and the simulated Azure.
#[derive(Debug)]
pub struct TestEnv {
    // Drop order: clients before servers, and the directory last.
    azure_sim: AzureSim,
    control_plane: Arc<ControlPlane>,
    target: Target,
}

impl Deref for TestEnv {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

/// How long anything takes here at most, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The ServiceAccount that HyperShift's federated credential names.
const WORKLOAD: (&str, &str) = ("kube-system", "control-plane-operator");

impl TestEnv {
    /// Starts a new test control plane and a new simulated Azure.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn local(preset: Preset) -> Result<Self> {
        Self::start(Listens::OnLoopback, preset, None, &json!({}), &json!({})).await
    }

    /// Starts a test environment whose control plane has nodes and listens at `address`.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn with_nodes(address: Ipv4Addr, preset: Preset) -> Result<Self> {
        Self::start(Listens::ForNodes(address), preset, None, &json!({}), &json!({})).await
    }

    /// Starts a test environment with other quotas of each subscription than Azure's defaults, and other
    /// switches of the simulator. Azure's support raises some quotas on request.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn local_with(preset: Preset, quotas: &Value, switches: &Value) -> Result<Self> {
        Self::start(Listens::OnLoopback, preset, None, quotas, switches).await
    }

    /// Starts a test environment in which the identity of `role` lacks one Azure action.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn local_without(preset: Preset, role: Role, action: &str) -> Result<Self> {
        let denied = Some((role, action));
        Self::start(Listens::OnLoopback, preset, denied, &json!({}), &json!({})).await
    }

    async fn start(
        listens: Listens,
        preset: Preset,
        denied: Option<(Role, &str)>,
        quotas: &Value,
        switches: &Value,
    ) -> Result<Self> {
        let dir = RunDir::new("ground")?;
        let armsim = crate::binaries::executable("armsim")?;
        let control_plane = match listens {
            Listens::OnLoopback => ControlPlane::lent(Platform::Azure).await?,
            Listens::ForNodes(_) => Arc::new(ControlPlane::start_at(listens).await?),
        };
        roles::install(&control_plane).await?;
        control_plane.service_account(WORKLOAD.0, WORKLOAD.1).await?;
        let token = control_plane.token(WORKLOAD.0, WORKLOAD.1, Some("openshift")).await?;
        let token_file = dir.path().join("federated-token");
        std::fs::write(&token_file, token)?;
        let world = azure_sim::world(&control_plane.token_keys().await?, denied, quotas, switches)?;
        let (azure_sim, azure) =
            AzureSim::start(&armsim, dir.path(), preset, &control_plane, token_file, world).await?;
        let target = Target::new(
            azure,
            azure_sim.oracle(),
            control_plane.admin().clone(),
            None,
            PATIENCE,
            dir,
        );
        Ok(Self {
            azure_sim,
            control_plane,
            target,
        })
    }

    /// The test control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The same, for another environment on it.
    pub(crate) fn shared_control_plane(&self) -> Arc<ControlPlane> {
        Arc::clone(&self.control_plane)
    }

    /// The oracle, with its journal of all calls.
    pub fn oracle(&self) -> &dyn Journal {
        self.azure_sim.journal()
    }

    /// The URL of the simulator's control API.
    pub fn control_url(&self) -> &str {
        self.azure_sim.control_url()
    }

    /// Ends the cloud controller, so that the cluster has no cloud provider.
    pub fn end_cloud_controller(&self) {
        self.azure_sim.end_cloud_controller();
    }
}
