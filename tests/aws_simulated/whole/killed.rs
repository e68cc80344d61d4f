//! Processes that are killed at each call of a life, to AWS and to Kubernetes, before its effect or after it.

use rstest::rstest;
use tokio::time::sleep;

use super::*;
use crate::strangers::live;

/// The time until the lease of a dead process has expired.
const LEASE: Duration = Duration::from_secs(15);

/// The call in which a process dies, by its number from 1.
#[derive(Debug, Clone, Copy)]
enum Death {
    /// Among all calls to AWS.
    Aws(u64),
    /// Among all writes to Kubernetes.
    Kubernetes(u64),
}

impl Death {
    /// Has this call stay without an answer.
    fn arm(self, life: &Life, is_carried_out: bool) {
        match self {
            Self::Aws(number) => {
                let mut held = json!({"delay_ms": 86_400_000});
                if !is_carried_out {
                    held["drop"] = json!("before");
                }
                life.aws
                    .set_faults(&json!([{"match": {"from": number, "times": 1}, "do": held}]));
            }
            Self::Kubernetes(number) => life.cluster.hang_at(number, is_carried_out),
        }
    }

    /// Waits until this call is made.
    async fn comes(self, aws: Arc<SimTransport>, cluster: Arc<Cluster>) {
        let has_come = || match self {
            Self::Aws(number) => aws.aws().journal(0).len() as u64 >= number,
            Self::Kubernetes(_) => cluster.hangs(),
        };
        while !has_come() {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A cluster one of whose processes dies once.
struct Mortal {
    life: Life,
    /// Where a process is still to die.
    death: Option<Death>,
}

impl Mortal {
    async fn reconcile_next(&mut self) {
        let cr = self.life.cr().unwrap();
        let at = self.life.next(&cr).await;
        let Some(death) = self.death else {
            return self.life.reconcile_with(at, cr).await;
        };
        let (aws, cluster) = (Arc::clone(&self.life.aws), Arc::clone(&self.life.cluster));
        let is_dead = tokio::select! {
            biased;
            () = self.life.reconcile_with(at, cr) => false,
            () = death.comes(aws, cluster) => true,
        };
        if is_dead {
            self.death = None;
            let role = self.life.processes[at].role;
            self.life.restart(role);
            self.life.processes[at].due = Instant::now() + LEASE;
        }
    }

    async fn until_available(&mut self) {
        while !self.life.is_available() {
            let elapsed = self.life.aws.elapsed();
            assert!(elapsed < 7_200, "{:#}", self.life.cluster.get(CR).unwrap());
            self.reconcile_next().await;
        }
    }

    async fn deleted(&mut self) {
        self.life.cluster.delete_at(CR, &Timestamp::now().to_string());
        let end = Instant::now() + Duration::from_secs(7_200);
        while self.life.cr().is_some() {
            assert!(Instant::now() < end, "{:#}", self.life.cluster.get(CR).unwrap());
            self.reconcile_next().await;
        }
    }
}

/// A whole life in which a process dies once. Returns whether it did.
async fn life_with(death: Death, is_carried_out: bool, switches: Value) -> bool {
    let life = Life::with(|seed| seed["switches"] = switches);
    let empty = life.remains();
    death.arm(&life, is_carried_out);
    let mut mortal = Mortal {
        life,
        death: Some(death),
    };
    mortal.until_available().await;
    let life = &mortal.life;
    assert!(life.is_reachable(), "{death:?}");
    for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
        assert_eq!(live(&life.aws, kind).len(), 1, "{death:?}: {kind}");
    }
    let calls = life.aws.journal().len();
    assert!(calls <= 90, "{death:?}: {calls} calls");
    mortal.deleted().await;
    // What was hidden shows.
    sleep(Duration::from_secs(120)).await;
    assert_eq!(mortal.life.remains(), empty, "{death:?}");
    let calls = mortal.life.aws.journal().len();
    assert!(calls <= 150, "{death:?}: {calls} calls");
    mortal.death.is_none()
}

/// Every third call, beginning with one of the first three, so that three tests run in parallel.
#[rstest]
#[case::at_a_call_to_aws(Death::Aws, 35)]
#[case::at_a_write_to_kubernetes(Death::Kubernetes, 12)]
#[tokio::test(start_paused = true)]
async fn process_dies_before_or_after_each_call_of_a_life(
    #[case] death: fn(u64) -> Death,
    #[case] least: u64,
    #[values(false, true)] is_carried_out: bool,
    #[values(1, 2, 3)] first: u64,
) {
    for number in (first..).step_by(3) {
        if !life_with(death(number), is_carried_out, json!({})).await {
            assert!(number > least, "only {number} calls in a life");
            return;
        }
    }
}

/// What is created shows a minute later.
#[rstest]
#[tokio::test(start_paused = true)]
async fn process_dies_where_lists_are_a_minute_behind(#[values(1, 2, 3)] first: u64) {
    let switches = json!({"describe_lag_s": 60.0, "tag_lag_s": 60.0, "zone_busy_s": 30.0});
    for number in (first..).step_by(3) {
        if !life_with(Death::Aws(number), true, switches.clone()).await {
            assert!(number > 35, "only {number} calls in a life");
            return;
        }
    }
}
