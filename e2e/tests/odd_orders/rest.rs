//! A cluster at rest: its reconciles read nothing of Kubernetes, until something changes that they depend on.

use std::time::Duration;

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

    /// Waits until nothing is read for three seconds.
    async fn is_quiet(&self) -> Result<()> {
        eventually("nothing is read", SOON, || async {
            let audit = self.audit()?;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let reads = audit.reads()?;
            ensure!(reads.is_empty(), "{reads:?}");
            Ok(())
        })
        .await
    }

    /// Waits until these reads have come.
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
fn cluster_at_rest_is_not_read() {
    alone(async |test_env: TestEnv| {
        let both = Both::start(test_env, &executable("hyperlink")?, "2s").await?;
        let cluster = HostedCluster::new(&both.test_env, "at-rest");
        cluster.create(&both.test_env).await?;
        cluster.becomes_available(&both.test_env, SOON).await?;
        both.rests().await?;
        cluster.delete(&both.test_env, SOON).await
    });
}

#[test]
fn change_ends_the_rest_at_once() {
    alone(async |test_env: TestEnv| {
        // Far longer than the test takes: only an event causes a read.
        let both = Both::start(test_env, &executable("hyperlink")?, "30m").await?;
        let cluster = HostedCluster::new(&both.test_env, "changed");
        cluster.create(&both.test_env).await?;
        cluster.becomes_available(&both.test_env, SOON).await?;

        let client = both.test_env.client()?;
        let namespace = cluster.control_plane_namespace();
        let services = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"));
        let services: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &services);
        let planes = cluster.api(&client, "HostedControlPlane", &namespace);
        let clusters = cluster.api(&client, "HostedCluster", both.test_env.hosted_clusters());
        // Only a reconcile of a custom resource reads them, in each role.
        let by_ho = ["get hostedclusters"];
        let by_both = ["get hostedclusters", "get hostedclusters"];
        let annotation = json!({"metadata": {"annotations": {"example.com/changed": "true"}}});
        let label = json!({"metadata": {"labels": {"example.com/changed": "true"}}});
        let spec = json!({"spec": {"issuerURL": "https://changed.example.com"}});
        for (api, name, change, expected) in [
            (&services, "private-router", annotation, &by_ho[..]),
            (&planes, cluster.name(), spec, &by_both),
            (&clusters, cluster.name(), label, &by_both),
        ] {
            both.is_quiet().await?;
            let audit = both.audit()?;
            patch(api, name, change).await?;
            both.are_read(&audit, expected).await?;
        }
        cluster.delete(&both.test_env, SOON).await
    });
}
