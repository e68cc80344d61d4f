use serde_json::{Value, json};

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::controllers::samples;

/// The events of a watch that begins with this list.
fn events<K>(list: Vec<K>) -> impl Iterator<Item = Event<K>> {
    let all = list.into_iter().map(Event::InitApply);
    std::iter::once(Event::Init).chain(all).chain([Event::InitDone])
}

fn cluster(name: &str) -> HostedCluster {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "clusters"},
        "spec": {"clusterID": name, "infraID": name}}))
    .unwrap()
}

fn at(name: &str, address: &str) -> AzurePrivateLinkService {
    let mut cr = samples::cr(Value::Null, json!({}));
    cr.metadata.name = Some(name.into());
    cr.spec.load_balancer_ip = Some(address.into());
    cr
}

fn known(cluster_index: &ClusterIndex, name: &str) -> bool {
    cluster_index.clusters().other(None, &Claim::cluster_id(name))
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_before_both_lists_have_come() {
    let cluster_index = ClusterIndex::default();
    events(vec![cluster("a")]).for_each(|event| cluster_index.cluster(&event));
    cluster_index.resource(&Event::<AzurePrivateLinkService>::Init);
    cluster_index.resource(&Event::InitApply(at("b", "10.0.0.4")));
    assert!(matches!(
        cluster_index.known().await,
        Err(ReconcileError::Unlisted("custom resources"))
    ));
    cluster_index.resource(&Event::<AzurePrivateLinkService>::InitDone);
    assert!(cluster_index.known().await.is_ok());
}

#[test]
fn cluster_that_went_while_nobody_watched_is_forgotten() {
    let cluster_index = ClusterIndex::default();
    events(vec![cluster("a"), cluster("b")]).for_each(|event| cluster_index.cluster(&event));
    cluster_index.cluster(&Event::Init);
    cluster_index.cluster(&Event::InitApply(cluster("a")));
    assert!(known(&cluster_index, "b"), "the list has not ended");
    cluster_index.cluster(&Event::InitDone);
    assert!(known(&cluster_index, "a") && !known(&cluster_index, "b"));
}

#[test]
fn deleted_cluster_claims_nothing_more() {
    let cluster_index = ClusterIndex::default();
    cluster_index.cluster(&Event::Apply(cluster("a")));
    assert!(known(&cluster_index, "a"));
    cluster_index.cluster(&Event::Delete(cluster("a")));
    assert!(!known(&cluster_index, "a"));
}

#[test]
fn address_is_known_as_long_as_a_custom_resource_has_it() {
    let cluster_index = ClusterIndex::default();
    let address = Claim::address("10.0.0.4").unwrap();
    let count = || cluster_index.resources().holders(&address).count();
    cluster_index.resource(&Event::Apply(at("private-router", "10.0.0.4")));
    assert_eq!(count(), 1);
    cluster_index.resource(&Event::Apply(at("oauth-openshift", "10.0.0.5")));
    assert_eq!(count(), 1, "another one has another");
    cluster_index.resource(&Event::Apply(at("junk", "10.0.0.4")));
    assert_eq!(count(), 1, "there is no Service of its name");
    cluster_index.resource(&Event::Delete(at("private-router", "10.0.0.4")));
    assert_eq!(count(), 0);
}
