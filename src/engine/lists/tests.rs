use std::future::ready;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;

use super::*;
use crate::sample::Error;

const PATIENCE: Duration = Duration::from_secs(2);

async fn ask(list: &Shared<u8, Error>, since: Instant) -> Asked<'_, u8, Error> {
    list.ask(Some(since), Error::delay, PATIENCE).await
}

async fn read(list: &Shared<u8, Error>) {
    let Asked::Reader(reader) = ask(list, Instant::now()).await else {
        panic!("another reads it");
    };
    assert!(reader.read(async { Ok(1) }).await.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn list_that_fails_is_tried_ever_less_often_by_all_together() {
    let (lists, tries) = (Lists::<u8, Error>::default(), &AtomicU32::new(0));
    let get = |answer: Result<u8, Error>| {
        let call = move |_| {
            tries.fetch_add(1, Ordering::SeqCst);
            ready(answer)
        };
        lists.get("a", Urgency::Awaited, Duration::ZERO, call)
    };
    let down = || Err(Error::own(Class::Down, "X"));
    for (number, wait) in [(1, 3), (2, 6), (3, 12), (4, 24), (5, 48), (6, 96)] {
        for (_, failed) in join_all((0..20).map(|_| get(down()))).await {
            assert_eq!(failed.unwrap_err().delay(1).as_secs(), wait);
        }
        assert_eq!(tries.load(Ordering::SeqCst), number);
        tokio::time::advance(Duration::from_secs(wait - 1)).await;
        let error = get(down()).await.1.unwrap_err();
        assert_eq!((error.delay(1).as_secs(), error.is_lasting()), (1, number == 6));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(get(Ok(1)).await.1.is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    let failed = get(down()).await.1;
    assert_eq!(failed.unwrap_err().delay(1).as_secs(), 3, "it begins again");
}

#[tokio::test(start_paused = true)]
async fn what_a_list_showed_outlasts_a_failure() {
    let lists = Lists::<u8, Error>::default();
    let get = async |answer: Result<u8, Error>| {
        let call = |before: Option<Arc<u8>>| ready(answer.map(|number| number + before.map_or(0, |before| *before)));
        tokio::time::advance(Duration::from_secs(10)).await;
        lists.get("a", Urgency::Awaited, Duration::ZERO, call).await.1
    };
    assert_eq!(*get(Ok(1)).await.unwrap(), 1);
    assert!(get(Err(Error::own(Class::Down, "X"))).await.is_err());
    assert_eq!(*get(Ok(2)).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn list_that_hangs_is_given_up_for_all() {
    let lists = Lists::<u8, Error>::default();
    let get = || lists.get("a", Urgency::Awaited, Duration::ZERO, |_| std::future::pending());
    let began = Instant::now();
    let all = tokio::time::timeout(2 * LIST_TIMEOUT, join_all([get(), get()])).await;
    for (_, hung) in all.expect("it is given up") {
        assert_eq!(hung.unwrap_err().class(), Class::Down);
    }
    assert_eq!(began.elapsed(), LIST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn who_comes_late_does_not_wait_for_a_reader_that_takes_long() {
    let list = Shared::default();
    let reader = ask(&list, Instant::now()).await;
    assert!(matches!(reader, Asked::Reader(_)));
    for waits in [2, 0] {
        let began = Instant::now();
        assert!(matches!(ask(&list, began).await, Asked::Pending));
        assert_eq!(began.elapsed().as_secs(), waits);
    }
    drop(reader);
    assert!(
        matches!(ask(&list, Instant::now()).await, Asked::Reader(_)),
        "the reader gave up"
    );
}

#[tokio::test(start_paused = true)]
async fn list_that_is_young_enough_is_had_while_another_is_read() {
    let list = Shared::default();
    let earlier = Instant::now();
    read(&list).await;
    tokio::time::advance(PATIENCE).await;
    let _held = ask(&list, Instant::now()).await;
    let began = Instant::now();
    assert!(matches!(ask(&list, earlier).await, Asked::Known(_)));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_share_what_the_reader_got() {
    let list = Shared::default();
    let began = Instant::now();
    let Asked::Reader(reader) = ask(&list, began).await else {
        panic!("nobody reads it");
    };
    let reading = reader.read(async {
        tokio::time::sleep(PATIENCE / 2).await;
        Ok(1)
    });
    let (_, one, other) = tokio::join!(reading, ask(&list, began), ask(&list, began));
    assert!(matches!((one, other), (Asked::Known(_), Asked::Known(_))));
}
