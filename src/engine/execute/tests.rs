use super::*;
use crate::failure::Class;
use crate::sample::{Error, FakeClient, Key, Kind, ObservationCache, Observed, Step};

#[test]
fn write_over_a_resource_holds_only_for_the_observed_version() {
    let step = |kind, found: Option<Value>| Step {
        kind,
        key: Key::of("y"),
        verb: Verb::Put(Value::Null),
        why: Why::Absent,
        found,
    };
    let observed = || Some(serde_json::json!({"given_id": "1"}));
    for kind in [Kind::Plain, Kind::Queued, Kind::Guarded] {
        assert_eq!(condition(&step(kind, observed())), Condition::Unchanged("1".to_owned()));
    }
    assert_eq!(condition(&step(Kind::Plain, None)), Condition::Any);
    assert_eq!(condition(&step(Kind::Guarded, None)), Condition::New);
}

#[tokio::test(start_paused = true)]
async fn create_stays_refused_though_another_object_is_rid_of_it() {
    let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
    let key = Key::of("wanted-by-another");
    let refused = Error::own(Class::Invalid, "X");
    observations.write_failed(Kind::Plain, &key, &refused, Instant::now());
    let gone = Step {
        kind: Kind::Plain,
        key: key.clone(),
        verb: Verb::Keep,
        why: Why::UpToDate,
        found: None,
    };
    let client = FakeClient::default();
    run(std::slice::from_ref(&gone), &client, &observations, Reconcile::begin()).await;
    assert!(observations.failing(&key).is_some());
    observations.delete_accepted(&key, None);
    run(&[gone], &client, &observations, Reconcile::begin()).await;
    assert!(observations.failing(&key).is_none(), "it was deleted from here");
}

#[tokio::test(start_paused = true)]
async fn what_was_gone_before_the_object_was_deleted_is_read_again() {
    let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
    let (before, after) = (Key::of("before"), Key::of("after"));
    let steps = [&before, &after].map(|id| Step {
        kind: Kind::Plain,
        key: id.clone(),
        verb: Verb::Keep,
        why: Why::UpToDate,
        found: None,
    });
    let began = Instant::now();
    observations.ready(Kind::Plain, &before, Observed::Absent, began);
    let deleted_at = began + Duration::from_secs(1);
    observations.ready(Kind::Plain, &after, Observed::Absent, deleted_at);
    assert_eq!(invalidate_cached(&steps, &observations, deleted_at), []);
    assert_eq!(
        invalidate_gone(&steps, &observations, deleted_at),
        std::slice::from_ref(&before)
    );
    assert_eq!(observations.fresh(&before, deleted_at), None);
    assert_eq!(observations.fresh(&after, deleted_at), Some(Observed::Absent));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_read_as_soon_as_it_is_deleted() {
    let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
    let key = Key::of("z/l");
    let denied = Error::own(Class::Denied, "AuthorizationFailed");
    let failed = Instant::now();
    let wait = observations.write_failed(Kind::Plain, &key, &denied, failed);
    assert_eq!(wait, Duration::from_secs(3));
    let deleted_at = failed + Duration::from_secs(1);
    let steps = [Step {
        kind: Kind::Plain,
        key: key.clone(),
        verb: Verb::Wait,
        why: Why::Unproven,
        found: None,
    }];
    assert_eq!(
        invalidate_cached(&steps, &observations, deleted_at),
        std::slice::from_ref(&key)
    );
    assert_eq!(observations.fresh(&key, deleted_at), None);
    // The poll of its operation in this read has failed too: one read in a reconcile is enough.
    observations.write_failed(Kind::Plain, &key, &denied, deleted_at);
    assert_eq!(invalidate_cached(&steps, &observations, deleted_at), []);
}

#[tokio::test(start_paused = true)]
async fn shown_resource_is_not_deleted_by_an_old_read_of_its_parent() {
    let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
    let service = Key::of("s");
    let steps = [Step {
        kind: Kind::Shown,
        key: Key::of("s/c"),
        verb: Verb::Delete,
        why: Why::Unwanted,
        found: None,
    }];
    let read_at = Instant::now();
    observations.ready(Kind::Plain, &service, Observed::Found(Value::Null), read_at);
    assert_eq!(invalidate_cached(&steps, &observations, read_at), []);
    let later = read_at + Duration::from_secs(1);
    assert_eq!(
        invalidate_cached(&steps, &observations, later),
        std::slice::from_ref(&service)
    );
    assert_eq!(observations.fresh(&service, later), None);
}
