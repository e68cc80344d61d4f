use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt};
use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::failure::{Class, Failure};
use crate::inventory::Listed;
use crate::sample::{Error, Key, Kind, ObservationCache, Observed, Operation};

mod abandoned;
mod gone;

fn key() -> Key {
    Key::of("z")
}

fn observations() -> ObservationCache {
    ObservationCache::new(Duration::from_secs(100), Duration::from_secs(1_000))
}

/// The key of a resource whose writes are queued with all others of this kind.
fn queued(name: &str) -> Key {
    Key::of(&format!("v/{name}"))
}

/// A create that the cloud works on.
fn create(began: Instant) -> Operation {
    Operation {
        id: None,
        began,
        deletes: false,
    }
}

#[tokio::test(start_paused = true)]
async fn ready_resource_is_fresh_until_its_next_read() {
    let (observations, now) = (observations(), Instant::now());
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert_eq!(
        observations.fresh(&key(), now + Duration::from_secs(69)),
        Some(Observed::Absent)
    );
    assert_eq!(observations.fresh(&key(), now + Duration::from_secs(110)), None);
}

#[tokio::test(start_paused = true)]
async fn resource_in_progress_is_fresh_until_its_next_read() {
    let (observations, now) = (observations(), Instant::now());
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::from_secs(10), now);
    assert_eq!(
        observations.fresh(&key(), now + Duration::from_secs(9)),
        Some(Observed::Pending)
    );
    assert_eq!(observations.fresh(&key(), now + Duration::from_secs(10)), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_in_a_resource_that_went_is_forgotten() {
    let (observations, now) = (observations(), Instant::now());
    let inside = Key::of("z/api");
    let beside = Key::of("y");
    for known in [&inside, &beside] {
        observations.ready(Kind::Plain, known, Observed::Found(serde_json::json!({})), now);
    }
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert!(!observations.knows(&inside) && observations.knows(&beside));
}

#[tokio::test(start_paused = true)]
async fn refused_writes_wait_longer_until_the_resource_is_as_desired() {
    let (observations, now, error) = (observations(), Instant::now(), Error::own(Class::Busy, "X"));
    let fail = || {
        observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
        observations.write_failed(Kind::Guarded, &key(), &error, now).as_secs()
    };
    assert_eq!([fail(), fail(), fail()], [3, 6, 12]);
    observations.confirm(&key());
    assert_eq!(fail(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_reads_wait_longer_until_one_succeeds() {
    let (observations, now, error) = (observations(), Instant::now(), Error::own(Class::Down, "X"));
    let fail = || observations.read_failed(Kind::Guarded, &key(), &error, now).as_secs();
    assert_eq!([fail(), fail()], [3, 6]);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert_eq!(fail(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_reads_last_from_the_third_on_and_after_two_minutes() {
    let (observations, now, error) = (observations(), Instant::now(), Error::own(Class::Down, "X"));
    let fails = |s| {
        let at = now + Duration::from_secs(s);
        observations.read_failed(Kind::Guarded, &key(), &error, at);
        let shown = observations.fresh(&key(), at);
        let lasting = observations.unread_for_long(&key(), at);
        let expected = error.clone().with_lasting(lasting);
        assert_eq!(shown, Some(Observed::ReadFailed(expected)));
        lasting
    };
    assert_eq!([0, 130, 131].map(fails), [false, false, true]);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert_eq!([0, 1, 2, 119, 120].map(fails), [false, false, false, false, true]);
    let list = |result, s| observations.list_of::<()>(&key(), result, now + Duration::from_secs(s));
    let lasting = |s| list(Err(error.clone()), s).unwrap_err().lasting;
    assert_eq!([0, 60, 120].map(lasting), [false, false, true]);
    assert_eq!(list(Ok(()), 121), Ok(()));
    assert!(!lasting(122));
}

#[tokio::test(start_paused = true)]
async fn resource_that_was_there_before_does_not_come_late() {
    let (observations, now) = (observations(), Instant::now());
    let late = now + Duration::from_secs(7);
    assert_eq!(observations.absent_for(&key(), late), None, "never looked for");
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, late);
    assert_eq!(observations.absent_for(&key(), late), Some(Duration::from_secs(7)));
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), late);
    for _ in 0..2 {
        observations.ready(Kind::Guarded, &key(), Observed::Absent, late);
        assert_eq!(observations.absent_for(&key(), late), None);
    }
}

#[tokio::test(start_paused = true)]
async fn absence_counts_from_the_first_read_that_showed_it() {
    let (observations, now) = (observations(), Instant::now());
    let at = |s| now + Duration::from_secs(s);
    let gone_for = |s| observations.gone_for(&key(), at(s)).map(|gone| gone.as_secs());
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(0));
    assert_eq!(gone_for(1), None);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(5));
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(9));
    assert_eq!(gone_for(10), Some(5));
    observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::ZERO, at(11));
    assert_eq!(gone_for(12), None);
}

#[tokio::test(start_paused = true)]
async fn only_the_same_refusal_adds_up() {
    let (observations, now) = (observations(), Instant::now());
    let refused = |code, second| {
        let (error, at) = (Error::own(Class::Busy, code), now + Duration::from_secs(second));
        observations.delete_failed(Kind::Guarded, &key(), &error, at);
        observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at);
        observations.failing_for(&key(), at).as_secs()
    };
    assert_eq!(
        [refused("X", 0), refused("X", 9), refused("Y", 12), refused("Y", 20)],
        [0, 9, 0, 8]
    );
    observations.confirm(&key());
    assert_eq!(
        observations.failing_for(&key(), now + Duration::from_secs(30)),
        Duration::ZERO
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_went_is_no_longer_made_here() {
    let (observations, now) = (observations(), Instant::now());
    observations.began(
        Kind::Guarded,
        &key(),
        Operation {
            id: None,
            began: now,
            deletes: false,
        },
        true,
    );
    assert!(observations.made_here(&key()));
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert!(!observations.made_here(&key()));
}

#[tokio::test(start_paused = true)]
async fn write_beside_another_one_comes_when_that_usually_has_ended() {
    let (observations, now) = (observations(), Instant::now());
    let (deleted, next) = (queued("goes"), queued("next"));
    let operation = Operation {
        id: None,
        began: now,
        deletes: true,
    };
    observations.began(Kind::Queued, &deleted, operation, false);
    let wait = |second| {
        let now = now + Duration::from_secs(second);
        observations.in_progress(Kind::Queued, &deleted, Observed::Pending, Duration::from_secs(2), now);
        observations.wait_in_queue(Kind::Queued, &next, true, now)
    };
    let waits = [wait(0), wait(4), wait(10), wait(29), wait(30)].map(|wait| wait.map(|wait| wait.as_secs()));
    assert_eq!(waits, [Some(10), Some(6), Some(2), Some(2), None]);
}

#[rstest]
#[case::succeeded(|observations: &ObservationCache, id: &Key, now| observations.ready(Kind::Queued, id, Observed::Absent, now))]
#[case::failed(|observations: &ObservationCache, id: &Key, now| {
    observations.write_failed(Kind::Queued, id, &Error::own(Class::Down, "x"), now);
})]
#[tokio::test(start_paused = true)]
async fn first_waiting_write_is_woken_when_the_one_before_ends(#[case] end: fn(&ObservationCache, &Key, Instant)) {
    let (observations, now) = (observations(), Instant::now());
    let mut woken = observations.next_in_queue();
    let first = queued("first");
    assert_eq!(observations.wait_in_queue(Kind::Queued, &first, false, now), None);
    observations.began(Kind::Queued, &first, create(now), false);
    observations.leave_queue(Kind::Queued, &first, now);
    for name in ["second", "third"] {
        assert!(
            observations
                .wait_in_queue(Kind::Queued, &queued(name), false, now)
                .is_some()
        );
    }
    assert_eq!(woken.next().now_or_never(), None, "the first one is under way");
    let ended = now + Duration::from_millis(2_500);
    end(&observations, &first, ended);
    assert_eq!(woken.next().now_or_never(), Some(Some(queued("second"))));
    assert_eq!(
        woken.next().now_or_never(),
        None,
        "the third one has to wait for the second"
    );
    assert_eq!(
        observations.wait_in_queue(Kind::Queued, &queued("second"), false, ended),
        None
    );
    // The cloud has refused the write at once.
    observations.leave_queue(Kind::Queued, &queued("second"), ended);
    assert_eq!(woken.next().now_or_never(), Some(Some(queued("third"))));
}

#[tokio::test(start_paused = true)]
async fn who_is_let_go_while_it_waits_for_its_turn_holds_nobody_up() {
    let (observations, now) = (observations(), Instant::now());
    observations.began(Kind::Queued, &queued("first"), create(now), false);
    let wait = |name: &str| observations.wait_in_queue(Kind::Queued, &queued(name), false, now);
    assert_eq!(
        ["goes", "next"].map(wait),
        [3, 6].map(|seconds| Some(Duration::from_secs(seconds)))
    );
    observations.forget(&queued("goes"));
    observations.forget(&queued("first"));
    assert_eq!(wait("next"), None);
}

fn made(observations: &ObservationCache, now: Instant) {
    observations.began(Kind::Guarded, &key(), create(now), true);
    observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::from_secs(10), now);
}

#[tokio::test(start_paused = true)]
async fn overdue_operation_is_not_counted_and_forgotten_later() {
    let (observations, now) = (observations(), Instant::now());
    made(&observations, now);
    let at = |minutes: u64| now + Duration::from_secs(60 * minutes);
    let in_flight = |minutes| {
        observations
            .under_way(at(minutes))
            .get(&Kind::Guarded)
            .map(|of_kind| of_kind.count)
    };
    assert_eq!([in_flight(0), in_flight(10), in_flight(11)], [Some(1), Some(1), None]);
    observations.forget_overdue(at(11));
    assert!(observations.operation(&key()).is_some(), "a pause may end");
    observations.forget_overdue(at(121));
    assert!(!observations.knows(&key()));
}

#[tokio::test(start_paused = true)]
async fn what_was_forgotten_is_not_taken_for_absent() {
    let (observations, now) = (observations(), Instant::now());
    made(&observations, now);
    let inside = Key::of("z/link");
    observations.ready(Kind::Plain, &inside, Observed::Found(serde_json::json!({})), now);
    let later = now + Duration::from_secs(10_000);
    observations.ready(Kind::Guarded, &key(), Observed::Found(serde_json::json!({})), later);
    observations.forget_overdue(later);
    assert!(observations.knows(&key()) && !observations.knows(&inside));
    assert!(
        !observations.made_here(&key()),
        "what is in it would be absent without a read"
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_operation_is_counted_as_long_as_it_is_read() {
    let (observations, now) = (observations(), Instant::now());
    made(&observations, now);
    let mut then = now;
    for minute in 1..40 {
        then = now + Duration::from_secs(60 * minute);
        observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::from_secs(10), then);
        observations.forget_overdue(then);
    }
    let hangs = UnderWay {
        count: 1,
        oldest: then - now,
    };
    assert_eq!(observations.under_way(then), BTreeMap::from([(Kind::Guarded, hangs)]));
}

#[tokio::test(start_paused = true)]
async fn created_resource_may_hold_anything_once_others_could_write() {
    let (observations, now) = (observations(), Instant::now());
    made(&observations, now);
    assert!(observations.made_here(&key()));
    observations.others_were_at_it();
    assert!(!observations.made_here(&key()));
    assert!(
        observations.operation(&key()).is_some(),
        "all else is looked at in time"
    );
}

#[tokio::test(start_paused = true)]
async fn read_after_a_list_counts_as_a_read() {
    let (observations, now) = (observations(), Instant::now());
    let ready = Observed::Found(serde_json::json!({}));
    observations.ready(Kind::Guarded, &key(), ready, now);
    let listed = Listed {
        observed: now,
        fingerprint: 1,
        version: None,
    };
    observations.listed(&key(), listed, now);
    assert!(observations.unchanged(&key(), listed).is_some() && observations.was_read_before(&key(), now));
    observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::from_secs(4), now);
    assert!(!observations.was_read_before(&key(), now));
}

#[tokio::test(start_paused = true)]
async fn what_changes_for_long_is_read_ever_more_rarely() {
    let (observations, now) = (observations(), Instant::now());
    let next = |second| {
        let now = now + Duration::from_secs(second);
        observations.in_progress(Kind::Guarded, &key(), Observed::Pending, Duration::from_secs(4), now);
        observations.next_read([&key()]).unwrap().duration_since(now).as_secs()
    };
    assert_eq!([next(0), next(20), next(100), next(3_600)], [4, 4, 20, 60]);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    assert_eq!(next(3_600), 4);
}

#[tokio::test(start_paused = true)]
async fn proof_is_of_the_observed_resource_and_not_of_the_next() {
    let (observations, now) = (observations(), Instant::now());
    let made = |guid: &str| serde_json::json!({"given_id": guid});
    observations.ready(Kind::Plain, &key(), Observed::Found(made("a")), now);
    observations.prove(&key(), &made("a"));
    assert!(observations.is_proven(&key(), &made("a")) && !observations.is_proven(&key(), &made("b")));
}
