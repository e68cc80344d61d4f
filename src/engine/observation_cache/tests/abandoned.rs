//! Resources that no reconcile reads any more.

use super::*;

#[tokio::test(start_paused = true)]
async fn write_that_nobody_asks_after_any_more_holds_nobody() {
    let (observations, now) = (observations(), Instant::now());
    observations.began(Kind::Queued, &queued("left"), create(now), false);
    observations.in_progress(
        Kind::Queued,
        &queued("left"),
        Observed::Pending,
        Duration::from_secs(2),
        now,
    );
    let wait = |second| {
        let now = now + Duration::from_secs(second);
        observations.wait_in_queue(Kind::Queued, &queued("next"), false, now)
    };
    let waits = [wait(0), wait(3), wait(7), wait(8)].map(|wait| wait.map(|wait| wait.as_secs()));
    assert_eq!(waits, [Some(3), Some(2), Some(2), None]);
}

#[tokio::test(start_paused = true)]
async fn absent_resource_that_is_no_longer_read_is_soon_forgotten() {
    let (observations, now) = (observations(), Instant::now());
    let there = Key::of("t");
    observations.ready(Kind::Guarded, &key(), Observed::Absent, now);
    observations.ready(Kind::Guarded, &there, Observed::Found(serde_json::json!({})), now);
    let known = |minutes: u64| {
        observations.forget_overdue(now + Duration::from_secs(60 * minutes));
        [observations.knows(&key()), observations.knows(&there)]
    };
    assert_eq!([known(10), known(30)], [[true, true], [false, true]]);
}
