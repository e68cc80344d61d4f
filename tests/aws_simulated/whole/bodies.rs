//! Answers that are cut off, that somebody between has written, or that are too long; and items that fail in a success.

use awssim::FaultRule;
use rstest::rstest;

use super::lives::CALLS;
use super::*;

const HTML: &str = "<!DOCTYPE html><html><head><title>Proxy</title></head><body><p>No.<br></body></html>";

/// An answer without AWS's content; nothing is carried out.
fn html(status: u16) -> Value {
    json!({"status": status, "body": HTML, "headers": {"content-type": "text/html"}})
}

/// One call of an action is answered so.
fn once(call: &str, action: &Value) -> Vec<FaultRule> {
    let rule = json!([{"match": {"path": format!("/{call}$"), "times": 1}, "do": action}]);
    awssim::parse_faults(rule.to_string().as_bytes()).unwrap()
}

/// A life in each phase of which these rules apply. Returns how many calls it took.
async fn life_with(call: &str, rules: &[FaultRule]) -> usize {
    let mut life = Life::new();
    let empty = life.remains();
    life.aws.set_rules(rules.to_vec());
    life.until_available().await;
    assert!(life.is_reachable(), "{call}");
    life.aws.set_rules(rules.to_vec());
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.is_available() && life.is_reachable(), "{call}");
    for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
        assert_eq!(life.aws.resources(kind).len(), 1, "{call}: {kind}");
    }
    life.aws.set_rules(rules.to_vec());
    life.deleted().await;
    assert_eq!(life.remains(), empty, "{call}");
    life.aws.journal().len()
}

/// The answer is lost behind the first half, or not even that comes; what AWS was to do is done.
#[rstest]
#[case::connection_breaks(json!({"cut_body_at": 120}))]
#[case::end_is_not_noticed(json!({"cut_body_at": 120, "content_length": 120}))]
#[case::connection_closed(json!({"cut_body_at": 0}))]
#[case::connection_closed_before(json!({"drop": "before"}))]
#[case::success_of_a_proxy(html(200))]
#[case::refusal_of_a_proxy(html(403))]
#[case::outage_of_a_proxy(html(503))]
#[tokio::test(start_paused = true)]
async fn answer_that_is_not_awss_delays_a_path_and_breaks_none(#[case] action: Value) {
    for call in CALLS {
        let calls = life_with(call, &once(call, &action)).await;
        assert!(calls <= 150, "{call}: {calls} calls");
    }
}

/// More than Hyperlink reads.
#[tokio::test(start_paused = true)]
async fn answer_of_nine_mebibytes_delays_a_path_and_breaks_none() {
    let long = format!("<Response>{}</Response>", " ".repeat(9 << 20));
    for call in CALLS {
        let mut rules = once(call, &json!({}));
        rules[0].action.body = Some(long.clone());
        let calls = life_with(call, &rules).await;
        assert!(calls <= 150, "{call}: {calls} calls");
    }
}

/// An answer with HTTP 200 in which the only item has failed.
fn failed_item(call: &str, code: &str) -> Value {
    let error = format!("<error><code>{code}</code><message>No.</message></error>");
    let item = format!("<item><resourceId>vpce-0</resourceId>{error}</item>");
    let body = format!("<{call}Response><unsuccessful>{item}</unsuccessful></{call}Response>");
    json!({"status": 200, "body": body})
}

/// Two items of a deletion fail, one after another. The error counts as that of a call: its wait, and its report.
#[rstest]
#[tokio::test(start_paused = true)]
async fn item_that_fails_in_a_success_is_no_success(
    #[values(
        "DeleteVpcEndpoints",
        "DeleteVpcEndpointServiceConfigurations",
        "RejectVpcEndpointConnections"
    )]
    call: &str,
    #[values(
        ("InternalError", 5),
        ("UnauthorizedOperation", 60),
        ("RequestLimitExceeded", 30),
        ("IncorrectState", 3)
    )]
    (code, least): (&str, i64),
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let guests_side_is_gone = call == "RejectVpcEndpointConnections";
    let mut deleted_at = Timestamp::now();
    if guests_side_is_gone {
        // Then the management side ends the connection itself, once it has waited for long.
        life.without(Role::Cpo);
        let finalizers = json!([hyperlink::api::markers::aws::HO_FINALIZER]);
        life.cluster.forge(CR, &json!({"metadata": {"finalizers": finalizers}}));
        deleted_at -= jiff::SignedDuration::from_mins(11);
    }
    let rule = json!([{"match": {"path": format!("/{call}$"), "times": 2}, "do": failed_item(call, code)}]);
    life.aws.set_faults(&rule);
    life.aws.clear_journal();
    life.cluster.delete_at(CR, &deleted_at.to_string());
    let mut is_reported = false;
    for _ in 0..400 {
        let Some(cr) = life.cluster.get(CR) else { break };
        is_reported |= cr["status"]["conditions"].to_string().contains(code);
        life.reconcile_next().await;
    }
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    assert!(is_reported, "{code} was in no condition");
    let tries = life.calls_of(call);
    assert!((3..=6).contains(&tries.len()), "{tries:?}: {:#?}", life.aws.actions());
    for two in tries.windows(2).take(2) {
        let wait = two[1].duration_since(two[0]).as_secs();
        assert!(wait >= least, "{wait} s: {tries:?}");
    }
    let calls = life.aws.journal().len();
    assert!(calls <= 60, "{calls} calls");
    let is_left = |id: &String| guests_side_is_gone && !id.contains("/vpce-svc-");
    let left: Vec<String> = life.remains().into_iter().filter(|id| !is_left(id)).collect();
    assert_eq!(left, empty);
}
