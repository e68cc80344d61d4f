//! Answers of AWS that nobody can use, calls that are refused for one action or one account, and a clock that is off.

use jiff::SignedDuration;
use rstest::rstest;

use super::lives::CALLS;
use super::*;
use crate::sim::fault;

const CPO: &str = "arn:aws:iam::444455556666:user/cpo";

fn bomb() -> String {
    let entities = "<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\">";
    format!("<!DOCTYPE x [<!ENTITY a \"aaaaaaaa\">{entities}]><ROOTResponse>&c;</ROOTResponse>")
}

fn deep() -> String {
    format!(
        "<ROOTResponse>{}{}</ROOTResponse>",
        "<a>".repeat(100_000),
        "</a>".repeat(100_000)
    )
}

/// Each of them in each phase of a life; every second call with such an answer is carried out. `ROOT` stands for the
/// name of the action.
#[rstest]
#[case::no_xml(&["<html><head/><body>Welcome to the network</body></html>", "", "{\"message\": \"no\"}"])]
#[case::bad_xml(&[&bomb(), "<ROOTResponse><item><state>avail", &deep(), "<DescribeVpcsResponse/>"])]
#[tokio::test(start_paused = true)]
async fn unusable_answers_delay_a_path_and_break_none(#[case] bodies: &[&str]) {
    for call in CALLS {
        let mut life = Life::new();
        let empty = life.remains();
        let rule = |(body, at): (&&str, usize)| {
            let mut action = json!({"body": body.replace("ROOT", call)});
            if at % 2 == 0 {
                // In place of the answer: nothing is carried out.
                action["status"] = json!(200);
            }
            json!({"match": {"path": format!("/{call}$")}, "do": action})
        };
        let rules = json!(bodies.iter().zip(0..).map(rule).collect::<Vec<_>>());
        life.aws.set_faults(&rules);
        life.until_available().await;
        assert!(life.is_reachable(), "{call}");
        life.aws.set_faults(&rules);
        life.run_for(Duration::from_secs(3_600)).await;
        assert!(life.is_available() && life.is_reachable(), "{call}");
        life.aws.set_faults(&rules);
        life.deleted().await;
        assert_eq!(life.remains(), empty, "{call}");
        let calls = life.aws.journal().len();
        assert!(calls <= 190, "{call}: {calls} calls");
    }
}

/// What is listed is not there, or has no list, in one answer; elements have a prefix, and unknown ones are among them.
#[rstest]
#[case::no_list("<ROOTResponse/>")]
#[case::unknown_elements(
    "<a:ROOTResponse xmlns:a=\"urn:a\"><a:new><a:item/></a:new><a:other>1</a:other></a:ROOTResponse>"
)]
#[tokio::test(start_paused = true)]
async fn answer_that_lists_nothing_once_changes_nothing(#[case] body: &str) {
    for call in CALLS
        .into_iter()
        .filter(|call| call.starts_with("Describe") || call.starts_with("List"))
    {
        let mut life = Life::new();
        let empty = life.remains();
        let rule = fault(&format!("/{call}$"), 1, &json!({"body": body.replace("ROOT", call)}));
        life.aws.set_faults(&rule);
        life.until_available().await;
        life.aws.set_faults(&rule);
        life.run_for(Duration::from_secs(3_600)).await;
        assert!(life.is_available() && life.is_reachable(), "{call}");
        for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
            assert_eq!(life.aws.resources(kind).len(), 1, "{call}: {kind}");
        }
        life.aws.set_faults(&rule);
        life.deleted().await;
        assert_eq!(life.remains(), empty, "{call}");
    }
}

/// The answers to the first two calls of every action that writes are lost.
#[rstest]
#[tokio::test(start_paused = true)]
async fn path_is_made_once_though_every_creates_answer_is_lost(#[values(1.0, 60.0)] lag: f64) {
    let mut life = Life::with(|seed| seed["switches"] = json!({"describe_lag_s": lag, "tag_lag_s": lag}));
    let empty = life.remains();
    let writes = CALLS
        .into_iter()
        .filter(|call| !call.starts_with("Describe") && !call.starts_with("List"));
    let rules: Vec<Value> = writes
        .map(|call| json!({"match": {"path": format!("/{call}$"), "times": 2}, "do": {"drop": "after"}}))
        .collect();
    life.aws.set_faults(&json!(rules));
    life.until_available().await;
    assert!(life.is_reachable());
    for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
        assert_eq!(life.aws.resources(kind).len(), 1, "{kind}");
    }
    life.aws.set_faults(&json!(rules));
    life.deleted().await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(life.remains(), empty);
}

/// For ten minutes; the other account has no part in it.
#[tokio::test(start_paused = true)]
async fn throttled_account_holds_up_no_other() {
    let mut life = Life::new();
    let refusal = json!({"status": 503, "code": "RequestLimitExceeded"});
    life.aws
        .set_faults(&json!([{"match": {"principal": CPO, "times": 100_000}, "do": refusal}]));
    life.run_for(Duration::from_secs(600)).await;
    assert!(life.holds("AWSEndpointServiceAvailable") && !life.holds("AWSEndpointAvailable"));
    let refused = life.aws.journal().iter().filter(|entry| entry.principal == CPO).count();
    assert!(refused <= 30, "{refused} refused calls");
    life.aws.set_faults(&json!([]));
    life.until_available().await;
    assert!(life.aws.elapsed() <= 1_200, "{} s", life.aws.elapsed());
}

/// For ten minutes; all that needs no endpoint is made meanwhile.
#[tokio::test(start_paused = true)]
async fn throttled_action_holds_up_no_other() {
    let mut life = Life::new();
    let refusal = json!({"status": 503, "code": "RequestLimitExceeded"});
    life.aws.set_faults(&fault("/CreateVpcEndpoint$", 100_000, &refusal));
    life.run_for(Duration::from_secs(600)).await;
    assert!(life.holds("AWSEndpointServiceAvailable"));
    assert_eq!(crate::lost::groups(&life.aws).len(), 1);
    let tries = life.calls_of("CreateVpcEndpoint").len();
    assert!((1..=15).contains(&tries), "{tries} tries");
    life.aws.set_faults(&json!([]));
    life.until_available().await;
    assert!(life.aws.elapsed() <= 1_200, "{} s", life.aws.elapsed());
}

/// AWS accepts five minutes.
#[rstest]
#[case::behind(600)]
#[case::ahead(-600)]
#[tokio::test(start_paused = true)]
async fn clock_that_is_ten_minutes_off_costs_one_call_of_each_process(#[case] seconds: i64) {
    let mut life = Life::new();
    let empty = life.remains();
    life.aws.set_clocks_behind(SignedDuration::from_secs(seconds));
    life.until_available().await;
    assert!(life.is_reachable());
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    let journal = life.aws.journal();
    let refused = journal
        .iter()
        .filter(|entry| entry.code.as_deref() == Some("RequestExpired"));
    assert_eq!(refused.count(), 2, "{journal:#?}");
}
