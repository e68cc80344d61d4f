//! The health of the watches of one role: which objects have not been listed yet, and for which no events arrive, so
//! that what is known of them is out of date.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;

use crate::metrics::{Metrics, Watched};

/// How many errors in a row are a failure. One error is usual: a connection ends, an API server is restarted. A lasting
/// cause gives another one soon.
const FAILS: u32 = 2;
/// The longest time between two errors of a watch that count as errors in a row. Errors further apart do not count: a
/// proxy may end each connection after a while, and a lasting cause gives the next one far sooner.
///
/// Source: kube tries a failed watch again after 0.8 to 30 s,
/// <https://docs.rs/kube-runtime/4.2.0/kube_runtime/watcher/struct.DefaultBackoff.html>.
const IN_A_ROW: Duration = Duration::from_secs(45);
/// How long a watch that failed has to be without an error to be good again. A working watch is silent until something
/// changes. One that still failed would have shown it within this time, with all tries in between.
///
/// Source: kube tries a failed watch again after 0.8 to 30 s,
/// <https://docs.rs/kube-runtime/4.2.0/kube_runtime/watcher/struct.DefaultBackoff.html>.
const QUIET: Duration = Duration::from_secs(180);

/// The state of all watches together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Not everything has been listed yet, and why.
    Unlisted(String),
    /// Everything that changes is observed.
    Good,
    /// For which objects no events arrive, and why.
    Failing(String),
}

/// The state of one watch.
#[derive(Debug)]
struct One {
    resource: Watched,
    listed: bool,
    failing: Option<String>,
}

/// The watches of one role.
pub struct WatchHealth {
    metrics: Arc<Metrics>,
    all: Mutex<Vec<One>>,
    health: Sender<Health>,
    relists: Sender<()>,
}

impl WatchHealth {
    /// Without any watch.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            all: Mutex::default(),
            health: Sender::new(Health::of(&[])),
            relists: Sender::default(),
        }
    }

    /// The health of the watches, from now on.
    pub fn follow(&self) -> Receiver<Health> {
        self.health.subscribe()
    }

    /// Why objects that have never been listed cannot be.
    pub fn failing_list(&self, resource: Watched) -> Option<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unlisted = all.iter().filter(|one| one.resource == resource && !one.listed);
        unlisted.find_map(|one| one.failing.clone())
    }

    /// Signals, from now on, when something has been listed again. No event shows what was removed meanwhile, and those
    /// of what was added arrive before it is in any store.
    pub fn relists(&self) -> Receiver<()> {
        self.relists.subscribe()
    }

    /// Passes on these events, and derives the health of the watch from them.
    pub fn observe<K: Send + 'static, S: Stream<Item = watcher::Result<Event<K>>> + Send + 'static>(
        self: &Arc<Self>,
        resource: Watched,
        events: S,
    ) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K, S> {
        let watching = Watching {
            index: self.begin(resource),
            health: Arc::clone(self),
            resource,
            errors: 0,
            failed_at: None,
            quiet_at: None,
        };
        stream::unfold((watching, events.boxed()), async |(mut watching, mut events)| {
            let event = watching.next(&mut events).await?;
            Some((event, (watching, events)))
        })
    }

    fn begin(&self, resource: Watched) -> usize {
        self.metrics.watches_failing(resource, 0);
        let one = One {
            resource,
            listed: false,
            failing: None,
        };
        self.change(|all| {
            all.push(one);
            all.len() - 1
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<One>) -> T) -> T {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut all);
        let health = Health::of(&all);
        self.health
            .send_if_modified(|health_now| std::mem::replace(health_now, health.clone()) != health);
        changed
    }
}

impl Health {
    fn of(all: &[One]) -> Self {
        let failing = all.iter().filter_map(|one| Some((one, one.failing.as_ref()?)));
        let mut why: Vec<_> = failing
            .map(|(one, why)| format!("{}: {why}", one.resource.label()))
            .collect();
        why.sort();
        why.dedup();
        let why = why.join(", ");
        match (all.is_empty() || all.iter().any(|one| !one.listed), why.is_empty()) {
            (true, true) => Self::Unlisted("the first list".to_owned()),
            (true, false) => Self::Unlisted(format!("the first list of {why}")),
            (false, false) => Self::Failing(format!("no news of {why}")),
            (false, true) => Self::Good,
        }
    }
}

/// One watch, while its events are read.
struct Watching {
    health: Arc<WatchHealth>,
    index: usize,
    resource: Watched,
    /// Errors in a row.
    errors: u32,
    failed_at: Option<Instant>,
    /// When the watch is good again unless another error comes first; none while only a list can show that.
    quiet_at: Option<Instant>,
}

impl Watching {
    async fn next<K>(
        &mut self,
        events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    ) -> Option<watcher::Result<Event<K>>> {
        loop {
            let event = match self.quiet_at {
                None => events.next().await,
                Some(at) => match tokio::time::timeout_at(at, events.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.good(false);
                        continue;
                    }
                },
            }?;
            match &event {
                // A list begins, which may still fail.
                Ok(Event::Init | Event::InitApply(_)) => self.quiet_at = None,
                Ok(Event::InitDone) => self.good(true),
                Ok(Event::Apply(_) | Event::Delete(_)) => self.good(false),
                Err(error) => self.failed(error),
            }
            return Some(event);
        }
    }

    fn good(&mut self, listed: bool) {
        self.quiet_at = None;
        if self.errors == 0 && !listed {
            return;
        }
        self.errors = 0;
        let changed = self.health.change(|all| {
            let one = all.get_mut(self.index)?;
            let relists = listed && one.listed;
            one.listed |= listed;
            Some((one.failing.take(), relists))
        });
        let (failed, relists) = changed.unwrap_or_default();
        if relists {
            self.health.relists.send_replace(());
        }
        if failed.is_some() {
            self.health.metrics.watches_failing(self.resource, -1);
            tracing::info!("the watch of {} is good again", self.resource.label());
        }
    }

    fn failed(&mut self, error: &watcher::Error) {
        use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError};
        if matches!(error, WatchError(status) if status.code == 410) {
            // The watch lists again, as happens to every watch.
            return;
        }
        let now = Instant::now();
        let in_a_row = self.failed_at.replace(now).is_some_and(|last| now - last < IN_A_ROW);
        self.errors = if in_a_row { self.errors.saturating_add(1) } else { 1 };
        let only_a_list_helps = matches!(error, InitialListFailed(_) | NoResourceVersion);
        self.quiet_at = (!only_a_list_helps).then_some(now + QUIET);
        if self.errors < FAILS {
            return;
        }
        let resource = self.resource.label();
        let why = reason(error);
        let before = self
            .health
            .change(|all| all.get_mut(self.index)?.failing.replace(why.clone()));
        if before.is_none() {
            self.health.metrics.watches_failing(self.resource, 1);
            tracing::warn!(%error, reason = why, "the watch of {resource} fails and what is known of them grows old; are they installed, and may the role list and watch them?");
        }
    }
}

/// An error of a watch in few words, which are always the same for the same error.
fn reason(error: &watcher::Error) -> String {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    let status = match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status,
        InitialListFailed(kube::Error::SerdeError(_)) | NoResourceVersion => {
            return "the answer cannot be read".to_owned();
        }
        // The API server reports in plain text that something is not served, and a watch takes that for an object.
        WatchStartFailed(kube::Error::SerdeError(_)) | WatchFailed(kube::Error::SerdeError(_)) => {
            return "not installed, or the answer cannot be read".to_owned();
        }
        InitialListFailed(_) | WatchStartFailed(_) | WatchFailed(_) => return "no answer".to_owned(),
    };
    match (status.code, status.reason.as_str()) {
        (404, _) => "not installed".to_owned(),
        (code, "") => format!("refused: {code}"),
        (_, reason) => format!("refused: {reason}"),
    }
}

#[cfg(test)]
mod tests;
