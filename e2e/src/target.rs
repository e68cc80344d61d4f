//! The environment of a scenario: an API server, ARM with an identity, and an oracle that reads and changes Azure
//! without Hyperlink.
//!
//! A scenario that takes a [`Target`] runs on every cluster and every Azure. One that takes a [`crate::TestEnv`] needs
//! more than a real Azure offers: the simulator's journal, faults and clock.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use serde_json::json;

use crate::hosted_cluster;
use crate::kubeconfig::Access;
use crate::roles;
use crate::run_dir::RunDir;
use crate::test_env::{Azure, Oracle};

/// The environment that a scenario runs on.
pub struct Target {
    azure: Azure,
    oracle: Arc<dyn Oracle>,
    access: Access,
    prefix: Option<String>,
    patience: Duration,
    dir: RunDir,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Place")
            .field("azure", &self.azure)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// A target whose names all begin with `prefix`, if it is given. Whatever a scenario waits for happens within
    /// `patience`.
    pub fn new(
        azure: Azure,
        oracle: Arc<dyn Oracle>,
        access: Access,
        prefix: Option<String>,
        patience: Duration,
        dir: RunDir,
    ) -> Self {
        Self {
            azure,
            oracle,
            access,
            prefix,
            patience,
            dir,
        }
    }

    /// Access as a cluster administrator.
    pub fn admin(&self) -> &Access {
        &self.access
    }

    /// A new administrator's client, for the current runtime only.
    ///
    /// # Errors
    ///
    /// The TLS configuration is refused.
    pub fn client(&self) -> Result<kube::Client> {
        self.access.client()
    }

    /// The addresses, names and identities of its Azure.
    pub fn azure(&self) -> &Azure {
        &self.azure
    }

    /// The oracle, which reads and changes Azure behind Hyperlink's back.
    pub fn oracle(&self) -> &dyn Oracle {
        self.oracle.as_ref()
    }

    /// The longest time that a scenario waits for anything.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The interval at which Hyperlink reads ready resources again, so that it finds drift well within
    /// [`Target::patience`].
    pub fn resync(&self) -> Duration {
        self.patience / 40
    }

    /// The directory of the logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The name with this target's prefix, if it has one, so that it is unique there.
    pub fn name(&self, name: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}-{name}"),
            None => name.to_owned(),
        }
    }

    /// The namespace of the HostedClusters.
    pub fn hosted_clusters(&self) -> &str {
        self.prefix.as_deref().unwrap_or(hosted_cluster::NAMESPACE)
    }

    /// The namespace of Hyperlink's ServiceAccounts and leases.
    pub fn hyperlink_namespace(&self) -> String {
        self.name(roles::NAMESPACE)
    }

    /// Access as a ServiceAccount of Hyperlink's namespace.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn service_account(&self, name: &str) -> Result<Access> {
        self.access
            .service_account(self.dir(), &self.hyperlink_namespace(), name)
            .await
    }

    /// Applies a stream of YAML documents, server-side, as the administrator.
    ///
    /// # Errors
    ///
    /// As [`Access::apply_yaml`].
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>> {
        self.access.apply_yaml(text).await
    }

    /// Creates a subnet for Private Link Services in the management VNet and returns its ARM id.
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
        let subscriptions = BTreeSet::from([
            &azure.management_subscription,
            &azure.guest_subscription,
            &azure.other_guest_subscription,
        ]);
        for subscription in subscriptions {
            for resource in self.oracle.resources(&format!("/subscriptions/{subscription}")).await? {
                let subnets = resource["properties"]["subnets"].as_array().into_iter().flatten();
                for one in std::iter::once(&resource).chain(subnets) {
                    ids.insert(one["id"].as_str().context("a resource without an id")?.to_lowercase());
                }
            }
        }
        Ok(ids)
    }
}
