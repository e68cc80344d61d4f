//! HyperShift's custom resource on Azure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::CustomResource;
use crate::api::markers::{READ_ANNOTATIONS, SERVICES};
use crate::api::role::RolePart;
use crate::api::{AzurePrivateLinkService, ConditionType, Platform, Reason, Role};
use crate::azure::cloud::Arm;
use crate::hypershift::azure::summary::summary;
use crate::hypershift::conditions::{self, NewCondition};

impl CustomResource for AzurePrivateLinkService {
    type Cloud = Arm;

    const PLATFORM: Platform = Platform::Azure;
    const PARTS: &'static [RolePart] = &Self::PARTS;
    const ERROR: Reason = Reason::AzureError;
    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;
    const READ_ANNOTATIONS: &'static [&'static str] = &READ_ANNOTATIONS;

    fn conditions(&self) -> &[Condition] {
        let status = self.status.as_ref();
        status.map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    fn status_fields(&self) -> Value {
        serde_json::to_value(&self.status).unwrap_or_default()
    }

    fn condition_of(field: &str) -> ConditionType {
        match field {
            "internalLoadBalancerID" => ConditionType::AzureInternalLoadBalancerAvailable,
            "privateLinkServiceID" | "privateLinkServiceAlias" => ConditionType::AzurePLSCreated,
            "privateEndpointID" | "privateEndpointIP" => ConditionType::AzurePrivateEndpointAvailable,
            _ => ConditionType::AzurePrivateDNSAvailable,
        }
    }

    fn summary(&self, own: &[NewCondition]) -> Option<NewCondition> {
        Some(summary(self.conditions(), own, self.metadata.generation))
    }

    fn is_locked_for_others(&self, role: Role) -> bool {
        role == Role::Ho && guest_is_locked(self)
    }
}

/// Whether the CPO role reports that a lock prevents the deletion of its resources. It cannot report on the
/// HostedCluster, and whatever else it reports may be forged.
pub fn guest_is_locked(cr: &AzurePrivateLinkService) -> bool {
    if cr.metadata.deletion_timestamp.is_none() {
        return false;
    }
    let guest =
        AzurePrivateLinkService::conditions_of(Role::Cpo).filter_map(|kind| conditions::get(cr.conditions(), kind));
    let mut reasons = guest.map(|condition| condition.reason.as_str());
    reasons.any(|reason| reason == Reason::ScopeLocked.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::samples::cr;

    #[test]
    fn lock_on_the_guests_side_is_known_only_while_it_is_deleted() {
        let is_locked = |kind: &str, deleted: bool| {
            let condition = json!({"type": kind, "status": "False", "reason": "ScopeLocked", "message": "forged",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let mut cr = cr(json!({"conditions": [condition]}), json!({}));
            let when = deleted.then_some("2026-01-01T00:00:00Z");
            cr.metadata.deletion_timestamp = serde_json::from_value(json!(when)).unwrap();
            guest_is_locked(&cr)
        };
        assert!(is_locked("AzurePrivateDNSAvailable", true));
        assert!(!is_locked("AzurePrivateDNSAvailable", false) && !is_locked("AzurePLSCreated", true));
    }
}
