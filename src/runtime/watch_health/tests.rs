use futures::channel::mpsc::{UnboundedSender, unbounded};
use kube::core::Status;
use rstest::rstest;

use super::*;

type Item = watcher::Result<Event<()>>;

/// A watch of HostedClusters that is read without end, and what feeds it.
struct HealthTest {
    metrics: Arc<Metrics>,
    health: Arc<WatchHealth>,
    feed: UnboundedSender<Item>,
}

impl HealthTest {
    fn new() -> Self {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let health = Arc::new(WatchHealth::new(Arc::clone(&metrics)));
        let (feed, events) = unbounded();
        let read = health.observe(Watched::HostedCluster, events);
        tokio::spawn(read.for_each(async |_| {}));
        Self { metrics, health, feed }
    }

    /// The health after these events.
    async fn after(&self, events: impl IntoIterator<Item = Item>) -> Health {
        for event in events {
            self.feed.unbounded_send(event).unwrap();
        }
        // In simulated time: everything that can be done has been done by then.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.health.follow().borrow().clone()
    }

    fn counted(&self) -> String {
        let text = self.metrics.render().unwrap();
        let line = "hyperlink_watches_failing{resource=\"hostedclusters\"} ";
        let value = text.lines().find_map(|found| found.strip_prefix(line));
        value.unwrap_or("absent").to_owned()
    }
}

fn refused(code: u16, reason: &str) -> kube::Error {
    kube::Error::Api(Status::failure("x", reason).with_code(code).boxed())
}

fn forbidden() -> Item {
    Err(watcher::Error::WatchStartFailed(refused(403, "Forbidden")))
}

fn unlisted(why: &str) -> Health {
    Health::Unlisted(why.to_owned())
}

fn failing() -> Health {
    Health::Failing("no news of hostedclusters: refused: Forbidden".to_owned())
}

#[tokio::test(start_paused = true)]
async fn lasting_failure_is_reported_and_counted_until_an_event() {
    let health_test = HealthTest::new();
    assert_eq!(
        (health_test.after([]).await, health_test.counted()),
        (unlisted("the first list"), "0".into())
    );
    let listed = [Ok(Event::Init), Ok(Event::InitDone)];
    assert_eq!(health_test.after(listed).await, Health::Good);
    assert_eq!(
        health_test.after([forbidden()]).await,
        Health::Good,
        "one error is usual"
    );
    assert_eq!(
        (health_test.after([forbidden()]).await, health_test.counted()),
        (failing(), "1".into())
    );
    assert_eq!(
        (health_test.after([forbidden()]).await, health_test.counted()),
        (failing(), "1".into())
    );
    assert_eq!(
        (health_test.after([Ok(Event::Apply(()))]).await, health_test.counted()),
        (Health::Good, "0".into())
    );
    assert_eq!(
        health_test.after([forbidden()]).await,
        Health::Good,
        "the first in a row again"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_list_keeps_the_role_unready_with_a_reason() {
    let health_test = HealthTest::new();
    let failed = || Err(watcher::Error::InitialListFailed(refused(404, "NotFound")));
    let tries = [Ok(Event::Init), failed(), Ok(Event::Init), failed(), Ok(Event::Init)];
    assert_eq!(
        health_test.after(tries).await,
        unlisted("the first list of hostedclusters: not installed")
    );
    tokio::time::sleep(QUIET * 2).await;
    assert_eq!(
        health_test.after([]).await,
        unlisted("the first list of hostedclusters: not installed")
    );
    assert_eq!(
        (health_test.after([Ok(Event::InitDone)]).await, health_test.counted()),
        (Health::Good, "0".into())
    );
}

#[tokio::test(start_paused = true)]
async fn connection_that_a_proxy_ends_each_minute_is_no_failure() {
    let health_test = HealthTest::new();
    health_test.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    for _ in 0..5 {
        let error = watcher::Error::WatchFailed(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert_eq!(health_test.after([Err(error)]).await, Health::Good);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn relist_is_signalled_once_it_is_complete() {
    let health_test = HealthTest::new();
    let mut relists = health_test.health.relists();
    health_test.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    health_test
        .after([Ok(Event::Apply(())), Ok(Event::Init), Ok(Event::InitApply(()))])
        .await;
    assert!(!relists.has_changed().unwrap());
    health_test.after([Ok(Event::InitDone)]).await;
    assert!(relists.has_changed().unwrap());
    relists.mark_unchanged();
    health_test.after([Ok(Event::Apply(()))]).await;
    assert!(!relists.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn silence_is_good_after_a_broken_watch_but_not_a_broken_list() {
    let health_test = HealthTest::new();
    health_test.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    assert_eq!(health_test.after([forbidden(), forbidden()]).await, failing());
    tokio::time::sleep(QUIET - Duration::from_secs(1)).await;
    assert_eq!(health_test.after([forbidden()]).await, failing());
    tokio::time::sleep(QUIET).await;
    assert_eq!(
        (health_test.after([]).await, health_test.counted()),
        (Health::Good, "0".into())
    );
    let list = || Err(watcher::Error::InitialListFailed(refused(403, "Forbidden")));
    assert_eq!(health_test.after([forbidden(), list()]).await, failing());
    tokio::time::sleep(QUIET * 2).await;
    assert_eq!(health_test.after([]).await, failing());
}

#[rstest]
#[case::list_grows_old(watcher::Error::WatchError(Status::failure("x", "Expired").with_code(410).boxed()), Health::Good)]
#[case::nobody_answers(watcher::Error::WatchFailed(kube::Error::LinesCodecMaxLineLengthExceeded), Health::Failing("no news of hostedclusters: no answer".into()))]
#[case::not_served_or_of_another_shape(
    watcher::Error::WatchFailed(kube::Error::SerdeError(serde_json::from_str::<u8>("x").unwrap_err())),
    Health::Failing("no news of hostedclusters: not installed, or the answer cannot be read".into())
)]
#[tokio::test(start_paused = true)]
async fn failure_is_reported_in_few_words(#[case] error: watcher::Error, #[case] expected: Health) {
    let health_test = HealthTest::new();
    health_test
        .after([Ok(Event::Init), Ok(Event::InitDone), forbidden()])
        .await;
    assert_eq!(health_test.after([Err(error)]).await, expected);
}
