//! What exists of a management cluster and its workload clusters: entries, annotations and conditions of their
//! AzureClusters, the resources in Azure, and whether the API servers and the gateway are reachable.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;

use super::CapzStage;
use crate::capz_cluster::{CapzCluster, LoadBalancer, entries};
use crate::capz_controllers::{API_SERVER_IP, CONDITION, MANAGEMENT_INGRESS_IP, gateway_entry};
use crate::capz_env::{MANAGEMENT, WORKLOAD};
use crate::demo::azure::resource;
use crate::demo::observed::Observed;

/// The conditions that are shown: CAPZ's, for which Hyperlink waits, and Hyperlink's.
const CONDITIONS: [&str; 2] = ["PrivateLinksReady", CONDITION];

/// What the names of the annotations of role `capz` begin with.
const ANNOTATIONS: [&str; 2] = [
    "azure-private-endpoint-operator.giantswarm.io/",
    "hyperlink.hypershift.openshift.io/",
];

/// Reads everything once; `changed` stands for the object of its name, which may have changed again.
pub(super) async fn read(stage: &CapzStage, changed: Option<DynamicObject>) -> Result<Observed> {
    let mut observed = Observed::default();
    let all = stage.management.azure_clusters(&stage.client);
    let all = all.list(&ListParams::default()).await?.items;
    let objects: BTreeMap<_, _> = all
        .into_iter()
        .chain(changed)
        .map(|object| (object.name_any(), object))
        .collect();
    for object in objects.values() {
        add_azure_cluster(&mut observed, object);
    }
    for subscription in [MANAGEMENT, WORKLOAD] {
        let prefix = format!("/subscriptions/{subscription}");
        for found in stage.env.oracle().resources(&prefix).await? {
            if is_shown(&found) {
                resource::add(&mut observed, &found);
            }
        }
    }
    let Some(management) = objects.get(stage.management.name()) else {
        observed.add_lack("the management cluster");
        return Ok(observed);
    };
    for workload in &stage.workloads {
        if let Some(object) = objects.get(workload.name()) {
            add_lacks(&mut observed, stage, workload, (management, object));
            add_names(&mut observed, stage, workload).await?;
        }
    }
    Ok(observed)
}

/// Whether a resource is one of CAPZ's. Names show what the DNS operator has made.
fn is_shown(resource: &Value) -> bool {
    let id = resource["id"].as_str().unwrap_or_default().to_lowercase();
    ["/privatelinkservices/", "/privateendpoints/"]
        .iter()
        .any(|kind| id.contains(kind))
}

fn add_azure_cluster(observed: &mut Observed, object: &DynamicObject) {
    let cluster = object.name_any();
    let is_deleting = object.metadata.deletion_timestamp.is_some();
    let state = if is_deleting { "deleting" } else { "there" };
    observed.add(format!("AzureCluster {cluster}"), state.into());
    for (subnet, entry) in entries(object) {
        let name = entry["name"].as_str().unwrap_or_default();
        observed.add(format!("entry {name} of {cluster}"), format!("in {subnet}"));
    }
    for (name, value) in object.annotations() {
        if let Some(short) = ANNOTATIONS.iter().find_map(|prefix| name.strip_prefix(prefix)) {
            observed.add(format!("annotation {short} of {cluster}"), keys_or(value));
        }
    }
    let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    for condition in conditions {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        if CONDITIONS.contains(&text("type")) {
            let state = [text("status"), text("reason"), text("message")].join(" ");
            observed.add(format!("condition {} of {cluster}", text("type")), state.trim().into());
        }
    }
}

/// The keys of a map, or the text of everything else.
fn keys_or(value: &str) -> String {
    match serde_json::from_str(value) {
        Ok(Value::Object(map)) => map.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        _ => value.to_owned(),
    }
}

/// Adds what a workload cluster lacks in its object and in that of the management cluster.
fn add_lacks(
    observed: &mut Observed,
    stage: &CapzStage,
    workload: &CapzCluster,
    (management, object): (&DynamicObject, &DynamicObject),
) {
    let gateway = gateway_entry(&stage.management, workload);
    let has_gateway = entries(object).any(|(_, entry)| entry["name"] == gateway["name"]);
    if !has_gateway || !stage.has_entries_for(workload, management) {
        observed.add_lack("an entry");
    }
    let api_server = (workload.load_balancer() == LoadBalancer::Internal).then_some(API_SERVER_IP);
    let mut expected = [MANAGEMENT_INGRESS_IP].into_iter().chain(api_server);
    if !expected.all(|name| object.annotations().contains_key(name)) {
        observed.add_lack("the annotation with an address");
    }
    let mut conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    if !conditions.any(|one| one["type"] == CONDITION && one["status"] == "True") {
        observed.add_lack("the condition of a workload cluster");
    }
}

/// Adds where the gateway's name leads to from a workload cluster, and its API server's from the management cluster.
async fn add_names(observed: &mut Observed, stage: &CapzStage, workload: &CapzCluster) -> Result<()> {
    let (oracle, management) = (stage.env.oracle(), &stage.management);
    let host = management.gateway_host();
    let found = oracle.reachable(&workload.vnet(), &host).await?;
    let from = format!("{host} from {}", workload.name());
    observed.add_name(&from, found, &management.gateway_service());
    if workload.load_balancer() == LoadBalancer::Internal {
        let host = workload.api_host();
        let found = oracle.reachable(&management.vnet(), &host).await?;
        let from = format!("{host} from {}", management.name());
        observed.add_name(&from, found, &workload.api_service());
    }
    Ok(())
}
