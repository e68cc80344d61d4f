//! The kinds of resources, a file each. A new kind is its file with a `SPEC`, which a `mod` names, and a line in the
//! registry below.

use std::time::Duration;

pub mod load_balancer;
pub mod private_dns_zone;
pub mod private_endpoint;
pub mod private_endpoint_connection;
pub mod private_link_service;
pub mod record_set;
mod spec;
pub mod subnet;
pub mod virtual_network;
pub mod virtual_network_link;

pub use spec::{KindSpec, ListScope, Rules};

use crate::arm::id::ResourceId;

/// The resource provider of all network resources, private DNS among them.
const NETWORK: &str = "Microsoft.Network";
/// The api-version of network resources but private DNS.
const NETWORK_API: &str = "2024-05-01";
/// The longest name of most network resources, in characters
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules>).
const MAX_NAME: usize = 80;

macro_rules! kinds {
    ($($kind:ident => $file:ident,)+) => {
        /// The kinds of ARM resources that Hyperlink reads or writes.
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

            /// What has to be known of the kind outside its file.
            pub fn spec(self) -> &'static KindSpec {
                match self {
                    $(Kind::$kind => &$file::SPEC,)+
                }
            }
        }
    };
}

kinds! {
    LoadBalancer => load_balancer,
    VirtualNetwork => virtual_network,
    Subnet => subnet,
    PrivateLinkService => private_link_service,
    PrivateEndpointConnection => private_endpoint_connection,
    PrivateEndpoint => private_endpoint,
    PrivateDnsZone => private_dns_zone,
    VirtualNetworkLink => virtual_network_link,
    RecordSet => record_set,
}

impl Kind {
    /// The metric label and the word for logs and messages.
    pub fn label(self) -> &'static str {
        self.spec().label
    }

    /// The path that lists all resources of this kind in a parent.
    pub fn all_in(self, parent: &ResourceId) -> String {
        let spec = self.spec();
        let own = spec.path.last().copied().unwrap_or_default();
        format!("{parent}/{}", spec.all_in_parent.unwrap_or(own))
    }

    /// The time between two reads of a resource of this kind while it is in progress and Azure gives no time.
    pub fn pace(self) -> Duration {
        self.spec().rules.pace
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::Kind;
    use hyperlink_engine::kind_rules::Resync;

    #[test]
    fn every_kind_has_a_label_and_a_type_of_its_own() {
        let of_each = |property: fn(&KindSpec) -> String| {
            let all = Kind::ALL.iter().map(|kind| property(kind.spec()));
            all.collect::<BTreeSet<String>>().len()
        };
        assert_eq!(of_each(|spec| spec.label.to_owned()), Kind::ALL.len());
        assert_eq!(of_each(|spec| spec.path.join("/")), Kind::ALL.len());
    }

    #[test]
    fn every_kind_has_what_a_call_needs() {
        for spec in Kind::ALL.map(Kind::spec) {
            for text in [spec.label, spec.provider, spec.api_version, spec.service] {
                assert!(!text.is_empty(), "{spec:?}");
            }
            assert!(!spec.path.is_empty(), "{spec:?}");
        }
    }

    #[test]
    fn only_kinds_with_a_parent_have_fields_about_one() {
        for spec in Kind::ALL
            .map(Kind::spec)
            .into_iter()
            .filter(|spec| spec.path.len() == 1)
        {
            assert!(
                !spec.rules.shown_by_parent && spec.rules.queued_in_parent.is_none() && !spec.rules.put_changes_parent,
                "{spec:?}"
            );
            assert!(
                spec.rules.count_in_parent.is_none() && spec.rules.resync == Resync::Resource,
                "{spec:?}"
            );
            assert!(
                spec.rules.list.as_ref().is_none_or(|list| list.of != ListScope::Parent),
                "{spec:?}"
            );
        }
    }
}
