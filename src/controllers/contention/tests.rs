use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

use super::*;
use crate::api::{AzurePrivateLinkService, Reason, Role};
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::conditions::{NewCondition, merge};

use ConditionType::{AzurePLSCreated, AzurePrivateLinkServiceAvailable};

const WHOLE: ConditionType = AzurePrivateLinkServiceAvailable;

fn condition(new: NewCondition) -> Condition {
    merge(&[], vec![new], Timestamp::UNIX_EPOCH).remove(0)
}

fn bad(message: &str) -> Condition {
    condition(NewCondition::fails(WHOLE, Reason::Provisioning, message, Some(1)))
}

fn good(message: &str) -> Condition {
    condition(NewCondition::holds(WHOLE, message, Some(1)))
}

/// A copy of a condition whose last transition was in this second.
fn at(second: i64, template: &Condition) -> Condition {
    Condition {
        last_transition_time: Time(Timestamp::from_second(1_000 + second).unwrap()),
        ..template.clone()
    }
}

/// The longest interval between answers.
const MOST: Duration = Duration::from_secs(600);
/// The first interval between answers.
const FIRST: Duration = Duration::from_secs(60);

/// Ten minutes in which somebody writes `theirs` after each write of ours, and we reconcile once a second. Returns the
/// seconds in which we wrote.
fn for_ten_minutes(
    published: &mut PublishedConditions,
    own_conditions: &[Condition],
    theirs: impl Fn(i64) -> Vec<Condition>,
) -> Vec<i64> {
    let began = Instant::now();
    let writes = (0..600_i64).filter(|second| {
        let now = began + Duration::from_secs(second.unsigned_abs());
        let stored = theirs(*second);
        let own: Vec<_> = own_conditions.iter().map(|one| at(*second, one)).collect();
        let due = published.to_be_written(&stored, &own, now);
        if due {
            published.written(&stored, &own, now);
        } else {
            published.unchanged(&stored, &own, now);
        }
        due
    });
    writes.collect()
}

/// Like [`for_ten_minutes`], with a new time in each of their writes.
fn beside(theirs: &[Condition], own: &Condition) -> Vec<i64> {
    let rewritten = |second| theirs.iter().map(|one| at(second, one)).collect();
    for_ten_minutes(
        &mut PublishedConditions::default(),
        std::slice::from_ref(own),
        rewritten,
    )
}

#[test]
fn contradiction_is_answered_once_and_then_ever_more_rarely() {
    // Our first write, and the answers.
    assert_eq!(beside(&[good("theirs")], &bad("ours")), [0, 1, 61, 181, 421]);
}

#[test]
fn condition_that_is_removed_repeatedly_is_answered_as_rarely() {
    assert_eq!(beside(&[], &bad("ours")), [0, 1, 61, 181, 421]);
}

#[test]
fn same_status_in_other_words_is_left() {
    assert_eq!(beside(&[good("theirs")], &good("ours")), [0]);
}

#[test]
fn same_status_does_not_replace_one_naming_another_controller() {
    let named = Condition {
        reason: Reason::OtherControllerActive.as_str().to_owned(),
        ..good("another controller writes too")
    };
    assert_eq!(beside(&[good("theirs")], &named), [0, 1, 61, 181, 421]);
}

/// HyperShift's guest side has the same message as ours when all is well.
#[test]
fn our_earlier_condition_with_a_new_time_is_a_contradiction() {
    let mut published = PublishedConditions::default();
    published.written(&[], &[at(-100, &good("all is well"))], Instant::now());
    let rewritten = |second| vec![at(second, &good("all is well"))];
    let writes = for_ten_minutes(&mut published, &[bad("ours")], rewritten);
    assert_eq!(writes, [0, 1, 61, 181, 421], "what we say first, and the answers");
}

#[test]
fn our_earlier_condition_put_back_is_answered_each_ten_seconds() {
    let (mut published, before) = (PublishedConditions::default(), [at(-100, &bad("ours, earlier"))]);
    published.written(&[], &before, Instant::now());
    let writes = for_ten_minutes(&mut published, &[good("ours")], |_| before.to_vec());
    assert_eq!(
        writes[..9],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
        "what we say, and answers at once"
    );
    assert!(writes[8..].windows(2).all(|two| two[1] - two[0] == 10), "{writes:?}");

    // They are not counted as answers to a contradiction.
    let contradiction = [at(600, &bad("theirs"))];
    assert!(published.to_be_written(&contradiction, &[good("ours")], Instant::now()));
}

#[test]
fn condition_put_back_is_answered_though_its_status_is_right() {
    let (now, before, own) = (Instant::now(), [at(0, &bad("a"))], [at(0, &bad("b"))]);
    let mut published = PublishedConditions::default();
    published.written(&[], &before, now);
    published.written(&before, &own, now);
    assert!(published.to_be_written(&before, &own, now));
    assert!(
        !published.to_be_written(&[at(0, &bad("c"))], &own, now),
        "words of others"
    );
}

#[test]
fn condition_of_an_earlier_process_is_known_when_put_back() {
    let (now, before, own) = (
        Instant::now(),
        [at(0, &bad("an older process's"))],
        [at(9, &good("ours"))],
    );
    let mut published = PublishedConditions::default();
    for _ in 0..=Dispute::PutBack.pace().at_once {
        assert!(published.to_be_written(&before, &own, now));
        published.written(&before, &own, now);
    }
    assert!(!published.to_be_written(&before, &own, now));
    assert_eq!(published.next_answer(&before, now), Some(Duration::from_secs(10)));
}

#[test]
fn answer_to_what_is_put_back_leaves_what_is_contradicted() {
    let part = |message: &str| Condition {
        type_: "AzurePrivateEndpointAvailable".to_owned(),
        ..bad(message)
    };
    let (now, own) = (Instant::now(), [part("now"), bad("ours")]);
    let theirs = [at(-100, &part("earlier")), good("theirs")];
    let mut published = PublishedConditions::default();
    published.written(&[], &[at(-100, &part("earlier"))], now);
    assert_eq!(published.to_write(&theirs, &own, now), own, "what we say first");
    published.written(&[], &own, now);
    assert_eq!(published.to_write(&theirs, &own, now), own, "the first answer");
    published.written(&theirs, &own, now);
    assert!(published.to_be_written(&theirs, &own, now), "the endpoint was put back");
    assert_eq!(published.to_write(&theirs, &own, now), [part("now"), good("theirs")]);
    published.written(&theirs, &own, now);
    assert_eq!(published.to_write(&theirs, &own, now + FIRST), own);
}

#[test]
fn condition_put_back_needs_a_reconcile_once_answerable() {
    let (now, before, own) = (Instant::now(), [at(0, &bad("a"))], [at(9, &good("b"))]);
    let mut published = PublishedConditions::default();
    published.written(&[], &before, now);
    let heeded = |published: &PublishedConditions, now| {
        let heeded = published.heeded(&before, AzurePrivateLinkService::conditions_of(Role::Cpo), now);
        heeded.iter().any(|(kind, _)| *kind == WHOLE.as_str())
    };
    published.written(&before, &own, now);
    assert!(heeded(&published, now));
    for _ in 0..Dispute::PutBack.pace().at_once {
        published.written(&before, &own, now);
    }
    assert!(!heeded(&published, now));
    assert!(heeded(&published, now + Duration::from_secs(10)));
}

#[test]
fn new_status_of_our_own_is_defended_at_once_again() {
    let (now, there) = (Instant::now(), [good("theirs")]);
    let mut published = PublishedConditions::default();
    published.written(&[], &[bad("ours")], now);
    for _ in 0..2 {
        published.written(&there, &[bad("ours")], now);
    }
    assert!(!published.to_be_written(&there, &[bad("ours")], now));
    let theirs = [bad("theirs")];
    published.written(&theirs, &[good("ours")], now);
    assert!(published.to_be_written(&theirs, &[good("ours")], now));
}

#[test]
fn intervals_do_not_grow_beyond_ten_minutes() {
    let (mut now, own, there) = (Instant::now(), [bad("ours")], [good("theirs")]);
    let mut published = PublishedConditions::default();
    published.written(&[], &own, now);
    let waits: Vec<_> = (0..20)
        .map(|_| {
            published.written(&there, &own, now);
            let wait = published.next_answer(&there, now).unwrap_or_default();
            now += wait;
            wait
        })
        .collect();
    assert!(waits.is_sorted(), "{waits:?}");
    assert_eq!(waits.last(), Some(&MOST));
}

#[test]
fn news_of_a_contradicted_status_waits_for_the_answer() {
    let (now, there) = (Instant::now(), [good("theirs")]);
    let mut published = PublishedConditions::default();
    for stored in [&[][..], &there] {
        published.written(stored, &[bad("a")], now);
    }
    let news = [bad("b")];
    assert!(!published.to_be_written(&there, &news, now));
    assert!(published.to_be_written(&there, &news, now + FIRST));
    published.written(&there, &news, now + FIRST);
    assert_eq!(
        published.next_answer(&there, now + FIRST),
        Some(2 * FIRST),
        "it was an answer"
    );
    assert!(
        published.to_be_written(&there, &[good("b")], now),
        "of the other status there is no dispute"
    );
}

#[rstest]
#[case::words(good("theirs"), good("ours"), false)]
#[case::status(good("theirs"), bad("ours"), true)]
fn only_another_status_needs_a_reconcile(#[case] theirs: Condition, #[case] own: Condition, #[case] woken: bool) {
    let now = Instant::now();
    let mut published = PublishedConditions::default();
    published.written(&[], &[own], now);
    assert_eq!(
        !published
            .heeded(&[theirs], AzurePrivateLinkService::conditions_of(Role::Cpo), now)
            .iter()
            .all(|(kind, _)| *kind != WHOLE.as_str()),
        woken
    );
}

#[test]
fn contradiction_wakes_nobody_until_it_may_be_answered() {
    let (now, own, there) = (Instant::now(), [bad("ours")], [good("theirs")]);
    let mut published = PublishedConditions::default();
    published.written(&[], &own, now);
    published.written(&there, &own, now);
    let heeded = |at| {
        published
            .heeded(&there, AzurePrivateLinkService::conditions_of(Role::Cpo), at)
            .iter()
            .any(|(kind, _)| *kind == WHOLE.as_str())
    };
    assert_eq!(published.next_answer(&there, now), Some(FIRST));
    assert!(!heeded(now + FIRST - Duration::from_millis(1)));
    assert!(heeded(now + FIRST));
}

#[test]
fn contradiction_that_did_not_come_back_is_forgotten() {
    let (now, own) = (Instant::now(), [bad("ours")]);
    let there = [good("theirs")];
    let mut published = PublishedConditions::default();
    published.written(&[], &own, now);
    published.written(&there, &own, now);
    published.unchanged(&own, &own, now + FIRST);
    assert!(published.next_answer(&there, now).is_some(), "too early to tell");
    let later = now + MOST;
    published.unchanged(&own, &own, later);
    assert!(published.to_be_written(&there, &own, later));
    published.written(&there, &own, later);
    assert_eq!(
        published.next_answer(&there, later),
        Some(FIRST),
        "the first answer anew"
    );
}

#[test]
fn new_process_publishes_its_own_once() {
    let (now, own) = (Instant::now(), [good("ours")]);
    let published = PublishedConditions::default();
    assert!(published.to_be_written(&[good("an older process's")], &own, now));
    assert!(!published.to_be_written(&own, &own, now));
}

#[test]
fn own_write_wakes_nobody() {
    let (now, own) = (
        Instant::now(),
        [
            bad("ours"),
            condition(NewCondition::fails(AzurePLSCreated, Reason::Provisioning, "x", None)),
        ],
    );
    let mut published = PublishedConditions::default();
    published.written(&[], &own, now);
    let heeded = published.heeded(&own, AzurePrivateLinkService::conditions_of(Role::Ho), now);
    assert!(
        heeded.iter().all(|(kind, _)| *kind != AzurePLSCreated.as_str()),
        "{heeded:?}"
    );
}
