//! The cases of the table that one text in one field cannot show.

use serde_json::{Value, json};

use super::case::{Case, NETWORK, UUID, Verb, condition, create, set, status, unset, update};
use super::text_fields::text_fields;

/// All cases of the table.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = text_fields().iter().flat_map(|row| row.cases()).collect();
    cases.extend([whole_objects(), allowed_subscriptions()].into_iter().flatten());
    cases.extend(required_fields());
    cases.extend([changes(), immutable_fields(), shapes()].into_iter().flatten());
    cases.extend(
        [status_as_a_whole(), condition_lists(), condition_fields()]
            .into_iter()
            .flatten(),
    );
    cases
}

/// Optional fields: each may be absent, and may be removed again.
const OPTIONAL: [&str; 4] = [
    "/spec/loadBalancerIP",
    "/spec/natSubnetID",
    "/spec/additionalAllowedSubscriptions",
    "/spec/baseDomain",
];

/// Fields that must be there, each with another valid value.
fn required() -> [(&'static str, String); 5] {
    [
        ("/spec/subscriptionID", UUID.replace('1', "9")),
        ("/spec/resourceGroupName", "other".into()),
        ("/spec/location", "westus2".into()),
        (
            "/spec/guestSubnetID",
            format!("{NETWORK}/virtualNetworks/guest/subnets/other"),
        ),
        ("/spec/guestVNetID", format!("{NETWORK}/virtualNetworks/other")),
    ]
}

/// Optional fields that cannot be changed once they are set, each with another valid value.
fn immutable_once_set() -> [(&'static str, String); 2] {
    [
        (
            "/spec/natSubnetID",
            format!("{NETWORK}/virtualNetworks/management/subnets/other"),
        ),
        ("/spec/baseDomain", "other.example.com".into()),
    ]
}

fn field(pointer: &str) -> String {
    pointer[1..].replace('/', ".")
}

fn whole_objects() -> Vec<Case> {
    let only_required = OPTIONAL
        .iter()
        .fold(create("only what is required"), |case, at| case.edit(unset(at)));
    vec![
        create("everything set"),
        only_required,
        create("a field that is not defined").edit(set("/spec/unknown", "x")),
        create("a status is ignored").edit(set("/status/dnsZoneName", "not a name")),
        create("no spec").edit(unset("/spec")).refused_at("spec"),
        create("an empty spec")
            .edit(set("/spec", json!({})))
            .refused_at("spec.guestSubnetID"),
        create("a spec that is text").edit(set("/spec", "x")).refused_at("spec"),
        create("a spec that is null")
            .edit(set("/spec", Value::Null))
            .refused_at("spec"),
    ]
}

fn required_fields() -> impl Iterator<Item = Case> {
    required().into_iter().flat_map(|(at, _)| {
        let case = |verb, what: &str| Case::new(verb, format!("{at} {what}")).refused_at(&field(at));
        [
            case(Verb::Create, "is missing").edit(unset(at)),
            case(Verb::Create, "is null").edit(set(at, Value::Null)),
            case(Verb::Create, "is a number").edit(set(at, 7)),
            case(Verb::Update, "is taken away").edit(unset(at)),
        ]
    })
}

fn allowed_subscriptions() -> Vec<Case> {
    const AT: &str = "/spec/additionalAllowedSubscriptions";
    let many = |count: usize| {
        let ids: Vec<_> = (0..count)
            .map(|n| format!("{n:08x}-0000-4000-8000-000000000000"))
            .collect();
        json!(ids)
    };
    let list = |name: &str, value: Value| create(&format!("{AT}: {name}")).edit(set(AT, value));
    let at = field(AT);
    let (first, second) = (format!("{at}[0]"), format!("{at}[1]"));
    vec![
        list("as many as allowed", many(50)),
        list("one too many", many(51)).refused_at(&at),
        list("none", many(0)).refused_at(&at),
        list("text instead of a list", json!(UUID)).refused_at(&at),
        list("a list with a number", json!([7])).refused_at(&first),
        list("a list with null", json!([null])).refused_at(&first),
        list("too short", json!([UUID[1..]])).refused_at(&first),
        list("too long", json!([format!("{UUID}a")])).refused_at(&first),
        list("empty text", json!([""])).refused_at(&first),
        list("36 characters that are no UUID", json!([UUID.replace('-', "0")])).refused_at(&first),
        list("second is no UUID", json!([UUID, UUID.replace('a', "g")])).refused_at(&second),
        list("the same twice", json!([UUID, UUID])).refused_at(&second),
        list("the same in another case", json!([UUID, UUID.to_uppercase()])),
        update("a subscription is added").edit(set(&format!("{AT}/-"), UUID)),
        update("all subscriptions are replaced").edit(set(AT, json!([UUID]))),
        update("the last subscription is taken out")
            .edit(set(AT, json!([])))
            .refused_at(&at),
    ]
}

fn changes() -> Vec<Case> {
    let mut cases = vec![
        update("nothing changes"),
        update("the load balancer's address changes").edit(set("/spec/loadBalancerIP", "10.0.0.9")),
        update("the load balancer's address becomes nonsense")
            .edit(set("/spec/loadBalancerIP", "nowhere"))
            .refused_at("spec.loadBalancerIP"),
        update("a status through the object is ignored").edit(set("/status/dnsZoneName", "not a name")),
        update("the spec is taken away").edit(unset("/spec")).refused_at("spec"),
    ];
    for at in OPTIONAL {
        cases.push(update(&format!("{at} is taken away")).edit(unset(at)));
        let value = super::case::full().pointer(at).cloned().unwrap_or_default();
        cases.push(
            update(&format!("{at} is set later"))
                .before(unset(at))
                .edit(set(at, value)),
        );
        cases.push(create(&format!("{at} is null")).edit(set(at, Value::Null)));
        cases.push(
            create(&format!("{at} is an object"))
                .edit(set(at, json!({})))
                .refused_at(&field(at)),
        );
    }
    cases
}

fn immutable_fields() -> Vec<Case> {
    let fields = required().into_iter().chain(immutable_once_set());
    fields
        .flat_map(|(at, other)| {
            let change = |what: &str, value: String| {
                update(&format!("{at} {what}"))
                    .edit(set(at, value))
                    .refused_at(&field(at))
            };
            let same = super::case::full()
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            [
                change("changes", other),
                change("changes its case", flip_last_letter(&same)),
            ]
        })
        .collect()
}

/// The text with its last letter in the other case.
fn flip_last_letter(text: &str) -> String {
    let at = text.rfind(|c: char| c.is_ascii_alphabetic()).expect("a letter");
    let letter = if text.as_bytes()[at].is_ascii_lowercase() {
        text[at..=at].to_uppercase()
    } else {
        text[at..=at].to_lowercase()
    };
    format!("{}{letter}{}", &text[..at], &text[at + 1..])
}

/// Values of another JSON type in the status.
fn shapes() -> Vec<Case> {
    let wrong = |at: &str, value: Value| {
        status(&format!("{at} is {value}"))
            .edit(set(at, value))
            .refused_at(&field(at))
    };
    vec![
        wrong("/status", json!("x")),
        wrong("/status", json!([])),
        wrong("/status/privateEndpointIP", json!(7)),
        wrong("/status/dnsZoneName", json!(["x"])),
        wrong("/status/conditions", json!({})),
        status("an unset address is null").edit(set("/status/privateEndpointIP", Value::Null)),
        status("a status field that is not defined").edit(set("/status/unknown", "x")),
    ]
}

fn status_as_a_whole() -> Vec<Case> {
    let mut cases = vec![
        status("everything set"),
        status("one field alone").edit(set("/status", json!({"dnsZoneName": "a.local"}))),
        status("an empty status")
            .edit(set("/status", json!({})))
            .refused_at("status"),
        status("nothing but a field that is not defined")
            .edit(set("/status", json!({"unknown": "x"})))
            .refused_at("status"),
        status("no status").edit(unset("/status")),
        status("a status that was set is taken away")
            .before(set("/status/dnsZoneName", "a.local"))
            .edit(unset("/status")),
        status("a spec through the status is ignored").edit(set("/spec/location", "westus2")),
        status("a spec through the status is ignored although invalid").edit(set("/spec/location", "?")),
        status("a spec taken away through the status is ignored").edit(unset("/spec")),
    ];
    let fields = super::case::full()["status"].as_object().cloned().unwrap_or_default();
    for name in fields.keys() {
        let at = format!("/status/{name}");
        cases.push(
            status(&format!("{at} is taken away"))
                .before(set("/status/dnsZoneName", "a.local"))
                .edit(unset(&at)),
        );
    }
    let others = [
        (
            "privateLinkServiceAlias",
            json!("pls-2.0-a.eastus.azure.privatelinkservice"),
        ),
        ("privateEndpointIP", json!("10.0.0.6")),
        ("dnsZoneName", json!("b.local")),
        (
            "privateLinkServiceID",
            json!(format!("{NETWORK}/privateLinkServices/pls-2")),
        ),
    ];
    for (name, value) in others {
        let at = format!("/status/{name}");
        cases.push(
            status(&format!("{at} changes"))
                .before(set("/status/dnsZoneName", "a.local"))
                .edit(set(&at, value)),
        );
    }
    cases
}

fn condition_lists() -> Vec<Case> {
    const AT: &str = "/status/conditions";
    let many = |count: usize| (0..count).map(|n| condition(&format!("Type{n}"))).collect::<Value>();
    let mut other = condition("AzurePLSCreated");
    other["status"] = json!("False");
    vec![
        status("as many conditions as allowed").edit(set(AT, many(10))),
        status("one condition too many")
            .edit(set(AT, many(11)))
            .refused_at("status.conditions"),
        status("no conditions")
            .edit(set(AT, json!([])))
            .refused_at("status.conditions"),
        status("a type twice")
            .edit(set(&format!("{AT}/-"), other))
            .refused_at("status.conditions[1]"),
        status("a condition that is text")
            .edit(set(AT, json!(["x"])))
            .refused_at("status.conditions[0]"),
        status("a condition that is null")
            .edit(set(AT, json!([null])))
            .refused_at("status.conditions[0]"),
    ]
}

/// Each field of a condition: values that are accepted, values that are refused.
fn condition_values() -> Vec<(&'static str, Value, Value)> {
    let long = |count: usize| "a".repeat(count);
    let prefixed = |count: usize| format!("{}/{}", long(300), long(count - 301));
    vec![
        (
            "type",
            json!(["a", "example.com/Ready", "A.b_c-D", prefixed(316)]),
            json!(["", "a b", "-a", "a-", "/a", "a/b/c", "A/b", prefixed(317), 7]),
        ),
        (
            "status",
            json!(["True", "False", "Unknown"]),
            json!(["true", "Maybe", "", true]),
        ),
        (
            "reason",
            json!(["a", "A_b,c:d1", long(1024)]),
            json!(["", "1a", "a b", "a:", "a-b", long(1025), 7]),
        ),
        ("message", json!(["", long(32768)]), json!([long(32769), 7])),
        (
            "observedGeneration",
            json!([0, 9_007_199_254_740_993_i64]),
            json!([-1, 1.5, "1", 9_223_372_036_854_775_808_u64]),
        ),
        (
            "lastTransitionTime",
            json!([
                "2026-08-22T10:00:00+02:00",
                "2026-08-22t10:00:00.5z",
                "2026-08-22T10:00:00+99:99"
            ]),
            json!(["yesterday", "2026-08-22", "2026-08-22T25:00:00Z", 7]),
        ),
    ]
}

fn condition_fields() -> Vec<Case> {
    let mut cases =
        vec![status("a condition without a generation").edit(unset("/status/conditions/0/observedGeneration"))];
    for (name, good, bad) in condition_values() {
        let at = format!("/status/conditions/0/{name}");
        let refusing = format!("status.conditions[0].{name}");
        let case = |value: &Value| {
            let shown: String = value.to_string().chars().take(40).collect();
            status(&format!("{at} is {shown}")).edit(set(&at, value.clone()))
        };
        cases.extend(good.as_array().into_iter().flatten().map(case));
        cases.extend(
            bad.as_array()
                .into_iter()
                .flatten()
                .map(|value| case(value).refused_at(&refusing)),
        );
        if name != "observedGeneration" {
            cases.push(
                status(&format!("{at} is missing"))
                    .edit(unset(&at))
                    .refused_at(&refusing),
            );
        }
    }
    cases
}
