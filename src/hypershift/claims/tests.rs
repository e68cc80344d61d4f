use serde_json::json;

use super::*;

fn cluster(name: &str, created: &str, host: &str) -> HostedCluster {
    let service = |service: &str, kind: &str, field: &str| json!({"service": service, "servicePublishingStrategy": {"type": kind, field: {"hostname": host}}});
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "clusters", "creationTimestamp": created},
        "spec": {"clusterID": format!("{name}-ID"), "infraID": name, "services": [
            service("APIServer", "Route", "route"), service("OAuthServer", "LoadBalancer", "loadBalancer"),
            service("Ignition", "Route", "route")]}}))
    .unwrap()
}

const MONDAY: &str = "2026-01-05T00:00:00Z";
const TUESDAY: &str = "2026-01-06T00:00:00Z";
const WEDNESDAY: &str = "2026-01-07T00:00:00Z";

fn insert(claims: &mut Claims, cluster: &HostedCluster) -> Holder {
    let holder = Holder::of(cluster);
    claims.set(holder.clone(), Claim::of_cluster(cluster));
    holder
}

fn api(host: &str) -> Claim {
    Claim::HostName(host.to_owned())
}

#[test]
fn ids_and_the_names_of_api_and_oauth_are_claimed_in_any_case() {
    let claims = Claim::of_cluster(&cluster("One", MONDAY, "API.Example.Com."));
    assert_eq!(
        claims,
        [
            Claim::Namespace("clusters-One".into()),
            Claim::ClusterId("one-id".into()),
            Claim::InfraId("one".into()),
            api("api.example.com"),
            api("api.example.com"),
        ]
    );
}

#[test]
fn the_older_cluster_has_the_name_and_the_newer_one_not() {
    let mut claims = Claims::default();
    let older = insert(&mut claims, &cluster("z", MONDAY, "api.x"));
    let newer = insert(&mut claims, &cluster("a", TUESDAY, "api.x"));
    assert!(!claims.older(&older, &api("api.x")) && claims.older(&newer, &api("api.x")));
    assert!(claims.other(Some(&older.object), &api("api.x")) && claims.other(None, &api("api.x")));
    assert!(!claims.other(None, &api("api.y")));
}

#[test]
fn of_the_same_second_the_lower_name_is_the_older_one() {
    let mut claims = Claims::default();
    let (a, b) = (cluster("a", MONDAY, "api.x"), cluster("b", MONDAY, "api.x"));
    let (b, a) = (insert(&mut claims, &b), insert(&mut claims, &a));
    assert!(!claims.older(&a, &api("api.x")) && claims.older(&b, &api("api.x")));
}

#[test]
fn what_is_no_longer_claimed_is_free() {
    let mut claims = Claims::default();
    let older = insert(&mut claims, &cluster("a", MONDAY, "api.x"));
    let newer = insert(&mut claims, &cluster("b", TUESDAY, "api.x"));
    insert(&mut claims, &cluster("a", MONDAY, "api.y"));
    assert!(!claims.older(&newer, &api("api.x")), "renamed");
    insert(&mut claims, &cluster("a", MONDAY, "api.x"));
    claims.remove(&older);
    assert!(!claims.older(&newer, &api("api.x")), "gone");
}

#[test]
fn what_a_new_list_does_not_have_is_gone() {
    let mut claims = Claims::default();
    let older = cluster("a", MONDAY, "api.x");
    insert(&mut claims, &older);
    claims.list_begins();
    let newer = insert(&mut claims, &cluster("b", TUESDAY, "api.x"));
    assert!(claims.older(&newer, &api("api.x")), "the list has not ended");
    claims.list_ends();
    assert!(!claims.older(&newer, &api("api.x")));
    insert(&mut claims, &older);
    assert!(claims.older(&newer, &api("api.x")));
}

#[test]
fn given_nat_subnets_are_found_by_name() {
    let mut claims = Claims::default();
    let id = "/subscriptions/S/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/infra-pls-nat";
    let giver = Holder::of(&cluster("a", MONDAY, "x"));
    claims.set(giver.clone(), vec![Claim::nat_subnet(id)]);
    let found: Vec<_> = claims.nat_subnets("INFRA-pls-nat").collect();
    assert_eq!(found, [(id.to_ascii_lowercase().as_str(), &giver)]);
    assert_eq!(claims.nat_subnets("fra-pls-nat").count(), 0);
}

#[test]
fn cluster_that_was_not_created_yet_is_the_newest() {
    let mut claims = Claims::default();
    let mut draft = cluster("a", MONDAY, "api.x");
    draft.metadata.creation_timestamp = None;
    let (draft, created) = (
        insert(&mut claims, &draft),
        insert(&mut claims, &cluster("b", TUESDAY, "api.x")),
    );
    assert!(claims.older(&draft, &api("api.x")) && !claims.older(&created, &api("api.x")));
}

#[test]
fn what_is_empty_is_claimed_by_nobody() {
    let mut empty = cluster("a", MONDAY, "");
    (empty.spec.cluster_id, empty.spec.infra_id) = (Some(String::new()), None);
    let private = json!({"type": "PrivateLink", "privateLink": {"natSubnetID": ""}});
    empty.spec.platform = serde_json::from_value(json!({"type": "Azure", "azure": {"private": private}})).unwrap();
    assert_eq!(nat_subnet(&empty.spec), None);
    assert_eq!(Claim::of_cluster(&empty), [Claim::Namespace("clusters-a".into())]);
}

#[test]
fn domains_in_a_network_are_those_of_the_clusters_there() {
    let hosted = |name: &str, network: &str, domain: &str| -> HostedCluster {
        let azure = json!({"platform": {"azure": {"vnetID": network}}, "dns": {"baseDomain": domain}});
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "clusters"}, "spec": azure})).unwrap()
    };
    let mut all = Claims::default();
    for cluster in [
        hosted("a", "/net/ONE", "A.example.com."),
        hosted("b", "/net/two", "b.example.com"),
        hosted("c", "/net/one", ""),
    ] {
        all.set(Holder::of(&cluster), Claim::of_cluster(&cluster));
    }
    let found = all.domains_in("/net/One");
    assert_eq!(found, [("clusters/a".parse().unwrap(), "a.example.com".to_owned())]);
}

/// The claims of these clusters, once all are listed.
fn listed(clusters: &[&HostedCluster]) -> Claims {
    let mut claims = Claims::default();
    claims.list_begins();
    for cluster in clusters {
        insert(&mut claims, cluster);
    }
    claims.list_ends();
    claims
}

#[test]
fn older_cluster_that_takes_a_name_later_takes_it_from_nobody() {
    let (old, new) = (cluster("a", MONDAY, "api.y"), cluster("b", TUESDAY, "api.x"));
    let mut claims = listed(&[&old, &new]);
    let old = insert(&mut claims, &cluster("a", MONDAY, "api.x"));
    let new = Holder::of(&new);
    assert!(claims.older(&old, &api("api.x")) && !claims.older(&new, &api("api.x")));
    let newest = insert(&mut claims, &cluster("c", WEDNESDAY, "api.x"));
    assert!(claims.older(&newest, &api("api.x")) && claims.older(&old, &api("api.x")));
    claims.remove(&new);
    assert!(!claims.older(&old, &api("api.x")), "before who came later still");
}

#[test]
fn name_that_is_dropped_and_taken_again_is_taken_later() {
    let (old, new) = (cluster("a", MONDAY, "api.x"), cluster("b", TUESDAY, "api.x"));
    let mut claims = listed(&[&old, &new]);
    insert(&mut claims, &cluster("a", MONDAY, "api.y"));
    let old = insert(&mut claims, &old);
    assert!(claims.older(&old, &api("api.x")) && !claims.older(&Holder::of(&new), &api("api.x")));
}

#[test]
fn relist_keeps_who_was_first() {
    let (old, new) = (cluster("a", MONDAY, "api.y"), cluster("b", TUESDAY, "api.x"));
    let mut claims = listed(&[&old, &new]);
    let late = cluster("a", MONDAY, "api.x");
    for round in 0..2 {
        claims.list_begins();
        let holders = [insert(&mut claims, &late), insert(&mut claims, &new)];
        claims.list_ends();
        let older = holders.map(|holder| claims.older(&holder, &api("api.x")));
        assert_eq!(older, [true, false], "{round}");
    }
}

#[test]
fn after_a_restart_the_older_object_has_what_both_name() {
    let (late, new) = (cluster("a", MONDAY, "api.x"), cluster("b", TUESDAY, "api.x"));
    let claims = listed(&[&late, &new]);
    assert!(claims.older(&Holder::of(&new), &api("api.x")) && !claims.older(&Holder::of(&late), &api("api.x")));
}

#[test]
fn later_infra_id_is_newer_than_the_subnet_named_after_it() {
    let (old, new) = (cluster("a", MONDAY, "x"), cluster("b", TUESDAY, "y"));
    let mut claims = listed(&[&old]);
    let (subnet, infra_id) = (Claim::nat_subnet("/subnets/team-pls-nat"), Claim::infra_id("team"));
    claims.set(Holder::of(&new), vec![subnet.clone()]);
    claims.set(Holder::of(&old), vec![infra_id.clone()]);
    assert!(!claims.older_than(&Holder::of(&new), &subnet, &infra_id));
    assert!(claims.older_than(&Holder::of(&old), &infra_id, &subnet));
}

#[test]
fn ids_set_after_creation_stand_before_who_comes_in_that_second() {
    let blank = cluster("b", TUESDAY, "api.y");
    let mut claims = listed(&[]);
    insert(&mut claims, &blank);
    let first = insert(&mut claims, &cluster("b", TUESDAY, "api.x"));
    let unheard = Holder::of(&cluster("a", TUESDAY, "api.x"));
    assert!(claims.older(&unheard, &api("api.x")));
    let second = insert(&mut claims, &cluster("a", TUESDAY, "api.x"));
    assert!(claims.older(&second, &api("api.x")) && !claims.older(&first, &api("api.x")));
}
