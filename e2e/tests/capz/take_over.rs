//! What the operator that Hyperlink replaces leaves behind.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::bench::audit::Audit;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{
    API_SERVER_IP, CONDITION, Capz, DnsOperator, FINALIZER, LEASE, MANAGEMENT_INGRESS_IP, ReferenceOperator, Settings,
};
use e2e::capz_env::{WORKLOAD, situation};
use e2e::hyperlink::Hyperlink;
use e2e::{crds, eventually, scenario};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::fleet::{Fleet, LEDGER, NAMESPACE, entry, workload};
use crate::{SOON, becomes_true};

/// What begins so is Hyperlink's own.
const HYPERLINKS: &str = "hyperlink.hypershift.openshift.io/";

#[test]
fn reference_connects_a_private_cluster_both_ways() {
    situation(|env| async move {
        let namespace = "reference";
        let management = CapzCluster::management(namespace, "reference-mc", LoadBalancer::Internal);
        let workload = CapzCluster::workload(namespace, "reference-wc", LoadBalancer::Internal);
        management.create(env).await?;
        management.create_gateway(env, &[WORKLOAD]).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &[namespace], Settings::FORK).await?;
        let dns = DnsOperator::start(env, &management, &[namespace]).await?;
        becomes_true(env, &workload, "PrivateLinksReady").await?;

        let reference = ReferenceOperator::new(env, &management).await?;
        reference.renew_lease(env, namespace, "reference-1").await?;
        reference.serve(env, &workload).await?;
        let object = workload.get(env).await?;
        ensure!(object.finalizers().iter().any(|one| one == FINALIZER));
        for annotation in [API_SERVER_IP, MANAGEMENT_INGRESS_IP] {
            object
                .annotations()
                .get(annotation)
                .with_context(|| format!("no {annotation}"))?;
        }
        workload.has_true(env, CONDITION).await?;
        for (vnet, host) in [
            (management.vnet(), workload.api_host()),
            (workload.vnet(), management.gateway_host()),
        ] {
            eventually(&format!("{host} is reachable"), SOON, || async {
                let reachable = env.oracle().reachable(&vnet, &host).await?;
                ensure!(reachable.ok, "{reachable:?}");
                Ok(())
            })
            .await?;
        }
        let leases: Api<Lease> = Api::namespaced(env.client()?, namespace);
        let holder = leases.get(LEASE).await?.spec.and_then(|spec| spec.holder_identity);
        ensure!(holder.as_deref() == Some("reference-1"), "{holder:?}");
        reference.delete_lease(env, namespace).await?;
        dns.stop().await?;
        capz.stop().await
    });
}

/// All that two operators must not change of each other's, by cluster. A spec that is changed and changed back has
/// another generation.
async fn state(fleet: &Fleet, clusters: &[CapzCluster]) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for cluster in clusters.iter().chain([&fleet.management]) {
        let object = cluster.get(&fleet.env).await?;
        let mut annotations = object.annotations().clone();
        annotations.retain(|name, _| !name.starts_with(HYPERLINKS));
        let all = json!({"spec": object.data["spec"], "generation": object.metadata.generation,
            "finalizers": object.finalizers(), "annotations": annotations});
        found.insert(cluster.name().to_owned(), all);
    }
    Ok(found)
}

async fn waits_for(hyperlink: &Hyperlink, holder: &str) -> Result<()> {
    eventually("it waits for the other operator", SOON, || async {
        let (status, text) = hyperlink.page("/readyz").await?;
        ensure!(status != 200 && text.contains(&format!("{holder} leads")), "{text}");
        Ok(())
    })
    .await
}

/// Fails as soon as a path does not lead.
pub(crate) async fn always_reachable(fleet: &Fleet, clusters: &[CapzCluster]) -> Result<()> {
    loop {
        for cluster in clusters {
            for (vnet, host) in [
                (fleet.management.vnet(), cluster.api_host()),
                (cluster.vnet(), fleet.management.gateway_host()),
            ] {
                let reachable = fleet.env.oracle().reachable(&vnet, &host).await?;
                ensure!(reachable.ok, "{host}: {reachable:?}");
            }
        }
    }
}

/// How many reconciles of a controller have ended so; with an empty `result` in whichever way.
async fn reconciles(hyperlink: &Hyperlink, controller: &str, result: &str) -> Result<usize> {
    let (_, metrics) = hyperlink.page("/metrics").await?;
    let series = format!("hyperlink_reconcile_total{{controller=\"{controller}\",result=\"{result}");
    let own = metrics.lines().filter(|line| line.starts_with(&series));
    own.map(|line| Ok(line.rsplit(' ').next().context("no count")?.parse::<usize>()?))
        .sum()
}

/// Waits until the other operator alone keeps Hyperlink from writing: it has reconciled all AzureClusters and Clusters.
async fn would_have_written(hyperlink: &Hyperlink, clusters: &[CapzCluster]) -> Result<()> {
    eventually("all clusters wait", SOON, || async {
        for controller in ["azure_cluster", "provider_config"] {
            let count = reconciles(hyperlink, controller, "").await?;
            ensure!(count > clusters.len(), "{controller}: {count}");
        }
        Ok(())
    })
    .await
}

/// Waits until Hyperlink has reconciled each of these workload clusters and the management cluster.
async fn are_all_reconciled(fleet: &Fleet, hyperlink: &Hyperlink, clusters: &[CapzCluster]) -> Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("azure.upbound.io", "v1beta1", "ProviderConfig"));
    let configs: Api<DynamicObject> = Api::all_with(fleet.env.client()?, &kind);
    eventually("all clusters are reconciled", SOON, || async {
        let count = reconciles(hyperlink, "azure_cluster", "ready").await?;
        ensure!(count > clusters.len(), "{count}");
        for cluster in clusters.iter().chain([&fleet.management]) {
            configs.get(cluster.name()).await?;
        }
        Ok(())
    })
    .await
}

/// Fails unless Hyperlink has written nothing to AzureClusters since then but the ledger and workload clusters' status.
async fn has_written_the_ledger_alone(fleet: &Fleet, audit: &Audit, clusters: &[CapzCluster]) -> Result<()> {
    let own = async |cluster: &CapzCluster| {
        let mut annotations = cluster.get(&fleet.env).await?.annotations().clone();
        annotations.retain(|name, _| name.starts_with(HYPERLINKS));
        anyhow::Ok(annotations.into_keys().collect::<Vec<_>>())
    };
    for cluster in clusters {
        let writes = audit.writes_of(cluster.name())?;
        ensure!(!writes.iter().any(|write| write == "patch azureclusters"), "{writes:?}");
        let annotations = own(cluster).await?;
        ensure!(annotations.is_empty(), "{annotations:?}");
    }
    let mut writes = audit.writes_of(fleet.management.name())?;
    writes.retain(|write| write.contains(" azureclusters"));
    ensure!(writes == ["patch azureclusters"], "{writes:?}");
    let annotations = own(&fleet.management).await?;
    ensure!(annotations == [LEDGER], "{annotations:?}");
    Ok(())
}

async fn take_over_and_give_back(fleet: &Fleet, reference: &ReferenceOperator, clusters: &[CapzCluster]) -> Result<()> {
    let before = state(fleet, clusters).await?;
    let audit = Audit::begin(fleet.env.control_plane().audit_log())?;
    let hyperlink = fleet.hyperlink("first").await?;
    waits_for(&hyperlink, "reference-1").await?;
    would_have_written(&hyperlink, clusters).await?;
    let writes = audit.writes()?;
    ensure!(writes.is_empty(), "while another leads: {writes:?}");
    reference.delete_lease(&fleet.env, NAMESPACE).await?;
    fleet
        .has_entries(&clusters.iter().map(entry).collect::<Vec<_>>())
        .await?;
    hyperlink.ready(SOON).await?;
    are_all_reconciled(fleet, &hyperlink, clusters).await?;
    for cluster in clusters {
        fleet.is_connected(cluster).await?;
    }
    let after = state(fleet, clusters).await?;
    ensure!(after == before, "{after:?} is not {before:?}");

    reference.renew_lease(&fleet.env, NAMESPACE, "reference-2").await?;
    waits_for(&hyperlink, "reference-2").await?;
    hyperlink.stop().await?;
    has_written_the_ledger_alone(fleet, &audit, clusters).await?;
    for cluster in clusters {
        reference.serve(&fleet.env, cluster).await?;
    }
    let after = state(fleet, clusters).await?;
    ensure!(after == before, "{after:?} is not {before:?}");
    Ok(())
}

#[test]
fn twenty_clusters_are_taken_over_and_given_back_unchanged() {
    scenario(async {
        let fleet = Fleet::start().await?;
        crds::serve_provider_configs(&fleet.env.client()?, true).await?;
        let clusters: Vec<_> = (0..20)
            .map(|number| workload(&format!("wc-{number}"), IdentityType::WorkloadIdentity))
            .collect();
        let reference = ReferenceOperator::new(&fleet.env, &fleet.management).await?;
        reference.renew_lease(&fleet.env, NAMESPACE, "reference-1").await?;
        for cluster in &clusters {
            cluster.create(&fleet.env).await?;
        }
        for cluster in &clusters {
            becomes_true(&fleet.env, cluster, "PrivateLinksReady").await?;
            reference.serve(&fleet.env, cluster).await?;
            fleet.is_connected(cluster).await?;
        }
        reference.renew_lease(&fleet.env, NAMESPACE, "reference-1").await?;
        tokio::select! {
            failed = always_reachable(&fleet, &clusters) => failed?,
            done = take_over_and_give_back(&fleet, &reference, &clusters) => done?,
        }
        fleet.stop().await
    });
}
