//! Which namespaces a leader of all namespaces leaves alone, because a process of their own leads them. Pure.
//!
//! A process for one namespace keeps its lease in that namespace, under the name that a leader of all has in its own, or beside the
//! latter with the namespace in its name. A lease anywhere else proves nothing: whoever may write in a namespace could otherwise say
//! that another one is taken.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;

use super::LeaseSettings;
use super::guard::{Guard, Verdict};

/// What has been seen of the leases of processes for one namespace.
#[derive(Debug)]
pub(super) struct ScopedLeaders {
    /// Namespace and name of the lease of all namespaces.
    own: (String, String),
    duration: Duration,
    /// What a list shows is good for this long after it was asked for.
    good_for: Duration,
    seen: HashMap<(String, String), Seen>,
    asked: Option<Instant>,
}

#[derive(Debug)]
struct Seen {
    /// The namespace that it is for.
    scope: String,
    guard: Guard,
    held: bool,
    /// The namespace is left alone until then.
    until: Instant,
}

impl ScopedLeaders {
    /// For the leader under the lease of these settings.
    pub(super) fn new(settings: &LeaseSettings) -> Self {
        Self {
            own: (settings.namespace.clone(), settings.name.clone()),
            duration: settings.times.duration,
            // A process for one namespace waits the whole duration before it begins.
            good_for: settings.times.renew_deadline,
            seen: HashMap::new(),
            asked: None,
        }
    }

    /// Takes in all leases that a list asked for at `asked` has shown at `now`.
    pub(super) fn look(&mut self, leases: &[Lease], asked: Instant, now: Instant) {
        self.asked = Some(asked);
        let mut listed = HashMap::new();
        for lease in leases {
            if let Some(scope) = self.scope(lease) {
                let key = (lease.namespace().unwrap_or_default(), lease.name_any());
                let new = || Seen {
                    scope,
                    guard: Guard::new("", self.duration),
                    held: false,
                    until: now,
                };
                self.seen.entry(key.clone()).or_insert_with(new);
                listed.insert(key, lease);
            }
        }
        for (key, seen) in &mut self.seen {
            seen.judge(listed.get(key).copied(), self.duration, now);
        }
        self.seen
            .retain(|key, seen| listed.contains_key(key) || seen.until > now);
    }

    /// Until when what is known is good.
    pub(super) fn good_until(&self) -> Option<Instant> {
        Some(self.asked? + self.good_for)
    }

    /// The namespaces that are left alone at `now`; none if too little is known to tell.
    pub(super) fn left_alone(&self, now: Instant) -> Option<BTreeSet<String>> {
        (now < self.good_until()?).then(|| {
            let alone = self.seen.values().filter(|seen| seen.until > now);
            alone.map(|seen| seen.scope.clone()).collect()
        })
    }

    /// The namespace that a lease is for.
    fn scope(&self, lease: &Lease) -> Option<String> {
        let (namespace, name) = (lease.namespace()?, lease.name_any());
        if namespace == self.own.0 {
            let scope = name.strip_prefix(&self.own.1)?.strip_prefix('-')?;
            (!scope.is_empty()).then(|| scope.to_owned())
        } else {
            (name == self.own.1).then_some(namespace)
        }
    }
}

impl Seen {
    fn judge(&mut self, lease: Option<&Lease>, duration: Duration, now: Instant) {
        match self.guard.judge(lease, now) {
            Verdict::Taken { until, .. } => {
                self.held = true;
                self.until = until;
            }
            // Given back: its successor is given the time that it takes to come.
            Verdict::Free | Verdict::Ours if self.held && now < self.until => {
                self.held = false;
                self.until = now + duration;
            }
            Verdict::Free | Verdict::Ours => self.held = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::leader::LeaseTimes;

    const SECOND: Duration = Duration::from_secs(1);

    fn leaders() -> (ScopedLeaders, Instant) {
        let settings = LeaseSettings {
            name: "hyperlink-cpo".into(),
            namespace: "hyperlink".into(),
            identity: "me".into(),
            times: LeaseTimes {
                duration: 15 * SECOND,
                renew_deadline: 10 * SECOND,
                retry: 2 * SECOND,
            },
        };
        (ScopedLeaders::new(&settings), Instant::now())
    }

    fn lease(namespace: &str, name: &str, holder: &str, renewed: u32) -> Lease {
        let duration = if holder.is_empty() { 1 } else { 15 };
        serde_json::from_value(json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": format!("2026-01-01T00:00:{renewed:02}.000000Z")}}))
        .unwrap()
    }

    fn scoped(holder: &str, renewed: u32) -> Vec<Lease> {
        vec![lease("clusters-one", "hyperlink-cpo", holder, renewed)]
    }

    fn alone(leaders: &mut ScopedLeaders, leases: &[Lease], now: Instant) -> Vec<String> {
        leaders.look(leases, now, now);
        leaders.left_alone(now).unwrap().into_iter().collect()
    }

    #[rstest]
    #[case::in_its_own_namespace("clusters-one", "hyperlink-cpo", &["clusters-one"])]
    #[case::beside_ours("hyperlink", "hyperlink-cpo-clusters-one", &["clusters-one"])]
    #[case::ours("hyperlink", "hyperlink-cpo", &[])]
    #[case::of_the_other_role("clusters-one", "hyperlink-ho", &[])]
    #[case::of_the_other_role_beside_ours("hyperlink", "hyperlink-ho-clusters-one", &[])]
    #[case::of_somebody_elses_namespace("clusters-evil", "hyperlink-cpo-clusters-one", &[])]
    #[case::without_a_namespace("hyperlink", "hyperlink-cpo-", &[])]
    #[case::of_another_program("clusters-one", "control-plane-operator-leader-elect", &[])]
    fn live_lease_takes_its_own_namespace_and_no_other(
        #[case] namespace: &str,
        #[case] name: &str,
        #[case] expected: &[&str],
    ) {
        let (mut leaders, now) = leaders();
        assert_eq!(
            alone(&mut leaders, &[lease(namespace, name, "other", 0)], now),
            expected
        );
    }

    #[test]
    fn namespace_is_left_alone_while_its_lease_is_renewed_and_a_whole_duration_after() {
        let (mut leaders, mut now) = leaders();
        for renewal in 0..10 {
            assert_eq!(alone(&mut leaders, &scoped("other", renewal), now), ["clusters-one"]);
            now += 2 * SECOND;
        }
        // The last renewal was seen two seconds ago.
        assert_eq!(
            alone(&mut leaders, &scoped("other", 9), now + 12 * SECOND),
            ["clusters-one"]
        );
        assert!(alone(&mut leaders, &scoped("other", 9), now + 13 * SECOND).is_empty());
    }

    #[test]
    fn namespace_of_a_lease_that_was_given_back_is_left_to_a_successor_for_one_duration() {
        let (mut leaders, now) = leaders();
        alone(&mut leaders, &scoped("other", 0), now);
        for second in [1, 5, 15] {
            let left = alone(&mut leaders, &scoped("", 1), now + second * SECOND);
            assert_eq!(left, ["clusters-one"], "after {second} s");
        }
        assert!(alone(&mut leaders, &scoped("", 1), now + 16 * SECOND).is_empty());
        assert_eq!(
            alone(&mut leaders, &scoped("next", 2), now + 17 * SECOND),
            ["clusters-one"]
        );
    }

    #[rstest]
    #[case::given_back(scoped("", 0))]
    #[case::never_used(vec![serde_json::from_value(json!({"metadata": {"namespace": "clusters-one", "name": "hyperlink-cpo"}})).unwrap()])]
    fn lease_that_nobody_held_takes_nothing(#[case] leases: Vec<Lease>) {
        let (mut leaders, now) = leaders();
        assert!(alone(&mut leaders, &leases, now).is_empty());
    }

    #[test]
    fn lease_that_was_deleted_keeps_its_time() {
        let (mut leaders, now) = leaders();
        alone(&mut leaders, &scoped("other", 0), now);
        assert_eq!(alone(&mut leaders, &[], now + SECOND), ["clusters-one"]);
        assert!(alone(&mut leaders, &[], now + 20 * SECOND).is_empty());
        assert!(leaders.seen.is_empty(), "it is forgotten");
    }

    #[test]
    fn nothing_is_known_before_the_first_list_and_too_long_after_the_last() {
        let (mut leaders, now) = leaders();
        assert_eq!(leaders.left_alone(now), None);
        leaders.look(&[], now, now + SECOND);
        assert_eq!(leaders.left_alone(now + 9 * SECOND), Some(BTreeSet::new()));
        // Whoever took a lease right after that list begins five seconds later.
        assert_eq!(leaders.left_alone(now + 10 * SECOND), None);
    }
}
