use std::time::Duration;

use kube::runtime::watcher::Event;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkServiceSpec, Reason};
use crate::controllers::context::sample;
use crate::controllers::private_link_service::samples::alone;
use crate::controllers::samples::{cr, guest, id, management};

fn deleting(name: &str, finalizers: &[&str]) -> AzurePrivateLinkService {
    let mut deleting = cr(Value::Null, json!({}));
    deleting.metadata.name = Some(name.to_owned());
    deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    deleting.metadata.finalizers = Some(finalizers.iter().map(ToString::to_string).collect());
    deleting
}

#[test]
fn of_two_that_go_together_exactly_one_is_the_last() {
    let (oauth, router) = (
        deleting("oauth-openshift", &[HO_FINALIZER]),
        deleting("private-router", &[HO_FINALIZER]),
    );
    assert!(stays(&oauth, &router) && !stays(&router, &oauth));
    assert!(waits_for_deletion(&router), "which the last one waits for");
    let released = deleting("oauth-openshift", &["theirs"]);
    assert!(!stays(&released, &router) && !waits_for_deletion(&released));
    let mut living = cr(Value::Null, json!({}));
    living.metadata.finalizers = Some(vec![HO_FINALIZER.to_owned()]);
    assert!(stays(&living, &oauth) && !waits_for_deletion(&living));
}

#[test]
fn sibling_that_nobody_serves_does_not_keep_the_subnet() {
    let living = cr(Value::Null, json!({}));
    assert!(!stays(&living, &deleting("oauth-openshift", &[HO_FINALIZER])) && !waits_for_deletion(&living));
}

const NAT: &str = "/subscriptions/s/resourceGroups/Größe-Ü/providers/Microsoft.Network/virtualNetworks/v/subnets";

fn hosted(name: &str, day: u8, given: Option<&str>) -> HostedCluster {
    let link = json!({"natSubnetID": given.map(|name| format!("{NAT}/{name}"))});
    let network = guest("virtualNetworks/V");
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "clusters", "creationTimestamp": format!("2026-01-0{day}T00:00:00Z")},
        "spec": {"clusterID": "id", "infraID": "infra", "platform": {"type": "Azure", "azure": {
            "vnetID": network, "subnetID": format!("{network}/subnets/default"), "private": {"type": "PrivateLink", "privateLink": link}}}}}))
    .unwrap()
}

fn plane_of(hosted: &HostedCluster) -> HostedControlPlane {
    let mut plane = HostedControlPlane {
        spec: hosted.spec.clone(),
        ..HostedControlPlane::default()
    };
    plane.metadata.name = hosted.metadata.name.clone();
    plane.metadata.namespace = Some("clusters-example".into());
    plane
        .annotations_mut()
        .insert(CLUSTER_ANNOTATION.into(), "clusters/example".into());
    plane
}

/// A custom resource of the cluster `clusters/example`.
fn named() -> AzurePrivateLinkService {
    cr(Value::Null, json!({CLUSTER_ANNOTATION: "clusters/example"}))
}

fn refusal(cr: &AzurePrivateLinkService, hosted: &HostedCluster, cluster_index: &ClusterIndex) -> Option<Reason> {
    let plane = plane_of(hosted);
    let agreed = agreed(cr, Some(hosted), Some(&plane), &cluster_index.clusters(), PUBLIC_CLOUD);
    agreed.err().map(|problem| problem.reason)
}

#[test]
fn cluster_with_the_id_of_an_older_one_is_refused() {
    let (older, own) = (hosted("older", 1, None), hosted("example", 2, None));
    let cluster_index = ClusterIndex::default();
    cluster_index.cluster(&Event::Apply(own.clone()));
    assert_eq!(refusal(&named(), &own, &cluster_index), None);
    cluster_index.cluster(&Event::Apply(older));
    assert_eq!(refusal(&named(), &own, &cluster_index), Some(Reason::DuplicateIdentity));
}

#[test]
fn cluster_that_the_custom_resource_does_not_name_is_refused() {
    let other = hosted("other", 1, None);
    let refused = refusal(&named(), &other, &ClusterIndex::default());
    assert_eq!(refused, Some(Reason::HostedClusterNotFound));
}

#[test]
fn subnet_that_the_cluster_does_not_give_is_refused() {
    let mut giving = named();
    giving.spec.nat_subnet_id = Some(format!("{NAT}/nat"));
    let cluster_index = ClusterIndex::default();
    assert_eq!(
        refusal(&giving, &hosted("example", 1, Some("nat")), &cluster_index),
        None
    );
    let refused = refusal(&giving, &hosted("example", 1, None), &cluster_index);
    assert_eq!(refused, Some(Reason::ScopeNotAllowed));
}

#[rstest]
#[case::network(|spec: &mut AzurePrivateLinkServiceSpec| spec.guest_vnet_id = guest("virtualNetworks/other"), "guestVNetID")]
#[case::subnet(|spec: &mut AzurePrivateLinkServiceSpec| spec.guest_subnet_id = guest("virtualNetworks/v/subnets/other"), "guestSubnetID")]
fn guest_that_is_not_the_clusters_is_refused(
    #[case] change: fn(&mut AzurePrivateLinkServiceSpec),
    #[case] field: &str,
) {
    let (mut forged, own) = (named(), hosted("example", 1, None));
    change(&mut forged.spec);
    let (plane, none) = (plane_of(&own), ClusterIndex::default());
    let agreed = agreed(&forged, Some(&own), Some(&plane), &none.clusters(), PUBLIC_CLOUD);
    let problem = agreed.unwrap_err();
    assert_eq!(problem.reason, Reason::ScopeNotAllowed);
    assert_eq!(problem.message, format!("{field} is not that of the HostedCluster"));
}

#[rstest]
#[case::nobody(None, None, None, 0)]
#[case::this_control_plane(Some("infra-pls-nat"), None, None, 1)]
#[case::a_cluster(None, Some("INFRA-pls-nat"), None, 1)]
#[case::a_custom_resource_which_proves_nothing(None, None, Some("infra-pls-nat"), 0)]
#[case::others_give_others(None, Some("x"), Some("other-infra-pls-nat"), 0)]
fn subnet_of_the_clusters_name_is_given_by(
    #[case] plane: Option<&str>,
    #[case] cluster: Option<&str>,
    #[case] resource: Option<&str>,
    #[case] count: usize,
) {
    let cluster_index = ClusterIndex::default();
    cluster_index.cluster(&Event::Apply(hosted("a", 1, cluster)));
    let mut giving = named();
    giving.spec.nat_subnet_id = resource.map(|name| format!("{NAT}/{name}"));
    cluster_index.resource(&Event::Apply(giving));
    let plane = plane_of(&hosted("example", 1, plane));
    let deleted_cluster = DeletedCluster::Of(crate::controllers::samples::identity());
    let given = given_subnets(&deleted_cluster, Some(&plane), &cluster_index);
    assert_eq!(given, vec![lower(&format!("{NAT}/infra-pls-nat")); count]);
    assert_eq!(
        given_subnets(&DeletedCluster::Unknown, Some(&plane), &cluster_index),
        Vec::<String>::new()
    );
}

#[test]
fn sibling_that_recorded_so_made_the_subnet() {
    let recorded = |made: bool| HoIntent {
        nat_subnet_made: made,
        ..HoIntent::default()
    };
    let with = |made: bool| cr(Value::Null, json!({HO_INTENT: intent::write(&recorded(made))}));
    assert!(made_subnet(&with(true)) && !made_subnet(&with(false)) && !made_subnet(&named()));
}

#[test]
fn change_of_service_siblings_or_pause_needs_a_reconcile() {
    let plain = alone();
    let service = ServiceFacts {
        uid: "u".into(),
        owned: true,
        addresses: Vec::new(),
    };
    let mut changed = vec![plain.clone(); 10];
    changed[0].service = Some(service);
    changed[1].sibling_deleting = true;
    changed[2].sibling_stays = true;
    changed[3].paused_until = Some("true".into());
    changed[4].identity = Err(Problem::new(Reason::DuplicateIdentity, "x"));
    changed[5].address_claimed = true;
    changed[6].subnets_of_older = vec!["/subnet".into()];
    changed[7].given_subnets = vec!["/subnet".into()];
    changed[8].sibling_made_subnet = true;
    changed[9].deleted_cluster = DeletedCluster::OfAnother;
    let before = fingerprint(&plain);
    assert_eq!(fingerprint(&plain.clone()), before);
    assert!(changed.iter().all(|inputs| fingerprint(inputs) != before));
}

#[test]
fn time_order_and_what_a_reconcile_notes_need_none() {
    let pause = |seconds| Problem::new(Reason::Provisioning, "x").requeue_after(Duration::from_secs(seconds));
    let addresses: Vec<IpAddr> = vec!["10.0.0.4".parse().unwrap(), "10.0.0.5".parse().unwrap()];
    let service = |addresses| ServiceFacts {
        uid: "u".into(),
        owned: true,
        addresses,
    };
    let before = PrivateLinkServiceInputs {
        paused: Some(pause(9)),
        service: Some(service(addresses.clone())),
        given_subnets: vec!["/a".into(), "/b".into()],
        ..alone()
    };
    let after = PrivateLinkServiceInputs {
        paused: Some(pause(8)),
        service: Some(service(addresses.into_iter().rev().collect())),
        given_subnets: vec!["/b".into(), "/a".into()],
        hosted_cluster: Some(hosted("example", 1, None).object_ref(&())),
        shown_subnet: Some(id(&management("virtualNetworks/v/subnets/nat"))),
        ..alone()
    };
    assert_eq!(fingerprint(&before), fingerprint(&after));
}

/// A custom resource of a day, with an address.
fn on(day: u8, namespace: &str, name: &str, address: &str) -> AzurePrivateLinkService {
    let mut cr = cr(Value::Null, json!({}));
    cr.metadata.creation_timestamp = serde_json::from_value(json!(format!("2026-01-0{day}T00:00:00Z"))).unwrap();
    cr.metadata.namespace = Some(namespace.to_owned());
    cr.metadata.name = Some(name.to_owned());
    cr.spec.load_balancer_ip = Some(address.to_owned());
    cr
}

/// Whether an older custom resource of the namespace `a` claims the address `fd00::4` before a newer one, and the newer
/// one before it, if the API server answers a read of its Service so.
async fn claimed_by(older: &AzurePrivateLinkService, crowd: usize, (status, service): (u16, &str)) -> [bool; 2] {
    let newer = on(3, "b", "private-router", "fd00:0::4");
    let service = service.to_owned();
    let answers = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let body = service.clone().into_bytes();
        async move {
            Ok::<_, tower::BoxError>(
                http::Response::builder()
                    .status(status)
                    .body(kube::client::Body::from(body))?,
            )
        }
    });
    let cx = sample::context(kube::Client::new(answers, "default"));
    let cluster_index = ClusterIndex::default();
    let before = (0..crowd).map(|n| on(1, "a", &format!("c{n}"), "fd00::9"));
    for cr in before.chain([older.clone(), newer.clone()]) {
        cluster_index.resource(&Event::Apply(cr.clone()));
        cx.resources.heard(&Event::Apply(cr));
    }
    let newer = is_address_claimed(&cx, &newer, &cluster_index).await.unwrap();
    [newer, is_address_claimed(&cx, older, &cluster_index).await.unwrap()]
}

const HAS_IT: (u16, &str) = (
    200,
    r#"{"metadata": {}, "status": {"loadBalancer": {"ingress": [{"ip": "fd00::4"}]}}}"#,
);
const FORBIDDEN: (u16, &str) = (
    403,
    r#"{"status": "Failure", "message": "m", "reason": "Forbidden", "code": 403}"#,
);
const NONE: (u16, &str) = (
    404,
    r#"{"status": "Failure", "message": "m", "reason": "NotFound", "code": 404}"#,
);

#[rstest]
#[case::has_it("private-router", 7, HAS_IT, true)]
#[case::is_not_to_be_read("oauth-openshift", 0, FORBIDDEN, true)]
#[case::has_another("private-router", 0, (200, r#"{"metadata": {}, "status": {"loadBalancer": {"ingress": [{"ip": "fd00::5"}]}}}"#), false)]
#[case::is_not_there("private-router", 0, NONE, false)]
#[case::is_none_that_can_be("private-router", 0, (200, r#"{"metadata": 1}"#), false)]
#[case::has_no_such_name("junk", 0, HAS_IT, false)]
#[case::is_not_served("private-router", 8, HAS_IT, false)]
#[tokio::test]
async fn address_is_claimed_by_an_older_one_whose_service(
    #[case] name: &str,
    #[case] crowd: usize,
    #[case] service: (u16, &str),
    #[case] claimed: bool,
) {
    let older = on(2, "a", name, "fd00::4");
    assert_eq!(claimed_by(&older, crowd, service).await, [claimed, false]);
}

#[test]
fn subnet_that_a_strangers_custom_resource_names_is_not_given() {
    let cluster_index = ClusterIndex::default();
    cluster_index.cluster(&Event::Apply(hosted("example", 1, None)));
    let mut forged = cr(Value::Null, json!({CLUSTER_ANNOTATION: "clusters/attacker"}));
    forged.metadata.namespace = Some("clusters-attacker".into());
    forged.metadata.name = Some("junk-4711".into());
    forged.spec.nat_subnet_id = Some(format!("{NAT}/infra-pls-nat"));
    cluster_index.resource(&Event::Apply(forged));
    let plane = plane_of(&hosted("example", 1, None));
    let deleted_cluster = DeletedCluster::Of(crate::controllers::samples::identity());
    assert_eq!(
        given_subnets(&deleted_cluster, Some(&plane), &cluster_index),
        Vec::<String>::new()
    );
}

#[rstest]
#[case::newer(3, 0)]
#[case::older_and_so_first(1, 1)]
fn subnet_of_the_cluster_is_given_by_another_that(#[case] day: u8, #[case] count: usize) {
    let cluster_index = ClusterIndex::default();
    let mut other = hosted("other", day, Some("infra-pls-nat"));
    other.spec.infra_id = Some("other".into());
    let own = hosted("a", 2, None);
    for cluster in [other, own.clone()] {
        cluster_index.cluster(&Event::Apply(cluster));
    }
    let own = plane_of(&own);
    let deleted_cluster = DeletedCluster::Of(crate::controllers::samples::identity());
    assert_eq!(given_subnets(&deleted_cluster, Some(&own), &cluster_index).len(), count);
}

#[rstest]
#[case::older(1, "infra-pls-nat", 1)]
#[case::newer(3, "infra-pls-nat", 0)]
#[case::of_another_name(1, "x", 0)]
fn subnet_of_the_cluster_is_taken_by_another_that_is(#[case] day: u8, #[case] subnet: &str, #[case] count: usize) {
    let own = hosted("example", 2, Some("infra-pls-nat"));
    let other = hosted("other", day, Some(subnet));
    let cluster_index = ClusterIndex::default();
    for cluster in [&own, &other] {
        cluster_index.cluster(&Event::Apply(cluster.clone()));
    }
    let identity = crate::controllers::samples::identity();
    let given = subnets_given_by_older(Some(&identity), Some(&own), &cluster_index.clusters());
    assert_eq!(given, vec![lower(&format!("{NAT}/infra-pls-nat")); count]);
}
