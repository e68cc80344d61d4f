//! S24: one side is paused alone, and a pause that ends by itself.

use jiff::SignedDuration;
use rstest::rstest;

use super::cluster::{HOSTED, PLANE};
use super::*;
use crate::strangers::live;

impl Life {
    /// The calls of a role's process since the journal was cleared.
    fn calls_as(&self, role: Role) -> usize {
        let user = match role {
            Role::Ho => "user/ho",
            Role::Cpo | Role::Capz => "user/cpo",
        };
        let journal = self.aws.journal();
        journal.iter().filter(|entry| entry.principal.ends_with(user)).count()
    }

    /// What others do to each side: the principals are gone, and so are the records.
    fn damaged(&self) {
        let service = live(&self.aws, "vpc-endpoint-service").remove(0);
        self.aws.change(service, |body| body["principals"] = json!([]));
        self.aws.change(self.hosted_zone(), |body| body["records"] = json!([]));
    }

    /// Whether what [`damaged`](Self::damaged) took from each side is there again.
    fn repaired(&self) -> [bool; 2] {
        let service = live(&self.aws, "vpc-endpoint-service").remove(0);
        let has_principals = !service["principals"].as_array().unwrap().is_empty();
        [
            has_principals,
            self.hosted_zone()["records"].to_string().contains("vpce-svc-"),
        ]
    }
}

fn pause(until: impl serde::Serialize) -> Value {
    json!({"spec": {"pausedUntil": until}})
}

/// Both sides are damaged: only the other one's process repairs its own, until the pause is over.
#[rstest]
#[case::management_side(HOSTED, Role::Ho, Role::Cpo, [false, true])]
#[case::guests_side(PLANE, Role::Cpo, Role::Ho, [true, false])]
#[tokio::test(start_paused = true)]
async fn side_that_is_paused_alone_makes_no_call(
    #[case] key: &str,
    #[case] paused: Role,
    #[case] other: Role,
    #[case] repaired: [bool; 2],
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    life.cluster.forge(key, &pause("true"));
    life.wake();
    life.damaged();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.calls_as(paused), 0, "{:#?}", life.aws.actions());
    assert!(life.calls_as(other) >= 10, "{:#?}", life.aws.actions());
    assert_eq!(life.repaired(), repaired);
    life.cluster.forge(key, &pause(Value::Null));
    life.wake();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.repaired(), [true, true]);
    assert!(life.is_available() && life.is_reachable());
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

/// The other side is not held up by what it does not need.
#[tokio::test(start_paused = true)]
async fn guests_side_prepares_while_the_management_side_is_paused() {
    let mut life = Life::new();
    life.cluster.forge(HOSTED, &pause("true"));
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.calls_as(Role::Ho), 0);
    assert_eq!(crate::lost::groups(&life.aws).len(), 1);
    let calls = life.calls_as(Role::Cpo);
    assert!((1..=60).contains(&calls), "{calls} calls in an hour");
    life.cluster.forge(HOSTED, &pause(Value::Null));
    life.wake();
    life.until_available().await;
    assert!(life.is_reachable());
}

/// Nobody wakes the roles. Kubernetes' time is the real one, which does not stand still.
#[tokio::test(start_paused = true)]
async fn path_comes_by_itself_when_the_time_of_a_pause_is_over() {
    let mut life = Life::new();
    let end = Timestamp::now() + SignedDuration::from_secs(4);
    let until = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for key in [HOSTED, PLANE] {
        life.cluster.forge(key, &pause(&until));
    }
    let began = Instant::now();
    while life.processes.iter().any(|process| process.due <= began) {
        life.reconcile_next().await;
    }
    assert_eq!(life.aws.journal().len(), 0);
    let waits = life.processes.each_ref().map(|process| process.due - began);
    let is_soon = |wait: &Duration| *wait <= Duration::from_secs(10);
    assert!(waits.iter().all(is_soon), "{waits:?}");
    let left = end.duration_since(Timestamp::now()).unsigned_abs();
    std::thread::sleep(left + Duration::from_millis(50));
    life.until_available().await;
    assert!(life.is_reachable());
    assert!(life.aws.elapsed() <= 400, "{} s", life.aws.elapsed());
}
