use kube::runtime::watcher::Event;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::azure::client::Pass;
use crate::controllers::context::sample;
use crate::controllers::frame::PassError;
use crate::controllers::run::Ended;
use crate::controllers::samples;

struct Idle;

impl Reconciler for Idle {
    type Around = ();

    async fn around(&self, _: &Context, _: &AzurePrivateLinkService) -> Result<((), String), PassError> {
        Ok(((), String::new()))
    }

    async fn pass(&self, _: &Context, _: Pass, cr: AzurePrivateLinkService, (): ()) -> Result<Ended, PassError> {
        Ok(Ended::released(cr))
    }
}

fn object(uid: &str) -> AzurePrivateLinkService {
    let mut cr = samples::cr(json!({}), json!({}));
    cr.metadata.uid = Some(uid.to_owned());
    cr
}

/// Of the objects a, b and c, of which something is kept, those that are left after these events.
fn left_after(events: impl IntoIterator<Item = Event<AzurePrivateLinkService>>) -> Vec<&'static str> {
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
    });
    let cx = Arc::new(sample::context(kube::Client::new(nobody, "default")));
    let runner = Arc::new(Runner::new(Idle, cx, Label::Endpoint));
    let now = Instant::now();
    let all = ["a", "b", "c"];
    let mut hears = forgets(&runner);
    for event in [
        Event::Init,
        Event::InitApply(object("a")),
        Event::InitApply(object("b")),
    ] {
        hears(&event);
    }
    for event in [Event::InitDone, Event::Apply(object("c"))] {
        hears(&event);
    }
    for uid in all {
        runner.pacer.ended(uid, "", Duration::from_secs(300), now);
    }
    events.into_iter().for_each(|event| hears(&event));
    let kept = |uid: &&str| runner.pacer.early(uid, "", now).is_some();
    all.into_iter().filter(kept).collect()
}

#[tokio::test]
async fn nothing_is_kept_of_what_the_watch_says_is_gone() {
    assert_eq!(left_after([Event::Delete(object("b"))]), ["a", "c"]);
}

#[tokio::test]
async fn nothing_is_kept_of_what_went_while_the_watch_was_broken() {
    let listed = [
        Event::Init,
        Event::InitApply(object("b")),
        Event::InitApply(object("d")),
        Event::InitDone,
    ];
    assert_eq!(left_after(listed), ["b"]);
    // A list that breaks off tells nothing.
    assert_eq!(
        left_after([Event::Init, Event::InitApply(object("b"))]),
        ["a", "b", "c"]
    );
}
