//! What was observed of a resource, as it is kept: a body as text. As a tree of values it takes several times as much
//! memory, and there may be tens of thousands.

use serde_json::Value;

use crate::cloud::Cloud;
use crate::resource::Observed;

/// What was observed.
#[derive(Debug)]
pub(super) enum Stored<C: Cloud> {
    /// The resource is there; holds its body as JSON.
    Found(Box<str>),
    /// Anything else.
    Other(Observed<C>),
}

impl<C: Cloud> Stored<C> {
    pub(super) fn of(observed: Observed<C>) -> Self {
        match observed {
            Observed::Found(body) => Self::Found(body.to_string().into()),
            other => Self::Other(other),
        }
    }

    pub(super) fn observed(&self) -> Observed<C> {
        match self {
            Self::Found(text) => Observed::Found(body(text)),
            Self::Other(other) => other.clone(),
        }
    }

    /// The resource's body, if the resource was there.
    pub(super) fn found(&self) -> Option<Value> {
        match self {
            Self::Found(text) => Some(body(text)),
            Self::Other(_) => None,
        }
    }

    /// Whether the resource was not there.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Other(Observed::Absent))
    }

    /// Whether a read or a write of the resource failed.
    pub(super) fn has_failed(&self) -> bool {
        let Self::Other(observed) = self else { return false };
        matches!(
            observed,
            Observed::ReadFailed(_) | Observed::WriteFailed(_) | Observed::DeleteFailed(_)
        )
    }
}

/// The text was made of a body, so it is one.
fn body(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::Observed;

    #[test]
    fn observed_is_the_same_as_before() {
        let body = json!({"tags": {"ü": "\u{0}\"\\"}, "n": [1, 1.5, -3, u64::MAX, null, true, {}]});
        for observed in [Observed::Found(body), Observed::Absent, Observed::Pending] {
            assert_eq!(Stored::of(observed.clone()).observed(), observed);
        }
    }

    #[test]
    fn what_is_not_there_has_no_body() {
        assert!(Stored::of(Observed::Absent).is_absent());
        assert_eq!(Stored::of(Observed::Absent).found(), None);
        assert!(!Stored::of(Observed::Found(json!({}))).is_absent());
    }
}
