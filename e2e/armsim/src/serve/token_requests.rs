//! Which tenants were asked for tokens, and for which clients: the journal has ARM's calls alone.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many requests there were for one client in one tenant, refused ones included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Requested {
    tenant: String,
    client_id: String,
    count: u64,
}

/// The most pairs of tenant and client that are told apart.
const MOST: usize = 10_000;

/// The requests since the seed, by tenant and client. Both are as they were given.
#[derive(Debug, Default)]
pub(super) struct TokenRequests(BTreeMap<(String, String), u64>);

impl TokenRequests {
    /// Counts a request.
    pub(super) fn count(&mut self, tenant: &str, client_id: Option<&str>) {
        let pair = (tenant.to_owned(), client_id.unwrap_or_default().to_owned());
        if self.0.len() < MOST || self.0.contains_key(&pair) {
            *self.0.entry(pair).or_default() += 1;
        }
    }

    /// All pairs, in order.
    pub(super) fn all(&self) -> Vec<Requested> {
        let all = self.0.iter();
        all.map(|((tenant, client_id), count)| Requested {
            tenant: tenant.clone(),
            client_id: client_id.clone(),
            count: *count,
        })
        .collect()
    }
}
