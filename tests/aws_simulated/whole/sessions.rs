//! Sessions of an assumed role that AWS refuses, that expire, or that nobody can renew any more.

use rstest::rstest;

use super::cluster::PLANE;
use super::many::{Many, entry};
use super::*;
use crate::sim::fault;

const ALWAYS: u64 = 1_000_000;

fn denied() -> Value {
    json!({"status": 403, "code": "AccessDenied"})
}

/// S20: the guest's API server, from which tokens come, is gone with the control plane.
#[rstest]
#[tokio::test(start_paused = true)]
async fn kept_session_suffices_for_the_deletion(#[values(0, 10, 20, 25, 30, 45, 59, 90)] minutes: u64) {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    many.life.run_for(Duration::from_secs(60 * minutes)).await;
    many.life.aws.clear_journal();
    many.life.aws.set_faults(&fault("/AssumeRole$", ALWAYS, &denied()));
    many.life.cluster.remove(PLANE);
    many.life.cluster.delete_at(CR, &Timestamp::now().to_string());
    many.life.run_for(Duration::from_secs(1_750)).await;
    assert!(many.life.cr().is_none(), "{:#}", many.life.cluster.get(CR).unwrap());
    assert_eq!(many.life.remains(), empty);
}

/// S20, and AWS refuses a call by mistake, be it the first of the deletion or a later one.
#[rstest]
#[tokio::test(start_paused = true)]
async fn refusal_by_mistake_does_not_cost_the_last_session(
    #[values("AuthFailure", "RequestExpired", "InvalidClientTokenId")] code: &str,
    #[values(1, 2, 5)] call: u64,
) {
    let mut many = Many::new(&entry());
    let empty = many.life.remains();
    many.life.until_available().await;
    many.life.aws.set_faults(&json!([
        {"match": {"path": "/AssumeRole$", "times": ALWAYS}, "do": denied()},
        {"match": {"path": "/(Describe|Delete)[A-Za-z]*(Endpoints|SecurityGroups?)$", "from": call, "times": 1},
            "do": {"status": 400, "code": code}},
    ]));
    many.life.cluster.remove(PLANE);
    many.life.cluster.delete_at(CR, &Timestamp::now().to_string());
    many.life.run_for(Duration::from_secs(1_750)).await;
    let journal = many.life.aws.journal();
    assert!(journal.iter().any(|entry| entry.code.as_deref() == Some(code)));
    assert!(many.life.cr().is_none(), "{:#}", many.life.cluster.get(CR).unwrap());
    assert_eq!(many.life.remains(), empty);
}

/// S19: the role may not be assumed.
#[tokio::test(start_paused = true)]
async fn denied_session_is_a_condition_until_it_is_granted() {
    let mut many = Many::new(&entry());
    many.life.aws.set_faults(&fault("/AssumeRole$", ALWAYS, &denied()));
    many.life.run_for(Duration::from_secs(3_600)).await;
    let (status, _, message) = many.life.condition("AWSEndpointAvailable");
    assert!(status == "False" && message.contains("NoSession"), "{status} {message}");
    let tries = many.life.calls_of("AssumeRole").len();
    assert!(tries <= 70, "{tries} tries in an hour");
    many.life.aws.set_faults(&json!([]));
    many.life.wake();
    many.life.until_available().await;
    assert!(many.life.is_reachable());
}

/// S19 and "tokens that expire in the middle of a reconcile": at any call, with either of AWS's codes.
#[rstest]
#[tokio::test(start_paused = true)]
async fn session_that_expires_at_any_call_is_renewed_once(
    #[values("RequestExpired", "ExpiredToken")] code: &str,
    #[values(1, 2)] first: u64,
) {
    for number in (first..).step_by(2) {
        let mut many = Many::new(&entry());
        let empty = many.life.remains();
        let expired = json!({"status": 400, "code": code});
        let rule = json!([{"match": {"path": "/(ec2|route53)/", "from": number, "times": 1}, "do": expired}]);
        many.life.aws.set_faults(&rule);
        many.life.until_available().await;
        assert!(many.life.is_reachable(), "call {number}");
        many.life.deleted().await;
        assert_eq!(many.life.remains(), empty, "call {number}");
        let journal = many.life.aws.journal();
        let refused = journal
            .iter()
            .filter(|entry| entry.code.as_deref() == Some(code))
            .count();
        let sessions = many.life.calls_of("AssumeRole").len();
        assert!(
            refused <= 1 && sessions <= 1 + refused,
            "call {number}: {sessions} sessions"
        );
        if refused == 0 {
            assert!(number > 30, "only {number} calls in a life");
            return;
        }
    }
}
