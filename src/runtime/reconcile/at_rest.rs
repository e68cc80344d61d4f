//! A reconcile of an object at rest: only time has caused it, so it uses what was read for the object earlier.

use std::time::Duration;

use kube::ResourceExt;
use tokio::time::Instant;

use super::{Action, Begun, Cause, Fingerprint, ReconcileContext, ReconcileOutcome, Reconciler, Runner};
use crate::metrics::ReconcileResult;
use crate::runtime::inputs_cache::CachedInputs;
use crate::runtime::prune::Prune;
use crate::runtime::watch_health::Health;

/// The longest inputs that are kept, in bytes of the text that stands for them. Whoever may write in a namespace could
/// otherwise make this process keep megabytes for each object. Those of a cluster have some 1,000.
pub(super) const LONGEST_INPUTS: usize = 16 * 1024;

/// After so many rounds of `resync` the inputs are read again, whatever the watches have shown: an event may get lost,
/// and a few conflicts with other clusters cause none.
pub(super) const READ_AGAIN_ROUNDS: u32 = 3;

/// How long after they were read the inputs of an object at rest are read again, however long `resync` is.
pub(super) const READ_AGAIN: Duration = Duration::from_secs(900);

impl<R: Reconciler> Runner<R> {
    /// Reconciles an object at rest. None if it is not, or if something is to be written: that is decided again by what
    /// is read then.
    pub(super) async fn at_rest<'a>(
        &'a self,
        cached: &R::Object,
        cause: Cause,
        begun: &mut Begun<'a>,
    ) -> Option<Action> {
        let Some(known) = self.inputs_at_rest(cached, cause, &begun.uid) else {
            self.inputs.forget(&begun.uid);
            return None;
        };
        let runtime = self.cx.runtime();
        begun.fingerprint = begun.fingerprint.with_inputs_of(known.fingerprint);
        begun
            .counted
            .get_or_insert_with(|| runtime.metrics.reconcile(self.label));
        let reconciled = self
            .reconciler
            .reconcile_at_rest(&self.cx, begun.correlation, cached.clone(), &known.inputs)
            .await;
        let Some(outcome) = reconciled.filter(|outcome| outcome.result == ReconcileResult::Ready) else {
            self.inputs.forget(&begun.uid);
            return None;
        };
        if let Some(counted) = begun.counted.take() {
            counted.end(outcome.result);
        }
        runtime.retries.over(&begun.uid);
        self.finish(&begun.uid, begun.fingerprint, outcome.requeue);
        Some(self.action(&outcome.object, outcome.requeue))
    }

    /// What was read for the object, if nothing has changed since.
    fn inputs_at_rest(&self, cached: &R::Object, cause: Cause, uid: &str) -> Option<CachedInputs<R::Inputs>> {
        if cause == Cause::Change || !self.watches_are_good() {
            return None;
        }
        let most = READ_AGAIN.min(self.cx.runtime().resync * READ_AGAIN_ROUNDS);
        self.inputs.get(uid, &cached.resource_version()?, most, Instant::now())
    }

    /// Whether each change of what is read shows.
    pub(super) fn watches_are_good(&self) -> bool {
        let watches = self.watches.as_ref();
        watches.is_some_and(|watches| *watches.borrow() == Health::Good)
    }

    /// Stores what was read for an object, if it is at rest now.
    pub(super) fn rest(
        &self,
        uid: &str,
        outcome: &ReconcileOutcome<R::Object>,
        mut inputs: R::Inputs,
        fingerprint: Fingerprint,
        read_at: Instant,
    ) {
        let version = outcome.object.resource_version();
        let is_at_rest = outcome.result == ReconcileResult::Ready && !self.cx.is_contested(&outcome.object);
        if let Some(version) = version.filter(|_| is_at_rest) {
            inputs.prune();
            self.inputs
                .insert(uid, version, CachedInputs::new(inputs, fingerprint, read_at));
        }
    }
}
