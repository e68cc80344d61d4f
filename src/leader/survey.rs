//! Looks again and again at the leases of processes for one namespace, for a leader of all.

use std::collections::BTreeSet;
use std::time::Instant;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};

use super::scoped::ScopedLeaders;
use super::{LeaderError, LeaseSettings};

/// Tells after each look which namespaces are to be left alone; none when too little is known to tell. Does not end.
///
/// `settings` are those of the lease of all namespaces.
pub async fn survey(client: Client, settings: LeaseSettings, tell: impl Fn(Option<BTreeSet<String>>)) {
    let mut leaders = ScopedLeaders::new(&settings);
    let mut last_failure = None;
    loop {
        let asked = Instant::now();
        let rest = leaders.good_until().map(|until| until.saturating_duration_since(asked));
        let patience = rest
            .filter(|rest| !rest.is_zero())
            .unwrap_or(settings.times.renew_deadline);
        let listed = tokio::time::timeout(patience.min(settings.times.call_timeout()), list(&client, &settings)).await;
        let failure = match listed.unwrap_or(Err(LeaderError::TimedOut)) {
            Ok(leases) => {
                leaders.look(&leases, asked, Instant::now());
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = failure.as_ref().filter(|_| failure != last_failure) {
            tracing::warn!(lease = %settings.name, error, "cannot list the leases of processes for one namespace");
        }
        last_failure = failure;
        tell(leaders.left_alone(Instant::now()));
        let next = asked + settings.times.retry;
        let until = leaders.good_until().filter(|until| *until > Instant::now());
        tokio::time::sleep_until(until.map_or(next, |until| next.min(until)).into()).await;
    }
}

async fn list(client: &Client, settings: &LeaseSettings) -> Result<Vec<Lease>, LeaderError> {
    let of_that_name = ListParams::default().fields(&format!("metadata.name={}", settings.name));
    let beside: Api<Lease> = Api::namespaced(client.clone(), &settings.namespace);
    let everywhere: Api<Lease> = Api::all(client.clone());
    let any = ListParams::default();
    let (everywhere, beside) = tokio::try_join!(everywhere.list(&of_that_name), beside.list(&any))?;
    Ok(everywhere.items.into_iter().chain(beside.items).collect())
}

#[cfg(test)]
mod tests;
