//! A management cluster that is absent, not as it should be, or public, and lists that others have written wrongly.

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{API_SERVER_IP, CONDITION, FINALIZER, MANAGEMENT_INGRESS_IP};
use e2e::{eventually, scenario};
use kube::ResourceExt;
use kube::api::Patch;
use serde_json::{Value, json};

use crate::bad_input::has_reason;
use crate::fleet::{Fleet, LEDGER, NAMESPACE, entry, workload};
use crate::{SOON, becomes_true};

impl Fleet {
    /// The subnets of the management cluster.
    async fn subnets(&self) -> Result<Value> {
        Ok(self.management.get(&self.env).await?.data["spec"]["networkSpec"]["subnets"].clone())
    }

    async fn patch_management(&self, spec: &Value) -> Result<()> {
        self.management.patch(&self.env, &json!({"spec": spec})).await.map(drop)
    }
}

#[test]
fn management_cluster_that_appears_is_served_at_once() {
    scenario(async {
        let fleet = Fleet::without_management(LoadBalancer::Internal).await?;
        let cluster = workload("wc", IdentityType::WorkloadIdentity);
        cluster.create(&fleet.env).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        has_reason(&fleet, &cluster, "ManagementClusterMissing").await?;
        fleet.create_management().await?;
        fleet.is_connected(&cluster).await?;
        fleet.has_entries(&[entry(&cluster)]).await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

/// The addresses that a cluster publishes.
async fn addresses(fleet: &Fleet, cluster: &CapzCluster) -> Result<[Option<String>; 2]> {
    let object = cluster.get(&fleet.env).await?;
    Ok([API_SERVER_IP, MANAGEMENT_INGRESS_IP].map(|name| object.annotations().get(name).cloned()))
}

#[test]
fn management_cluster_that_is_gone_or_renamed_is_missed() {
    scenario(async {
        let (fleet, [stays, ends], hyperlink) = Fleet::serving(["stays", "ends"]).await?;
        let env = &fleet.env;
        let mut before = Vec::new();
        for cluster in [&stays, &ends] {
            let found = addresses(&fleet, cluster).await?;
            ensure!(found.iter().all(Option::is_some), "{found:?}");
            before.push(found);
        }
        fleet.management.delete(env, SOON).await?;
        let renamed = CapzCluster::management(NAMESPACE, "renamed", LoadBalancer::Internal);
        renamed.create(env).await?;
        for cluster in [&stays, &ends, &renamed] {
            has_reason(&fleet, cluster, "ManagementClusterMissing").await?;
        }
        for (cluster, before) in [&stays, &ends].into_iter().zip(&before) {
            let after = addresses(&fleet, cluster).await?;
            ensure!(after == *before, "{after:?} is not {before:?}");
        }
        ensure!(renamed.entry_names(env).await?.is_empty(), "it is served as one");
        ends.delete(env, SOON).await?;
        renamed.delete(env, SOON).await?;

        fleet.management.create_objects(env).await?;
        fleet.is_connected(&stays).await?;
        fleet.has_entries(&[entry(&stays)]).await?;
        stays.delete(env, SOON).await?;
        fleet.has_entries(&[]).await?;
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn public_management_cluster_has_no_way_to_its_gateway() {
    scenario(async {
        let fleet = Fleet::without_management(LoadBalancer::Public).await?;
        fleet.create_management().await?;
        let private = workload("private", IdentityType::WorkloadIdentity);
        let public = CapzCluster::workload(NAMESPACE, "public", LoadBalancer::Public);
        for cluster in [&private, &public] {
            cluster.create(&fleet.env).await?;
        }
        let hyperlink = fleet.hyperlink("first").await?;
        becomes_true(&fleet.env, &private, CONDITION).await?;
        fleet
            .is_reachable(&fleet.management.vnet(), &private.api_host())
            .await?;
        for cluster in [&private, &public] {
            eventually("it is held", SOON, || async {
                let object = cluster.get(&fleet.env).await?;
                let held = object.finalizers().iter().filter(|one| *one == FINALIZER).count();
                ensure!(held == 1, "{:?}", object.finalizers());
                Ok(())
            })
            .await?;
            ensure!(
                cluster.entry_names(&fleet.env).await?.is_empty(),
                "an entry in {}",
                cluster.name()
            );
            ensure!(cluster.annotation(&fleet.env, MANAGEMENT_INGRESS_IP).await?.is_none());
        }
        ensure!(
            public.conditions(&fleet.env, CONDITION).await?.is_empty(),
            "neither side applies"
        );
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn faults_of_the_management_cluster_drop_no_entry() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let before = workload("before", IdentityType::WorkloadIdentity);
        before.create(&fleet.env).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        fleet.is_connected(&before).await?;
        let after = workload("after", IdentityType::WorkloadIdentity);
        let whole = fleet.subnets().await?;

        // CAPZ would delete the endpoints of entries that are gone.
        fleet.capz.pause();
        fleet.patch_management(&json!({"networkSpec": {"subnets": []}})).await?;
        after.create(&fleet.env).await?;
        after
            .set_conditions(&fleet.env, &[("PrivateLinksReady", "True")])
            .await?;
        has_reason(&fleet, &after, "SubnetsNotSet").await?;
        fleet
            .patch_management(&json!({"networkSpec": {"subnets": whole}}))
            .await?;
        fleet.capz.resume();
        for cluster in [&before, &after] {
            fleet.is_connected(cluster).await?;
        }

        let kinds = ["SomethingNew", "Internal"].map(|kind| json!({"networkSpec": {"apiServerLB": {"type": kind}}}));
        let named = ["none", "mc"].map(|name| json!({"identityRef": {"name": name}}));
        for ([fault, correction], reason) in [(kinds, "UnknownLoadBalancerType"), (named, "IdentityMissing")] {
            fleet.patch_management(&fault).await?;
            for cluster in [&before, &after] {
                has_reason(&fleet, cluster, reason).await?;
            }
            fleet.has_entries(&[&before, &after].map(entry)).await?;
            fleet.patch_management(&correction).await?;
            for cluster in [&before, &after] {
                fleet.is_connected(cluster).await?;
            }
        }
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn ledger_of_junk_is_written_again_by_the_connections() {
    scenario(async {
        let (fleet, clusters, hyperlink) = Fleet::serving(["wc-1", "wc-2"]).await?;
        let (ledger, subnets) = (fleet.ledger().await?, fleet.subnets().await?);
        let one = json!({entry(&clusters[0]): 5, entry(&clusters[1]): "a/b/c/d"}).to_string();
        for junk in ["", "{", "[1]", &one, &"[".repeat(20_000)] {
            fleet.management.annotate(&fleet.env, LEDGER, Some(junk)).await?;
            eventually("the ledger is as it was", SOON, || async {
                let found = fleet.ledger().await?;
                ensure!(found == ledger, "{found}");
                Ok(())
            })
            .await
            .with_context(|| format!("after {}", &junk[..junk.len().min(50)]))?;
        }
        ensure!(fleet.subnets().await? == subnets, "entries have changed");
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn condition_that_is_listed_twice_is_listed_once_again() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let cluster = workload("wc", IdentityType::WorkloadIdentity);
        cluster.create(&fleet.env).await?;
        becomes_true(&fleet.env, &cluster, "PrivateLinksReady").await?;
        fleet.capz.pause();
        let now = "2026-01-01T00:00:00Z";
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
        let theirs = [
            condition("Theirs", "Unknown"),
            condition("PrivateLinksReady", "True"),
            condition("Theirs", "True"),
        ];
        let mut all = theirs.to_vec();
        all.insert(1, condition(CONDITION, "True"));
        all.push(condition(CONDITION, "False"));
        all.push(condition(CONDITION, "True"));
        let patch = Patch::Merge(json!({"status": {"conditions": all}}));
        let api = cluster.azure_clusters(&fleet.env.client()?);
        api.patch_status(cluster.name(), &Default::default(), &patch).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        has_reason(&fleet, &cluster, "WaitingForEndpoint").await?;
        let found = cluster.get(&fleet.env).await?.data["status"]["conditions"].clone();
        let others = found.as_array().context("no conditions")?.iter();
        let others: Vec<_> = others.filter(|one| one["type"] != CONDITION).cloned().collect();
        ensure!(others == theirs, "{found}");
        fleet.capz.resume();
        fleet.is_connected(&cluster).await?;
        ensure!(cluster.conditions(&fleet.env, CONDITION).await?.len() == 1);
        ensure!(cluster.annotation(&fleet.env, API_SERVER_IP).await?.is_some());
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
