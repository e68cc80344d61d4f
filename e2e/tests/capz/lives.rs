//! Role `capz` serves clusters: paths come up both ways, are repaired, taken over and deleted.

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{API_SERVER_IP, upgrade};
use e2e::hyperlink::Hyperlink;
use e2e::{eventually, scenario};
use kube::api::Patch;
use serde_json::{Value, json};

use crate::bad_input::has_reason;
use crate::fleet::{Fleet, NAMESPACE, entry, entry_of_a_person, gateway, workload};
use crate::{SOON, has_event, is_gone};

#[test]
fn private_paths_lead_both_ways_and_end_with_their_cluster() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let clusters = [
            workload("wc-1", IdentityType::WorkloadIdentity),
            workload("wc-2", IdentityType::ServicePrincipal),
            workload("wc-3", IdentityType::ServicePrincipalCertificate),
            workload("wc-4", IdentityType::UserAssignedMsi),
            CapzCluster::workload(NAMESPACE, "public", LoadBalancer::Public),
        ];
        let hyperlink = fleet.hyperlink("first").await?;
        for cluster in &clusters {
            cluster.create(&fleet.env).await?;
        }
        for cluster in &clusters {
            fleet.is_connected(cluster).await?;
        }
        // It has all rights that it looks for, of which none is for gates.
        hyperlink.ready(SOON).await?;
        let [first, second, third, fourth, public] = &clusters;
        fleet.has_entries(&[first, second, third, fourth].map(entry)).await?;

        second.delete(&fleet.env, SOON).await?;
        is_gone(&fleet.env, &fleet.management.endpoint(&entry(second))).await?;
        fleet.has_entries(&[first, third, fourth].map(entry)).await?;
        let of = format!(
            "the entry for private endpoint {} of AzureCluster {NAMESPACE}/mc",
            entry(second)
        );
        has_event(&fleet.env, NAMESPACE, "Created", &format!("{of} is added")).await?;
        has_event(&fleet.env, NAMESPACE, "Deleted", &format!("{of} is removed")).await?;
        // An address that is not the endpoint's is set right.
        first.annotate(&fleet.env, API_SERVER_IP, Some("junk")).await?;
        for cluster in [first, third, fourth, public] {
            fleet.is_connected(cluster).await?;
            cluster.delete(&fleet.env, SOON).await?;
        }
        fleet.has_entries(&[]).await?;
        fleet.only_reads().await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn entry_that_others_drop_is_back() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let cluster = workload("wc", IdentityType::WorkloadIdentity);
        let theirs = entry_of_a_person();
        fleet.capz.pause();
        fleet.management.add_entry(&fleet.env, &theirs).await?;
        cluster.create(&fleet.env).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        cluster
            .set_conditions(&fleet.env, &[("PrivateLinksReady", "True")])
            .await?;
        let both = async || -> Result<()> {
            eventually("both entries are there", SOON, || async {
                let names = fleet.management.entry_names(&fleet.env).await?;
                ensure!(names == ["theirs".to_owned(), entry(&cluster)], "{names:?}");
                Ok(())
            })
            .await
        };
        both().await?;
        fleet.management.remove_entry(&fleet.env, &entry(&cluster)).await?;
        both().await?;

        let subnets = fleet.management.get(&fleet.env).await?.data["spec"]["networkSpec"]["subnets"].clone();
        let mut own = subnets.clone();
        for subnet in own.as_array_mut().context("no subnets")? {
            let kept = subnet["name"] == "node-subnet";
            subnet["privateEndpoints"] = if kept { json!([theirs]) } else { Value::Null };
        }
        // Helm brings new values too.
        let mut expected = subnets.clone();
        for subnets in [&mut own, &mut expected] {
            subnets[0]["serviceEndpoints"] = json!([{"service": "Microsoft.Storage", "locations": ["westeurope"]}]);
        }
        upgrade(&fleet.env, &fleet.management, &own).await?;
        both().await?;
        let after = fleet.management.get(&fleet.env).await?.data["spec"]["networkSpec"]["subnets"].clone();
        ensure!(after == expected, "{after} is not {expected}");
        let repaired = "hyperlink_changes_total{change=\"repaired\",kind=\"private_endpoint_entry\"} 2";
        let (_, page) = hyperlink.page("/metrics").await?;
        ensure!(page.contains(repaired), "{page}");
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn events_alone_connect_a_cluster_and_restore_it() {
    scenario(async {
        let fleet = Fleet::without_management(LoadBalancer::Internal).await?;
        fleet.capz.pause();
        let cluster = workload("wc", IdentityType::WorkloadIdentity);
        let nobodys = json!({"spec": {"allowedNamespaces": null}});
        let refused = workload("refused", IdentityType::WorkloadIdentity).with_identity(nobodys);
        for cluster in [&cluster, &refused] {
            cluster.create(&fleet.env).await?;
        }
        // Nothing is reconciled again for the sake of time in this test.
        let seldom = [("resync", "1h")];
        let hyperlink = Hyperlink::start_capz(&fleet.env, &fleet.management, &[NAMESPACE], "first", &seldom).await?;
        has_reason(&fleet, &cluster, "ManagementClusterMissing").await?;
        fleet.create_management().await?;
        has_reason(&fleet, &cluster, "LinksNotReady").await?;
        fleet.capz.resume();
        fleet.is_connected(&cluster).await?;

        has_reason(&fleet, &refused, "IdentityNotAllowed").await?;
        let allowed = Patch::Merge(json!({"spec": {"allowedNamespaces": {}}}));
        let identities = refused.identities(&fleet.env.client()?);
        identities.patch(refused.name(), &Default::default(), &allowed).await?;
        fleet.is_connected(&refused).await?;

        let (management, both) = (&fleet.management, [entry(&cluster), entry(&refused)]);
        for entry in &both {
            management.remove_entry(&fleet.env, entry).await?;
            fleet.has_entries(&both).await?;
        }
        cluster.remove_entry(&fleet.env, &gateway(&cluster, management)).await?;
        eventually("the entry for the gateway is back", SOON, || async {
            let entries = cluster.entry_names(&fleet.env).await?;
            ensure!(entries == [gateway(&cluster, management)], "{entries:?}");
            Ok(())
        })
        .await?;
        for cluster in [&cluster, &refused] {
            fleet.is_connected(cluster).await?;
        }
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
