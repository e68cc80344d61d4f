//! What a recording is about, learned before it is played: its subscriptions, its shapes, what other services decide.

use std::collections::BTreeSet;

use http::Method;
use jiff::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

use crate::engine::route::{Target, route};
use crate::{Preset, Seed, SimulatedAzure};

use super::cassette::Exchange;

/// The tenant, the caller and the application of every recording.
pub(super) const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// A simulated Azure with every subscription that the recording names, where everything is allowed and nothing is
/// throttled.
pub(super) fn azure(now: Timestamp, exchanges: &[Exchange]) -> SimulatedAzure {
    let mut subscriptions = BTreeSet::new();
    if let Ok(form) = Regex::new(r#"(?i)\\?/subscriptions\\?/([^/"?\\]+)"#) {
        for exchange in exchanges {
            for text in [&exchange.url, &exchange.sent.body, &exchange.got.body] {
                let found = form.captures_iter(text).filter_map(|found| found.get(1));
                subscriptions.extend(found.map(|id| id.as_str().to_ascii_lowercase()));
            }
        }
    }
    let subscriptions: Vec<Value> = subscriptions
        .iter()
        .map(|id| json!({ "id": id, "tenant": NOBODY }))
        .collect();
    let seed = json!({
        "tenants": [{ "id": NOBODY }],
        "subscriptions": subscriptions,
        "roles": [{ "object_id": NOBODY, "scope": "/", "actions": ["*"] }],
        "throttle": { "enabled": false },
        "switches": { "vnet_busy": if exchanges.iter().any(met_retryable_error) { "429" } else { "409" } },
    });
    let mut azure = SimulatedAzure::new(Preset::Recorded, 1);
    if let Ok(seed) = Seed::parse(seed.to_string().as_bytes()) {
        // A seed without resources has nothing that can be refused.
        let _ = azure.seed(now, seed);
    }
    azure
}

/// Whether a second write to a virtual network met the newer one of the two refusals.
fn met_retryable_error(exchange: &Exchange) -> bool {
    let path = exchange.path().to_ascii_lowercase();
    exchange.status == 429 && path.contains("/virtualnetworks/") && exchange.got.body.contains("RetryableError")
}

/// Keys whose content is decided by services that nobody simulates, where endpoints for such are in the recording.
pub(super) fn foreign(exchanges: &[Exchange]) -> BTreeSet<&'static str> {
    let form = Regex::new(r#"(?i)"privateLinkServiceId": ?"/subscriptions/[^"]*/providers/([^/"]+)/"#);
    let other = |text: &str| {
        let mut found = form.iter().flat_map(|form| form.captures_iter(text));
        found.any(|found| {
            found
                .get(1)
                .is_some_and(|provider| !provider.as_str().eq_ignore_ascii_case("Microsoft.Network"))
        })
    };
    if exchanges
        .iter()
        .any(|exchange| other(&exchange.sent.body) || other(&exchange.got.body))
    {
        return BTreeSet::from(["customDnsConfigs", "privateLinkConnectionProperties"]);
    }
    BTreeSet::new()
}

/// The target of an exchange as it was recorded.
pub(super) fn target(exchange: &Exchange) -> Option<Target> {
    let method = exchange.method.parse().unwrap_or(Method::GET);
    route(&method, exchange.path()).ok()
}

/// What kind of answer it is: the type asked for, the api-version, and whether it was refused.
pub(super) fn shape(exchange: &Exchange) -> String {
    let version = exchange.parameter("api-version").unwrap_or_default();
    let outcome = if exchange.succeeded() { "" } else { "refused " };
    let kind = match target(exchange) {
        Some(Target::Operation { resource_type, .. }) => format!("the state of {resource_type}"),
        Some(Target::Action {
            resource_type, action, ..
        }) => format!("{resource_type} {action}"),
        Some(target) => target.resource_type().to_ascii_lowercase(),
        None => exchange.path().to_owned(),
    };
    format!("{outcome}{kind} {version}")
}

/// The path without what all have in common; long tokens are cut.
pub(super) fn short_path(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let from = lower.rfind("/providers/").map(|at| at + "/providers/".len());
    let shown = from.and_then(|from| path.get(from..)).unwrap_or(path);
    let shown = shown.strip_prefix("Microsoft.Network/").unwrap_or(shown);
    let parts = shown.split('/').map(|part| match part.char_indices().nth(64) {
        Some((cut, _)) => format!("{}…", part.get(..cut).unwrap_or_default()),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}
