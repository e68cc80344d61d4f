//! Reads the addresses of private endpoints: each with the identity of the cluster in whose network it lies.

use std::time::Duration;

use tokio::time::Instant;

use super::Context;
use super::identities::NoIdentity;
use crate::api::capi::AzureCluster;
use crate::azure::arm::id::ResourceId;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::capz::address::{Address, address};
use crate::capz::cluster::{resource_group, subscription, uid};
use crate::capz::entry::DesiredEntry;
use crate::capz::reason::{Problem, Reason};
use crate::engine::client::Reconcile;
use crate::metrics::IdentityResult;
use crate::runtime::polls::Polls;
use crate::runtime::requeue::Requeue;

/// The wait after the first read that does not show an approved address. Each is twice the last.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The wait after the API server did not answer about an identity.
const AFTER_UNREAD: Duration = Duration::from_secs(10);

/// What is known of an address, and when to read it again.
pub(super) struct Found {
    pub(super) address: Address,
    pub(super) requeue: Requeue,
}

/// The address of the private endpoint of an entry in the network of `cluster`, on behalf of `workload`.
/// An entry that is not there yet may be another private endpoint than the one that was read before.
pub(super) async fn read(
    cx: &Context,
    workload: &AzureCluster,
    cluster: &AzureCluster,
    (entry, is_there): (&DesiredEntry, bool),
) -> Found {
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    let without = |problem| Found {
        address: Address::Missing(problem),
        requeue: resync,
    };
    let Some(id) = id(cluster, &entry.name) else {
        let message = format!("private endpoint {} has no id that Azure takes", entry.name);
        return without(Problem::new(Reason::InvalidLinkName, message));
    };
    let cloud = match cx.identities.cloud(&cx.runtime, cluster).await {
        Ok(cloud) => cloud,
        Err(NoIdentity::Certain(problem)) => {
            // Whom it does not allow has nothing to tell of it.
            if problem.reason != Reason::IdentityNotAllowed {
                cx.identities.note(cluster, IdentityResult::Unusable);
            }
            return without(problem);
        }
        Err(NoIdentity::Unread(problem)) => {
            return Found {
                address: Address::Unread(problem),
                requeue: Requeue::new(AFTER_UNREAD, Requeue::FAILED),
            };
        }
    };
    if !is_there {
        cloud.observations.invalidate(&id, Instant::now());
    }
    let observed = cloud.reader(Reconcile::begin()).read(Kind::PrivateEndpoint, &id).await;
    let found = address(entry, &observed);
    cx.identities.note(cluster, result(&found));
    let (poll, now) = (format!("{}/{}", uid(workload), entry.name), Instant::now());
    let has_answered = matches!(observed, Observed::Found(_) | Observed::Absent | Observed::Pending);
    if let (Address::Missing(_), true) = (&found, has_answered) {
        let wait = wait(&cx.polls, &poll, now);
        cloud.observations.expedite(&id, wait, now);
    } else if let Address::Known(_) = &found {
        cx.polls.over(&poll);
    }
    let due = cloud
        .observations
        .next_read([&id])
        .map(|at| at.saturating_duration_since(now));
    let due = due.map(|wait| Requeue::new(wait, Requeue::READ_DUE));
    Found {
        address: found,
        requeue: resync.or_earlier(due),
    }
}

/// How long to wait after a read that did not show an approved address.
fn wait(polls: &Polls, poll: &str, now: Instant) -> Duration {
    polls.wait(poll, FIRST_WAIT, now).min(LONGEST_WAIT)
}

fn result(found: &Address) -> IdentityResult {
    match found {
        Address::Missing(problem) | Address::Unread(problem) if problem.reason == Reason::AzureDenied => {
            IdentityResult::Denied
        }
        Address::Unread(_) => IdentityResult::Failed,
        Address::Known(_) | Address::Missing(_) => IdentityResult::Accepted,
    }
}

/// The id of the private endpoint of this name in the group of a cluster; none if Azure takes no such id.
pub(super) fn id(cluster: &AzureCluster, name: &str) -> Option<ResourceId> {
    let (subscription, group) = (subscription(cluster)?, resource_group(cluster));
    ResourceId::new(Kind::PrivateEndpoint, &subscription, &group, &[name]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn address_is_read_ever_less_often_down_to_once_a_minute() {
        let (polls, mut now) = (Polls::default(), Instant::now());
        let mut next = || {
            let wait = wait(&polls, "endpoint", now);
            now += wait;
            wait.as_secs()
        };
        let all: Vec<_> = (0..7).map(|_| next()).collect();
        assert_eq!(all, [5, 5, 10, 20, 40, 60, 60]);
    }
}
