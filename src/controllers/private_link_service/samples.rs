//! Samples for the tests of the HO role: its settings, and the inputs of a cluster on its own.

use super::connecting::Connecting;
use super::frontend::{FrontendMatch, ServiceFacts};
use super::nat_prefix::NatSubnetRules;
use super::plan::PrivateLinkServiceInputs;
use super::settings::{ScopedSettings, Settings};
use crate::azure::arm::id::SubscriptionId;
use crate::controllers::samples::{MANAGEMENT, identity};
use crate::hypershift::azure::management_scopes::{ManagementScope, ManagementScopes};
use crate::hypershift::identity::DeletedCluster;

pub(super) fn settings() -> Settings {
    Settings {
        cloud: "AzurePublicCloud",
        management_cluster: "5e1f0a3c-7b2d-4c68-9e14-2a6d8f0b4c35".into(),
        scope: management_scope("mgmt"),
        other_scopes: Vec::new(),
        nat: NatSubnetRules {
            prefix_length: 28,
            pool: None,
        },
        nat_subnet: None,
        frontend_match: FrontendMatch::Name,
        also_manage: Vec::new(),
    }
}

/// Settings of the only management scope.
pub(super) fn scoped(settings: Settings) -> ScopedSettings {
    let scopes = ManagementScopes::default().with_default(settings.scope.clone());
    ScopedSettings::new(scopes, |_, _| settings.clone()).unwrap()
}

/// The management scope that a resource group is.
pub(super) fn management_scope(group: &str) -> ManagementScope {
    ManagementScope {
        subscription: SubscriptionId::parse(MANAGEMENT).unwrap(),
        resource_group: group.to_owned(),
    }
}

/// The inputs of a proven cluster without a Service, siblings or other clusters.
pub(super) fn alone() -> PrivateLinkServiceInputs {
    PrivateLinkServiceInputs {
        identity: Ok(identity()),
        own: Some(identity()),
        management_scope: Some(management_scope("mgmt")),
        hosted_cluster: None,
        paused: None,
        paused_until: None,
        adopt_from: None,
        connecting: Connecting::default(),
        service: None,
        address_claimed: false,
        sibling_stays: false,
        sibling_deleting: false,
        sibling_made_subnet: false,
        deleted_cluster: DeletedCluster::Unknown,
        shown_subnet: None,
        given_subnets: Vec::new(),
        subnets_of_older: Vec::new(),
    }
}

/// The UID of the cluster's Service, after which the cloud provider names its frontend.
pub(super) const SERVICE_UID: &str = "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11";

/// The inputs of a proven cluster with its Service.
pub(super) fn inputs() -> PrivateLinkServiceInputs {
    PrivateLinkServiceInputs {
        service: Some(ServiceFacts {
            uid: SERVICE_UID.into(),
            owned: true,
            addresses: vec!["10.224.0.4".parse().unwrap()],
        }),
        deleted_cluster: DeletedCluster::Of(identity()),
        ..alone()
    }
}
