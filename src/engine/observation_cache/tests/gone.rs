//! When a resource that is not found is gone.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_not_found_once_is_not_gone_for_certain() {
    let (observations, now) = (observations(), Instant::now());
    let at = |s| now + Duration::from_secs(s);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(0));
    assert!(!observations.surely_gone(&key()));
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(30));
    assert!(observations.surely_gone(&key()));
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(31));
    assert!(!observations.surely_gone(&key()));
    let delete = Operation {
        id: None,
        began: at(32),
        deletes: true,
    };
    observations.began(Kind::Guarded, &key(), delete, false);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(33));
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(92));
    assert!(
        !observations.surely_gone(&key()),
        "the cloud did not take the DELETE, and it was there"
    );
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(93));
    assert!(observations.surely_gone(&key()));
}

#[rstest]
#[case::succeeded(Some(true), 0)]
#[case::failed(Some(false), 60)]
#[case::not_known(None, 8)]
#[tokio::test(start_paused = true)]
async fn what_was_deleted_here_is_gone_by_how_that_ended(#[case] ended: Option<bool>, #[case] certain_after: u64) {
    let (observations, now) = (observations(), Instant::now());
    let at = |s| now + Duration::from_secs(s);
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(0));
    observations.delete_accepted(&key(), None);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(10));
    if let Some(succeeded) = ended {
        observations.delete_ended(&key(), succeeded);
    }
    assert_eq!(observations.surely_gone(&key()), certain_after == 0);
    assert_eq!(observations.certain_in(&key(), at(10)).as_secs(), certain_after.min(30));
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(10 + certain_after));
    assert!(observations.surely_gone(&key()));
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(80));
    assert!(!observations.surely_gone(&key()) && !observations.is_deleted(&key()));
}

#[tokio::test(start_paused = true)]
async fn what_was_there_is_missed_before_it_counts_as_absent() {
    let (observations, now) = (observations(), Instant::now());
    let at = |s| now + Duration::from_secs(s);
    let missed = |s| {
        observations
            .missed(Kind::Plain, &key(), at(s))
            .map(|wait| wait.as_secs())
    };
    assert_eq!(missed(0), None, "never seen");
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(0));
    assert_eq!([missed(10), missed(12), missed(15)], [Some(5), Some(3), None]);
    observations.ready(Kind::Guarded, &key(), Observed::Absent, at(15));
    assert_eq!(observations.gone_for(&key(), at(15)), Some(Duration::from_secs(5)));
    assert_eq!(missed(20), None, "it is absent");
    observations.ready(Kind::Guarded, &key(), Observed::Found(Value::Null), at(30));
    assert_eq!(missed(31), Some(5), "it is back");
}
