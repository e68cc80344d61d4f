//! A security group whose tags, which prove its owner, show late or never.

use std::sync::Arc;
use std::time::Duration;

use hyperlink::engine::plan::{Outcome, ensure_present};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::security_group;
use crate::lost::groups;
use crate::process::Process;
use crate::sim::SimTransport;

fn with_late_tags() -> Arc<SimTransport> {
    SimTransport::with(|seed| seed["switches"] = json!({"tag_lag_s": 55.0}))
}

/// Reconciles until the group is ready; how long that took.
async fn ready_after(cpo: &Process) -> u64 {
    let group = security_group();
    let began = tokio::time::Instant::now();
    for _ in 0..200 {
        let (step, outcome) = cpo.reconcile(&group, |observed| ensure_present(&group, observed)).await;
        assert!(!step.left(), "foreign after {:?}", began.elapsed());
        if step.ready().is_some() {
            return began.elapsed().as_secs();
        }
        if outcome == Outcome::Ready {
            // The answer shows the tags that were sent: what a read shows is what counts.
            cpo.forget(&group.slot);
        } else {
            cpo.wait(&group.slot).await;
        }
    }
    panic!("not ready")
}

#[tokio::test(start_paused = true)]
async fn new_group_whose_tags_show_late_is_not_foreign() {
    let aws = with_late_tags();
    let took = ready_after(&Process::cpo(&aws)).await;
    assert!(took <= 90, "{took} s");
    assert!(aws.journal().len() <= 20, "{} calls", aws.journal().len());
}

#[tokio::test(start_paused = true)]
async fn group_with_late_tags_is_not_foreign_to_the_next_process() {
    let (aws, group) = (with_late_tags(), security_group());
    let cpo = Process::cpo(&aws);
    cpo.reconcile(&group, |observed| ensure_present(&group, observed)).await;
    sleep(Duration::from_secs(5)).await;
    let took = ready_after(&Process::cpo(&aws)).await;
    assert!(took <= 90, "{took} s");
}

#[tokio::test(start_paused = true)]
async fn group_whose_tags_show_late_is_deleted() {
    let (aws, group) = (with_late_tags(), security_group());
    let cpo = Process::cpo(&aws);
    cpo.reconcile(&group, |observed| ensure_present(&group, observed)).await;
    sleep(Duration::from_secs(2)).await;
    let is_left = Process::cpo(&aws).released(&group, None).await;
    assert!(!is_left, "left to others");
    assert_eq!(groups(&aws), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn group_that_never_has_tags_is_foreign_after_a_minute() {
    let (aws, group) = (SimTransport::new(), security_group());
    Process::cpo(&aws).present(&group).await;
    let made = groups(&aws).remove(0);
    aws.change(made, |body| body["tags"] = json!({}));
    aws.clear_journal();
    let is_left = Process::cpo(&aws).released(&group, None).await;
    assert!(is_left && aws.writes().is_empty(), "{:?}", aws.writes());
}
