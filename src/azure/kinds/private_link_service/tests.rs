use super::*;
use crate::arm::id::ResourceId;

const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

fn desired() -> PrivateLinkService {
    let owned = OwnedPrivateLinkService {
        id: ResourceId::parse(&format!("{NET}/privateLinkServices/pls-x")).unwrap(),
        owner_tags: OwnerTags {
            owner: ("cluster".into(), "x".into()),
            ..OwnerTags::default()
        },
        stamp: Stamp {
            tag: "management".into(),
            own: "m".into(),
            former: None,
        },
        frontend: Some(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/f")),
        proven: false,
    };
    PrivateLinkService {
        owned,
        location: "eastus".into(),
        nat_subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/v/subnets/nat")).unwrap(),
        subscriptions: BTreeSet::from([SubscriptionId::parse("guest").unwrap()]),
    }
}

/// The body as Azure returns it: other casing, and fields of its own.
fn found() -> Value {
    let mut body = desired().body(None);
    let frontend = desired()
        .owned
        .frontend
        .unwrap()
        .replace("frontendIPConfigurations", "FrontendIpConfigurations");
    set(
        &mut body,
        &["properties", "loadBalancerFrontendIpConfigurations"],
        json!([{"id": frontend}]),
    );
    set(
        &mut body,
        &["properties", "visibility"],
        json!({"subscriptions": ["GUEST"]}),
    );
    set(
        &mut body,
        &["properties", "alias"],
        json!("pls-x.guid.eastus.azure.privatelinkservice"),
    );
    body
}

#[test]
fn other_casing_is_no_difference() {
    assert_eq!(desired().differs(&found()), []);
}

#[test]
fn missing_mark_is_no_difference() {
    let mut body = found();
    body.as_object_mut().unwrap().remove("tags");
    assert!(desired().is_owned(&body), "the frontend proves it");
    assert_eq!(desired().differs(&body), []);
}

#[test]
fn foreign_service_under_the_desired_name_is_not_owned() {
    let mut body = found();
    body.as_object_mut().unwrap().remove("tags");
    set(
        &mut body,
        &["properties", "loadBalancerFrontendIpConfigurations"],
        json!([{"id": "other"}]),
    );
    assert!(!desired().is_owned(&body));
}

fn stamped(tag: Option<&str>) -> Value {
    let mut body = found();
    body["tags"]["management"] = json!(tag);
    body["properties"]["loadBalancerFrontendIpConfigurations"] = json!([{"id": "other"}]);
    body
}

#[test]
fn service_of_another_management_cluster_is_never_owned() {
    let proven = OwnedPrivateLinkService {
        proven: true,
        ..desired().owned
    };
    assert!(proven.is_owned(&stamped(Some("m"))) && proven.is_owned(&stamped(None)));
    assert!(!proven.is_owned(&stamped(Some("theirs"))));
    let mut body = found();
    body["tags"]["management"] = json!("theirs");
    assert!(
        !desired().is_owned(&body),
        "though it has our cluster's tag and frontend"
    );
}

#[test]
fn unstamped_service_is_owned_by_its_frontend_alone() {
    assert!(desired().is_owned(&stamped(Some("m"))), "our cluster's tag");
    assert!(!desired().is_owned(&stamped(None)));
    let mut body = stamped(None);
    body["properties"]["loadBalancerFrontendIpConfigurations"] = json!([{"id": desired().owned.frontend}]);
    assert!(desired().is_owned(&body));
}

#[test]
fn service_of_a_former_management_cluster_is_owned_and_stamped() {
    let mut heir = desired();
    heir.owned.stamp.former = Some("former".into());
    assert!(heir.is_owned(&stamped(Some("former"))) && heir.is_owned(&stamped(None)));
    assert!(!heir.is_owned(&stamped(Some("theirs"))));
    let mut body = found();
    body["tags"]["management"] = json!("former");
    assert_eq!(heir.differs(&body), [Difference::of("tags")]);
    assert_eq!(heir.differs(&heir.body(Some(&body))), []);
    let tags = body["tags"].as_object_mut().unwrap();
    tags.remove("cluster");
    tags.extend((tags.len()..MAX_TAGS).map(|n| (format!("t{n}"), json!("x"))));
    let put = heir.body(Some(&body));
    assert_eq!(put["tags"]["management"], "m", "there is room for no more tags");
}

#[test]
fn only_another_subnet_of_the_first_nat_address_is_a_difference() {
    let nat = |subnet: &str, primary: bool| {
        json!({"name": subnet, "properties": {"primary": primary,
            "subnet": {"id": format!("{NET}/virtualNetworks/v/subnets/{subnet}")}}})
    };
    let mut body = found();
    let list = json!([nat("more", false), nat("NAT", true)]);
    set(&mut body, &["properties", "ipConfigurations"], list);
    assert_eq!(desired().differs(&body), []);
    set(
        &mut body,
        &["properties", "ipConfigurations"],
        json!([nat("other", true), nat("nat", false)]),
    );
    assert_eq!(
        desired().differs(&body),
        [Difference::by_replacement("ipConfigurations")]
    );
}

#[test]
fn put_repairs_the_difference_of_a_revoked_subscription() {
    for list in ["visibility", "autoApproval"] {
        let mut body = found();
        let revoked = json!({"subscriptions": ["guest", "revoked"]});
        set(&mut body, &["properties", list], revoked);
        assert_eq!(desired().differs(&body), [Difference::of(list)]);
        assert_eq!(desired().differs(&desired().body(Some(&body))), []);
    }
}

#[test]
fn put_repairs_the_difference_of_proxy_protocol() {
    let mut body = found();
    set(&mut body, &["properties", "enableProxyProtocol"], json!(true));
    assert_eq!(desired().differs(&body), [Difference::of("enableProxyProtocol")]);
    assert_eq!(desired().differs(&desired().body(Some(&body))), []);
}

#[test]
fn untagged_service_that_forwards_elsewhere_too_is_not_owned() {
    let mut body = found();
    body.as_object_mut().unwrap().remove("tags");
    set(
        &mut body,
        &["properties", "loadBalancerFrontendIpConfigurations"],
        json!([{"id": desired().owned.frontend}, {"id": "other"}]),
    );
    assert!(!desired().is_owned(&body));
}

#[test]
fn other_frontend_needs_a_new_service() {
    let mut body = found();
    set(
        &mut body,
        &["properties", "loadBalancerFrontendIpConfigurations"],
        json!([{"id": "other"}]),
    );
    let expected = Difference::by_replacement("loadBalancerFrontendIpConfigurations");
    assert_eq!(desired().differs(&body), [expected]);
}

#[test]
fn fields_of_others_survive_a_put() {
    let mut body = found();
    set(&mut body, &["properties", "fqdns"], json!(["a.b"]));
    set(&mut body, &["tags", "cost-center"], json!("42"));
    let put = desired().body(Some(&body));
    assert_eq!(put["properties"]["fqdns"], json!(["a.b"]));
    assert_eq!(put["tags"]["cost-center"], "42");
}
