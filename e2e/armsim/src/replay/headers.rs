//! The headers that clients of ARM rely on, compared by presence and form.

use std::sync::LazyLock;
use std::{collections::BTreeSet, fmt::Write as _};

use http::HeaderMap;
use regex::Regex;

use super::cassette::{Exchange, Message, path};
use super::compare::{Difference, DifferenceKind};
use super::names::{GUID, Names};

/// Compared in both directions: one that a cassette shows anywhere and leaves out here must be left out by the
/// simulator.
const BOTH_WAYS: [&str; 6] = [
    "azure-asyncoperation",
    "azure-asyncnotification",
    "location",
    "retry-after",
    "etag",
    "x-ms-failure-cause",
];
/// Compared where they are recorded; recorders trim them at will.
const WHERE_RECORDED: [&str; 10] = [
    "x-ms-request-id",
    "x-ms-correlation-request-id",
    "x-ms-routing-request-id",
    "x-ms-arm-service-request-id",
    "content-type",
    "cache-control",
    "pragma",
    "expires",
    "x-aspnet-version",
    "x-powered-by",
];
const BUDGETS: &str = "x-ms-ratelimit-remaining-";

static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^[A-Za-z0-9_+-]{24,}(=|%3[dD])*$").ok());

/// The headers that any answer of a cassette has.
pub(super) fn shown(exchanges: &[Exchange]) -> BTreeSet<String> {
    let all = exchanges.iter().flat_map(|exchange| exchange.got.headers.keys());
    all.cloned().collect()
}

/// All differences; polling URLs and etags are learned on the way.
pub(super) fn compare(
    recorded: &Message,
    simulated: &HeaderMap,
    shown: &BTreeSet<String>,
    names: &mut Names,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let value = |name: &str| {
        simulated
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let budgets = recorded.headers.keys().filter(|name| name.starts_with(BUDGETS));
    let names_to_compare = BOTH_WAYS.iter().chain(&WHERE_RECORDED).copied();
    for name in names_to_compare.chain(budgets.map(String::as_str)) {
        let (real, simulated) = (recorded.header(name), value(name));
        let trimmed = real.is_empty() && !(BOTH_WAYS.contains(&name) && shown.contains(name));
        if !trimmed && form(name, real) != form(name, simulated) {
            differences.push(Difference::new(DifferenceKind::Header, name, real, simulated));
        }
        let url = matches!(name, "azure-asyncoperation" | "location");
        if url && !real.is_empty() && !simulated.is_empty() {
            names.learn_url(real, simulated);
        }
    }
    differences
}

/// What two values must have in common.
fn form(name: &str, value: &str) -> String {
    match name {
        _ if value.is_empty() => String::new(),
        "azure-asyncoperation" | "location" => url_form(value),
        "etag" | "x-ms-request-id" | "x-ms-correlation-request-id" | "x-ms-arm-service-request-id" => {
            GUID.replace_all(value, "GUID").into_owned()
        }
        "x-ms-routing-request-id" => value.split(':').count().to_string(),
        "content-type" => value.to_ascii_lowercase().replace(' ', ""),
        _ if name.starts_with(BUDGETS) => value.parse::<u64>().map_or(value.to_owned(), |_| "number".to_owned()),
        _ => value.to_owned(),
    }
}

/// Host and path with every made-up name replaced. Ports and regional front doors are the same cloud.
pub(super) fn url_form(url: &str) -> String {
    let host = url
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    let host = host.strip_suffix(":443").unwrap_or(host);
    let cloud = host.find("management.").and_then(|at| host.get(at..)).unwrap_or(host);
    let mut form = cloud.to_ascii_lowercase();
    for part in path(url).split('/').skip(1) {
        let token = TOKEN.as_ref().is_some_and(|token| token.is_match(part)) && !GUID.is_match(part);
        let part = GUID.replace_all(part, "GUID");
        let _ = write!(form, "/{}", if token { "TOKEN" } else { &part });
    }
    form
}
