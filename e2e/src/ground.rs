//! What a scenario stands on: an API server, an ARM endpoint with credentials, and an oracle that
//! sees and changes Azure without going through Hyperlink.
//!
//! Scenarios use nothing else, so that they can run on other clusters and on the real Azure too.
//! [`Ground::local`] is the one that everybody has: the test control plane and the simulator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ControlPlane;
use crate::azure_sim::{self, AzureSim, Preset};
use crate::hyperlink::Role;
use crate::kubeconfig::Access;
use crate::roles;
use crate::run_dir::RunDir;

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
    /// The calls to ARM after the one numbered `since`.
    async fn journal(&self, since: u64) -> Result<Vec<Call>>;
    /// Creates or replaces a resource at once.
    async fn drift_put(&self, id: &str, resource: &Value) -> Result<()>;
    /// Removes a resource at once.
    async fn drift_delete(&self, id: &str) -> Result<()>;

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

/// Where Azure is, and what is there before any hosted cluster.
#[derive(Clone, Debug)]
pub struct Azure {
    /// Base URL of ARM.
    pub arm: String,
    /// Base URL that issues tokens.
    pub authority: String,
    /// Whom tokens are for.
    pub audience: String,
    /// Certificate authority of both.
    pub ca_file: PathBuf,
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

/// What a scenario stands on.
pub struct Ground {
    azure: Azure,
    oracle: Arc<dyn Oracle>,
    // Clients before servers, and the directory last.
    azure_sim: AzureSim,
    control_plane: ControlPlane,
    dir: RunDir,
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ground")
            .field("azure", &self.azure)
            .finish_non_exhaustive()
    }
}

/// The ServiceAccount that HyperShift's federated credential names.
const WORKLOAD: (&str, &str) = ("kube-system", "control-plane-operator");

impl Ground {
    /// The test control plane and the simulated Azure, both of its own.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn local(preset: Preset) -> Result<Self> {
        Self::start(preset, None, &json!({}), &json!({})).await
    }

    /// The same, but the management subscription has other quotas than Azure's own, as support raises some on request, and the
    /// simulator other switches.
    ///
    /// # Errors
    ///
    /// As [`Ground::local`].
    pub async fn local_with(preset: Preset, quotas: &Value, switches: &Value) -> Result<Self> {
        Self::start(preset, None, quotas, switches).await
    }

    /// The same, but the identity of `role` lacks one Azure action.
    ///
    /// # Errors
    ///
    /// As [`Ground::local`].
    pub async fn local_without(preset: Preset, role: Role, action: &str) -> Result<Self> {
        Self::start(preset, Some((role, action)), &json!({}), &json!({})).await
    }

    async fn start(preset: Preset, denied: Option<(Role, &str)>, quotas: &Value, switches: &Value) -> Result<Self> {
        let dir = RunDir::new("ground")?;
        let armsim = crate::binaries::executable("armsim")?;
        let control_plane = ControlPlane::start().await?;
        roles::install(&control_plane).await?;
        control_plane.service_account(WORKLOAD.0, WORKLOAD.1).await?;
        let token = control_plane.token(WORKLOAD.0, WORKLOAD.1, Some("openshift")).await?;
        let token_file = dir.path().join("federated-token");
        std::fs::write(&token_file, token)?;
        let world = azure_sim::world(&control_plane.token_keys().await?, denied, quotas, switches)?;
        let (azure_sim, azure) =
            AzureSim::start(&armsim, dir.path(), preset, &control_plane, token_file, world).await?;
        Ok(Self {
            azure,
            oracle: azure_sim.oracle(),
            azure_sim,
            control_plane,
            dir,
        })
    }

    /// The control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// Access as a cluster administrator.
    pub fn admin(&self) -> &Access {
        self.control_plane.admin()
    }

    /// A new administrator's client, for the current runtime only.
    ///
    /// # Errors
    ///
    /// The TLS configuration is refused.
    pub fn client(&self) -> Result<kube::Client> {
        self.admin().client()
    }

    /// Where Azure is.
    pub fn azure(&self) -> &Azure {
        &self.azure
    }

    /// Who sees and changes Azure behind Hyperlink's back.
    pub fn oracle(&self) -> &dyn Oracle {
        self.oracle.as_ref()
    }

    /// Makes a subnet in the management VNet that takes Private Link Services; its ARM id.
    ///
    /// # Errors
    ///
    /// Azure refuses.
    pub async fn create_nat_subnet(&self, name: &str) -> Result<String> {
        let id = format!("{}/subnets/{name}", self.azure.management_vnet);
        let subnet = json!({"properties": {
            "addressPrefix": "10.225.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
        self.oracle.drift_put(&id, &subnet).await?;
        Ok(id)
    }

    /// Ids of all resources, and of the subnets inside VNets, in lower case.
    ///
    /// # Errors
    ///
    /// The oracle does not answer.
    pub async fn resource_ids(&self) -> Result<BTreeSet<String>> {
        let mut ids = BTreeSet::new();
        let azure = &self.azure;
        for subscription in [
            &azure.management_subscription,
            &azure.guest_subscription,
            &azure.other_guest_subscription,
        ] {
            for resource in self.oracle.resources(&format!("/subscriptions/{subscription}")).await? {
                let subnets = resource["properties"]["subnets"].as_array().into_iter().flatten();
                for one in std::iter::once(&resource).chain(subnets) {
                    ids.insert(one["id"].as_str().context("a resource without an id")?.to_lowercase());
                }
            }
        }
        Ok(ids)
    }

    /// The URL of the simulator's control face.
    pub fn control_url(&self) -> &str {
        self.azure_sim.control_url()
    }

    /// The directory of logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}
