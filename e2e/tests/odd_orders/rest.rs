//! A cluster at rest: its reconciles read nothing of Kubernetes, until something changes that they depend on.

use anyhow::{Context, Result, ensure};
use e2e::bench::audit::Audit;
use e2e::binaries::executable;
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::{SOON, alone, patch};
use e2e::{TestEnv, eventually};
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use crate::both::Both;

/// How many reconciles of a cluster in a row read nothing, in each role.
const ROUNDS: u64 = 2;

impl Both {
    fn audit(&self) -> Result<Audit> {
        Audit::begin(self.test_env.control_plane().audit_log())
    }

    /// Waits until each role has reconciled the cluster some times without a read of Kubernetes.
    async fn rests(&self) -> Result<()> {
        eventually("reconciles read nothing", SOON, || async {
            let audit = self.audit()?;
            self.find_it_ready_again(ROUNDS).await?;
            let reads = audit.reads()?;
            ensure!(reads.is_empty(), "{reads:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the objects are read that a role reads alone: Services by `ho`; control planes twice, if by both.
    async fn are_read(&self, audit: &Audit, expected: &[&str]) -> Result<()> {
        eventually("what has changed is read", SOON, || async {
            let mut reads = audit.reads()?;
            for read in expected {
                let at = reads.iter().position(|one| one == read);
                reads.swap_remove(at.with_context(|| format!("no {read} in {reads:?}"))?);
            }
            Ok(())
        })
        .await
    }
}

#[test]
fn cluster_at_rest_is_read_only_when_something_changes() {
    alone(async |test_env: TestEnv| {
        let both = Both::start(test_env, &executable("hyperlink")?).await?;
        let cluster = HostedCluster::new(&both.test_env, "at-rest");
        cluster.create(&both.test_env).await?;
        cluster.becomes_available(&both.test_env, SOON).await?;
        both.rests().await?;

        let client = both.test_env.client()?;
        let namespace = cluster.control_plane_namespace();
        let services = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"));
        let services: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &services);
        let planes = cluster.api(&client, "HostedControlPlane", &namespace);
        let clusters = cluster.api(&client, "HostedCluster", both.test_env.hosted_clusters());
        let resources = cluster.api(&client, "AzurePrivateLinkService", &namespace);
        let annotated = json!({"metadata": {"annotations": {"example.com/changed": "true"}}});
        for (api, name, expected) in [
            (&services, "private-router", &["get services"][..]),
            (
                &planes,
                cluster.name(),
                &["get services", "get hostedcontrolplanes", "get hostedcontrolplanes"],
            ),
            (&clusters, cluster.name(), &["get services", "get hostedclusters"]),
            (
                &resources,
                "private-router",
                &["get services", "get hostedcontrolplanes", "get hostedcontrolplanes"],
            ),
        ] {
            let audit = both.audit()?;
            patch(api, name, annotated.clone()).await?;
            both.are_read(&audit, expected).await?;
            both.rests().await?;
        }
        cluster.delete(&both.test_env, SOON).await
    });
}
