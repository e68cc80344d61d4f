//! The kinds of resources, a file each. A new kind is its file with its `RULES`, which a `mod` names, and a line in the
//! registry below.

use std::time::Duration;

use hyperlink_engine::kind_rules::KindRules;

pub mod allowed_principals;
pub mod endpoint_connections;
pub mod endpoint_service;
pub mod further_endpoint;
pub mod load_balancer;
pub mod records;
pub mod security_group;
pub mod vpc_endpoint;

use crate::cloud::Aws;

/// What the engine has to know of a kind of AWS's resources. AWS creates no resource over another one. Where it
/// refuses a name that is taken, a create holds for a new one alone; an endpoint has no name.
pub type Rules = KindRules<Aws>;

/// The time between the first two replacements of what fails, or cannot be changed as desired. It doubles with each.
pub(crate) const REPLACED_AFTER: Duration = Duration::from_secs(600);

/// Where the resources are that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope {
    /// In the account, in one region.
    Account,
}

macro_rules! kinds {
    ($($kind:ident => $file:ident $label:literal,)+) => {
        /// The kinds of AWS's resources that Hyperlink reads or writes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(
                #[doc = concat!("See [`", stringify!($file), "`].")]
                $kind,
            )+
        }

        impl Kind {
            /// Every kind, for tables and labels.
            pub const ALL: [Kind; [$(Kind::$kind),+].len()] = [$(Kind::$kind),+];

            /// The metric label and the word for logs and messages.
            pub fn label(self) -> &'static str {
                match self {
                    $(Kind::$kind => $label,)+
                }
            }

            /// What the engine has to know of the kind.
            pub fn rules(self) -> &'static Rules {
                match self {
                    $(Kind::$kind => &$file::RULES,)+
                }
            }
        }
    };
}

kinds! {
    LoadBalancer => load_balancer "load_balancer",
    EndpointService => endpoint_service "endpoint_service",
    AllowedPrincipals => allowed_principals "allowed_principals",
    EndpointConnections => endpoint_connections "endpoint_connections",
    SecurityGroup => security_group "security_group",
    VpcEndpoint => vpc_endpoint "vpc_endpoint",
    FurtherEndpoint => further_endpoint "further_vpc_endpoint",
    Records => records "records",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_label_of_its_own() {
        let labels: BTreeSet<&str> = Kind::ALL.map(Kind::label).into_iter().collect();
        assert_eq!(labels.len(), Kind::ALL.len());
    }
}
