//! HyperShift's custom resource on AWS.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde_json::Value;

use super::CustomResource;
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::{READ_ANNOTATIONS, SERVICES};
use crate::api::role::RolePart;
use crate::api::{AWSEndpointService, ConditionType, Platform, Reason, Role};
use crate::aws::cloud::Aws;
use crate::aws::slot::Slot;
use crate::hypershift::aws::ids::id_in_status;
use crate::hypershift::conditions::NewCondition;

impl CustomResource for AWSEndpointService {
    type Cloud = Aws;

    const PLATFORM: Platform = Platform::Aws;
    const PARTS: &'static [RolePart] = &Self::PARTS;
    const ERROR: Reason = Reason::AWSError;
    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;
    const READ_ANNOTATIONS: &'static [&'static str] = &READ_ANNOTATIONS;

    /// HyperShift takes the finalizer of role `cpo` away when it believes that nobody can delete anything any more.
    /// What is recorded is deleted all the same, as long as the custom resource is there.
    fn is_torn_down_by(&self, role: Role) -> bool {
        self.is_held_by(role) || (role == Role::Cpo && self.annotations().contains_key(CPO_INTENT))
    }

    fn conditions(&self) -> &[Condition] {
        let status = self.status.as_ref();
        status.map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    fn status_fields(&self) -> Value {
        serde_json::to_value(&self.status).unwrap_or_default()
    }

    fn named(&self, slot: &Slot) -> String {
        id_in_status(self, slot).map_or_else(|| slot.to_string(), |id| format!("{id} {slot}"))
    }

    fn condition_generation(&self) -> Option<i64> {
        None
    }

    fn condition_of(field: &str) -> ConditionType {
        match field {
            "endpointServiceName" => ConditionType::AWSEndpointServiceAvailable,
            _ => ConditionType::AWSEndpointAvailable,
        }
    }

    /// None: HyperShift sums up both on the HostedCluster only.
    fn summary(&self, _: &[NewCondition]) -> Option<NewCondition> {
        None
    }
}
