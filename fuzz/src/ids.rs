//! ARM ids: what is parsed prints as itself, and case changes nothing.

use std::collections::HashSet;

use hyperlink::azure::arm::id::{IdError, ResourceId, SubscriptionId, is_group_name, location, lower, same};
use hyperlink::azure::arm::scope::AzureScope;
use hyperlink::azure::kinds::Kind;

use super::mutate::Input;

/// Segments that ids are made of.
const WORDS: [&str; 24] = [
    "/subscriptions",
    "/33333333-3333-3333-3333-333333333333",
    "/resourceGroups",
    "/mgmt",
    "/gr\u{f6}\u{df}e",
    "/\u{130}d",
    "/providers",
    "/Microsoft.Network",
    "/virtualNetworks",
    "/v0",
    "/subnets",
    "/privateLinkServices",
    "/privateEndpointConnections",
    "/privateEndpoints",
    "/privateDnsZones",
    "/a.example.com",
    "/virtualNetworkLinks",
    "/A",
    "/@",
    "/*",
    "/..",
    "/",
    "/loadBalancers",
    "/%2f",
];

/// An id as text, or one made of words.
pub fn ids(data: &[u8]) {
    let mut input = Input(data);
    let text = match input.byte() % 2 {
        0 => String::from_utf8_lossy(input.0).into_owned(),
        _ => input
            .0
            .iter()
            .map(|byte| WORDS[usize::from(*byte) % WORDS.len()])
            .collect(),
    };
    if let Ok(id) = ResourceId::parse(&text) {
        prints_as_itself(&id);
        case_changes_nothing(&id, &text);
        parents_hold_it(&id);
        is_of_one_kind(&id, &text);
    }
    scope(&text);
    texts(&text);
}

fn prints_as_itself(id: &ResourceId) {
    let printed = id.to_string();
    let again = ResourceId::parse(&printed).unwrap();
    assert_eq!((&again, again.to_string()), (id, printed));
}

fn case_changes_nothing(id: &ResourceId, text: &str) {
    for other in [text.to_ascii_uppercase(), text.to_ascii_lowercase(), lower(text)] {
        let other = ResourceId::parse(&other).unwrap();
        assert_eq!(other, *id);
        assert_eq!(HashSet::from([other, id.clone()]).len(), 1, "one hash: {text}");
    }
}

fn parents_hold_it(id: &ResourceId) {
    assert!(!id.is_in(id));
    let mut inner = id.clone();
    while let Some(outer) = inner.parent() {
        prints_as_itself(&outer);
        assert!(id.is_in(&outer) && !outer.is_in(id), "{id} in {outer}");
        inner = outer;
    }
}

fn is_of_one_kind(id: &ResourceId, text: &str) {
    let of = |kind: &&Kind| id.is(**kind);
    assert!(Kind::ALL.iter().filter(of).count() <= 1, "{id}");
    for kind in Kind::ALL {
        match ResourceId::parse_as(kind, text) {
            Ok(parsed) => assert!(id.is(kind) && parsed == *id),
            Err(IdError::NameTooLong(longest)) => assert!(id.is(kind) && id.name().len() > longest),
            Err(_) => assert!(!id.is(kind), "{id}"),
        }
    }
}

/// A scope is covered by itself, in any case, and by its subscription.
fn scope(text: &str) {
    let Ok(scope) = AzureScope::parse(text) else { return };
    let upper = AzureScope::parse(&text.to_ascii_uppercase()).unwrap();
    let whole = AzureScope::Subscription(scope.subscription().clone());
    for outer in [&scope, &upper, &whole] {
        match &scope {
            AzureScope::Subscription(own) => assert!(outer.covers_subscription(own)),
            AzureScope::Group(own, group) => assert!(outer.covers_group(own, group)),
            AzureScope::Network(own) => assert!(outer.covers(own)),
        }
    }
}

/// For any text: two names are the same exactly if their lower case is.
fn texts(text: &str) {
    let small = lower(text);
    assert_eq!(lower(&small), small);
    assert!(same(text, &small) && same(&small, text));
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (one, other) = text.split_at(middle.unwrap_or_default());
    let equal = lower(one) == lower(other);
    assert_eq!(
        (same(one, other), same(other, one)),
        (equal, equal),
        "{one:?} {other:?}"
    );
    assert_eq!(location(&location(text)), location(text));
    assert!(!is_group_name(text) || is_group_name(&small));
    if let Ok(subscription) = SubscriptionId::parse(text) {
        assert_eq!(SubscriptionId::parse(subscription.as_str()).unwrap(), subscription);
    }
}
