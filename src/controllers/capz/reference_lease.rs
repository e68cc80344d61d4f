//! The lease of the operator whose place the role takes. While somebody holds it, this process writes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tokio::time::{Instant, sleep};

use crate::runtime::call::{ReconcileError, within};

/// The name of the lease.
pub const NAME: &str = "0934d11a.giantswarm.io";

/// How long a lease counts that does not say how long it lasts. Source: controller-runtime's default.
const DURATION: Duration = Duration::from_secs(15);

/// The longest that a lease counts after its last change, whatever it says.
const LONGEST: Duration = Duration::from_secs(60);

/// Whether the other operator leads. Clones share it.
#[derive(Debug, Clone)]
pub struct ReferenceLease(Arc<AtomicBool>);

impl Default for ReferenceLease {
    /// It leads, until a read has shown that it does not.
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl ReferenceLease {
    /// Whether it leads now.
    pub(super) fn leads(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Follows the lease; calls `changed` when somebody else holds it than before, or nobody any more. Never returns.
    pub(super) async fn follow(&self, kube: kube::Client, changed: impl Fn(Option<&str>)) {
        let mut observer = LeaseObserver::default();
        loop {
            // Without an answer what is known stands.
            if let Ok(holder) = observer.holder(&kube).await {
                let before = self.0.swap(holder.is_some(), Ordering::Relaxed);
                if let Some(holder) = holder.as_ref().filter(|_| !before) {
                    tracing::warn!(holder, "another operator leads: nothing is written");
                }
                if before != holder.is_some() {
                    changed(holder.as_deref());
                }
            }
            sleep(LeaseObserver::EVERY).await;
        }
    }
}

/// What was observed of the leases of this name: each counts for its duration after its last change, by this process'
/// own clock.
#[derive(Debug, Default)]
pub struct LeaseObserver(Vec<(String, Option<String>, Instant)>);

impl LeaseObserver {
    /// The time between two reads of the lease.
    pub const EVERY: Duration = Duration::from_secs(5);

    /// Who holds the lease, in whichever namespace.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn holder(&mut self, kube: &kube::Client) -> Result<Option<String>, ReconcileError> {
        let api: Api<Lease> = Api::all(kube.clone());
        let params = ListParams::default()
            .fields(&format!("metadata.name={NAME}"))
            .limit(500);
        let found = within(api.list(&params)).await?.items;
        Ok(self.observe(found, Instant::now()))
    }

    /// Who holds one of these leases.
    fn observe(&mut self, leases: Vec<Lease>, now: Instant) -> Option<String> {
        let mut holder = None;
        let mut next = Vec::new();
        for lease in leases {
            let (uid, version) = (lease.uid().unwrap_or_default(), lease.resource_version());
            let known = self
                .0
                .iter()
                .find(|(known, before, _)| *known == uid && *before == version);
            let since = known.map_or(now, |(_, _, since)| *since);
            let spec = lease.spec.unwrap_or_default();
            let seconds = spec
                .lease_duration_seconds
                .and_then(|seconds| u64::try_from(seconds).ok());
            let lasts = seconds.map_or(DURATION, Duration::from_secs).min(LONGEST);
            let name = spec.holder_identity.filter(|name| !name.is_empty());
            if now.saturating_duration_since(since) < lasts {
                holder = holder.or(name);
            }
            next.push((uid, version, since));
        }
        self.0 = next;
        holder
    }
}

#[cfg(test)]
impl ReferenceLease {
    /// A lease that nobody holds.
    pub(super) fn free() -> Self {
        Self(Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, version: &str) -> Vec<Lease> {
        let lease = json!({"metadata": {"name": NAME, "uid": "u", "resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
        vec![serde_json::from_value(lease).unwrap()]
    }

    #[tokio::test(start_paused = true)]
    async fn lease_counts_for_its_duration_after_its_last_change() {
        let (mut observed, begin) = (LeaseObserver::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(observed.observe(lease("theirs", "1"), at(0)), Some("theirs".to_owned()));
        assert_eq!(
            observed.observe(lease("theirs", "1"), at(14)),
            Some("theirs".to_owned())
        );
        assert_eq!(
            observed.observe(lease("theirs", "2"), at(14)),
            Some("theirs".to_owned())
        );
        assert_eq!(
            observed.observe(lease("theirs", "2"), at(28)),
            Some("theirs".to_owned())
        );
        assert_eq!(observed.observe(lease("theirs", "2"), at(29)), None);
        assert_eq!(observed.observe(lease("", "3"), at(30)), None);
        assert_eq!(observed.observe(Vec::new(), at(31)), None);
    }
}
