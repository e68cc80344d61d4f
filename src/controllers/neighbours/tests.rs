use serde_json::{Value, json};

use super::*;
use crate::controllers::samples;

const NAT: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/infra-pls-nat";

fn cluster(name: &str) -> HostedCluster {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "clusters"},
        "spec": {"clusterID": name, "infraID": name}}))
    .unwrap()
}

fn giving(name: &str) -> AzurePrivateLinkService {
    let mut giving = samples::cr(Value::Null, json!({}));
    giving.metadata.name = Some(name.to_owned());
    giving.spec.nat_subnet_id = Some(NAT.to_owned());
    giving
}

fn known(neighbours: &Neighbours, name: &str) -> bool {
    neighbours.clusters().other(None, &Claim::cluster_id(name))
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_before_both_lists_have_come() {
    let neighbours = Neighbours::default();
    events(vec![cluster("a")]).for_each(|event| neighbours.cluster(&event));
    neighbours.resource(&Event::Init);
    neighbours.resource(&Event::InitApply(giving("b")));
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
fn nat_subnet_that_a_custom_resource_gives_is_known_until_it_gives_it_no_more() {
    let neighbours = Neighbours::default();
    let count = || neighbours.resources().nat_subnets("infra-pls-nat").count();
    neighbours.resource(&Event::Apply(giving("a")));
    assert_eq!(count(), 1);
    neighbours.resource(&Event::Apply(samples::cr(Value::Null, json!({}))));
    assert_eq!(count(), 1, "another one gives none");
    neighbours.resource(&Event::Delete(giving("a")));
    assert_eq!(count(), 0);
}
