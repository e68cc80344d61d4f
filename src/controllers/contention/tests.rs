use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::api::Reason;
use crate::conditions::{NewCondition, merge};

use ConditionType::{AzurePLSCreated, AzurePrivateLinkServiceAvailable};

const WHOLE: ConditionType = AzurePrivateLinkServiceAvailable;

fn dated(new: NewCondition) -> Condition {
    merge(&[], vec![new], Timestamp::UNIX_EPOCH).remove(0)
}

fn bad(message: &str) -> Condition {
    dated(NewCondition::fails(WHOLE, Reason::Provisioning, message, Some(1)))
}

fn good(message: &str) -> Condition {
    dated(NewCondition::holds(WHOLE, message, Some(1)))
}

/// Somebody writes `theirs` right after each write of ours and at each of our looks, every second for ten minutes.
/// Gives the seconds in which we wrote.
fn beside(theirs: &[Condition], ours: &Condition) -> Vec<u64> {
    let (began, own) = (Instant::now(), [ours.clone()]);
    let mut statements = Statements::default();
    let mut writes = Vec::new();
    for second in 0..600 {
        let now = began + Duration::from_secs(second);
        if statements.to_be_written(theirs, &own, now) {
            statements.written(theirs, &own, now);
            writes.push(second);
        }
    }
    writes
}

#[test]
fn contradiction_is_answered_at_once_and_then_ever_more_rarely() {
    // What we say first, and the answers.
    assert_eq!(beside(&[good("theirs")], &bad("ours")), [0, 1, 2, 152, 452]);
}

#[test]
fn condition_that_is_dropped_again_and_again_is_answered_as_rarely() {
    assert_eq!(beside(&[], &bad("ours")), [0, 1, 2, 152, 452]);
}

#[test]
fn same_status_in_other_words_is_left() {
    assert_eq!(beside(&[good("theirs")], &good("ours")), [0]);
}

#[test]
fn same_status_is_no_answer_to_one_that_names_another_controller() {
    let named = Condition {
        reason: Reason::OtherControllerActive.as_str().to_owned(),
        ..good("another controller writes too")
    };
    assert_eq!(beside(&[good("theirs")], &named), [0, 1, 2, 152, 452]);
}

#[test]
fn turn_of_our_own_is_defended_at_once_again() {
    let (now, there) = (Instant::now(), [good("theirs")]);
    let mut statements = Statements::default();
    for _ in 0..3 {
        statements.written(&there, &[bad("ours")], now);
    }
    assert!(!statements.to_be_written(&there, &[bad("ours")], now));
    let theirs = [bad("theirs")];
    statements.written(&theirs, &[good("ours")], now);
    assert!(statements.to_be_written(&theirs, &[good("ours")], now));
}

#[test]
fn intervals_do_not_grow_beyond_ten_minutes() {
    let (began, own, there) = (Instant::now(), [bad("ours")], [good("theirs")]);
    let mut statements = Statements::default();
    for answer in 0..20 {
        statements.written(&there, &own, began);
        let rest = statements.next_answer(&there, began).unwrap_or_default();
        assert!(rest <= MOST, "after {answer} answers {rest:?}");
    }
    assert_eq!(statements.next_answer(&there, began), Some(MOST));
}

#[test]
fn news_of_ours_is_written_though_a_contradiction_is_open() {
    let (now, there) = (Instant::now(), [good("theirs")]);
    let mut statements = Statements::default();
    statements.written(&[], &[bad("a")], now);
    statements.written(&there, &[bad("a")], now);
    statements.written(&there, &[bad("a")], now);
    assert!(!statements.to_be_written(&there, &[bad("a")], now));
    assert!(statements.to_be_written(&there, &[bad("b")], now));
}

#[rstest]
#[case::words(good("theirs"), good("ours"), false)]
#[case::status(good("theirs"), bad("ours"), true)]
fn only_another_status_is_worth_a_pass(#[case] theirs: Condition, #[case] ours: Condition, #[case] woken: bool) {
    let now = Instant::now();
    let mut statements = Statements::default();
    statements.written(&[], &[ours], now);
    assert_eq!(
        !statements
            .heeded(&[theirs], Role::Cpo, now)
            .iter()
            .all(|(kind, _)| *kind != WHOLE.as_str()),
        woken
    );
}

#[test]
fn contradiction_wakes_nobody_until_it_may_be_answered() {
    let (now, own, there) = (Instant::now(), [bad("ours")], [good("theirs")]);
    let mut statements = Statements::default();
    statements.written(&[], &own, now);
    statements.written(&there, &own, now);
    statements.written(&there, &own, now);
    let heeded = |at| {
        statements
            .heeded(&there, Role::Cpo, at)
            .iter()
            .any(|(kind, _)| *kind == WHOLE.as_str())
    };
    assert_eq!(statements.next_answer(&there, now), Some(FIRST));
    assert!(!heeded(now + FIRST - Duration::from_millis(1)));
    assert!(heeded(now + FIRST));
}

#[test]
fn contradiction_that_did_not_come_back_is_forgotten() {
    let (now, own) = (Instant::now(), [bad("ours")]);
    let there = [good("theirs")];
    let mut statements = Statements::default();
    statements.written(&[], &own, now);
    statements.written(&there, &own, now);
    statements.written(&there, &own, now);
    statements.stood(&own, &own, now + FIRST);
    assert!(statements.to_be_written(&there, &own, now + FIRST));
    statements.written(&there, &own, now + FIRST);
    assert_eq!(
        statements.next_answer(&there, now + FIRST),
        None,
        "answered at once again"
    );
}

#[test]
fn new_process_states_its_own_once() {
    let (now, own) = (Instant::now(), [good("ours")]);
    let statements = Statements::default();
    assert!(statements.to_be_written(&[good("an older process's")], &own, now));
    assert!(!statements.to_be_written(&own, &own, now));
}

#[test]
fn own_write_wakes_nobody() {
    let (now, own) = (
        Instant::now(),
        [
            bad("ours"),
            dated(NewCondition::fails(AzurePLSCreated, Reason::Provisioning, "x", None)),
        ],
    );
    let mut statements = Statements::default();
    statements.written(&[], &own, now);
    let heeded = statements.heeded(&own, Role::Ho, now);
    assert!(
        heeded.iter().all(|(kind, _)| *kind != AzurePLSCreated.as_str()),
        "{heeded:?}"
    );
}
