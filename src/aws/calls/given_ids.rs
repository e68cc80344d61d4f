//! The ids that AWS gave, by slot. Those that AWS has shown are kept apart from those that are only recorded: anybody
//! may have written these, so that they are read, and never written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperlink_engine::cloud::Cloud;
use tokio::time::Instant;

use crate::cloud::Aws;
use crate::slot::Slot;

/// How long a resource without any tag may be a new one whose tags do not show yet.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
const TAGS_SHOW_LATE: Duration = Duration::from_secs(60);

/// The ids of resources, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct GivenIds {
    single: Mutex<HashMap<Slot, Ids>>,
    /// Those that the last list showed.
    listed: Mutex<HashMap<Slot, String>>,
}

/// The ids of the resource in one slot.
#[derive(Debug, Default)]
struct Ids {
    shown: Option<String>,
    recorded: Option<String>,
    /// Since when no read finds the resource.
    missed: Option<Instant>,
    /// The id of a resource without tags, and since when it is read so.
    untagged: Option<(String, Instant)>,
    /// The id of a resource that was read with tags.
    tagged: Option<String>,
}

/// What the tags of a read say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagsShown {
    /// The resource has those that are shown.
    AsTheyAre,
    /// A new one may have tags that are shown later.
    NotYet,
    /// One that was read with tags may have them still.
    NotNow,
}

impl GivenIds {
    fn all(&self) -> MutexGuard<'_, HashMap<Slot, Ids>> {
        self.single.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<Slot, String>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the resource in a slot, as AWS has shown it.
    pub(super) fn shown(&self, slot: &Slot) -> Option<String> {
        self.all().get(slot)?.shown.clone()
    }

    /// The id of the resource in a slot, as AWS has shown it by itself, else in the last list.
    pub(super) fn shown_anywhere(&self, slot: &Slot) -> Option<String> {
        self.shown(slot).or_else(|| self.listed().get(slot).cloned())
    }

    /// Notes the ids that a list showed, in place of those of the list before.
    pub(super) fn note_listed(&self, ids: HashMap<Slot, String>) {
        *self.listed() = ids;
    }

    /// The id to read first: that which AWS has shown, else that which is recorded.
    pub(super) fn known(&self, slot: &Slot) -> Option<String> {
        let all = self.all();
        let ids = all.get(slot)?;
        ids.shown.clone().or_else(|| ids.recorded.clone())
    }

    /// Notes an id that AWS showed; empty for a resource without.
    pub(super) fn note_shown(&self, slot: &Slot, id: &str) {
        if !id.is_empty() {
            let mut all = self.all();
            let ids = all.entry(slot.clone()).or_default();
            ids.shown = Some(id.to_owned());
            ids.missed = None;
        }
    }

    /// Notes an id that was recorded. As anybody may have written it, it is kept only while reads find the resource.
    pub(super) fn note_recorded(&self, slot: &Slot, id: &str, now: Instant) {
        if id.is_empty() {
            return;
        }
        let mut all = self.all();
        let ids = all.entry(slot.clone()).or_default();
        ids.recorded = Some(id.to_owned());
        if ids.shown.is_none() {
            ids.missed.get_or_insert(now);
        }
        forget_gone(&mut all, now);
    }

    /// Notes a read that showed the resource with this id, with or without tags. Returns what that says: whoever made
    /// it, this process or an earlier one, created it with tags.
    pub(super) fn note_tags(&self, slot: &Slot, id: &str, has_tags: bool, now: Instant) -> TagsShown {
        let mut all = self.all();
        let ids = all.entry(slot.clone()).or_default();
        if has_tags {
            ids.untagged = None;
            ids.tagged = Some(id.to_owned());
            return TagsShown::AsTheyAre;
        }
        let known = ids.untagged.take().filter(|(known, _)| known == id);
        let (id, since) = known.unwrap_or_else(|| (id.to_owned(), now));
        let shown = match now.saturating_duration_since(since) < TAGS_SHOW_LATE {
            true if ids.tagged.as_ref() == Some(&id) => TagsShown::NotNow,
            true => TagsShown::NotYet,
            false => TagsShown::AsTheyAre,
        };
        ids.untagged = Some((id, since));
        shown
    }

    /// Forgets an id that was recorded, and is that of another resource.
    pub(super) fn forget_recorded(&self, slot: &Slot) {
        if let Some(ids) = self.all().get_mut(slot) {
            ids.recorded = None;
        }
    }

    /// Forgets the ids of a resource that AWS has deleted.
    pub(super) fn forget(&self, slot: &Slot) {
        self.all().remove(slot);
    }

    /// Notes that a read did not find the resource, and forgets the ids of those that are gone for long: a read by
    /// filter alone does not prove that, so that an id is kept for the next one.
    pub(super) fn note_missed(&self, slot: &Slot, now: Instant) {
        let mut all = self.all();
        if let Some(ids) = all.get_mut(slot) {
            ids.missed.get_or_insert(now);
        }
        forget_gone(&mut all, now);
    }
}

fn forget_gone(all: &mut HashMap<Slot, Ids>, now: Instant) {
    all.retain(|_, ids| {
        let missed = ids.missed.map(|since| now.saturating_duration_since(since));
        missed.is_none_or(|missed| missed < Aws::GONE_FOR)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Scope;

    #[tokio::test(start_paused = true)]
    async fn recorded_ids_that_nothing_shows_are_forgotten() {
        let (ids, scope) = (GivenIds::default(), Scope::own("444455556666", "us-east-1"));
        let slot = |number: usize| Slot::vpc_endpoint(&scope, "vpc-1", &format!("vpce-svc-{number}"));
        ids.note_shown(&slot(0), "vpce-0");
        for number in 0..1_000 {
            ids.note_recorded(&slot(number), "vpce-1", Instant::now());
        }
        assert_eq!(ids.known(&slot(7)).as_deref(), Some("vpce-1"));
        tokio::time::advance(Aws::GONE_FOR).await;
        ids.note_recorded(&slot(7), "vpce-1", Instant::now());
        assert_eq!(ids.all().len(), 1);
        assert_eq!(ids.known(&slot(0)).as_deref(), Some("vpce-0"));
    }

    #[tokio::test(start_paused = true)]
    async fn tags_of_before_are_there_for_a_minute_more() {
        let (ids, slot, now) = (
            GivenIds::default(),
            Slot::endpoint_service(&Scope::own("1", "r"), "a"),
            Instant::now(),
        );
        let note = |id, has_tags, second| ids.note_tags(&slot, id, has_tags, now + Duration::from_secs(second));
        assert_eq!(note("a", false, 0), TagsShown::NotYet);
        assert_eq!(note("a", true, 5), TagsShown::AsTheyAre);
        let later = [10, 69, 70].map(|second| note("a", false, second));
        assert_eq!(later, [TagsShown::NotNow, TagsShown::NotNow, TagsShown::AsTheyAre]);
        assert_eq!(note("b", false, 80), TagsShown::NotYet, "another one");
    }

    #[tokio::test(start_paused = true)]
    async fn listed_id_counts_until_another_list_lacks_it() {
        let (ids, scope) = (GivenIds::default(), Scope::own("444455556666", "us-east-1"));
        let slot = |name: &str| Slot::endpoint_service(&scope, name);
        let listed = |name: &str| HashMap::from([(slot(name), "vpce-svc-1".to_owned())]);
        ids.note_listed(listed("a"));
        ids.note_shown(&slot("b"), "vpce-svc-2");
        ids.note_listed(listed("b"));
        let known = ["a", "b"].map(|name| ids.shown_anywhere(&slot(name)));
        assert_eq!(known, [None, Some("vpce-svc-2".to_owned())]);
        ids.note_listed(listed("a"));
        assert_eq!(ids.shown_anywhere(&slot("a")).as_deref(), Some("vpce-svc-1"));
    }
}
