//! Load balancers: their parts under paths of their own, who of them refers to whom, and their frontends' addresses.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{NET, Sim};

fn balancer() -> String {
    format!("{NET}/loadBalancers/web")
}

fn subnet() -> String {
    format!("{NET}/virtualNetworks/vnet/subnets/lb")
}

/// A load balancer with one of everything.
fn whole() -> Value {
    let part = |list: &str, name: &str| json!({"id": format!("{}/{list}/{name}", balancer())});
    let frontend = part("frontendIPConfigurations", "front");
    let pool = part("backendAddressPools", "pool");
    json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "front", "properties": {"subnet": {"id": subnet()}}}],
        "backendAddressPools": [{"name": "pool"}],
        "probes": [{"name": "alive", "properties": {"protocol": "Tcp", "port": 80}}],
        "loadBalancingRules": [{"name": "rule", "properties": {
            "protocol": "Tcp", "frontendPort": 443, "backendPort": 443, "frontendIPConfiguration": frontend,
            "backendAddressPool": pool, "probe": part("probes", "alive")}}],
        "outboundRules": [{"name": "out", "properties": {
            "protocol": "All", "frontendIPConfigurations": [frontend], "backendAddressPool": pool}}],
        "inboundNatRules": [{"name": "ssh", "properties": {
            "protocol": "Tcp", "frontendPort": 22, "backendPort": 22, "frontendIPConfiguration": frontend}}],
    }})
}

#[test]
fn addresses_of_a_pool_are_resources_below_it() {
    let mut sim = Sim::new();
    let address = json!({"name": "one", "properties": {"ipAddress": "10.0.0.9", "virtualNetwork": {"id": format!("{NET}/virtualNetworks/vnet")}}});
    let mut body = whole();
    body["properties"]["backendAddressPools"][0]["properties"] = json!({"loadBalancerBackendAddresses": [address]});
    let made = sim.make(&balancer(), body);
    let pool = &made["properties"]["backendAddressPools"][0];
    let shown = &pool["properties"]["loadBalancerBackendAddresses"][0];
    let list = "backendAddressPools/pool/loadBalancerBackendAddresses";
    assert_eq!(shown["id"], json!(format!("{}/{list}/one", balancer())));
    let kind = "Microsoft.Network/loadBalancers/backendAddressPools/loadBalancerBackendAddresses";
    assert_eq!((&shown["type"], &shown["etag"]), (&json!(kind), &made["etag"]));
    assert_eq!(shown["properties"]["provisioningState"], json!("Succeeded"));
    assert_eq!(shown["properties"]["ipAddress"], json!("10.0.0.9"));
    assert_eq!(
        sim.put(&balancer(), made.clone()).state(),
        "Succeeded",
        "put back, it is the same"
    );
}

#[test]
fn every_part_has_its_path() {
    let mut sim = Sim::new();
    let made = sim.make(&balancer(), whole());
    for (list, name) in [
        ("frontendIPConfigurations", "front"),
        ("backendAddressPools", "pool"),
        ("probes", "alive"),
        ("loadBalancingRules", "rule"),
        ("outboundRules", "out"),
        ("inboundNatRules", "ssh"),
    ] {
        let listed = sim.get(&format!("{}/{list}", balancer()));
        assert_eq!(listed.body["value"], made["properties"][list], "{list}");
        let path = format!("{}/{}/{}", balancer(), list.to_lowercase(), name.to_uppercase());
        let one = sim.get(&path);
        assert_eq!(one.body, made["properties"][list][0], "{list}");
        assert_eq!(one.header("etag"), made["etag"].as_str().unwrap());
        assert_eq!(one.body["id"], json!(format!("{}/{list}/{name}", balancer())));
        assert_eq!(
            sim.get(&format!("{}/{list}/none", balancer())).refusal(),
            (404, "NotFound", "service")
        );
        assert_eq!(
            sim.get(&format!("{NET}/loadBalancers/none/{list}/{name}")).refusal(),
            (404, "ResourceNotFound", "gateway")
        );
        if !["backendAddressPools", "inboundNatRules"].contains(&list) {
            assert_eq!(sim.put(&path, json!({})).status, 405);
            assert_eq!(sim.delete(&path).status, 405);
        }
    }
}

#[test]
fn parts_show_who_names_them() {
    let mut sim = Sim::new();
    let made = sim.make(&balancer(), whole());
    let shown = |list: &str, field: &str| made["properties"][list][0]["properties"][field].clone();
    let named = |list: &str, name: &str| json!([{"id": format!("{}/{list}/{name}", balancer())}]);
    for list in ["frontendIPConfigurations", "backendAddressPools", "probes"] {
        assert_eq!(
            shown(list, "loadBalancingRules"),
            named("loadBalancingRules", "rule"),
            "{list}"
        );
    }
    assert_eq!(
        shown("frontendIPConfigurations", "inboundNatRules"),
        named("inboundNatRules", "ssh")
    );
    for list in ["frontendIPConfigurations", "backendAddressPools"] {
        assert_eq!(shown(list, "outboundRules"), named("outboundRules", "out"), "{list}");
    }
    assert_eq!(shown("frontendIPConfigurations", "privateIPAddress"), json!("10.0.0.5"));
}

#[test]
fn pool_is_put_and_deleted_by_its_own_path() {
    let mut sim = Sim::new();
    sim.make(&balancer(), whole());
    let pool = format!("{}/backendAddressPools/more", balancer());
    assert_eq!(
        sim.put(&format!("{NET}/loadBalancers/none/backendAddressPools/x"), json!({}))
            .refusal(),
        (404, "ParentResourceNotFound", "gateway")
    );
    let put = sim.put(&pool, json!({"properties": {"drainPeriodInSeconds": 9}}));
    assert_eq!((put.status, put.state()), (201, "Updating"));
    sim.wait(3.0);
    assert_eq!(sim.get(&pool).body["properties"]["drainPeriodInSeconds"], json!(9));
    assert_eq!(
        sim.names(&format!("{}/backendAddressPools", balancer())),
        ["more", "pool"]
    );
    assert_eq!(sim.delete(&pool).status, 202);
    sim.wait(10.0);
    assert_eq!(sim.get(&pool).status, 404);
    // The frontend has kept its address through all that.
    let front = sim.get(&format!("{}/frontendIPConfigurations/front", balancer()));
    assert_eq!(front.body["properties"]["privateIPAddress"], json!("10.0.0.5"));
    let used = format!("{}/backendAddressPools/pool", balancer());
    assert_eq!(
        sim.delete(&used).refusal(),
        (400, "InvalidResourceReference", "service")
    );
}

#[test]
fn nat_rule_without_internal_frontend_is_over_at_once() {
    let mut sim = Sim::new();
    let public = format!("{NET}/publicIPAddresses/ip");
    sim.make(
        &public,
        json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}),
    );
    let body = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "front", "properties": {"publicIPAddress": {"id": public}}}]}});
    let put = sim.put(&balancer(), body);
    assert_eq!((put.status, put.state()), (201, "Succeeded"));
    let front = format!("{}/frontendIPConfigurations/front", balancer());
    assert_eq!(
        sim.get(&public).body["properties"]["ipConfiguration"],
        json!({"id": front})
    );
    let rule = format!("{}/inboundNatRules/ssh", balancer());
    let body = json!({"properties": {"frontendIPConfiguration": {"id": front}, "frontendPort": 28, "backendPort": 22}});
    let put = sim.put(&rule, body.clone());
    assert_eq!((put.status, put.state()), (201, "Succeeded"));
    assert_eq!(put.body["properties"]["protocol"], json!("Tcp"));
    assert_eq!(sim.put(&rule, body).status, 200);
    assert_eq!(sim.delete(&rule).status, 202);
    assert_eq!(sim.delete(&balancer()).refusal().0, 202);
}

#[rstest]
#[case::rule_frontend("/properties/loadBalancingRules/0/properties/frontendIPConfiguration/id")]
#[case::rule_pool("/properties/loadBalancingRules/0/properties/backendAddressPool/id")]
#[case::rule_probe("/properties/loadBalancingRules/0/properties/probe/id")]
#[case::outbound_frontend("/properties/outboundRules/0/properties/frontendIPConfigurations/0/id")]
#[case::subnet("/properties/frontendIPConfigurations/0/properties/subnet/id")]
fn reference_to_nothing_is_refused(#[case] pointer: &str) {
    let mut sim = Sim::new();
    let mut body = whole();
    let id = body.pointer_mut(pointer).unwrap();
    *id = json!(format!("{}x", id.as_str().unwrap()));
    let refused = sim.put(&balancer(), body);
    assert_eq!(refused.refusal(), (400, "InvalidResourceReference", "service"));
    assert_eq!(sim.get(&balancer()).status, 404);
}

#[test]
fn sku_is_fixed() {
    let mut sim = Sim::new();
    sim.make(&balancer(), whole());
    let mut basic = whole();
    basic["sku"]["name"] = json!("Basic");
    assert_eq!(sim.put(&balancer(), basic).code(), "LoadBalancerSkuCannotBeChanged");
}

#[test]
fn frontend_in_a_subnet_on_its_way_waits() {
    let mut sim = Sim::new();
    let fresh = format!("{NET}/virtualNetworks/vnet/subnets/fresh");
    sim.put(&fresh, json!({"properties": {"addressPrefix": "10.0.9.0/24"}}));
    let mut body = whole();
    body["properties"]["frontendIPConfigurations"][0]["properties"]["subnet"]["id"] = json!(fresh);
    assert_eq!(sim.put(&balancer(), body).detail(), "ReferencedResourceNotProvisioned");
}

#[test]
fn left_out_frontend_frees_its_address() {
    let mut sim = Sim::new();
    sim.make(&balancer(), whole());
    let empty = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {}});
    sim.make(&balancer(), empty);
    let users = sim.get(&subnet()).body["properties"]["ipConfigurations"].clone();
    assert_eq!(users.as_array().unwrap().len(), 1, "only the seeded load balancer's");
    let made = sim.make(&balancer(), whole());
    let front = &made["properties"]["frontendIPConfigurations"][0]["properties"];
    assert_eq!(front["privateIPAddress"], json!("10.0.0.5"));
}

#[test]
fn frontend_in_use_cannot_be_deleted() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let balancer = format!("{NET}/loadBalancers/lb");
    assert_eq!(
        sim.delete(&format!("{balancer}/frontendIPConfigurations/router"))
            .status,
        405
    );
    let body = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {}});
    assert_eq!(
        sim.put(&balancer, body).code(),
        "FrontendIPConfigurationInUseByPrivateLinkService"
    );
    assert_eq!(
        sim.delete(&balancer).code(),
        "CannotDeleteLoadBalancerWithPrivateLinkService"
    );
    sim.delete(&format!("{NET}/privateLinkServices/svc"));
    sim.wait(10.0);
    assert_eq!(sim.delete(&balancer).status, 202);
}
