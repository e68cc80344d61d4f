//! What happens to an object, as a Kubernetes Event reports it. Data only.

use std::collections::HashMap;

/// What has happened: the Event's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// A resource was absent and is now as desired.
    Created,
    /// What the custom resource needs was there already, and is owned.
    Adopted,
    /// A resource differed and is now as desired.
    Repaired,
    /// A resource could not be changed in place and was recreated.
    Replaced,
    /// Something must not be changed, or something is asked for that is not possible.
    Refused,
    /// Azure denies access.
    Denied,
    /// Azure's request limit is reached.
    Throttled,
    /// A resource was called too often, and is left alone for a while: somebody changes it without end, or it is a
    /// defect of this program.
    CallBudgetExhausted,
    /// Another controller plays the same role.
    Contested,
    /// Something stays that others use, that nothing proves owned, or that could not be read.
    Released,
    /// An owned resource may be left in Azure, as somebody allowed.
    Abandoned,
    /// Nothing owned is left, except what the cluster's other custom resource uses.
    Gone,
    /// A custom resource that nobody needs any more is deleted.
    Deleted,
    /// A namespace has more custom resources than are served.
    NotServed,
    /// What somebody else made works in part only.
    Impaired,
    /// A control plane stays paused that this program would let go on: the pause is somebody else's.
    ForeignPause,
    /// The ProviderConfig of a cluster's name is another cluster's.
    ProviderConfigTaken,
    /// A private endpoint is still in Azure long after its entry was removed.
    LeftBehind,
    /// This process waits for something. Written on its own pod.
    NotReady,
}

impl What {
    /// The Event's `reason`.
    pub fn reason(self) -> &'static str {
        match self {
            What::Created => "Created",
            What::Adopted => "Adopted",
            What::Repaired => "Repaired",
            What::Replaced => "Replaced",
            What::Refused => "Refused",
            What::Denied => "Denied",
            What::Throttled => "Throttled",
            What::CallBudgetExhausted => "CallBudgetExhausted",
            What::Contested => "OtherControllerActive",
            What::Released => "Released",
            What::Abandoned => "Abandoned",
            What::Gone => "Gone",
            What::Deleted => "Deleted",
            What::NotServed => "NotServed",
            What::Impaired => "Impaired",
            What::ForeignPause => "PauseNotOurs",
            What::ProviderConfigTaken => "ProviderConfigTaken",
            What::LeftBehind => "LeftBehind",
            What::NotReady => "NotReady",
        }
    }

    /// The Event's `action`: what was tried.
    pub fn action(self) -> &'static str {
        match self {
            What::Created => "Create",
            What::Adopted => "Adopt",
            What::Repaired => "Repair",
            What::Replaced => "Replace",
            What::Refused
            | What::Denied
            | What::Throttled
            | What::CallBudgetExhausted
            | What::Contested
            | What::NotServed
            | What::ForeignPause
            | What::ProviderConfigTaken
            | What::Impaired => "Reconcile",
            What::Released | What::Abandoned | What::Gone | What::Deleted | What::LeftBehind => "Delete",
            What::NotReady => "Wait",
        }
    }

    /// Whether a person should check it: the Event's `type` is Warning.
    pub fn warns(self) -> bool {
        !matches!(
            self,
            What::Created | What::Adopted | What::Repaired | What::Replaced | What::Gone | What::Deleted
        )
    }
}

/// Something that has happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What has happened.
    pub what: What,
    /// The text for people: short, with ARM ids, but no text of Azure's.
    pub note: String,
}

impl Event {
    /// An Event with this note.
    pub fn new(what: What, note: impl Into<String>) -> Self {
        Self {
            what,
            note: note.into(),
        }
    }
}

/// The problems of an object, by topic. Each is published when it appears, not while it lasts.
pub type ProblemsByTopic = HashMap<&'static str, String>;
