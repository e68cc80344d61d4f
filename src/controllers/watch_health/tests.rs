use futures::channel::mpsc::{UnboundedSender, unbounded};
use kube::core::Status;
use rstest::rstest;

use super::*;

type Item = watcher::Result<Event<()>>;

/// A watch of HostedClusters that is read on and on, and what it is fed by.
struct Ground {
    metrics: Arc<Metrics>,
    health: Arc<WatchHealth>,
    feed: UnboundedSender<Item>,
}

impl Ground {
    fn new() -> Self {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let health = Arc::new(WatchHealth::new(Arc::clone(&metrics)));
        let (feed, events) = unbounded();
        let read = health.observe(Watched::HostedCluster, events);
        tokio::spawn(read.for_each(async |_| {}));
        Self { metrics, health, feed }
    }

    /// What is told after these events.
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
async fn watch_that_fails_for_good_is_told_and_counted_until_news_come() {
    let ground = Ground::new();
    assert_eq!(
        (ground.after([]).await, ground.counted()),
        (unlisted("the first list"), "0".into())
    );
    let listed = [Ok(Event::Init), Ok(Event::InitDone)];
    assert_eq!(ground.after(listed).await, Health::Good);
    assert_eq!(ground.after([forbidden()]).await, Health::Good, "one error is usual");
    assert_eq!(
        (ground.after([forbidden()]).await, ground.counted()),
        (failing(), "1".into())
    );
    assert_eq!(
        (ground.after([forbidden()]).await, ground.counted()),
        (failing(), "1".into())
    );
    assert_eq!(
        (ground.after([Ok(Event::Apply(()))]).await, ground.counted()),
        (Health::Good, "0".into())
    );
    assert_eq!(
        ground.after([forbidden()]).await,
        Health::Good,
        "the first in a row again"
    );
}

#[tokio::test(start_paused = true)]
async fn list_that_never_comes_keeps_the_role_from_being_ready_and_says_why() {
    let ground = Ground::new();
    let failed = || Err(watcher::Error::InitialListFailed(refused(404, "NotFound")));
    let tries = [Ok(Event::Init), failed(), Ok(Event::Init), failed(), Ok(Event::Init)];
    assert_eq!(
        ground.after(tries).await,
        unlisted("the first list of hostedclusters: not installed")
    );
    tokio::time::sleep(QUIET * 2).await;
    assert_eq!(
        ground.after([]).await,
        unlisted("the first list of hostedclusters: not installed")
    );
    assert_eq!(
        (ground.after([Ok(Event::InitDone)]).await, ground.counted()),
        (Health::Good, "0".into())
    );
}

#[tokio::test(start_paused = true)]
async fn connection_that_a_proxy_ends_each_minute_is_no_failure() {
    let ground = Ground::new();
    ground.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    for _ in 0..5 {
        let ended = watcher::Error::WatchFailed(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert_eq!(ground.after([Err(ended)]).await, Health::Good);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn list_that_is_made_anew_is_told_once_it_is_complete() {
    let ground = Ground::new();
    let mut anew = ground.health.listed_anew();
    ground.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    ground
        .after([Ok(Event::Apply(())), Ok(Event::Init), Ok(Event::InitApply(()))])
        .await;
    assert!(!anew.has_changed().unwrap());
    ground.after([Ok(Event::InitDone)]).await;
    assert!(anew.has_changed().unwrap());
    anew.mark_unchanged();
    ground.after([Ok(Event::Apply(()))]).await;
    assert!(!anew.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn silence_after_a_broken_watch_is_good_and_after_a_broken_list_is_not() {
    let ground = Ground::new();
    ground.after([Ok(Event::Init), Ok(Event::InitDone)]).await;
    assert_eq!(ground.after([forbidden(), forbidden()]).await, failing());
    tokio::time::sleep(QUIET - Duration::from_secs(1)).await;
    assert_eq!(ground.after([forbidden()]).await, failing());
    tokio::time::sleep(QUIET).await;
    assert_eq!((ground.after([]).await, ground.counted()), (Health::Good, "0".into()));
    let list = || Err(watcher::Error::InitialListFailed(refused(403, "Forbidden")));
    assert_eq!(ground.after([forbidden(), list()]).await, failing());
    tokio::time::sleep(QUIET * 2).await;
    assert_eq!(ground.after([]).await, failing());
}

#[rstest]
#[case::list_grows_old(watcher::Error::WatchError(Status::failure("x", "Expired").with_code(410).boxed()), Health::Good)]
#[case::nobody_answers(watcher::Error::WatchFailed(kube::Error::LinesCodecMaxLineLengthExceeded), Health::Failing("no news of hostedclusters: no answer".into()))]
#[case::not_served_or_of_another_shape(
    watcher::Error::WatchFailed(kube::Error::SerdeError(serde_json::from_str::<u8>("x").unwrap_err())),
    Health::Failing("no news of hostedclusters: not installed, or the answer cannot be read".into())
)]
#[tokio::test(start_paused = true)]
async fn what_fails_is_told_in_few_words(#[case] error: watcher::Error, #[case] told: Health) {
    let ground = Ground::new();
    ground.after([Ok(Event::Init), Ok(Event::InitDone), forbidden()]).await;
    assert_eq!(ground.after([Err(error)]).await, told);
}
