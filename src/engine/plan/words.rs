//! How a step is printed and serialized: in words, without the resource's body.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Cloud, ResourceKind, Step, Verb, Why};

impl Verb {
    /// The verb in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verb::Keep => "keep",
            Verb::Put(_) => "put",
            Verb::Delete => "delete",
            Verb::Wait => "wait",
            Verb::Refuse => "refuse",
        }
    }
}

impl<C: Cloud> Why<C> {
    /// The fields that differ, if they are the reason.
    pub fn fields(&self) -> &[&'static str] {
        match self {
            Why::Differs(fields) | Why::Replace(fields) => fields,
            _ => &[],
        }
    }
}

impl<C: Cloud> fmt::Display for Why<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::UpToDate => f.write_str("as desired"),
            Why::Absent => f.write_str("absent"),
            Why::Differs(fields) => write!(f, "differs: {}", fields.join(", ")),
            Why::Replace(fields) => write!(f, "cannot be changed in place: {}", fields.join(", ")),
            Why::Failed => f.write_str("its last operation failed"),
            Why::Unproven => f.write_str("its last write failed, and it was not read since"),
            Why::InProgress => f.write_str("an operation is under way"),
            Why::Unwanted => f.write_str("no longer desired"),
            Why::PartUnwanted => f.write_str("no longer desired, beside what is not owned"),
            Why::NotOurs => f.write_str("not owned"),
            Why::InUse(what) => write!(f, "others use it: {what}"),
            Why::Unread(error) | Why::Error(error) => write!(f, "{error}"),
            Why::Needs(what) | Why::NeedsValue(_, what) => write!(f, "waits for {what}"),
        }
    }
}

/// What is desired and what was found are left out: bodies and tags are not to be printed.
impl<C: Cloud> Serialize for Step<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut step = serializer.serialize_struct("Step", 5)?;
        step.serialize_field("verb", self.verb.as_str())?;
        step.serialize_field("kind", self.kind.label())?;
        step.serialize_field("id", &self.key.to_string())?;
        step.serialize_field("why", &self.why.to_string())?;
        step.serialize_field("fields", self.why.fields())?;
        step.end()
    }
}
