//! The test environment for clusters on AWS: the test control plane of an OpenShift cluster, the simulated AWS with the
//! cluster's cloud provider, and credentials files for both roles of Hyperlink.

mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

pub use self::shared::{SharedAwsEnv, situation};
use crate::aws_sim::{self, AwsOracle, AwsSim, CPO_ACCOUNT, Caller, HO_ACCOUNT, Identity, REGION, TOKEN_AUDIENCE};
use crate::azure_sim::Preset;
use crate::crds::Platform;
use crate::hyperlink::Role;
use crate::hyperlink::aws::lease;
use crate::kubeconfig::Access;
use crate::run_dir::RunDir;
use crate::{ControlPlane, TestEnv, hosted_cluster, roles};

/// How long anything takes here at most, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The name of the management cluster, which Infrastructure `cluster` has in `status.infrastructureName`.
pub const INFRASTRUCTURE: &str = "mgmt-7xk2p";

/// The credentials files of the identities, with a profile `default`.
#[derive(Clone, Debug)]
pub struct CredentialFiles {
    /// Access keys of [`aws_sim::HO`].
    pub ho: PathBuf,
    /// Access keys of [`aws_sim::HO_TWIN`].
    pub ho_twin: PathBuf,
    /// [`aws_sim::HO_ROLE`] by a ServiceAccount's token.
    pub ho_role: PathBuf,
    /// [`aws_sim::HO_ROLE`] by the role of the machine.
    pub ho_machine: PathBuf,
    /// Access keys of [`aws_sim::CPO`].
    pub cpo: PathBuf,
    /// [`aws_sim::CPO_ROLE`] by a ServiceAccount's token.
    pub cpo_role: PathBuf,
}

/// The test control plane and the simulated AWS.
#[derive(Debug)]
pub struct AwsEnv {
    // Drop order: clients before servers, and the directory last.
    aws_sim: AwsSim,
    control_plane: Arc<ControlPlane>,
    credentials: CredentialFiles,
    dir: RunDir,
}

impl AwsEnv {
    /// Starts a new test control plane and a new simulated AWS.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn local(preset: Preset) -> Result<Self> {
        Self::local_with(preset, |_| {}).await
    }

    /// Starts a test environment whose seed (see [`aws_sim::seed`]) is changed first: other policies, switches, request
    /// budgets, quotas, accounts.
    ///
    /// # Errors
    ///
    /// As [`AwsEnv::local`].
    pub async fn local_with(preset: Preset, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let control_plane = ControlPlane::lent(Platform::Aws).await?;
        create_infrastructure(&control_plane).await?;
        Self::on(control_plane, preset, change).await
    }

    /// Starts a simulated AWS, whose seed is changed first, for the control plane of an environment with a simulated
    /// Azure. That has HyperShift's kinds for clusters on AWS only after [`AwsEnv::install_kinds`].
    ///
    /// # Errors
    ///
    /// As [`AwsEnv::local`].
    pub async fn beside(test_env: &TestEnv, preset: Preset, change: impl FnOnce(&mut Value)) -> Result<Self> {
        Self::on(test_env.shared_control_plane(), preset, change).await
    }

    /// Installs HyperShift's kinds for clusters on AWS.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn install_kinds(&self) -> Result<()> {
        crate::crds::install(&self.client()?, Platform::Aws).await?;
        create_infrastructure(&self.control_plane).await
    }

    async fn on(control_plane: Arc<ControlPlane>, preset: Preset, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let dir = RunDir::new("aws")?;
        let awssim = crate::binaries::executable("awssim")?;
        let mut seed = aws_sim::seed(&control_plane.token_keys().await?)?;
        change(&mut seed);
        let credentials = CredentialFiles {
            ho: keys_file(dir.path(), aws_sim::HO)?,
            ho_twin: keys_file(dir.path(), aws_sim::HO_TWIN)?,
            ho_role: role_file(dir.path(), &control_plane, HO_ACCOUNT, aws_sim::HO_ROLE).await?,
            ho_machine: machine_file(dir.path(), aws_sim::HO_ROLE)?,
            cpo: keys_file(dir.path(), aws_sim::CPO)?,
            cpo_role: role_file(dir.path(), &control_plane, CPO_ACCOUNT, aws_sim::CPO_ROLE).await?,
        };
        let aws_sim = AwsSim::start(&awssim, dir.path(), preset, &control_plane, &seed).await?;
        Ok(Self {
            aws_sim,
            control_plane,
            credentials,
            dir,
        })
    }

    /// Creates the leases of both roles without a holder. A candidate takes such a lease at once, a missing one only
    /// after its whole duration.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_leases(&self) -> Result<()> {
        for role in [Role::Ho, Role::Cpo] {
            self.create_lease(&lease(role, None)).await?;
        }
        Ok(())
    }

    /// Creates the lease of this name without a holder.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_lease(&self, name: &str) -> Result<()> {
        roles::create_lease(self.admin(), self.hyperlink_namespace(), name).await
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

    /// The simulated AWS.
    pub fn aws(&self) -> &AwsSim {
        &self.aws_sim
    }

    /// What AWS really holds, and its journal.
    pub fn oracle(&self) -> &AwsOracle {
        self.aws_sim.oracle()
    }

    /// The credentials files.
    pub fn credentials(&self) -> &CredentialFiles {
        &self.credentials
    }

    /// Somebody who calls AWS with the access key of a user.
    ///
    /// # Errors
    ///
    /// The simulator's certificate cannot be read.
    pub fn caller(&self, identity: Identity) -> Result<Caller> {
        Caller::user(self.aws_sim.endpoint(), self.aws_sim.ca_file(), identity)
    }

    /// Somebody who calls AWS with a new session of [`aws_sim::CPO_ROLE`].
    ///
    /// # Errors
    ///
    /// AWS refuses the session.
    pub async fn cpo_session(&self) -> Result<Caller> {
        let token = self.minted_token().await?;
        let (endpoint, ca_file) = (self.aws_sim.endpoint(), self.aws_sim.ca_file());
        Caller::role(endpoint, ca_file, aws_sim::CPO_ROLE, &token).await
    }

    /// A new token that [`aws_sim::CPO_ROLE`] trusts, as HyperShift's token minter writes it.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn minted_token(&self) -> Result<String> {
        let (namespace, name) = CPO_ACCOUNT;
        self.control_plane.token(namespace, name, Some(TOKEN_AUDIENCE)).await
    }

    /// Takes away the token by which the CPO role asks for sessions, as when the guest's API server is gone.
    ///
    /// # Errors
    ///
    /// There is no such token.
    pub fn remove_cpo_token(&self) -> Result<()> {
        Ok(std::fs::remove_file(token_file(self.dir.path(), CPO_ACCOUNT.1))?)
    }

    /// The longest time that a test waits for anything.
    pub fn patience(&self) -> Duration {
        PATIENCE
    }

    /// The directory of the logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The namespace of the HostedClusters.
    pub fn hosted_clusters(&self) -> &'static str {
        hosted_cluster::NAMESPACE
    }

    /// The namespace of Hyperlink's ServiceAccounts and leases.
    pub fn hyperlink_namespace(&self) -> &'static str {
        roles::NAMESPACE
    }
}

/// Creates what tells Hyperlink the name of the management cluster.
async fn create_infrastructure(control_plane: &ControlPlane) -> Result<()> {
    let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": {"name": "cluster"}, "spec": {"platformSpec": {"type": "AWS"}}});
    control_plane.apply_yaml(&object.to_string()).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("config.openshift.io", "v1", "Infrastructure"));
    let api: Api<DynamicObject> = Api::all_with(control_plane.client()?, &kind);
    let status = json!({"status": {"infrastructureName": INFRASTRUCTURE, "platform": "AWS"}});
    api.patch_status("cluster", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

fn keys_file(dir: &Path, identity: Identity) -> Result<PathBuf> {
    let path = dir.join(format!("credentials-{}", identity.name));
    let (key, secret) = (identity.access_key_id, identity.secret());
    let profile = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    std::fs::write(&path, profile)?;
    Ok(path)
}

/// The profile of a role that the role of the machine assumes.
fn machine_file(dir: &Path, role: &str) -> Result<PathBuf> {
    let path = dir.join("credentials-machine");
    let profile = format!("[default]\nrole_arn = {role}\ncredential_source = Ec2InstanceMetadata\n");
    std::fs::write(&path, profile)?;
    Ok(path)
}

/// The file of a ServiceAccount's token.
fn token_file(dir: &Path, account: &str) -> PathBuf {
    dir.join(format!("token-{account}"))
}

/// Creates a ServiceAccount, and writes a token of it and the profile that uses the token.
async fn role_file(
    dir: &Path,
    control_plane: &ControlPlane,
    (namespace, name): (&str, &str),
    role: &str,
) -> Result<PathBuf> {
    control_plane.service_account(namespace, name).await?;
    let token_file = token_file(dir, name);
    let token = control_plane.token(namespace, name, Some(TOKEN_AUDIENCE)).await?;
    std::fs::write(&token_file, token)?;
    let path = dir.join(format!("credentials-role-{name}"));
    let token_file = token_file.display();
    let profile = format!(
        "[default]\nrole_arn = {role}\nweb_identity_token_file = {token_file}\nregion = {REGION}\nsts_regional_endpoints = regional\n"
    );
    std::fs::write(&path, profile)?;
    Ok(path)
}
