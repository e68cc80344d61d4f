//! The release of the chart for clusters that Cluster API makes on Azure, with the identities that the example speaks of.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{HOME, create_home, example, install};
use crate::CapzEnv;
use crate::azure_sim::Preset;
use crate::capz_cluster::CapzCluster;
use crate::capz_env::WORKLOAD_ACCOUNT;
use crate::helm::Helm;
use crate::hyperlink::Hyperlink;
use crate::pod::Pod;

/// The name of the release.
const RELEASE: &str = "capz";

/// A test environment with the objects and identities that the release refers to.
#[derive(Debug)]
pub struct InstalledOnCapz {
    /// The cluster and the simulated Azure.
    pub env: CapzEnv,
    helm: Helm,
}

impl InstalledOnCapz {
    /// Starts an environment in which the federated identities trust the ServiceAccount of the release.
    ///
    /// # Errors
    ///
    /// As [`CapzEnv::local`], or the API server refuses.
    pub async fn start() -> Result<Self> {
        let mut trusted = Ok(());
        let env = CapzEnv::local_with(Preset::Fast, |seed| trusted = trust_the_release(seed)).await?;
        trusted?;
        create_home(env.control_plane(), &env.azure().ca_file, &[]).await?;
        let helm = Helm::new(Some(env.control_plane().kubeconfig_path()))?;
        Ok(Self { env, helm })
    }

    /// Installs the example for a management cluster; its pods may read the Secrets of identities in the namespaces
    /// that are given.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn install(&self, management: &CapzCluster, identity_namespaces: &[&str]) -> Result<()> {
        let azure = self.env.azure();
        let settings = [
            ("armEndpoint", azure.arm.as_str()),
            ("authority", &azure.authority),
            ("audience", &azure.audience),
            ("resync", "10s"),
        ];
        let mut values = example("capz-reference-defaults", &settings)?;
        values["capz"]["managementCluster"] = json!({"name": management.name(), "namespace": management.namespace()});
        values["capz"]["identityNamespaces"] = json!(identity_namespaces);
        install(&self.helm, self.env.dir(), RELEASE, &values)
    }

    /// Runs a Pod of the release as a process.
    ///
    /// # Errors
    ///
    /// As [`Pod::of`] and [`Pod::start_capz`].
    pub async fn run(&self, name: &str) -> Result<Hyperlink> {
        let deployment = format!("{RELEASE}-hyperlink");
        let pod = Pod::of(self.env.control_plane(), HOME, &deployment, name, self.env.dir(), "").await?;
        pod.start_capz(self.env.dir()).await
    }
}

/// Makes each identity that trusts [`WORKLOAD_ACCOUNT`] trust the ServiceAccount of the release instead.
fn trust_the_release(seed: &mut Value) -> Result<()> {
    let (namespace, account) = WORKLOAD_ACCOUNT;
    let trusted = format!("system:serviceaccount:{namespace}:{account}");
    let tenants = seed["tenants"].as_array_mut().context("no tenants")?.iter_mut();
    let principals = tenants.filter_map(|tenant| tenant["principals"].as_array_mut());
    for principal in principals.flatten() {
        for credential in principal
            .get_mut("federated")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if credential["subject"] == *trusted {
                credential["subject"] = format!("system:serviceaccount:{HOME}:{RELEASE}-hyperlink").into();
            }
        }
    }
    Ok(())
}
