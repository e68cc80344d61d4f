//! Faults and budgets on each of the stacks that answer: Microsoft.Network, private DNS and ARM itself.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{CONSUMER, GUEST_SUB, Got, NET, SUB, Sim, caller, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

/// A write that begins an operation of each stack, and where its state is asked for.
#[derive(Clone, Copy, Debug)]
enum Stack {
    Network,
    NetworkDelete,
    PrivateDns,
    PrivateDnsDelete,
    Group,
}

const STACKS: [Stack; 5] = [
    Stack::Network,
    Stack::NetworkDelete,
    Stack::PrivateDns,
    Stack::PrivateDnsDelete,
    Stack::Group,
];

impl Stack {
    fn path(self) -> String {
        match self {
            Self::Network | Self::NetworkDelete => format!("{NET}/privateLinkServices/svc"),
            Self::PrivateDns | Self::PrivateDnsDelete => format!("{NET}/privateDnsZones/z.com"),
            Self::Group => NET.split("/providers").next().unwrap().to_owned(),
        }
    }

    fn deletes(self) -> bool {
        !matches!(self, Self::Network | Self::PrivateDns)
    }

    /// Begins the operation with a fault rule in force.
    fn begin(self, sim: &mut Sim, action: Value) -> Got {
        if matches!(self, Self::NetworkDelete | Self::PrivateDnsDelete) {
            self.create(sim);
            sim.wait(60.0);
        }
        let method = if self.deletes() { "DELETE" } else { "PUT" };
        sim.faults(json!([{"match": {"method": method}, "do": action}]));
        if self.deletes() {
            sim.delete(&self.path())
        } else {
            self.create(sim)
        }
    }

    fn create(self, sim: &mut Sim) -> Got {
        let body = match self {
            Self::Network | Self::NetworkDelete => pls(),
            _ => json!({"location": "global"}),
        };
        sim.put(&self.path(), body)
    }

    fn status_url(self, got: &Got) -> String {
        let name = if matches!(self, Self::Group) {
            "location"
        } else {
            "azure-asyncoperation"
        };
        got.header(name).to_owned()
    }

    fn exists(self, sim: &mut Sim) -> bool {
        sim.get(&self.path()).status == 200
    }
}

/// The state that a status URL reports; for an ARM job, which has only HTTP statuses, the state that they stand for.
fn word(got: &Got) -> String {
    match (got.body["status"].as_str(), got.status) {
        (Some(word), _) => word.to_owned(),
        (None, 202) => "InProgress".to_owned(),
        (None, 409) => "Failed".to_owned(),
        (None, status) => status.to_string(),
    }
}

#[rstest]
#[case::fails("fail", "Failed")]
#[case::is_superseded("cancel", "Canceled")]
fn a_failed_operation_changes_nothing(#[case] how: &str, #[case] expected: &str) {
    for stack in STACKS {
        let mut sim = Sim::new();
        let begun = stack.begin(&mut sim, json!({"operation": how}));
        let url = stack.status_url(&begun);
        sim.wait(60.0);
        let ended = sim.poll(&url);
        let expected = if matches!(stack, Stack::Group) {
            "Failed"
        } else {
            expected
        };
        assert_eq!(word(&ended), expected, "{stack:?} {}", ended.body);
        assert!(!ended.code().is_empty(), "{stack:?} {}", ended.body);
        assert!(sim.azure.operations_in_flight(sim.now).is_empty(), "{stack:?}");
        // Microsoft.Network shows the resource as Failed; the others neither created nor deleted anything.
        let there = matches!(stack, Stack::Network) || stack.deletes();
        assert_eq!(stack.exists(&mut sim), there, "{stack:?}");
        if stack.deletes() {
            sim.delete(&stack.path());
        } else {
            stack.create(&mut sim);
        }
        sim.wait(60.0);
        assert_eq!(
            stack.exists(&mut sim),
            !stack.deletes(),
            "{stack:?}: the same call again heals it"
        );
    }
}

#[test]
fn a_hanging_operation_never_ends() {
    for stack in STACKS {
        let mut sim = Sim::new();
        let begun = stack.begin(&mut sim, json!({"operation": "hang"}));
        sim.wait(1e6);
        assert_eq!(word(&sim.poll(&stack.status_url(&begun))), "InProgress", "{stack:?}");
        assert_eq!(sim.azure.operations_in_flight(sim.now).len(), 1, "{stack:?}");
        assert_eq!(stack.exists(&mut sim), !matches!(stack, Stack::PrivateDns), "{stack:?}");
    }
}

#[test]
fn a_lost_operation_still_completes() {
    for stack in STACKS {
        let mut sim = Sim::new();
        let begun = stack.begin(&mut sim, json!({"operation": "lost"}));
        for url in [begun.header("azure-asyncoperation"), begun.header("location")] {
            if !url.is_empty() {
                assert_eq!(sim.poll(url).status, 404, "{stack:?}");
            }
        }
        sim.wait(60.0);
        assert_eq!(stack.exists(&mut sim), !stack.deletes(), "{stack:?}");
    }
}

#[test]
fn polling_urls_can_point_elsewhere() {
    for stack in STACKS {
        let mut sim = Sim::new();
        let begun = stack.begin(&mut sim, json!({"poll_url": "https://evil.test/x"}));
        assert_eq!(stack.status_url(&begun), "https://evil.test/x", "{stack:?}");
        assert_ne!(
            begun.header("location").split('?').next().unwrap_or_default(),
            NET,
            "{stack:?}"
        );
    }
}

#[test]
fn a_timeout_hides_a_write_that_was_applied() {
    for stack in STACKS {
        let mut sim = Sim::new();
        let begun = stack.begin(
            &mut sim,
            json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}),
        );
        assert_eq!((begun.status, begun.code()), (504, "GatewayTimeout"), "{stack:?}");
        assert_eq!(stack.status_url(&begun), "", "{stack:?}");
        sim.wait(60.0);
        assert_eq!(stack.exists(&mut sim), !stack.deletes(), "{stack:?}");
    }
}

#[test]
fn pages_loop_on_every_stack() {
    let mut sim = Sim::new();
    sim.faults(json!([{"match": {"times": 99}, "do": {"page_loop": true}}]));
    for path in [
        format!("{NET}/virtualNetworks"),
        format!("{NET}/privateDnsZones"),
        format!("/subscriptions/{SUB}/resourceGroups"),
        format!("/subscriptions/{SUB}/resources"),
    ] {
        let page = sim.get(&path).body;
        let next = page["nextLink"].as_str().unwrap().to_owned();
        assert_eq!(sim.poll(&next).body, page, "{path}");
    }
}

#[test]
fn calls_outside_subscriptions_have_their_own_budget() {
    let mut json = seed();
    json["throttle"] = json!({"tenant_reads": {"bucket": 2, "per_s": 0.1}});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    assert_eq!(
        sim.get("/subscriptions")
            .header("x-ms-ratelimit-remaining-tenant-reads"),
        "1"
    );
    let tenants = sim.get("/tenants");
    assert_eq!(tenants.header("x-ms-ratelimit-remaining-tenant-reads"), "0");
    assert_eq!(tenants.header("x-ms-ratelimit-remaining-subscription-reads"), "");
    let refused = sim.get("/subscriptions");
    assert_eq!(
        (refused.refusal(), refused.header("retry-after")),
        ((429, "TenantRequestsThrottled", "gateway"), "2")
    );
    assert_eq!(sim.get(&format!("/subscriptions/{SUB}")).status, 200, "another budget");
    sim.caller = caller(CONSUMER);
    assert_eq!(sim.get("/subscriptions").status, 200, "another principal");
}

#[test]
fn all_principals_share_the_global_budget() {
    let mut json = seed();
    json["throttle"] = json!({"reads": {"bucket": 2, "per_s": 0.001}, "global_factor": 2});
    let roles = json["roles"].as_array_mut().unwrap();
    for actor in ["p1", "p2", "p3"] {
        roles.push(json!({"object_id": actor, "scope": "/", "actions": ["*"]}));
    }
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let list = format!("{NET}/privateLinkServices");
    let mut left = vec![];
    for actor in ["p1", "p1", "p2", "p2", "p3"] {
        sim.caller = caller(actor);
        let got = sim.get(&list);
        left.push((
            got.status,
            got.header("x-ms-ratelimit-remaining-subscription-global-reads")
                .to_owned(),
        ));
    }
    assert_eq!(
        left,
        [(200, "3"), (200, "2"), (200, "1"), (200, "0"), (429, "")].map(|(status, left)| (status, left.to_owned()))
    );
    let guest = format!("/subscriptions/{GUEST_SUB}/resources");
    assert_eq!(sim.get(&guest).status, 200, "another subscription");
}

#[test]
fn refusals_by_a_provider_carry_budgets_and_those_of_arm_do_not() {
    let mut sim = Sim::new();
    let mut wrong = pls();
    wrong["properties"]["ipConfigurations"] = json!([]);
    let by_provider = sim.put(&format!("{NET}/privateLinkServices/svc"), wrong);
    assert_eq!(by_provider.header("x-ms-failure-cause"), "", "this one does not say so");
    assert_eq!(by_provider.body["error"]["details"], json!([]));
    assert_eq!(
        by_provider.header("x-ms-ratelimit-remaining-subscription-writes"),
        "199"
    );
    assert_eq!(
        by_provider.header("x-ms-ratelimit-remaining-subscription-global-writes"),
        "2999"
    );
    let by_arm = sim.get(&format!("{NET}/privateLinkServices/none"));
    assert_eq!(by_arm.header("x-ms-failure-cause"), "gateway");
    assert!(by_arm.headers.keys().all(|name| !name.as_str().contains("ratelimit")));
    let group = sim.get(NET.split("/providers").next().unwrap());
    assert_eq!(group.header("x-ms-ratelimit-remaining-subscription-reads"), "248");
}

#[test]
fn polls_count_against_the_budgets() {
    let mut json = seed();
    json["throttle"] = json!({"dns_reads_5min": 2, "network_reads_5min": 1});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let url = Stack::PrivateDns
        .create(&mut sim)
        .header("azure-asyncoperation")
        .to_owned();
    let left = |got: &Got| {
        got.header("x-ms-ratelimit-remaining-subscription-resource-requests")
            .to_owned()
    };
    let got = sim.poll(&url);
    assert_eq!((got.status, left(&got)), (202, "1".to_owned()));
    sim.poll(&url);
    let refused = sim.poll(&url);
    assert_eq!(
        (refused.refusal(), left(&refused)),
        ((429, "TooManyRequests", "service"), "0".to_owned())
    );
    assert_eq!(refused.header("retry-after"), "300");
    let url = Stack::Network
        .create(&mut sim)
        .header("azure-asyncoperation")
        .to_owned();
    assert_eq!(sim.poll(&url).status, 200);
    let refused = sim.poll(&url);
    assert_eq!(refused.refusal(), (429, "TooManyRequests", "service"));
    assert_ne!(refused.header("x-ms-ratelimit-remaining-subscription-reads"), "");
}
