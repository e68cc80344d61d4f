//! Which exchanges say nothing about the simulated types, and why.

use std::collections::BTreeSet;

use http::Method;

use crate::engine::registry;
use crate::engine::route::{Target, route};
use crate::resources::View;

use super::cassette::{Exchange, path};

/// Why an exchange is not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// Token, discovery and sign-in calls.
    Identity,
    /// Another service than ARM.
    Host(String),
    /// A type that nobody simulates.
    Type(String),
    /// The state of an operation that was begun by a call which is not played, or before the recording.
    Operation,
    /// Azure itself failed or was too busy when it was recorded.
    Failure(u16),
    /// The recorder lacked a token or a role; who played has both.
    Refused(u16),
    /// A write whose body the recorder left out.
    Unsent,
}

impl Skip {
    /// For people and for counting.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Identity => "identity".to_owned(),
            Self::Host(host) => format!("not ARM: {host}"),
            Self::Type(name) => format!("not simulated: {name}"),
            Self::Operation => "the operation of a call that is not played".to_owned(),
            Self::Unsent => "what was sent is not recorded".to_owned(),
            Self::Refused(status) => format!("the recorder was refused with {status}"),
            Self::Failure(status) => format!("Azure failed with {status} when it was recorded"),
        }
    }
}

/// Decides what can be decided before anything is played.
pub(super) fn skip(exchange: &Exchange) -> Option<Skip> {
    let (host, path) = (
        exchange.host().to_ascii_lowercase(),
        exchange.path().to_ascii_lowercase(),
    );
    let identity = ["/oauth2/", "/.well-known/", "/common/discovery", "/userrealm/"];
    if host.starts_with("login.") || identity.iter().any(|part| path.contains(part)) {
        return Some(Skip::Identity);
    }
    if !host.contains("management.") || host.starts_with("management.core.") {
        return Some(Skip::Host(host));
    }
    let throttled = exchange.status == 429 && exchange.got.body.contains("hrottled");
    if exchange.status >= 500 || throttled {
        return Some(Skip::Failure(exchange.status));
    }
    if matches!(exchange.status, 401 | 403) {
        return Some(Skip::Refused(exchange.status));
    }
    let writes = matches!(exchange.method.as_str(), "PUT" | "PATCH" | "POST");
    let method = exchange.method.parse().unwrap_or(Method::GET);
    match route(&method, exchange.path()) {
        Ok(Target::Operation { .. }) => None,
        Ok(Target::View { view, .. }) => other_provider(&view),
        Ok(target) if registry::kind(target.resource_type()).is_some() => {
            (writes && !exchange.sent_is_known).then_some(Skip::Unsent)
        }
        Ok(target) => Some(Skip::Type(target.resource_type().to_owned())),
        Err(_) => Some(Skip::Type(provider(&path))),
    }
}

/// Questions about providers that have no type here.
fn other_provider(view: &View) -> Option<Skip> {
    let (View::Provider(asked) | View::ResourceTypes(asked) | View::Register(asked) | View::Unregister(asked)) = view
    else {
        return None;
    };
    let same = |known: &str| {
        known
            .split('/')
            .next()
            .is_some_and(|known| known.eq_ignore_ascii_case(asked))
    };
    let known = registry::kinds().any(|kind| same(kind.resource_type()));
    (!known).then(|| Skip::Type(asked.clone()))
}

/// What a path is about that has no form of ARM's.
fn provider(path: &str) -> String {
    let from = path.rfind("/providers/").map_or(0, |at| at + "/providers/".len());
    path.get(from..).unwrap_or_default().to_owned()
}

/// Whether a path asks for the state of an operation, of whatever provider.
pub(super) fn polls(url: &str) -> bool {
    let path = path(url).to_ascii_lowercase();
    let word = path.rsplit('/').nth(1).unwrap_or_default();
    word.starts_with("operation") || word.starts_with("privatednsoperation") || word == "asyncoperations"
}

/// Polling URLs of calls that were not played, by their path in lower case.
#[derive(Default)]
pub(super) struct Strange(BTreeSet<String>);

impl Strange {
    pub(super) fn learn(&mut self, exchange: &Exchange) {
        for name in ["azure-asyncoperation", "location", "operation-location"] {
            let url = exchange.got.header(name);
            if !url.is_empty() {
                self.0.insert(path(url).to_ascii_lowercase());
            }
        }
    }

    pub(super) fn has(&self, exchange: &Exchange) -> bool {
        self.0.contains(&exchange.path().to_ascii_lowercase())
    }
}
