//! The [`Target`] that everybody has, the test control plane and the simulator, and what only the simulator can say of it.

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::azure_sim::{self, AzureSim, Preset};
use crate::control_plane::Listens;
use crate::hyperlink::Role;
use crate::run_dir::RunDir;
use crate::{ControlPlane, Target, roles};

/// One call that reached ARM.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// Counts up by one.
    pub seq: u64,
    /// When it came.
    pub time: Timestamp,
    /// `GET`, `PUT`, …
    pub method: String,
    /// Without the query.
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
    /// Whether it changed anything.
    pub changed: bool,
    /// The type that was addressed: `Microsoft.Network/privateEndpoints`, …
    pub resource_kind: String,
}

impl Call {
    /// Whether it asked for a change: any method but GET and HEAD.
    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD")
    }
}

/// Whether a name leads to a Service.
#[derive(Clone, Debug, Deserialize)]
pub struct Reachable {
    /// Whether it does.
    pub ok: bool,
    /// The address that the name has.
    #[serde(default)]
    pub address: Option<String>,
    /// The hops that hold.
    pub path: Vec<Hop>,
    /// Why the next hop does not hold.
    #[serde(default)]
    pub why: Option<String>,
}

/// One hop of the way from a name to a Service.
#[derive(Clone, Debug, Deserialize)]
pub struct Hop {
    /// `zone`, `link`, `record`, `endpoint`, `connection`, `link_service`, `frontend` or `service`.
    pub hop: String,
    /// The ARM id; a Service's name for the last one.
    pub id: String,
}

/// Sees and changes Azure behind Hyperlink's back.
#[async_trait]
pub trait Oracle: Send + Sync {
    /// Whether a worker in that VNet reaches a Service under that name.
    async fn reachable(&self, vnet: &str, name: &str) -> Result<Reachable>;
    /// All resources whose id begins with `prefix`, in ARM's form.
    async fn resources(&self, prefix: &str) -> Result<Vec<Value>>;
    /// Creates or replaces a resource; returns when it is there.
    async fn drift_put(&self, id: &str, resource: &Value) -> Result<()>;
    /// Removes a resource; returns when it is gone.
    async fn drift_delete(&self, id: &str) -> Result<()>;
}

/// An oracle that has seen every call to ARM.
#[async_trait]
pub trait Journal: Oracle {
    /// The calls to ARM after the one numbered `since`.
    async fn journal(&self, since: u64) -> Result<Vec<Call>>;

    /// The number of the last call so far.
    async fn last_call(&self) -> Result<u64> {
        Ok(self.journal(0).await?.last().map_or(0, |call| call.seq))
    }
}

/// Who a role of Hyperlink is for Azure.
#[derive(Clone, Debug)]
pub enum Credential {
    /// HyperShift's credentials file with a client secret.
    SecretFile {
        /// The file.
        path: PathBuf,
    },
    /// A federated ServiceAccount token.
    WorkloadIdentity {
        /// Tenant of the identity.
        tenant: String,
        /// Its client id.
        client: String,
        /// The file with the token.
        token_file: PathBuf,
    },
}

/// Where Azure is, and what is there before any hosted cluster. Away from the simulator there is one subscription and one
/// identity, which stands in for the others.
#[derive(Clone, Debug)]
pub struct Azure {
    /// Base URL of ARM.
    pub arm: String,
    /// Base URL that issues tokens.
    pub authority: String,
    /// Whom tokens are for.
    pub audience: String,
    /// Certificate authority of both, unless the system trusts it.
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
    /// Another one, for some of them.
    pub other_guest_subscription: String,
    /// May connect to every Private Link Service that has a NAT subnet of its own.
    pub additional_subscription: String,
    /// The management side's identity.
    pub ho: Credential,
    /// Another identity with the same rights.
    pub ho_twin: Credential,
    /// The guest side's identity.
    pub cpo: Credential,
    /// Another identity with the same rights.
    pub cpo_twin: Credential,
    /// The identity of HyperShift's own operator.
    pub go_ho: Credential,
    /// The identity of HyperShift's own control-plane-operator.
    pub go_cpo: Credential,
}

/// The test control plane and the simulated Azure.
#[derive(Debug)]
pub struct TestEnv {
    // Clients before servers, and the directory last.
    azure_sim: AzureSim,
    control_plane: ControlPlane,
    target: Target,
}

impl Deref for TestEnv {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

/// How long anything takes here at most, on a slow machine too.
const PATIENCE: Duration = Duration::from_secs(90);

/// The ServiceAccount that HyperShift's federated credential names.
const WORKLOAD: (&str, &str) = ("kube-system", "control-plane-operator");

impl TestEnv {
    /// The test control plane and the simulated Azure, both of its own.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn local(preset: Preset) -> Result<Self> {
        Self::start(Listens::OnLoopback, preset, None, &json!({}), &json!({})).await
    }

    /// The same where there are nodes.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn with_nodes(address: Ipv4Addr, preset: Preset) -> Result<Self> {
        Self::start(Listens::ForNodes(address), preset, None, &json!({}), &json!({})).await
    }

    /// The same, but the management subscription has other quotas than Azure's own, as support raises some on request, and the
    /// simulator other switches.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn local_with(preset: Preset, quotas: &Value, switches: &Value) -> Result<Self> {
        Self::start(Listens::OnLoopback, preset, None, quotas, switches).await
    }

    /// The same, but the identity of `role` lacks one Azure action.
    ///
    /// # Errors
    ///
    /// As [`TestEnv::local`].
    pub async fn local_without(preset: Preset, role: Role, action: &str) -> Result<Self> {
        let denied = Some((role, action));
        Self::start(Listens::OnLoopback, preset, denied, &json!({}), &json!({})).await
    }

    async fn start(
        target: Listens,
        preset: Preset,
        denied: Option<(Role, &str)>,
        quotas: &Value,
        switches: &Value,
    ) -> Result<Self> {
        let dir = RunDir::new("ground")?;
        let armsim = crate::binaries::executable("armsim")?;
        let control_plane = ControlPlane::start_at(target).await?;
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

    /// The control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// Who sees and changes Azure behind Hyperlink's back, and has seen every call.
    pub fn oracle(&self) -> &dyn Journal {
        self.azure_sim.journal()
    }

    /// The URL of the simulator's control face.
    pub fn control_url(&self) -> &str {
        self.azure_sim.control_url()
    }

    /// Leaves the cluster without a cloud provider.
    pub fn end_cloud_controller(&self) {
        self.azure_sim.end_cloud_controller();
    }
}
