//! What this process observed of custom resources and cannot read from Kubernetes or Azure again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ipnet::Ipv4Net;
use tokio::time::Instant;

use super::nat_prefix::{self, Refused};
use super::refused_prefixes::RefusedPrefixes;
use super::teardown;
use crate::api::Reason;
use crate::azure::arm::id::ResourceId;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::observations::ObservationCache;
use crate::azure::plan::{Outcome, Step};
use crate::controllers::azure::Decision;
use crate::engine::plan::Verb;
use crate::engine::resource::MISSED;
use crate::runtime::requeue::Requeue;

/// What is remembered of each custom resource, by its UID.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    by_uid: Mutex<HashMap<String, RememberedResource>>,
}

/// What is remembered of one custom resource.
#[derive(Debug, Default)]
struct RememberedResource {
    /// Prefixes that Azure refused.
    refused: RefusedPrefixes,
    /// The NAT subnet that the cluster's own Private Link Service used when it was last read.
    shown_subnet: Option<ResourceId>,
    /// Since when the Private Endpoint of HyperShift's guest side is missing from the connections.
    missing_since: Option<Instant>,
}

impl Remembered {
    /// The prefixes that are left out, because Azure refused them.
    pub(super) fn refused(&self, uid: &str, now: Instant) -> Vec<Refused> {
        self.with(uid, |entry| entry.refused.active(now))
    }

    /// The NAT subnet that the cluster's own service used when it was last read.
    pub(super) fn shown_subnet(&self, uid: &str) -> Option<ResourceId> {
        self.with(uid, |entry| entry.shown_subnet.clone())
    }

    /// Remembers the subnet that the cluster's service uses. When that is gone, nothing in Azure shows whose it was.
    pub(super) fn note_subnet(&self, uid: &str, decision: &Decision) {
        if let Some(shown) = decision.step(Kind::PrivateLinkService).and_then(teardown::shown_subnet) {
            self.with(uid, |entry| entry.shown_subnet = Some(shown));
        }
    }

    /// Drops the problem of a missing endpoint until two reads, [`MISSED`] apart, do not show it: the message asks a
    /// person to delete it.
    pub(super) fn confirm_missing(&self, uid: &str, decision: &mut Decision, now: Instant) {
        let problem = decision.problem.as_ref();
        if problem.is_none_or(|problem| problem.reason != Reason::EndpointNotConnected) {
            return self.with(uid, |entry| entry.missing_since = None);
        }
        let since = self.with(uid, |entry| *entry.missing_since.get_or_insert(now));
        if now.saturating_duration_since(since) < MISSED {
            decision.problem = None;
            decision.requeue = Some(Requeue::new(MISSED, Requeue::POLL));
        }
    }

    /// Whether to reconcile at once to choose another prefix, because Azure refused the last one as overlapping:
    /// usually another cluster was quicker. The refused prefix is left out, and the next one is chosen from a fresh
    /// read of the network.
    pub(super) fn note_refused_prefix(
        &self,
        uid: &str,
        steps: &[Step],
        outcomes: &[Outcome],
        observations: &ObservationCache,
    ) -> bool {
        let mut steps = steps.iter().zip(outcomes);
        let Some((step, outcome)) = steps.find(|(step, _)| step.kind == Kind::Subnet) else {
            return false;
        };
        if step.ready().is_some() {
            self.with(uid, |entry| entry.refused = RefusedPrefixes::default());
            return false;
        }
        let Outcome::Failed(error) = outcome else {
            return false;
        };
        let now = Instant::now();
        let network = step.key.parent();
        let body = network.as_ref().and_then(|network| observations.fresh(network, now));
        if let Some(network) = &network {
            observations.invalidate(network, now);
        }
        let overlaps = matches!(error.code.as_str(), "NetcfgSubnetRangesOverlap" | "NetcfgInvalidSubnet");
        let Some(prefix) = proposed(step).filter(|_| overlaps) else {
            return false;
        };
        let layout = body.as_ref().and_then(Observed::found).map(nat_prefix::layout);
        let another = self.with(uid, |entry| entry.refused.add(prefix, layout, now));
        if another {
            observations.invalidate(&step.key, now);
        }
        another
    }

    /// Forgets a custom resource.
    pub(super) fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }

    /// Calls `what` with what is remembered of a custom resource.
    fn with<T>(&self, uid: &str, what: impl FnOnce(&mut RememberedResource) -> T) -> T {
        what(self.all().entry(uid.to_owned()).or_default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, RememberedResource>> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The prefix that a step would give a subnet.
fn proposed(step: &Step) -> Option<Ipv4Net> {
    match &step.verb {
        Verb::Put(body) => body.pointer("/properties/addressPrefix")?.as_str()?.parse().ok(),
        _ => None,
    }
}
