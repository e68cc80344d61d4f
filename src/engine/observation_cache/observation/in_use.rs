//! What a resource is while the cloud refuses to delete it because others use it. Each refusal shows that it is there, as
//! a read would.

use std::time::Duration;

use tokio::time::Instant;

use super::{Observation, Stored};
use crate::cloud::Cloud;
use crate::resource::Observed;

/// How long refusals stand for reads. What they do not show, as the tags of its owner, may have changed.
const STAND_FOR_READS: Duration = Duration::from_secs(300);

/// The refusals to delete one resource since it was last read.
#[derive(Debug, Default)]
pub(super) struct InUse(Option<Box<Refused>>);

#[derive(Debug)]
struct Refused {
    /// When the first delete after the read was refused.
    since: Instant,
    /// The body that was read, as JSON; none once it was taken.
    body: Option<Box<str>>,
}

impl<C: Cloud> Observation<C> {
    /// Notes that the cloud refuses to delete it because others use it.
    pub(in crate::observation_cache) fn note_in_use(&mut self, now: Instant) {
        if let Some(Stored::Found(body)) = self.observed.take() {
            self.in_use.note_refused(body, now);
        }
    }

    /// What the last refusal to delete it has shown, once, in place of a read.
    pub(in crate::observation_cache) fn take_in_use(&mut self, now: Instant) -> Option<Observed<C>> {
        let body = self.in_use.take(now).filter(|_| !self.by_itself)?;
        self.observed = Some(Stored::Found(body));
        self.note_read(now);
        self.observed()
    }
}

impl InUse {
    /// Notes that the cloud refused to delete the resource with this body.
    fn note_refused(&mut self, body: Box<str>, now: Instant) {
        let since = self.0.as_ref().map_or(now, |refused| refused.since);
        self.0 = Some(Box::new(Refused {
            since,
            body: Some(body),
        }));
    }

    /// The body that the last refusal has shown, once; none if the resource has to be read.
    fn take(&mut self, now: Instant) -> Option<Box<str>> {
        let refused = self.0.as_mut()?;
        let is_recent = now.saturating_duration_since(refused.since) < STAND_FOR_READS;
        refused.body.take().filter(|_| is_recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_refusal_stands_for_one_read() {
        let (mut in_use, now) = (InUse::default(), Instant::now());
        assert_eq!(in_use.take(now), None);
        in_use.note_refused("{}".into(), now);
        assert_eq!(in_use.take(now).as_deref(), Some("{}"));
        assert_eq!(in_use.take(now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_do_not_stand_for_reads_for_ever() {
        let (mut in_use, now) = (InUse::default(), Instant::now());
        in_use.note_refused("{}".into(), now);
        let later = now + STAND_FOR_READS;
        in_use.note_refused("{}".into(), later);
        assert_eq!(in_use.take(later), None);
    }
}
