//! The test environment for clusters that Cluster API makes on Azure (CAPZ): the test control plane with their kinds,
//! and the simulated Azure with subscriptions and identities. [`crate::capz_cluster`] adds clusters to both,
//! [`crate::capz_controllers`] plays the controllers.

mod access;
mod kubeadm;
mod seed;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::access::TokenRequest;
pub use self::kubeadm::KubeadmManager;
pub use self::seed::{
    CAPZ_CLIENT, CERTIFICATE_CLIENT, DNS_CLIENT, FEDERATED_CLIENT, LOCATION, MANAGED_CLIENT, MANAGEMENT, OTHER_TENANT,
    OTHER_TENANT_CLIENT, OTHER_TENANT_SUBSCRIPTION, SECRET, SECRET_CLIENT, TENANT, TOKEN_AUDIENCE, WORKLOAD,
    WORKLOAD_ACCOUNT,
};
pub use self::shared::situation;
use crate::azure_sim::{AUDIENCE, Preset, Simulator};
use crate::control_api::ControlApi;
use crate::crds::Platform;
use crate::go_controllers::arm::{Arm, Endpoint};
use crate::kubeconfig::Access;
use crate::run_dir::RunDir;
use crate::test_env::{Credential, Journal};
use crate::{ControlPlane, roles};

/// How long anything takes here at most, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where the simulated Azure is.
#[derive(Clone, Debug)]
pub struct CapzAzure {
    /// Base URL of ARM.
    pub arm: String,
    /// Base URL of the token issuer.
    pub authority: String,
    /// Audience of the tokens.
    pub audience: String,
    /// Certificate authority of ARM and of the token issuer.
    pub ca_file: PathBuf,
    /// URL of managed identities, in App Service's form (`IDENTITY_ENDPOINT`).
    pub managed_identity: String,
    /// A token of [`WORKLOAD_ACCOUNT`], which the federated identities trust.
    pub token_file: PathBuf,
}

/// The test control plane with the kinds of Cluster API, and the simulated Azure.
#[derive(Debug)]
pub struct CapzEnv {
    // Drop order: clients before servers, and the directory last.
    simulator: Simulator,
    control_plane: Arc<ControlPlane>,
    azure: CapzAzure,
    certificate: String,
    /// The role assignments of the seed.
    roles: Vec<Value>,
    dir: RunDir,
}

impl CapzEnv {
    /// Starts a test control plane, which a test before may have used, and a new simulated Azure.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn local(preset: Preset) -> Result<Self> {
        Self::local_with(preset, |_| {}).await
    }

    /// Starts a test environment whose seed is changed first: other rights, switches, request budgets, quotas.
    ///
    /// # Errors
    ///
    /// As [`CapzEnv::local`].
    pub async fn local_with(preset: Preset, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let dir = RunDir::new("capz")?;
        let armsim = crate::binaries::executable("armsim")?;
        let control_plane = ControlPlane::lent(Platform::Capz).await?;
        let (namespace, name) = WORKLOAD_ACCOUNT;
        control_plane.service_account(namespace, name).await?;
        let token_file = dir.path().join("federated-token");
        let token = control_plane.token(namespace, name, Some(TOKEN_AUDIENCE)).await?;
        std::fs::write(&token_file, token)?;
        let (key, certificate) = seed::certificate()?;
        let mut seed = seed::seed(&control_plane.token_keys().await?, &certificate)?;
        change(&mut seed);
        let roles = seed["roles"].as_array().cloned().unwrap_or_default();
        let address = control_plane.listens().address();
        let simulator = Simulator::start(&armsim, dir.path(), preset, address, &seed).await?;
        let addresses = simulator.addresses();
        let azure = CapzAzure {
            arm: addresses.arm.clone(),
            authority: addresses.authority.clone(),
            audience: AUDIENCE.into(),
            ca_file: addresses.ca.clone(),
            managed_identity: addresses.identity.clone(),
            token_file,
        };
        Ok(Self {
            simulator,
            control_plane,
            azure,
            certificate: format!("{key}{certificate}"),
            roles,
            dir,
        })
    }

    /// The test control plane.
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
        self.control_plane.client()
    }

    /// Applies a stream of YAML documents, server-side, as the administrator.
    ///
    /// # Errors
    ///
    /// As [`Access::apply_yaml`].
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>> {
        self.admin().apply_yaml(text).await
    }

    /// Creates the lease of this name without a holder, in [`CapzEnv::hyperlink_namespace`]. A candidate takes such a
    /// lease at once, a missing one only after its whole duration.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_lease(&self, name: &str) -> Result<()> {
        roles::create_lease(self.admin(), self.hyperlink_namespace(), name).await
    }

    /// Where the simulated Azure is.
    pub fn azure(&self) -> &CapzAzure {
        &self.azure
    }

    /// What Azure really holds, and its journal of calls.
    pub fn oracle(&self) -> &dyn Journal {
        self.simulator.control()
    }

    /// The URL of the simulator's control API.
    pub fn control_url(&self) -> &str {
        self.simulator.control().url()
    }

    pub(crate) fn control(&self) -> &ControlApi {
        self.simulator.control()
    }

    /// Lets this much time of the simulated Azure pass at once, so that request budgets come back.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn advance(&self, seconds: u32) -> Result<()> {
        let body = json!({"advance_s": seconds});
        let answer = self.control().send(reqwest::Method::POST, "/clock", &[], Some(&body));
        answer.await.map(drop)
    }

    /// Sets the simulator's fault rules.
    ///
    /// # Errors
    ///
    /// The simulator refuses them.
    pub async fn faults(&self, rules: &Value) -> Result<()> {
        let answer = self.control().send(reqwest::Method::PUT, "/faults", &[], Some(rules));
        answer.await.map(drop)
    }

    /// ARM as the identity of this client id calls it, which has [`SECRET`] as its secret.
    ///
    /// # Errors
    ///
    /// The token issuer refuses.
    pub async fn arm(&self, client: &str) -> Result<Arm> {
        // A file of its own: other tests of the environment read theirs meanwhile.
        let id = Uuid::new_v4().simple();
        let path = self.dir().join(format!("credentials-{client}-{id}.json"));
        let file = json!({"tenantId": TENANT, "clientId": client, "clientSecret": SECRET});
        std::fs::write(&path, file.to_string()).with_context(|| format!("write {}", path.display()))?;
        let endpoint = Endpoint {
            arm: &self.azure.arm,
            authority: &self.azure.authority,
            audience: &self.azure.audience,
            ca_file: &self.azure.ca_file,
            tenant: TENANT,
        };
        Arm::connect_to(&endpoint, &Credential::SecretFile { path }, SPEED).await
    }

    /// Approves or rejects all connections of a Private Link Service, as its owner: `Approved`, `Rejected`.
    ///
    /// # Errors
    ///
    /// Azure refuses.
    pub async fn decide(&self, link_service: &str, status: &str) -> Result<()> {
        let arm = self.arm(CAPZ_CLIENT).await?;
        let decision = json!({"properties": {"privateLinkServiceConnectionState": {
            "status": status, "description": status}}});
        for connection in arm.list(&format!("{link_service}/privateEndpointConnections")).await? {
            let id = connection["id"].as_str().context("a connection without an id")?;
            arm.put(id, &decision).await?;
        }
        Ok(())
    }

    /// Key and certificate of [`CERTIFICATE_CLIENT`], as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The longest time that a test waits for anything.
    pub fn patience(&self) -> Duration {
        PATIENCE
    }

    /// The directory of the logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The namespace of Hyperlink's ServiceAccounts and leases.
    pub fn hyperlink_namespace(&self) -> &'static str {
        roles::NAMESPACE
    }
}

/// Divides the times of the Azure SDK for Go.
const SPEED: u32 = 20;
