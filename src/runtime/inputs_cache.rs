//! What was read of Kubernetes for each object at rest. As long as nothing has changed, a reconcile reads nothing there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::pace::Fingerprint;

/// The inputs of an object as they were last read.
#[derive(Debug)]
pub(super) struct CachedInputs<I> {
    /// What was read.
    pub(super) inputs: Arc<I>,
    /// The fingerprint that they are part of.
    pub(super) fingerprint: Fingerprint,
    read_at: Instant,
}

impl<I> Clone for CachedInputs<I> {
    fn clone(&self) -> Self {
        Self {
            inputs: Arc::clone(&self.inputs),
            fingerprint: self.fingerprint,
            read_at: self.read_at,
        }
    }
}

impl<I> CachedInputs<I> {
    /// Inputs that were read at `read_at`.
    pub(super) fn new(inputs: I, fingerprint: Fingerprint, read_at: Instant) -> Self {
        Self {
            inputs: Arc::new(inputs),
            fingerprint,
            read_at,
        }
    }
}

/// The cached inputs of the objects of one controller, by UID, each with the resource version that the object has if
/// nobody else has written it since.
#[derive(Debug)]
pub(super) struct InputsCache<I> {
    entries: Mutex<HashMap<String, (String, CachedInputs<I>)>>,
}

impl<I> Default for InputsCache<I> {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
        }
    }
}

impl<I> InputsCache<I> {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, (String, CachedInputs<I>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inputs of the object with this UID, if nobody has written it since and they are younger than `most`.
    pub(super) fn get(&self, uid: &str, version: &str, most: Duration, now: Instant) -> Option<CachedInputs<I>> {
        let entries = self.entries();
        let (of, cached) = entries.get(uid)?;
        let is_young = now.saturating_duration_since(cached.read_at) < most;
        (of == version && is_young).then(|| cached.clone())
    }

    /// Stores the inputs of the object that has this UID, and now this resource version.
    pub(super) fn insert(&self, uid: &str, version: String, inputs: CachedInputs<I>) {
        self.entries().insert(uid.to_owned(), (version, inputs));
    }

    /// Drops the inputs of the object with this UID.
    pub(super) fn forget(&self, uid: &str) {
        self.entries().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn inputs_hold_while_nobody_writes_the_object_and_for_a_time() {
        let (cache, now) = (InputsCache::default(), Instant::now());
        cache.insert("u", "7".into(), CachedInputs::new("x", Fingerprint::of("a"), now));
        let get = |uid: &str, version: &str, now| cache.get(uid, version, MOST, now).map(|found| *found.inputs);
        assert_eq!(get("u", "7", now), Some("x"));
        assert_eq!(get("u", "8", now), None, "somebody has written the object");
        assert_eq!(get("v", "7", now), None, "it is another object");
        assert_eq!(get("u", "7", now + MOST), None, "they are old");
        cache.forget("u");
        assert_eq!(get("u", "7", now), None);
    }
}
