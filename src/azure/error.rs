//! The one table that turns ARM's answers into classes. Never looks at message text.

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The resource, its parent or its group does not exist.
    Gone,
    /// A neighbour is being changed; seconds.
    Busy,
    /// A request budget is used up; as long as Azure says.
    Throttled,
    /// Not allowed, or not known who we are.
    Denied,
    /// Azure will not accept this request as it is.
    Invalid,
    /// No usable answer.
    Down,
}

impl Class {
    /// Every class, for tables and labels.
    pub const ALL: [Class; 6] = [
        Class::Gone,
        Class::Busy,
        Class::Throttled,
        Class::Denied,
        Class::Invalid,
        Class::Down,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Class::Gone => "gone",
            Class::Busy => "busy",
            Class::Throttled => "throttled",
            Class::Denied => "denied",
            Class::Invalid => "invalid",
            Class::Down => "down",
        }
    }
}
