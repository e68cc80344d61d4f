//! What a check reports: where the spec and an exchange differ.

use std::fmt;

use serde::Serialize;

/// Which half of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// What the client sent.
    Request,
    /// What the simulator answered.
    Answer,
}

/// What kind of rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The path is in the specs, but not with this method.
    Method,
    /// The status is not declared.
    Status,
    /// A header that must be there is missing, or one is there that must not.
    Header,
    /// A parameter, header or field that the spec does not know.
    Unknown,
    /// Something required is not there.
    Missing,
    /// A JSON type.
    Type,
    /// A value out of range, or not of the declared form or set.
    Value,
    /// A body where none is declared, none where one is, or one that is not JSON.
    Body,
    /// An empty object where no body is declared.
    Empty,
    /// An error with or without the `error` around it.
    Wrapping,
}

/// One thing in an exchange that the spec does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `PrivateEndpoints_Get`.
    pub operation: String,
    /// Which half.
    pub part: Part,
    /// What is broken.
    pub rule: Rule,
    /// JSON pointer into the body; otherwise the name of a parameter or header.
    pub place: String,
    /// What the spec expects there.
    #[serde(rename = "wanted")]
    pub expected: String,
    /// What was there; JSON text in a body.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operation,
            part,
            rule,
            place,
            expected,
            found,
        } = self;
        write!(
            to,
            "{operation}, {part:?} {place:?}: {rule:?}: wanted {expected}, found {found:.200}"
        )
    }
}
