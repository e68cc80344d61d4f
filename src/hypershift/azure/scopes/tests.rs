use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::controllers::samples::{self, GUEST, guest};

const OTHER: &str = "22222222-2222-4222-8222-222222222222";

fn group() -> String {
    format!("/subscriptions/{}/RESOURCEGROUPS/GUEST", GUEST.to_uppercase())
}

/// Allowed scopes of these entries. An entry without base domains may have the sample's domain.
fn allowed(mut entries: Value) -> AllowedScopes {
    for entry in entries.as_array_mut().unwrap() {
        let entry = entry.as_object_mut().unwrap();
        entry.entry("baseDomains").or_insert_with(|| json!(["example.com"]));
    }
    AllowedScopes::parse(&json!({"hostedClusters": entries}).to_string()).unwrap()
}

/// The sample is `clusters/example`, whose control plane is in `clusters-example`.
fn cr(change: impl FnOnce(&mut AzurePrivateLinkService)) -> AzurePrivateLinkService {
    let mut cr = samples::cr(json!({}), json!({CLUSTER_ANNOTATION: "clusters/example"}));
    change(&mut cr);
    cr
}

fn refusal_of(allowed: &AllowedScopes, cr: &AzurePrivateLinkService) -> Option<String> {
    let problem = allowed.refusal(cr, &[])?;
    assert_eq!(problem.reason, Reason::ScopeNotAllowed);
    Some(problem.message)
}

#[rstest]
#[case::whole_namespace(json!([{"namespace": "clusters", "scopes": [group()]}]))]
#[case::that_cluster(json!([{"namespace": "clusters", "names": ["other", "example"], "scopes": [group()]}]))]
#[case::subscription_covers_its_groups(json!([{"namespace": "clusters", "scopes": [format!("/subscriptions/{GUEST}")]}]))]
#[case::beside_others(json!([{"namespace": "cluster", "scopes": []}, {"namespace": "clusters", "scopes": [group()]}]))]
#[case::named_counts_before_general(json!([
    {"namespace": "clusters", "scopes": []}, {"namespace": "clusters", "names": ["example"], "scopes": [group()]}]))]
fn control_plane_with_an_entry_is_served(#[case] entries: Value) {
    assert_eq!(refusal_of(&allowed(entries), &cr(|_| ())), None);
}

#[rstest]
#[case::nobody_is_listed(json!([]))]
#[case::other_namespace(json!([{"namespace": "cluster", "scopes": [group()]}]))]
#[case::namespace_is_the_whole_name(json!([{"namespace": "clusters-example", "scopes": [group()]}]))]
#[case::other_cluster(json!([{"namespace": "clusters", "names": ["other"], "scopes": [group()]}]))]
fn control_plane_without_an_entry_is_refused(#[case] entries: Value) {
    let expected = "the namespace has no entry in the allowed scopes";
    assert_eq!(refusal_of(&allowed(entries), &cr(|_| ())).as_deref(), Some(expected));
}

#[rstest]
#[case::two_namespaces_derive_it(json!([{"namespace": "a", "scopes": [group()]}, {"namespace": "a-b", "scopes": []}]))]
#[case::two_clusters_derive_it(json!([
    {"namespace": "a", "names": ["b-c"], "scopes": [group()]}, {"namespace": "a-b", "names": ["c"], "scopes": [group()]}]))]
#[case::two_names_derive_it(json!([{"namespace": "a", "names": ["b.c", "b-c"], "scopes": [group()]}]))]
fn control_plane_that_may_be_anothers_is_refused(#[case] entries: Value) {
    for claimed in ["a/b-c", "a-b/c"] {
        let cr = cr(|cr| {
            cr.metadata.namespace = Some("a-b-c".into());
            cr.annotations_mut().insert(CLUSTER_ANNOTATION.into(), claimed.into());
        });
        let expected = "the namespace has several entries in the allowed scopes";
        assert_eq!(
            refusal_of(&allowed(entries.clone()), &cr).as_deref(),
            Some(expected),
            "{claimed}"
        );
    }
}

#[rstest]
#[case::missing(None)]
#[case::damaged(Some("clusters"))]
#[case::other_cluster(Some("clusters/other"))]
#[case::other_namespace(Some("victim/example"))]
#[case::same_control_plane_namespace(Some("clusters-example/"))]
fn forged_annotation_is_refused(#[case] annotation: Option<&str>) {
    let entries = json!([{"namespace": "clusters", "scopes": [group()]}, {"namespace": "victim", "scopes": [group()]}]);
    let cr = cr(|cr| {
        cr.metadata.annotations = annotation.map(|text| [(CLUSTER_ANNOTATION.to_owned(), text.to_owned())].into());
    });
    let expected = "the HostedCluster is not that of the entry in the allowed scopes";
    assert_eq!(refusal_of(&allowed(entries), &cr).as_deref(), Some(expected));
}

#[test]
fn named_entry_is_not_for_another_name_with_that_namespace() {
    let entries = allowed(json!([{"namespace": "a", "names": ["b.c"], "scopes": [group()]}]));
    let of = |claimed: &str| {
        cr(|cr| {
            cr.metadata.namespace = Some("a-b-c".into());
            cr.annotations_mut().insert(CLUSTER_ANNOTATION.into(), claimed.into());
        })
    };
    assert_eq!(refusal_of(&entries, &of("a/b.c")), None);
    for forged in ["a/b-c", "a-b/c"] {
        assert!(refusal_of(&entries, &of(forged)).is_some(), "{forged}");
    }
}

#[test]
fn general_entry_is_for_its_own_namespace_alone() {
    let entries = allowed(json!([{"namespace": "a", "scopes": [group()]}]));
    let of = |claimed: &str| {
        cr(|cr| {
            cr.metadata.namespace = Some("a-b-c".into());
            cr.annotations_mut().insert(CLUSTER_ANNOTATION.into(), claimed.into());
        })
    };
    assert_eq!(refusal_of(&entries, &of("a/b-c")), None);
    assert!(
        refusal_of(&entries, &of("a-b/c")).is_some(),
        "derives the same control plane"
    );
}

#[test]
fn name_of_a_cluster_is_never_empty() {
    let entries = allowed(json!([{"namespace": "clusters", "scopes": [group()]}]));
    let cr = cr(|cr| {
        cr.metadata.namespace = Some("clusters-".into());
        cr.annotations_mut()
            .insert(CLUSTER_ANNOTATION.into(), "clusters/example".into());
    });
    let expected = "the namespace has no entry in the allowed scopes";
    assert_eq!(refusal_of(&entries, &cr).as_deref(), Some(expected));
}

#[test]
fn subscription_in_scope_may_connect() {
    let entries = allowed(json!([{"namespace": "clusters", "scopes": [group(), format!("/subscriptions/{OTHER}")]}]));
    let cr = cr(|cr| cr.spec.additional_allowed_subscriptions = Some(vec![OTHER.into()]));
    assert_eq!(refusal_of(&entries, &cr), None);
}

fn foreign(path: &str) -> String {
    guest(path).replace("/resourceGroups/guest/", "/resourceGroups/guest2/")
}

#[rstest]
#[case::subscription("resourceGroupName", |cr: &mut AzurePrivateLinkService| cr.spec.subscription_id = OTHER.into())]
#[case::group("resourceGroupName", |cr: &mut AzurePrivateLinkService| cr.spec.resource_group_name = "guest2".into())]
#[case::network("guestVNetID", |cr: &mut AzurePrivateLinkService| cr.spec.guest_vnet_id = foreign("virtualNetworks/v"))]
#[case::subnet("guestSubnetID", |cr: &mut AzurePrivateLinkService| cr.spec.guest_subnet_id = foreign("virtualNetworks/v/subnets/s"))]
#[case::damaged_subnet("guestSubnetID", |cr: &mut AzurePrivateLinkService| cr.spec.guest_subnet_id = "x".into())]
#[case::connecting_subscription("additionalAllowedSubscriptions", |cr: &mut AzurePrivateLinkService|
    cr.spec.additional_allowed_subscriptions = Some(vec![OTHER.into()]))]
#[case::domain_of_others("baseDomain", |cr: &mut AzurePrivateLinkService| cr.spec.base_domain = Some("example.net".into()))]
#[case::parent_of_the_own_domain("baseDomain", |cr: &mut AzurePrivateLinkService| cr.spec.base_domain = Some("com".into()))]
#[case::domain_that_ends_the_same("baseDomain", |cr: &mut AzurePrivateLinkService| cr.spec.base_domain = Some("anexample.com".into()))]
#[case::no_domain("baseDomain", |cr: &mut AzurePrivateLinkService| cr.spec.base_domain = Some("".into()))]
#[case::own_subscription_as_a_whole("additionalAllowedSubscriptions", |cr: &mut AzurePrivateLinkService|
    cr.spec.additional_allowed_subscriptions = Some(vec![GUEST.into()]))]
fn everything_that_is_asked_for_has_to_be_allowed(
    #[case] field: &str,
    #[case] change: fn(&mut AzurePrivateLinkService),
) {
    let entries = allowed(json!([{"namespace": "clusters", "scopes": [group()]}]));
    let expected = format!("{field} is outside of the allowed scopes");
    assert_eq!(refusal_of(&entries, &cr(change)), Some(expected));
}

#[test]
fn network_and_connecting_subscription_are_allowed_separately() {
    let network = foreign("virtualNetworks/v");
    let entries = allowed(json!([{"namespace": "clusters", "scopes": [group(), network],
        "additionalAllowedSubscriptions": [OTHER]}]));
    let asked = |cr: &mut AzurePrivateLinkService| {
        cr.spec.guest_vnet_id = foreign("virtualNetworks/V");
        cr.spec.guest_subnet_id = foreign("virtualNetworks/v/subnets/s");
        cr.spec.additional_allowed_subscriptions = Some(vec![OTHER.to_uppercase()]);
    };
    assert_eq!(refusal_of(&entries, &cr(asked)), None);
    let in_the_foreign_group = |cr: &mut AzurePrivateLinkService| cr.spec.resource_group_name = "guest2".into();
    assert!(refusal_of(&entries, &cr(in_the_foreign_group)).is_some());
}

#[rstest]
#[case::the_domain_itself(&["APPS.example.com."], true)]
#[case::one_above(&["other.com", "example.com"], true)]
#[case::one_below(&["x.apps.example.com"], false)]
#[case::none(&[], false)]
fn base_domain_is_one_of_the_entrys_or_lies_below_one(#[case] domains: &[&str], #[case] expected: bool) {
    let entries = allowed(json!([{"namespace": "clusters", "scopes": [group()], "baseDomains": domains}]));
    assert_eq!(refusal_of(&entries, &cr(|_| ())).is_none(), expected);
    let without = cr(|cr| cr.spec.base_domain = None);
    assert_eq!(refusal_of(&entries, &without), None, "nothing to allow");
}

/// Whether `clusters/example`, with the zone `apps.example.com`, is refused because it would hide the names of another
/// cluster in its network.
fn is_refused_for_hiding(theirs: Value, cluster: &str, base_domain: &str) -> bool {
    let own = json!({"namespace": "clusters", "names": ["example", "friend"], "scopes": [group()]});
    let entries = allowed(json!([own, theirs]));
    let peer = NetworkPeer {
        cluster: cluster.parse().unwrap(),
        base_domain: base_domain.to_owned(),
    };
    entries.refusal(&cr(|_| ()), &[peer]).is_some()
}

#[test]
fn zone_that_hides_the_domain_of_another_cluster_is_refused() {
    let theirs = || json!({"namespace": "clusters", "names": ["victim"], "scopes": [group()]});
    assert!(is_refused_for_hiding(
        theirs(),
        "clusters/victim",
        "int.apps.example.com"
    ));
    for beside in [
        "apps.example.com",
        "example.com",
        "other.example.com",
        "xapps.example.com",
    ] {
        assert!(!is_refused_for_hiding(theirs(), "clusters/victim", beside), "{beside}");
    }
    assert!(
        !is_refused_for_hiding(theirs(), "clusters/friend", "int.apps.example.com"),
        "those of one entry trust each other"
    );
}

#[rstest]
#[case::without_an_entry(json!({"namespace": "others", "scopes": [group()]}))]
#[case::whose_entry_has_not_the_domain(json!({"namespace": "clusters", "names": ["rogue"], "scopes": [group()], "baseDomains": ["x.org"]}))]
#[case::whose_entry_has_not_the_network(json!({"namespace": "clusters", "names": ["rogue"], "scopes": []}))]
fn cluster_that_may_not_be_there_keeps_nobody_from_a_zone(#[case] theirs: Value) {
    assert!(!is_refused_for_hiding(theirs, "clusters/rogue", "int.apps.example.com"));
}

#[test]
fn entry_for_aws_alone_allows_nothing_on_azure() {
    let aws = json!({"roleARN": "arn:aws:iam::444455556666:role/a", "vpcIDs": [], "hostedZoneIDs": []});
    let file = json!({"hostedClusters": [{"namespace": "clusters", "names": ["example"], "aws": aws}]});
    let entries = AllowedScopes::parse(&file.to_string()).unwrap();
    let expected = "the entry in the allowed scopes has nothing on Azure: it lacks scopes";
    assert_eq!(refusal_of(&entries, &cr(|_| ())).as_deref(), Some(expected));
}
