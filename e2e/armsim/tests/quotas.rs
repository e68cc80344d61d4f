//! Every limit of a subscription, seeded small: it allows that many and no more, a deletion makes room, and what it
//! does not count is not concerned.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::collections::BTreeSet;

use armsim::{Preset, Quotas};
use network_support::{GUEST_NET, GUEST_SUB, NET, Sim, pls, seed};
use serde_json::{Value, json};

/// Path and body.
type Put = (String, Value);

/// What a limit counts.
enum Counted {
    /// Resources: the one of a number; one of the same type that the limit does not count.
    Resources(fn(usize) -> Put, fn() -> Put),
    /// Items of one resource, by their number; whether they can be removed again.
    Items(fn(usize) -> Put, bool),
}

struct Quota {
    name: &'static str,
    /// How many fit beside what is there from the start.
    room: usize,
    /// How many are there from the start.
    there: usize,
    /// Other resources that the seed has.
    prerequisites: Vec<Put>,
    counted: Counted,
    /// The refusal of one more: status or `late`, and code.
    refusal: &'static str,
}

fn quota(name: &'static str, prerequisites: Vec<Put>, counted: Counted, refusal: &'static str) -> Quota {
    Quota {
        name,
        room: 2,
        there: 0,
        prerequisites,
        counted,
        refusal,
    }
}

fn service_on(net: &str, name: impl std::fmt::Display, balancer: &str) -> Put {
    let mut body = pls();
    let frontend = format!("{net}/loadBalancers/{balancer}/frontendIPConfigurations/router");
    body["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!(frontend);
    let (vnet, subnet) = if net == NET {
        ("vnet", "nat")
    } else {
        ("workers", "nat")
    };
    let subnet = format!("{net}/virtualNetworks/{vnet}/subnets/{subnet}");
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(subnet);
    (format!("{net}/privateLinkServices/{name}"), body)
}

fn service(name: impl std::fmt::Display) -> Put {
    service_on(NET, name, "lb")
}

fn balancer(net: &str, name: &str, subnet: &str) -> Put {
    let frontend =
        json!({"name": "router", "properties": {"subnet": {"id": format!("{net}/virtualNetworks/{subnet}")}}});
    let body = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {"frontendIPConfigurations": [frontend]}});
    (format!("{net}/loadBalancers/{name}"), body)
}

fn endpoint(net: &str, name: impl std::fmt::Display, subnet: &str, target: &str) -> Put {
    let connection = json!({"name": "c", "properties": {"privateLinkServiceId": target, "groupIds": []}});
    let body = json!({"location": "westus2", "properties": {
        "subnet": {"id": format!("{net}/virtualNetworks/{subnet}")}, "privateLinkServiceConnections": [connection]}});
    (format!("{net}/privateEndpoints/{name}"), body)
}

/// What endpoints connect to where it does not matter.
fn account() -> Put {
    let id = NET.replace("Microsoft.Network", "Microsoft.Storage/storageAccounts/account");
    (id, json!({"location": "westus2"}))
}

fn guest(number: usize) -> Put {
    endpoint(GUEST_NET, format!("pe{number}"), "workers/subnets/pe", &account().0)
}

fn vnet(number: usize) -> Put {
    let space = json!({"addressPrefixes": [format!("10.{}.0.0/16", 100 + number)]});
    let body = json!({"location": "westus2", "properties": {"addressSpace": space,
        "subnets": [{"name": "pe", "properties": {"addressPrefix": format!("10.{}.0.0/24", 100 + number)}}]}});
    (format!("{GUEST_NET}/virtualNetworks/v{number}"), body)
}

fn zone(number: usize) -> Put {
    (
        format!("{GUEST_NET}/privateDnsZones/z{number}.example"),
        json!({"location": "global"}),
    )
}

fn link(to_zone: usize, to_vnet: usize, registers: bool) -> Put {
    let body = json!({"location": "global", "properties": {
        "registrationEnabled": registers, "virtualNetwork": {"id": vnet(to_vnet).0}}});
    (format!("{}/virtualNetworkLinks/to-v{to_vnet}", zone(to_zone).0), body)
}

fn record(of_zone: usize, name: impl std::fmt::Display, records: usize) -> Put {
    let records: Vec<Value> = (0..records)
        .map(|n| json!({"ipv4Address": format!("10.0.0.{n}")}))
        .collect();
    let body = json!({"properties": {"ttl": 300, "aRecords": records}});
    (format!("{}/A/{name}", zone(of_zone).0), body)
}

fn group(of: usize, name: impl std::fmt::Display, zones: usize) -> Put {
    let config = |n: usize| json!({"name": format!("c{n}"), "properties": {"privateDnsZoneId": zone(n).0}});
    let configs: Vec<Value> = (0..zones).map(config).collect();
    let body = json!({"properties": {"privateDnsZoneConfigs": configs}});
    (format!("{}/privateDnsZoneGroups/{name}", guest(of).0), body)
}

fn several(one: fn(usize) -> Put) -> Vec<Put> {
    (0..4).map(one).collect()
}

fn zones_and_vnets() -> Vec<Put> {
    [several(zone), several(vnet)].concat()
}

/// So many other subscriptions.
fn subscriptions(count: usize) -> Value {
    (0..count)
        .map(|n| json!(format!("55555555-0000-0000-0000-{n:012}")))
        .collect()
}

fn with_nat(count: usize) -> Put {
    let (path, mut body) = service("svc");
    let usual = body["properties"]["ipConfigurations"][0].clone();
    let one = |n: usize| {
        let mut one = usual.clone();
        one["name"] = json!(format!("nat{n}"));
        one["properties"]["primary"] = json!(n == 0);
        one
    };
    body["properties"]["ipConfigurations"] = (0..count).map(one).collect();
    (path, body)
}

fn listing(visible: Value, approved: Value) -> Put {
    let (path, mut body) = service("svc");
    body["properties"]["visibility"]["subscriptions"] = visible;
    body["properties"]["autoApproval"]["subscriptions"] = approved;
    (path, body)
}

fn of_services() -> Vec<Quota> {
    use Counted::{Items, Resources};
    let named = |n: usize| service(format!("svc{n}"));
    let allowed = "400 PrivateLinkServiceSubscriptionLimitReached";
    vec![
        quota(
            "pls",
            vec![balancer(GUEST_NET, "lb", "workers/subnets/pe")],
            Resources(named, || service_on(GUEST_NET, "beside", "lb")),
            "400 PrivateLinkServiceLimitReached",
        ),
        quota(
            "pls_per_load_balancer",
            vec![balancer(NET, "lb2", "vnet/subnets/lb")],
            Resources(named, || service_on(NET, "beside", "lb2")),
            "400 PrivateLinkServicePerLoadBalancerLimitReached",
        ),
        quota(
            "nat_ips_per_pls",
            vec![],
            Items(with_nat, false),
            "400 PrivateLinkServiceIpConfigurationLimitReached",
        ),
        quota(
            "allowed_subscriptions",
            vec![],
            Items(|count| listing(subscriptions(count), json!([])), true),
            allowed,
        ),
        quota(
            "allowed_subscriptions",
            vec![],
            Items(|count| listing(json!(["*"]), subscriptions(count)), true),
            allowed,
        ),
    ]
}

fn of_endpoints() -> Vec<Quota> {
    use Counted::{Items, Resources};
    let limit = "400 PrivateEndpointLimitReached";
    vec![
        quota(
            "endpoints_per_pls",
            vec![service("svc"), service("other")],
            Resources(
                |n| endpoint(GUEST_NET, format!("pe{n}"), "workers/subnets/pe", &service("svc").0),
                || endpoint(GUEST_NET, "beside", "workers/subnets/pe", &service("other").0),
            ),
            limit,
        ),
        quota(
            "endpoints_per_vnet",
            vec![account(), vnet(0)],
            Resources(guest, || endpoint(GUEST_NET, "beside", "v0/subnets/pe", &account().0)),
            limit,
        ),
        quota(
            "endpoints",
            vec![account()],
            Resources(guest, || endpoint(NET, "beside", "vnet/subnets/lb", &account().0)),
            limit,
        ),
        quota(
            "zone_groups_per_endpoint",
            [vec![account(), guest(0), guest(1)], several(zone)].concat(),
            Resources(|n| group(0, format!("g{n}"), 0), || group(1, "beside", 0)),
            "400 PrivateDnsZoneGroupLimitReached",
        ),
        quota(
            "zones_per_group",
            [vec![account(), guest(0)], several(zone)].concat(),
            Items(|count| group(0, "g", count), true),
            "400 PrivateDnsZoneGroupZoneLimitReached",
        ),
    ]
}

fn of_dns() -> Vec<Quota> {
    use Counted::{Items, Resources};
    let late = "late QuotaExceeded";
    let elsewhere = || {
        (
            format!("{NET}/privateDnsZones/beside.example"),
            json!({"location": "global"}),
        )
    };
    vec![
        quota("zones", vec![], Resources(zone, elsewhere), late),
        quota(
            "links_per_zone",
            zones_and_vnets(),
            Resources(|n| link(0, n, false), || link(1, 0, false)),
            late,
        ),
        quota(
            "registration_links_per_zone",
            zones_and_vnets(),
            Resources(|n| link(0, n, true), || link(0, 3, false)),
            late,
        ),
        quota(
            "zones_per_vnet",
            zones_and_vnets(),
            Resources(|n| link(n, 0, false), || link(0, 1, false)),
            late,
        ),
        quota(
            "registration_zones_per_vnet",
            zones_and_vnets(),
            Resources(|n| link(n, 0, true), || link(3, 0, false)),
            "late Conflict",
        ),
        Quota {
            // The SOA.
            there: 1,
            ..quota(
                "record_sets_per_zone",
                several(zone),
                Resources(|n| record(0, format!("r{n}"), 1), || record(1, "beside", 1)),
                "400 BadRequest",
            )
        },
        quota(
            "records_per_set",
            several(zone),
            Items(|count| record(0, "r", count), true),
            "400 BadRequest",
        ),
    ]
}

fn all() -> Vec<Quota> {
    [of_services(), of_endpoints(), of_dns()]
        .into_iter()
        .flatten()
        .collect()
}

fn sim_with(quota: &Quota) -> Sim {
    let mut json = seed();
    for subscription in json["subscriptions"].as_array_mut().unwrap() {
        subscription["quotas"] = json!({quota.name: quota.there + quota.room});
    }
    let nat = json!({"name": "nat", "properties": {"addressPrefix": "10.1.1.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
    let resources = json["resources"].as_array_mut().unwrap();
    let workers = format!("{GUEST_NET}/virtualNetworks/workers");
    let workers = resources
        .iter_mut()
        .find(|found| found["id"] == json!(workers))
        .unwrap();
    workers["properties"]["subnets"].as_array_mut().unwrap().push(nat);
    for (id, body) in &quota.prerequisites {
        let mut body = body.clone();
        body["id"] = json!(id);
        resources.push(body);
    }
    json["throttle"] = json!({"enabled": false});
    Sim::seeded(json, Preset::Recorded)
}

/// What becomes of a write: `done`, or when and by which code it was refused.
fn outcome(sim: &mut Sim, method: &str, path: &str, body: Option<Value>) -> String {
    let got = sim.call(method, path, &[], body);
    if got.status >= 400 {
        let code = got.body["error"]["code"].as_str().or(got.body["code"].as_str());
        return format!("{} {}", got.status, code.unwrap_or_default());
    }
    sim.wait(1000.0);
    let url = got.header("azure-asyncoperation").to_owned();
    let poll = if url.is_empty() {
        Value::Null
    } else {
        sim.poll(&url).body
    };
    match (poll["status"].as_str(), poll["error"]["code"].as_str()) {
        (None | Some("Succeeded"), _) => "done".to_owned(),
        (_, code) => format!("late {}", code.unwrap_or_default()),
    }
}

fn put(sim: &mut Sim, (path, body): Put) -> String {
    outcome(sim, "PUT", &path, Some(body))
}

#[test]
fn limit_refuses_one_more_until_one_is_deleted() {
    for quota in all() {
        let (sim, name, room) = (&mut sim_with(&quota), quota.name, quota.room);
        match quota.counted {
            Counted::Resources(one, beside) => {
                for n in 0..room {
                    assert_eq!(put(sim, one(n)), "done", "{name} {n}");
                }
                assert_eq!(put(sim, one(room)), quota.refusal, "{name}");
                assert_eq!(sim.get(&one(room).0).status, 404, "{name}: what was refused");
                assert_eq!(put(sim, one(0)), "done", "{name}: what is there, again");
                assert_eq!(put(sim, beside()), "done", "{name}: beside it");
                assert_eq!(outcome(sim, "DELETE", &one(0).0, None), "done", "{name}");
                assert_eq!(put(sim, one(room)), "done", "{name}: in the place of what went");
                assert_eq!(put(sim, one(0)), quota.refusal, "{name}: full again");
            }
            Counted::Items(of, can_shrink) => {
                assert_eq!(put(sim, of(room + 1)), quota.refusal, "{name} of something new");
                assert_eq!(put(sim, of(room)), "done", "{name}");
                let before = sim.get(&of(0).0).body;
                assert_eq!(put(sim, of(room + 1)), quota.refusal, "{name}");
                assert_eq!(sim.get(&of(0).0).body, before, "{name}: what was refused");
                if can_shrink {
                    assert_eq!(put(sim, of(room - 1)), "done", "{name}: one less");
                }
                assert_eq!(put(sim, of(room)), "done", "{name}: room again");
            }
        }
    }
}

#[test]
fn no_limit_is_left_out() {
    let quotas = serde_json::to_value(Quotas::default()).unwrap();
    let seeded: BTreeSet<&str> = quotas.as_object().unwrap().keys().map(String::as_str).collect();
    let tried: BTreeSet<&str> = all().iter().map(|quota| quota.name).collect();
    assert_eq!(tried, seeded);
}

#[test]
fn a_limit_is_that_of_the_subscription_that_it_is_seeded_for() {
    let mut json = seed();
    json["subscriptions"][1]["quotas"] = json!({"zones": 1});
    assert_eq!(json["subscriptions"][1]["id"], json!(GUEST_SUB));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    assert_eq!(put(&mut sim, zone(0)), "done");
    assert_eq!(put(&mut sim, zone(1)), "late QuotaExceeded");
    for name in ["a.example", "b.example"] {
        let path = format!("{NET}/privateDnsZones/{name}");
        assert_eq!(put(&mut sim, (path, json!({"location": "global"}))), "done");
    }
}
