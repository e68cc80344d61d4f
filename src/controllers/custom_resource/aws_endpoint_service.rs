//! HyperShift's custom resource on AWS.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::CustomResource;
use crate::api::markers::aws::{READ_ANNOTATIONS, SERVICES};
use crate::api::role::RolePart;
use crate::api::{AWSEndpointService, ConditionType, Platform, Reason};
use crate::aws::cloud::Aws;
use crate::hypershift::conditions::NewCondition;

impl CustomResource for AWSEndpointService {
    type Cloud = Aws;

    const PLATFORM: Platform = Platform::Aws;
    const PARTS: &'static [RolePart] = &Self::PARTS;
    const ERROR: Reason = Reason::AWSError;
    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;
    const READ_ANNOTATIONS: &'static [&'static str] = &READ_ANNOTATIONS;

    fn conditions(&self) -> &[Condition] {
        let status = self.status.as_ref();
        status.map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    fn status_fields(&self) -> Value {
        serde_json::to_value(&self.status).unwrap_or_default()
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
