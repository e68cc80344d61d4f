//! What an object at rest costs in reads of the API server, and what ends its rest.

use std::sync::Mutex;

use rstest::rstest;
use serde_json::Value;
use tokio::sync::watch::Sender;

use super::super::at_rest::{LONGEST_INPUTS, READ_AGAIN, READ_AGAIN_ROUNDS};
use super::*;
use crate::runtime::watch_health::Health;

const RESYNC: Duration = Duration::from_secs(60);

/// What a reconcile of an object at rest does.
#[derive(Clone, Copy, PartialEq)]
enum AtRest {
    FindsNothing,
    FindsSomethingToWrite,
    Panics,
}

/// Ends each reconcile with this result.
struct Steady {
    result: ReconcileResult,
    resync: Duration,
    at_rest: Mutex<AtRest>,
    /// The length of its inputs.
    inputs: usize,
}

impl Steady {
    fn outcome(&self, cr: AzurePrivateLinkService) -> ReconcileOutcome<AzurePrivateLinkService> {
        ReconcileOutcome::new(cr, Requeue::new(self.resync, Requeue::RESYNC), self.result)
    }

    fn at_rest(&self, next: AtRest) {
        *self.at_rest.lock().unwrap() = next;
    }
}

impl Script for Steady {
    async fn play(
        &self,
        _: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        self.at_rest(AtRest::FindsNothing);
        Ok(self.outcome(cr))
    }

    fn inputs_text(&self) -> String {
        "x".repeat(self.inputs)
    }

    fn rest(&self, cr: AzurePrivateLinkService) -> Option<ReconcileOutcome<AzurePrivateLinkService>> {
        let at_rest = *self.at_rest.lock().unwrap();
        assert!(at_rest != AtRest::Panics, "at rest");
        (at_rest == AtRest::FindsNothing).then(|| self.outcome(cr))
    }
}

fn cr(version: &str, managed: Value) -> AzurePrivateLinkService {
    let mut cr = sample::cr(json!({}), json!({}));
    cr.metadata.resource_version = Some(version.into());
    cr.metadata.managed_fields = serde_json::from_value(managed).unwrap();
    cr
}

/// A runner whose watches are good, and how often it has read the object.
struct Test {
    runner: Runner<Steady>,
    reads: Arc<AtomicUsize>,
}

impl Test {
    /// The API server shows the object with these managed fields.
    fn new(result: ReconcileResult, managed: Value, resync: Duration) -> Self {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let answers = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let cr = cr("7", managed.clone());
            async move { Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&cr)?))) }
        });
        let cx = Arc::new(sample::context_with(kube::Client::new(answers, "default"), resync));
        let steady = Steady {
            result,
            resync,
            at_rest: Mutex::new(AtRest::FindsNothing),
            inputs: LONGEST_INPUTS,
        };
        let runner = Runner::new(steady, cx, Label::PrivateEndpoint);
        let runner = runner.watching(Sender::new(Health::Good).subscribe());
        Self { runner, reads }
    }

    fn ready() -> Self {
        Self::new(ReconcileResult::Ready, json!(null), RESYNC)
    }

    /// How often the object has been read after so many more rounds.
    async fn reads_after(&self, rounds: u32) -> usize {
        for _ in 0..rounds {
            let resync = self.runner.reconciler.resync;
            let action = self.runner.reconcile(&cr("7", json!(null))).await;
            assert_eq!(action, Action::Requeue(resync));
            tokio::time::advance(resync).await;
        }
        self.reads.load(Ordering::SeqCst)
    }

    /// How many reconciles have ended.
    fn ended(&self) -> usize {
        let text = self.runner.cx.runtime.metrics.render().unwrap();
        let ended = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("hyperlink_reconcile_total{controller=\"private_endpoint\",result=")?;
            rest.rsplit_once(' ')?.1.parse::<usize>().ok()
        });
        ended.sum()
    }
}

/// HyperShift's operator of the same role has just written the status.
fn other_writer() -> Value {
    let now = jiff::Timestamp::now().to_string();
    let condition = r#"k:{"type":"AzurePrivateEndpointAvailable"}"#;
    json!([
        {"manager": "hyperlink-cpo", "operation": "Update", "time": "2026-01-01T00:00:00Z"},
        {"manager": "control-plane-operator", "operation": "Update", "subresource": "status", "time": now,
            "fieldsV1": {"f:status": {"f:conditions": {condition: {}}}}},
    ])
}

#[rstest]
#[case::ready(ReconcileResult::Ready, json!(null), 1)]
#[case::waits(ReconcileResult::Waiting, json!(null), 3)]
#[case::fails(ReconcileResult::Failed, json!(null), 3)]
#[case::another_controller_writes_it(ReconcileResult::Ready, other_writer(), 3)]
#[tokio::test(start_paused = true)]
async fn only_an_object_at_rest_is_not_read(
    #[case] result: ReconcileResult,
    #[case] managed: Value,
    #[case] expected: usize,
) {
    let test = Test::new(result, managed, RESYNC);
    assert_eq!(test.reads_after(3).await, expected);
    assert_eq!(test.ended(), 3, "each reconcile counts once");
}

#[rstest]
#[case::something_that_is_read_for_it_changes(|runner: &Runner<Steady>| runner.pacer.wake("u"))]
#[case::all_may_have_changed(|runner: &Runner<Steady>| runner.pacer.wake_all())]
#[case::something_is_to_be_written(|runner: &Runner<Steady>| runner.reconciler.at_rest(AtRest::FindsSomethingToWrite))]
#[case::it_was_removed_and_is_there_again(|runner: &Runner<Steady>| runner.forget("u"))]
#[tokio::test(start_paused = true)]
async fn what_ends_the_rest_is_read_once(#[case] happens: impl FnOnce(&Runner<Steady>)) {
    let test = Test::ready();
    assert_eq!(test.reads_after(2).await, 1);
    happens(&test.runner);
    assert_eq!(test.reads_after(1).await, 2);
    assert_eq!(test.reads_after(2).await, 2);
    assert_eq!(test.ended(), 5, "each reconcile counts once");
}

#[tokio::test(start_paused = true)]
async fn object_that_somebody_wrote_is_read() {
    let test = Test::ready();
    assert_eq!(test.reads_after(2).await, 1);
    test.runner.reconcile(&cr("8", json!(null))).await;
    assert_eq!(test.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn panic_at_rest_is_followed_by_a_read() {
    let test = Test::ready();
    assert_eq!(test.reads_after(2).await, 1);
    test.runner.reconciler.at_rest(AtRest::Panics);
    let Action::Requeue(after) = test.runner.reconcile(&cr("7", json!(null))).await else {
        panic!("it is not tried again");
    };
    tokio::time::advance(after).await;
    assert_eq!(test.reads_after(1).await, 2);
}

#[rstest]
#[case::resync_is_short(RESYNC, READ_AGAIN_ROUNDS)]
#[case::resync_is_long(READ_AGAIN / 2, 2)]
#[tokio::test(start_paused = true)]
async fn what_no_watch_shows_is_read_after_a_while(#[case] resync: Duration, #[case] rounds: u32) {
    let test = Test::new(ReconcileResult::Ready, json!(null), resync);
    assert_eq!(test.reads_after(rounds).await, 1);
    assert_eq!(test.reads_after(rounds).await, 2);
}

#[tokio::test(start_paused = true)]
async fn large_inputs_are_not_kept() {
    let mut test = Test::ready();
    test.runner.reconciler.inputs = LONGEST_INPUTS + 1;
    assert_eq!(test.reads_after(3).await, 3);
}

#[rstest]
#[case::not_listed(Health::Unlisted("hostedclusters".into()))]
#[case::failing(Health::Failing("hostedclusters".into()))]
#[tokio::test(start_paused = true)]
async fn nothing_rests_while_a_watch_is_not_good(#[case] health: Health) {
    let mut test = Test::ready();
    let watches = Sender::new(Health::Good);
    test.runner = test.runner.watching(watches.subscribe());
    assert_eq!(test.reads_after(1).await, 1);
    watches.send_replace(health);
    assert_eq!(test.reads_after(2).await, 3);
    watches.send_replace(Health::Good);
    assert_eq!(test.reads_after(1).await, 4, "what was read meanwhile does not count");
    assert_eq!(test.reads_after(1).await, 4);
}
