//! What is ready, listed, put off or in question.

use serde_json::json;

use super::*;
use crate::sample::{Observed, Sample};

const HOLD: Hold = Hold {
    due_after: Duration::from_secs(100),
    good_for: Duration::from_secs(80),
};

fn ready(now: Instant) -> Observation<Sample> {
    let mut observation = Observation::new(now);
    observation.note_ready(Observed::Found(json!({})), false, HOLD, now);
    observation
}

fn listed(observed: Instant) -> Listed {
    Listed {
        observed,
        fingerprint: 1,
        version: None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_is_good_for_a_while_and_due_a_little_later() {
    let now = Instant::now();
    let observation = ready(now);
    assert!(observation.fresh(now + Duration::from_secs(79)).is_some());
    assert!(observation.fresh(now + Duration::from_secs(80)).is_none());
    assert_eq!(observation.overdue(now + Duration::from_secs(103)).as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn list_confirms_what_it_showed_when_that_was_read() {
    let now = Instant::now();
    let later = now + Duration::from_secs(50);
    let mut observation = ready(now);
    assert!(!observation.is_unchanged(listed(later)));
    observation.note_listed(listed(now), now);
    assert!(observation.is_unchanged(listed(later)));
    assert!(observation.confirm_by_list(listed(later), HOLD).is_some());
    assert!(observation.fresh(later + Duration::from_secs(79)).is_some());
    assert!(observation.was_read_before(now), "the resource itself was not read");
}

/// The body of the resource when it was read, in a list before that, and a minute later.
#[tokio::test(start_paused = true)]
async fn read_of_another_version_than_the_list_is_repeated_once() {
    let (now, a_minute_later) = (Instant::now(), Instant::now() + SHOWS_LATE);
    let body = |version: &str| json!({"given_id": version});
    let listed = |observed| Listed {
        version: version::<Sample>(&body("new")),
        ..listed(observed)
    };
    let read = |observation: &mut Observation<Sample>, shown: &str, now| {
        observation.note_ready(Observed::Found(body(shown)), false, HOLD, now);
        observation.note_listed(listed(now), now);
    };
    let mut same = Observation::new(now);
    read(&mut same, "new", now);
    assert!(same.is_unchanged(listed(now)));

    let mut behind = Observation::new(now);
    read(&mut behind, "old", now);
    assert_eq!(behind.due(), a_minute_later);
    assert!(!behind.is_unchanged(listed(a_minute_later)));
    assert_eq!(behind.list_since(SHOWS_LATE, a_minute_later), Some(a_minute_later));
    read(&mut behind, "old", a_minute_later);
    assert!(
        behind.is_unchanged(listed(a_minute_later)),
        "versions may be of two forms"
    );
    assert_eq!(behind.due(), a_minute_later + HOLD.due_after);
}

#[tokio::test(start_paused = true)]
async fn list_shows_nothing_of_what_was_invalidated_or_written() {
    let now = Instant::now();
    let (mut invalidated, mut written) = (ready(now), ready(now));
    assert_eq!(written.list_since(Duration::ZERO, now), Some(now));
    invalidated.due_at(now);
    written.note_written();
    for observation in [invalidated, written] {
        assert!(!observation.is_of_a_list());
        assert_eq!(observation.list_since(Duration::ZERO, now), None);
    }
}

#[tokio::test(start_paused = true)]
async fn read_in_place_of_another_counts_once() {
    let now = Instant::now();
    let mut observation = ready(now);
    observation.note_read_instead(now);
    assert!(observation.was_read_before(now));
    assert!(observation.take_read_instead(now).is_some());
    assert!(!observation.was_read_before(now));
    assert_eq!(observation.take_read_instead(now), None);
}

#[tokio::test(start_paused = true)]
async fn due_read_is_only_moved_to_an_earlier_time() {
    let now = Instant::now();
    let mut observation = ready(now);
    observation.read_by(now + Duration::from_secs(200));
    assert_eq!(observation.due(), now + HOLD.due_after);
    assert!(observation.is_of_a_list(), "a list may show it until then");
    observation.expedite(now + Duration::from_secs(200));
    assert_eq!(observation.due(), now + HOLD.due_after);
    assert!(!observation.is_of_a_list());
    observation.expedite(now + Duration::from_secs(9));
    observation.read_by(now + Duration::from_secs(5));
    assert_eq!(observation.due(), now + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_stands_for_a_time_and_without_question_only() {
    let now = Instant::now();
    let (known, mut questioned, mut invalidated) = (ready(now), ready(now), ready(now));
    let last = now + STANDS_FOR - Duration::from_millis(1);
    assert!(known.is_only_due(last) && !known.is_only_due(now + STANDS_FOR));
    // One that was just made has to be read by itself, and can be suspected too.
    questioned.read_by(now + Duration::from_secs(5));
    assert!(questioned.is_only_due(now));
    questioned.suspect(now);
    assert_eq!((questioned.is_only_due(now), questioned.due()), (false, now));
    invalidated.invalidate(now);
    assert!(!invalidated.is_only_due(now));
}
