//! `AWSEndpointService`: the custom resource of a private path on AWS that both roles share, with every rule that the
//! API server enforces for it.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats the struct, `pub` included, inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Deserializer, Serialize};

use super::crd::{optional_conditions, short_texts, subnet_ids, tag_text};
use super::lenient::{good_items, or_default};
use super::markers::aws::{CPO_FINALIZER, HO_FINALIZER};
use super::role::RolePart;
use super::{ConditionType, Role};

/// What the private path of one Service of a control plane is made from.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Default, Serialize)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "AWSEndpointService",
    namespaced,
    status = "AWSEndpointServiceStatus",
    doc = "A private path on AWS to a Service of a hosted control plane.",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct AWSEndpointServiceSpec {
    /// Name of the network load balancer of the Service. Set from the Service, not by users.
    #[schemars(length(max = 255))]
    pub network_load_balancer_name: String,

    /// Subnets of the guest from which workers reach the endpoint. Role `ho` sets them.
    #[serde(rename = "subnetIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "subnet_ids")]
    pub subnet_ids: Vec<String>,

    /// Tags for all that is created in AWS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 25))]
    pub resource_tags: Vec<ResourceTag>,
}

/// The spec as it is read: the API server admits objects without one.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReadSpec {
    #[serde(deserialize_with = "or_default")]
    network_load_balancer_name: String,
    #[serde(rename = "subnetIDs", deserialize_with = "good_items")]
    subnet_ids: Vec<String>,
    #[serde(deserialize_with = "good_items")]
    resource_tags: Vec<ResourceTag>,
}

impl<'de> Deserialize<'de> for AWSEndpointServiceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read: ReadSpec = Option::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self {
            network_load_balancer_name: read.network_load_balancer_name,
            subnet_ids: read.subnet_ids,
            resource_tags: read.resource_tags,
        })
    }
}

/// A tag of a resource in AWS.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTag {
    /// The key: letters, digits and `_.:/=+-@`.
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = tag_text())]
    pub key: String,
    /// The value: letters, digits and `_.:/=+-@`.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = tag_text())]
    pub value: String,
}

impl AWSEndpointService {
    /// Its conditions, in the order of the path. None sums up the other.
    pub const CONDITIONS: [ConditionType; 2] = ConditionType::OF_AWS;

    /// What each role writes.
    pub const PARTS: [RolePart; 2] = [
        RolePart {
            role: Role::Ho,
            finalizer: HO_FINALIZER,
            conditions: &[ConditionType::AWSEndpointServiceAvailable],
            summary: None,
            status_fields: &["endpointServiceName"],
            read_fields: &[],
            deleted_resources: &["endpointServiceName"],
            abandoned: "; an endpoint service that is abandoned still forwards",
        },
        RolePart {
            role: Role::Cpo,
            finalizer: CPO_FINALIZER,
            conditions: &[ConditionType::AWSEndpointAvailable],
            summary: None,
            status_fields: &["endpointID", "securityGroupID", "dnsNames", "dnsZoneID"],
            read_fields: &["endpointServiceName"],
            // The zone is not deleted, and the records have no ids.
            deleted_resources: &["endpointID", "securityGroupID"],
            abandoned: "",
        },
    ];
}

/// What was observed in AWS. Never what is only intended.
#[derive(KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AWSEndpointServiceStatus {
    /// Name by which the endpoint service is reached: `com.amazonaws.vpce.<region>.vpce-svc-<hex digits>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub endpoint_service_name: Option<String>,

    /// Id of the endpoint in the guest's VPC.
    #[serde(rename = "endpointID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub endpoint_id: Option<String>,

    /// Id of the endpoint's security group.
    #[serde(rename = "securityGroupID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub security_group_id: Option<String>,

    /// Names of the records in the private hosted zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "good_items")]
    #[schemars(schema_with = "short_texts")]
    pub dns_names: Vec<String>,

    /// Id of the private hosted zone.
    #[serde(rename = "dnsZoneID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub dns_zone_id: Option<String>,

    /// State of the path, by type.
    // The API server admits times that cannot be parsed; a condition that cannot be read is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "good_items")]
    #[schemars(schema_with = "optional_conditions")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The definition's properties of the spec or of the status.
    fn defined(part: &str) -> Value {
        let definition = json!(crate::api::aws_crd());
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]["properties"].clone()
    }

    #[test]
    fn every_field_has_the_name_that_the_definition_gives_it() {
        let text = || Some("x".to_owned());
        let spec = AWSEndpointServiceSpec {
            network_load_balancer_name: "x".into(),
            subnet_ids: vec!["x".into()],
            resource_tags: vec![ResourceTag::default()],
        };
        let status = AWSEndpointServiceStatus {
            endpoint_service_name: text(),
            endpoint_id: text(),
            security_group_id: text(),
            dns_names: vec!["x".into()],
            dns_zone_id: text(),
            conditions: serde_json::from_value(json!([{"type": "x", "status": "True", "reason": "x", "message": "",
                "lastTransitionTime": "2026-08-22T10:00:00Z"}]))
            .unwrap(),
        };
        for (part, value) in [("spec", json!(spec)), ("status", json!(status))] {
            let written: Vec<_> = value.as_object().unwrap().keys().collect();
            let defined = defined(part);
            let defined: Vec<_> = defined.as_object().unwrap().keys().collect();
            assert_eq!(written, defined);
        }
    }

    #[test]
    fn an_absent_field_is_not_written() {
        assert_eq!(json!(AWSEndpointServiceStatus::default()), json!({}));
        let written = json!(AWSEndpointServiceSpec::default());
        assert_eq!(written, json!({"networkLoadBalancerName": ""}));
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let condition = |kind: &str, time: &str| {
            json!({"type": kind, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": time})
        };
        let cr: AWSEndpointService = serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": "private-router"},
            "spec": {"networkLoadBalancerName": "a1b2", "subnetIDs": [7, "subnet-1"],
                "resourceTags": [{"key": "team"}, {"key": "team", "value": "x"}]},
            "status": {"dnsNames": null, "conditions": [
                condition("First", "2026-08-22T10:00:00+99:99"), condition("Second", "2026-08-22T10:00:00Z")]}}))
        .unwrap();
        assert_eq!(cr.spec.subnet_ids, ["subnet-1"]);
        assert_eq!(cr.spec.resource_tags.len(), 1);
        let status = cr.status.unwrap();
        assert!(status.dns_names.is_empty());
        let kinds: Vec<_> = status.conditions.iter().map(|one| one.type_.as_str()).collect();
        assert_eq!(kinds, ["Second"]);
    }

    #[test]
    fn object_without_a_spec_is_read() {
        let cr: AWSEndpointService = serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": "private-router"}}))
        .unwrap();
        assert_eq!((cr.metadata.name.as_deref(), cr.status), (Some("private-router"), None));
        assert_eq!(cr.spec, AWSEndpointServiceSpec::default());
    }

    #[test]
    fn every_condition_and_field_has_one_owner() {
        let parts = &AWSEndpointService::PARTS;
        for kind in AWSEndpointService::CONDITIONS {
            let owners = parts.iter().filter(|part| part.conditions.contains(&kind));
            assert_eq!(owners.count(), 1, "{kind:?}");
        }
        let mut written: Vec<&str> = parts.iter().flat_map(|part| part.status_fields).copied().collect();
        written.extend(["conditions"]);
        written.sort_unstable();
        let defined = defined("status");
        assert_eq!(written, defined.as_object().unwrap().keys().collect::<Vec<_>>());
        assert_eq!(parts.each_ref().map(|part| part.role), [Role::Ho, Role::Cpo]);
    }

    #[test]
    fn field_that_names_what_is_deleted_is_one_text() {
        let defined = defined("status");
        for part in AWSEndpointService::PARTS {
            for field in part.deleted_resources {
                assert!(part.status_fields.contains(field), "{field}");
                assert_eq!(defined[field]["type"], "string", "{field}");
            }
        }
    }

    #[test]
    fn watches_keep_the_finalizer_of_every_role() {
        let mut parts = AWSEndpointService::PARTS.iter();
        assert!(parts.all(|part| crate::api::prune::is_known_finalizer(part.finalizer)));
    }
}
