use serde_json::{Value, json};

use super::*;
use crate::controllers::samples;

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

fn known(neighbours: &Neighbours, name: &str) -> bool {
    neighbours.clusters().other(None, &Claim::cluster_id(name))
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_before_both_lists_have_come() {
    let neighbours = Neighbours::default();
    events(vec![cluster("a")]).for_each(|event| neighbours.cluster(&event));
    neighbours.resource(&Event::Init);
    neighbours.resource(&Event::InitApply(at("b", "10.0.0.4")));
    assert!(matches!(
        neighbours.known().await,
        Err(PassError::Unlisted("AzurePrivateLinkServices"))
    ));
    neighbours.resource(&Event::InitDone);
    assert!(neighbours.known().await.is_ok());
}

#[test]
fn cluster_that_went_while_nobody_watched_is_forgotten() {
    let neighbours = Neighbours::default();
    events(vec![cluster("a"), cluster("b")]).for_each(|event| neighbours.cluster(&event));
    neighbours.cluster(&Event::Init);
    neighbours.cluster(&Event::InitApply(cluster("a")));
    assert!(known(&neighbours, "b"), "the list has not ended");
    neighbours.cluster(&Event::InitDone);
    assert!(known(&neighbours, "a") && !known(&neighbours, "b"));
}

#[test]
fn cluster_that_goes_claims_nothing_more() {
    let neighbours = Neighbours::default();
    neighbours.cluster(&Event::Apply(cluster("a")));
    assert!(known(&neighbours, "a"));
    neighbours.cluster(&Event::Delete(cluster("a")));
    assert!(!known(&neighbours, "a"));
}

#[test]
fn address_of_a_custom_resource_is_known_until_it_has_it_no_more() {
    let neighbours = Neighbours::default();
    let address = Claim::address("10.0.0.4").unwrap();
    let count = || neighbours.resources().holders(&address).count();
    neighbours.resource(&Event::Apply(at("private-router", "10.0.0.4")));
    assert_eq!(count(), 1);
    neighbours.resource(&Event::Apply(at("oauth-openshift", "10.0.0.5")));
    assert_eq!(count(), 1, "another one has another");
    neighbours.resource(&Event::Apply(at("junk", "10.0.0.4")));
    assert_eq!(count(), 1, "there is no Service of its name");
    neighbours.resource(&Event::Delete(at("private-router", "10.0.0.4")));
    assert_eq!(count(), 0);
}
