//! The one rule that brings a resource to what is desired, or deletes it. Pure: facts in, steps out.

mod words;

use std::borrow::Cow;

use serde_json::Value;

use super::cloud::{Cloud, Key, ResourceKind};
use super::resource::{Difference, Observed, Owned, Progress, Resource};

/// What to do with one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// The resource is as desired, or gone as desired.
    Keep,
    /// PUT the resource with this body.
    Put(Value),
    /// Delete the resource.
    Delete,
    /// Read the resource again later.
    Wait,
    /// The resource is not owned by this cluster alone: do not write and do not delete it.
    Refuse,
}

/// Why a step has its verb.
#[derive(Debug, Clone, PartialEq)]
pub enum Why<C: Cloud> {
    /// The resource is as desired.
    UpToDate,
    /// The resource is not there.
    Absent,
    /// These fields differ.
    Differs(Vec<&'static str>),
    /// These fields differ and the cloud cannot change them in place.
    Replace(Vec<&'static str>),
    /// Its last operation failed.
    Failed,
    /// The last write failed, and the resource has not been read since.
    Unproven,
    /// An operation on it is under way.
    InProgress,
    /// The resource is no longer desired.
    Unwanted,
    /// What is owned of it is no longer desired; the rest is left to others.
    PartUnwanted,
    /// Neither owner tags nor structure prove that the resource is owned.
    NotOurs,
    /// The resource is owned, but others use it.
    InUse(&'static str),
    /// It could not be read.
    Unread(C::Error),
    /// Its operation failed.
    Error(C::Error),
    /// Something else has to exist or to go first.
    Needs(&'static str),
    /// A resource of this kind has to show this value first.
    NeedsValue(C::Kind, &'static str),
}

impl<C: Cloud> Why<C> {
    /// The error that is the reason, if one is.
    pub fn error(&self) -> Option<&C::Error> {
        match self {
            Why::Unread(error) | Why::Error(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the step waits for something else than its own resource.
    pub fn waits_for_others(&self) -> bool {
        matches!(self, Why::Needs(_) | Why::NeedsValue(..))
    }
}

/// One resource, what to do with it, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<C: Cloud> {
    /// The resource's kind.
    pub kind: C::Kind,
    /// The resource's key.
    pub key: C::Key,
    /// What to do with the resource.
    pub verb: Verb,
    /// Why the verb was chosen.
    pub why: Why<C>,
    /// What was observed of the resource; none if nothing was.
    pub found: Option<Value>,
}

impl<C: Cloud> Step<C> {
    /// A step that waits for something else.
    pub fn needs(kind: C::Kind, key: C::Key, what: &'static str) -> Self {
        Self::waits(kind, key, Why::Needs(what))
    }

    /// A step that waits for this reason, without a read.
    pub fn waits(kind: C::Kind, key: C::Key, why: Why<C>) -> Self {
        Self {
            kind,
            key,
            verb: Verb::Wait,
            why,
            found: None,
        }
    }

    /// A step that deletes what another resource shows, as a service shows its connections.
    pub fn remove(kind: C::Kind, key: C::Key) -> Self {
        Self {
            kind,
            key,
            verb: Verb::Delete,
            why: Why::Unwanted,
            found: None,
        }
    }

    /// The resource that has to be read to observe this one: its parent, if only that shows it.
    pub fn observed_at(&self) -> C::Key {
        let parent = self.key.parent().filter(|_| self.kind.rules().shown_by_parent);
        parent.unwrap_or_else(|| self.key.clone())
    }

    /// Whether it sends a write.
    pub fn writes(&self) -> bool {
        matches!(self.verb, Verb::Put(_) | Verb::Delete)
    }

    /// What was found, if the resource is there as desired.
    pub fn ready(&self) -> Option<&Value> {
        self.found.as_ref().filter(|_| self.verb == Verb::Keep)
    }

    /// Whether the resource is known to be gone.
    pub fn gone(&self) -> bool {
        self.verb == Verb::Keep && self.found.is_none()
    }

    /// Whether the step waits for a read only, and not for the cloud.
    pub fn unproven(&self) -> bool {
        self.why == Why::Unproven
    }

    /// Whether the resource is left to others.
    pub fn left(&self) -> bool {
        self.verb == Verb::Refuse
    }

    /// This step, if what it depends on cannot be read: it waits.
    pub fn unreadable(self, error: &C::Error) -> Self {
        Self {
            verb: Verb::Wait,
            why: Why::Unread(error.clone()),
            ..self
        }
    }

    /// This step, if the resource is left to others who use it like this: it refuses.
    pub fn leave(self, what: &'static str) -> Self {
        Self {
            verb: Verb::Refuse,
            why: Why::InUse(what),
            ..self
        }
    }
}

/// Creates the resource, or brings it to what is desired.
pub fn ensure_present<C: Cloud>(desired: &dyn Resource<C>, observed: &Observed<C>) -> Step<C> {
    let (verb, why) = match observed {
        Observed::Absent => (Verb::Put(desired.body(None)), Why::Absent),
        Observed::Pending => (Verb::Wait, Why::InProgress),
        Observed::ReadFailed(error) => (Verb::Wait, Why::Unread(error.clone())),
        Observed::WriteFailed(error) | Observed::DeleteFailed(error) => (Verb::Wait, Why::Error(error.clone())),
        Observed::Found(current) => {
            let own = desired.own_part(current);
            let (verb, why) = ensure_found(desired, &own);
            return step(desired, Some(own.into_owned()), verb, why);
        }
    };
    step(desired, None, verb, why)
}

fn step<C: Cloud>(of: &dyn Owned<C>, found: Option<Value>, verb: Verb, why: Why<C>) -> Step<C> {
    Step {
        kind: of.kind(),
        key: of.key().clone(),
        verb,
        why,
        found,
    }
}

fn fields(differences: &[Difference]) -> Vec<&'static str> {
    differences.iter().map(|difference| difference.field).collect()
}

fn ensure_found<C: Cloud>(desired: &dyn Resource<C>, current: &Value) -> (Verb, Why<C>) {
    if !desired.is_owned(current) {
        return (Verb::Refuse, Why::NotOurs);
    }
    let state = C::progress(current);
    let differences = desired.differs(current);
    let right = state == Progress::InProgress && differences.is_empty() && desired.moved_by_others(current);
    if matches!(state, Progress::InProgress | Progress::Deleting) && !right {
        return (Verb::Wait, Why::InProgress);
    }
    if differences.iter().any(|d| d.needs_replacement) {
        (Verb::Delete, Why::Replace(fields(&differences)))
    } else if !differences.is_empty() {
        (
            Verb::Put(desired.body(Some(current))),
            Why::Differs(fields(&differences)),
        )
    } else if state == Progress::Failed {
        (Verb::Put(desired.body(Some(current))), Why::Failed)
    } else if !(desired.kind().rules().in_force)(current) {
        (Verb::Wait, Why::InProgress)
    } else {
        (Verb::Keep, Why::UpToDate)
    }
}

/// Deletes the resource, if it is owned.
pub fn ensure_absent<C: Cloud>(owned: &dyn Owned<C>, observed: &Observed<C>) -> Step<C> {
    let (verb, why) = match observed {
        Observed::Absent => (Verb::Keep, Why::UpToDate),
        Observed::Pending => (Verb::Wait, Why::InProgress),
        // Whether it is there and owned is not known before the next read.
        Observed::WriteFailed(_) => (Verb::Wait, Why::Unproven),
        Observed::ReadFailed(error) => (Verb::Wait, Why::Unread(error.clone())),
        Observed::DeleteFailed(error) => (Verb::Wait, Why::Error(error.clone())),
        Observed::Found(current) => {
            let own = owned.own_part(current);
            let (verb, why) = delete_found(owned, &own, matches!(own, Cow::Owned(_)));
            return step(owned, Some(own.into_owned()), verb, why);
        }
    };
    step(owned, None, verb, why)
}

fn delete_found<C: Cloud>(owned: &dyn Owned<C>, own: &Value, is_part: bool) -> (Verb, Why<C>) {
    if !owned.is_owned(own) {
        (Verb::Refuse, Why::NotOurs)
    } else if C::progress(own) == Progress::Deleting {
        (Verb::Wait, Why::InProgress)
    } else if is_part {
        (Verb::Delete, Why::PartUnwanted)
    } else {
        (Verb::Delete, Why::Unwanted)
    }
}

/// What was changed about a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The resource was not there.
    Created,
    /// These fields differed.
    Repaired(Vec<&'static str>),
    /// These fields differed, and the cloud could not change them in place.
    Replaced(Vec<&'static str>),
}

impl Change {
    /// What a write for this reason changes; none if it deletes the resource for good.
    pub fn of<C: Cloud>(why: &Why<C>) -> Option<Self> {
        match why {
            Why::Absent => Some(Self::Created),
            Why::Differs(fields) => Some(Self::Repaired(fields.clone())),
            Why::Failed => Some(Self::Repaired(vec![C::PROGRESS_FIELD])),
            Why::Replace(fields) => Some(Self::Replaced(fields.clone())),
            _ => None,
        }
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<C: Cloud> {
    /// Nothing was sent.
    Nothing,
    /// Nothing was sent: the resource is now as desired, after this process changed it.
    Reached(Change),
    /// The cloud accepted the write, and it is in force.
    Ready,
    /// The cloud accepted the write, and works on it.
    Accepted,
    /// The cloud did not accept the write.
    Failed(C::Error),
    /// The write was not sent: this process may not write any more.
    GateShut,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::failure::{Class, Failure};
    use crate::resource::Difference;
    use crate::sample::{Error, Key, Kind, Observed, Sample};

    /// A resource whose JSON itself gives the answers that the rule needs.
    #[derive(Debug)]
    struct TestResource(Key);

    impl Owned<Sample> for TestResource {
        fn kind(&self) -> Kind {
            Kind::Guarded
        }
        fn key(&self) -> &Key {
            &self.0
        }
        fn is_owned(&self, current: &Value) -> bool {
            current["ours"] == json!(true)
        }
    }

    impl Resource<Sample> for TestResource {
        fn moved_by_others(&self, current: &Value) -> bool {
            current.get("theirs").is_some()
        }
        fn differs(&self, current: &Value) -> Vec<Difference> {
            let soft = current.get("soft").map(|_| Difference::of("soft"));
            soft.into_iter()
                .chain(current.get("hard").map(|_| Difference::by_replacement("hard")))
                .collect()
        }
        fn body(&self, current: Option<&Value>) -> Value {
            json!({"over": current.is_some()})
        }
    }

    fn desired() -> TestResource {
        TestResource(Key::of("z"))
    }

    fn found(state: &str, more: &str) -> Observed {
        Observed::Found(json!({"ours": true, more: 1, "state": state}))
    }

    fn error() -> Error {
        Error::own(Class::Down, "X")
    }

    #[rstest]
    #[case::absent_is_made(Observed::Absent, Verb::Put(json!({"over": false})))]
    #[case::create_under_way_is_waited_for(Observed::Pending, Verb::Wait)]
    #[case::unreadable_is_never_written(Observed::ReadFailed(error()), Verb::Wait)]
    #[case::failed_operation_is_waited_out(Observed::WriteFailed(error()), Verb::Wait)]
    #[case::failed_delete_is_waited_out(Observed::DeleteFailed(error()), Verb::Wait)]
    #[case::foreign_is_refused(Observed::Found(json!({"soft": 1})), Verb::Refuse)]
    #[case::in_progress_is_waited_for(found("busy", "soft"), Verb::Wait)]
    #[case::up_to_date_while_others_write_it_is_kept(found("busy", "theirs"), Verb::Keep)]
    #[case::in_progress_is_waited_for_whoever_writes(Observed::Found(json!({"ours": true, "theirs": 1, "soft": 1, "state": "busy"})), Verb::Wait)]
    #[case::deleting_is_waited_for(found("deleting", "theirs"), Verb::Wait)]
    #[case::difference_is_put(found("ready", "soft"), Verb::Put(json!({"over": true})))]
    #[case::difference_that_needs_replacement(found("ready", "hard"), Verb::Delete)]
    #[case::failed_is_put_again(found("failed", "x"), Verb::Put(json!({"over": true})))]
    #[case::up_to_date_is_kept(found("ready", "x"), Verb::Keep)]
    fn ensure_present_rule(#[case] observed: Observed, #[case] verb: Verb) {
        assert_eq!(ensure_present(&desired(), &observed).verb, verb);
    }

    #[rstest]
    #[case::absent_needs_nothing(Observed::Absent, Verb::Keep)]
    #[case::create_under_way_is_waited_for(Observed::Pending, Verb::Wait)]
    #[case::unreadable_is_never_deleted(Observed::ReadFailed(error()), Verb::Wait)]
    #[case::failed_write_proves_nothing_and_is_read_first(Observed::WriteFailed(error()), Verb::Wait)]
    #[case::failed_delete_is_waited_out(Observed::DeleteFailed(error()), Verb::Wait)]
    #[case::foreign_is_refused(Observed::Found(json!({})), Verb::Refuse)]
    #[case::deleting_is_waited_for(found("deleting", "x"), Verb::Wait)]
    #[case::in_progress_is_deleted(found("busy", "x"), Verb::Delete)]
    #[case::ready_is_deleted(found("ready", "x"), Verb::Delete)]
    fn ensure_absent_rule(#[case] observed: Observed, #[case] verb: Verb) {
        assert_eq!(ensure_absent(&desired(), &observed).verb, verb);
    }

    #[test]
    fn gone_and_ready_are_distinguished() {
        assert!(ensure_absent(&desired(), &Observed::Absent).gone());
        assert!(ensure_present(&desired(), &found("ready", "x")).ready().is_some());
        assert!(!ensure_present(&desired(), &found("ready", "x")).gone());
    }
}
