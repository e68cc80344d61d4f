//! Why a workload cluster has no private path: the reasons of its condition.

/// How much a condition that is False matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It passes by itself.
    Info,
    /// A person has to do something.
    Warning,
}

impl Severity {
    /// The text in `conditions[].severity`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "Info",
            Self::Warning => "Warning",
        }
    }
}

/// One table for the variants and their list, so that none can be forgotten.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident: $severity:ident,)+) => {
        /// Why the condition of a workload cluster is False. Of several problems the first in this order is published.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)+ }

        impl Reason {
            /// Every reason, in order.
            pub const ALL: [Reason; [$(Reason::$name),+].len()] = [$(Reason::$name),+];

            /// The text in `conditions[].reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)+ }
            }

            /// How much it matters.
            pub fn severity(self) -> Severity {
                match self { $(Reason::$name => Severity::$severity,)+ }
            }
        }
    };
}

reasons! {
    /// The cluster is in another cloud than this process.
    CloudMismatch: Warning,
    /// The AzureCluster of the management cluster does not exist.
    ManagementClusterMissing: Warning,
    /// The type of a load balancer is neither `Internal` nor `Public`.
    UnknownLoadBalancerType: Warning,
    /// No link is for the management cluster's subscription.
    LinksNotAllowed: Warning,
    /// A link has a name from which no private endpoint can be made.
    InvalidLinkName: Warning,
    /// Another workload cluster has the private endpoint of this name.
    NameConflict: Warning,
    /// Somebody else's private endpoint has this name.
    NotOurs: Warning,
    /// A cluster in which a private endpoint is to be made has no subnet.
    SubnetsNotSet: Warning,
    /// There are more private endpoints than can be recorded.
    TooManyEndpoints: Warning,
    /// The cluster names no identity.
    IdentityRefUnset: Warning,
    /// The cluster's identity, or what that needs, does not exist.
    IdentityMissing: Warning,
    /// The cluster's namespace may not use the identity.
    IdentityNotAllowed: Warning,
    /// The identity is of a type that this process cannot use.
    IdentityTypeNotSupported: Warning,
    /// Azure denies a read.
    AzureDenied: Warning,
    /// Azure, or its error, is of another kind.
    AzureError: Warning,
    /// The owner of the Private Link Service has not approved the connection.
    ConnectionNotApproved: Warning,
    /// The private endpoint has no private address.
    NoAddress: Warning,
    /// Azure's request limit is reached.
    AzureThrottled: Info,
    /// CAPZ has not made the Private Link Services yet.
    LinksNotReady: Info,
    /// CAPZ has not made the private endpoint yet.
    WaitingForEndpoint: Info,
}

/// Why a workload cluster has no private path, in a condition's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The condition's reason.
    pub reason: Reason,
    /// The condition's message: short and stable.
    pub message: String,
}

impl Problem {
    /// A problem with this message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_row_in_the_order_of_their_rank() {
        let page = include_str!("../../docs/capz.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows
            .filter_map(|row| row.split_once("` | "))
            .filter(|(_, rest)| rest.starts_with("Warning | ") || rest.starts_with("Info | "));
        let documented: Vec<_> = rows
            .map(|(reason, rest)| (reason, rest.split(' ').next().unwrap()))
            .collect();
        let all = Reason::ALL.map(|reason| (reason.as_str(), reason.severity().as_str()));
        assert_eq!(documented, all);
    }
}
