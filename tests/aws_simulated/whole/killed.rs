//! Processes that are killed at each call of a life, to AWS and to Kubernetes, before its effect or after it; and at
//! each call of a change while the path is there.

use rstest::rstest;
use tokio::time::sleep;

use super::cluster::{HOSTED, PLANE, SERVICE};
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

    /// Reconciles until this is so.
    async fn until(&mut self, is_so: impl Fn(&Life) -> bool) {
        let end = Instant::now() + Duration::from_secs(7_200);
        while !is_so(&self.life) {
            assert!(Instant::now() < end, "{:#}", self.life.cluster.get(CR).unwrap());
            self.reconcile_next().await;
        }
    }

    async fn deleted(&mut self) {
        self.life.cluster.delete_at(CR, &Timestamp::now().to_string());
        self.until(|life| life.cr().is_none()).await;
        // What was hidden shows.
        sleep(Duration::from_secs(120)).await;
    }

    fn check_single(&self) {
        for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
            assert_eq!(live(&self.life.aws, kind).len(), 1, "{kind}");
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
    mortal.until(Life::is_available).await;
    assert!(mortal.life.is_reachable(), "{death:?}");
    mortal.check_single();
    let calls = mortal.life.aws.journal().len();
    assert!(calls <= 90, "{death:?}: {calls} calls");
    mortal.deleted().await;
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

/// Whether a path follows a change already.
type Follows = Box<dyn Fn(&Life) -> bool>;

/// Workers in another subnet, another machine network, another tag, and a principal that somebody has added by hand.
fn grows(life: &mut Life) -> Follows {
    let networks = json!([{"cidr": "10.0.0.0/16"}, {"cidr": "10.7.0.0/16"}]);
    let spec = json!({"spec": {"networking": {"machineNetwork": networks}}});
    for key in [HOSTED, PLANE] {
        life.cluster.forge(key, &spec);
    }
    let tags = json!({"spec": {"resourceTags": [{"key": "team", "value": "a"}]}, "metadata": {"generation": 2}});
    life.cluster.forge(CR, &tags);
    let service = live(&life.aws, "vpc-endpoint-service").remove(0);
    let principals = |body: &Value| body["principals"].as_array().unwrap().len();
    let before = principals(&service);
    life.aws.change(service, |body| {
        let foreign = json!({"arn": "arn:aws:iam::777788889999:root"});
        body["principals"].as_array_mut().unwrap().push(foreign);
    });
    life.has_workers_in(&["subnet-00000002"]);
    Box::new(move |life| {
        let service = live(&life.aws, "vpc-endpoint-service").remove(0);
        let endpoint = live(&life.aws, "vpc-endpoint").remove(0);
        let group = crate::lost::groups(&life.aws).remove(0);
        let is_tagged = [&service, &endpoint, &group]
            .iter()
            .all(|body| body["tags"]["team"] == "a");
        let is_wide = endpoint["subnets"].as_array().unwrap().len() == 2;
        is_tagged && is_wide && group.to_string().contains("10.7.0.0/16") && principals(&service) == before
    })
}

/// Another load balancer of the same name, which the Service reports.
fn is_moved(life: &mut Life) -> Follows {
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    let host = life.replace_load_balancer();
    let ingress = json!({"status": {"loadBalancer": {"ingress": [{"hostname": host}]}}});
    life.cluster.forge(SERVICE, &ingress);
    life.wake();
    Box::new(move |life| {
        let services = live(&life.aws, "vpc-endpoint-service");
        services.len() == 1 && services[0]["id"] != before["id"] && live(&life.aws, "vpc-endpoint").len() == 1
    })
}

/// A path that changes, while which a process dies once. Returns whether it did.
async fn change_with(death: Death, is_carried_out: bool, change: fn(&mut Life) -> Follows) -> bool {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let follows = change(&mut life);
    life.aws.clear_journal();
    death.arm(&life, is_carried_out);
    let mut mortal = Mortal {
        life,
        death: Some(death),
    };
    mortal
        .until(|life| follows(life) && life.is_available() && life.is_reachable())
        .await;
    if mortal.death.is_some() {
        return false;
    }
    mortal.check_single();
    let calls = mortal.life.aws.journal().len();
    assert!(calls <= 90, "{death:?}: {calls} calls");
    mortal.deleted().await;
    assert_eq!(mortal.life.remains(), empty, "{death:?}");
    true
}

/// Every third call of the change, as above.
#[rstest]
#[case::at_a_call_to_aws(Death::Aws, 8)]
#[case::at_a_write_to_kubernetes(Death::Kubernetes, 1)]
#[tokio::test(start_paused = true)]
async fn process_dies_before_or_after_each_call_of_a_change(
    #[case] death: fn(u64) -> Death,
    #[case] least: u64,
    #[values(grows, is_moved)] change: fn(&mut Life) -> Follows,
    #[values(false, true)] is_carried_out: bool,
    #[values(1, 2, 3)] first: u64,
) {
    for number in (first..).step_by(3) {
        if !change_with(death(number), is_carried_out, change).await {
            assert!(number > least, "only {number} calls in a change");
            return;
        }
    }
}
