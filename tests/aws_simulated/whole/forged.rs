//! A tenant may write anything in the control plane's namespace.

use rstest::rstest;

use super::cluster::{CLUSTER_ID, PLANE, SERVICE};
use super::*;

const HO_INTENT: &str = "hyperlink.hypershift.openshift.io/ho-intent";
const CPO_INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
const DNS_NAME: &str = "hyperlink.hypershift.openshift.io/endpoint-dns-name";
const ZONES: &str = "hyperlink.hypershift.openshift.io/service-zones";

fn annotation(name: &str, value: impl serde::Serialize) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

/// An intent of the cluster with this besides.
fn intent(more: &Value) -> String {
    let mut intent = json!({"cluster": "example", "clusterID": CLUSTER_ID, "infraID": "example-x7k2p",
        "region": "us-east-1"});
    for (name, value) in more.as_object().unwrap() {
        intent[name] = value.clone();
    }
    intent.to_string()
}

fn guest(aws: &Value) -> Value {
    json!({"spec": {"platform": {"aws": aws}}})
}

/// Forged for half an hour and deleted then: the path holds, calls are few, and nothing is left.
#[rstest]
#[case::no_ho_intent(CR, annotation(HO_INTENT, Value::Null))]
#[case::damaged_ho_intent(CR, annotation(HO_INTENT, "{"))]
#[case::ho_intent_of_a_victim(CR, annotation(HO_INTENT, intent(&json!({"account": MANAGEMENT,
    "loadBalancer": "victim", "formerLoadBalancers": (0..3_000).map(|at| format!("b{at}")).collect::<Vec<_>>()}))))]
#[case::no_cpo_intent(CR, annotation(CPO_INTENT, Value::Null))]
#[case::damaged_cpo_intent(CR, annotation(CPO_INTENT, "{"))]
#[case::cpo_intent_of_many(CR, annotation(CPO_INTENT, intent(&json!({"account": GUEST, "vpc": "vpc-00000002",
    "endpointServiceNames": (0..3_000).map(|at| format!("com.amazonaws.vpce.us-east-1.vpce-svc-{at:017x}"))
        .collect::<Vec<_>>()}))))]
#[case::no_dns_name(CR, annotation(DNS_NAME, Value::Null))]
#[case::dns_name_of_another(CR, annotation(DNS_NAME, "vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com"))]
#[case::zones(CR, annotation(ZONES, "use1-az9"))]
#[case::no_zones(CR, annotation(ZONES, ",,"))]
#[case::cluster(CR, annotation("hypershift.openshift.io/cluster", "clusters/victim"))]
#[case::no_status(CR, json!({"status": {"endpointServiceName": null, "endpointID": null, "securityGroupID": null,
    "dnsNames": null, "dnsZoneID": null}}))]
#[case::service_name(CR, json!({"status": {"endpointServiceName": "x"}}))]
#[case::zone(CR, json!({"status": {"dnsZoneID": "ZAAAAAAAAAAAA"}}))]
#[case::load_balancer(CR, json!({"spec": {"networkLoadBalancerName": "victim"}}))]
#[case::subnets(CR, json!({"spec": {"subnetIDs": ["subnet-aaaaaaaa"]}}))]
#[case::no_finalizers(CR, json!({"metadata": {"finalizers": []}}))]
#[case::host_names(SERVICE, json!({"status": {"loadBalancer": {"ingress": (0..500)
    .map(|at| json!({"hostname": format!("b{at}-0{at}.elb.us-east-1.amazonaws.com")})).collect::<Vec<_>>()}}}))]
#[case::no_owner(SERVICE, json!({"metadata": {"ownerReferences": []}}))]
#[case::vpc(PLANE, guest(&json!({"cloudProviderConfig": {"vpc": "vpc-00000009"}})))]
#[case::no_vpc(PLANE, guest(&json!({"cloudProviderConfig": {"vpc": null}})))]
#[case::networks(PLANE, json!({"spec": {"networking": {"machineNetwork": [{"cidr": "x"}]}}}))]
#[tokio::test(start_paused = true)]
async fn forgery_breaks_nothing_and_leaves_nothing(
    #[case] key: &str,
    #[case] patch: Value,
    #[values(false, true)] deleted_at_once: bool,
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    life.aws.clear_journal();
    life.cluster.take_requests();
    life.cluster.forge(key, &patch);
    life.wake();
    // A tenant who takes away the finalizers and deletes the object at once leaves what nobody can know of.
    if !deleted_at_once || patch["metadata"]["finalizers"].is_array() {
        life.run_for(Duration::from_secs(1_800)).await;
        assert!(life.is_reachable());
        let (calls, requests) = (life.aws.journal().len(), life.cluster.take_requests().len());
        assert!(calls <= 140 && requests <= 400, "{calls} calls, {requests} requests");
    }
    life.aws.clear_journal();
    life.deleted().await;
    let (calls, requests) = (life.aws.journal().len(), life.cluster.take_requests().len());
    assert!(calls <= 90 && requests <= 400, "{calls} calls, {requests} requests");
    assert_eq!(life.remains(), empty);
}

/// Nothing proves any more whose the guest's side is: it stays, and an Event says so.
#[tokio::test(start_paused = true)]
async fn what_is_left_because_of_forged_ids_is_reported() {
    let mut life = Life::new();
    life.until_available().await;
    let ids = json!({"spec": {"clusterID": "0f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a12"}});
    life.cluster.forge(PLANE, &ids);
    life.cluster.take_events();
    life.deleted().await;
    assert!(!life.remains().is_empty());
    let events = life.cluster.take_events();
    assert!(events.iter().any(|note| note.contains("stays")), "{events:?}");
}
