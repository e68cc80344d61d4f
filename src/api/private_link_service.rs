//! `AzurePrivateLinkService`: the custom resource that both roles share, with every rule that the API server enforces
//! for it.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats the struct, `pub` included, inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::crd::{arm_id, conditions, dns_name, immutable, ip, subscriptions, uuid};
use super::lenient::good_items;
use super::markers::{CPO_FINALIZER, HO_FINALIZER};
use super::role::RolePart;
use super::{ConditionType, Role};

/// What the private path of one Service of a control plane is made from.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "AzurePrivateLinkService",
    namespaced,
    shortname = "azpls",
    status = "AzurePrivateLinkServiceStatus",
    doc = "A private path on Azure to a Service of a hosted control plane.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "PLS Alias", "type": "string", "jsonPath": ".status.privateLinkServiceAlias",
        "description": "Alias by which the Private Link Service is reached"}"#,
    printcolumn = r#"{"name": "Endpoint IP", "type": "string", "jsonPath": ".status.privateEndpointIP",
        "description": "Address of the Private Endpoint"}"#,
    printcolumn = r#"{"name": "Available", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"AzurePrivateLinkServiceAvailable\")].status",
        "description": "Whether the whole path is there"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AzurePrivateLinkServiceSpec {
    /// Address of the internal load balancer's frontend. Set from the Service, not by users.
    #[serde(rename = "loadBalancerIP", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    #[x_kube(validation = ip())]
    pub load_balancer_ip: Option<String>,

    /// The guest's Azure subscription (a UUID).
    #[serde(rename = "subscriptionID")]
    #[schemars(length(min = 36, max = 36))]
    #[x_kube(validation = immutable(), validation = uuid())]
    pub subscription_id: String,

    /// The guest's resource group: letters, digits and `-_.()`, without a dot at the end.
    #[schemars(length(min = 1, max = 90))]
    #[x_kube(
        validation = immutable(),
        validation = Rule::new("self.matches(r'^[-a-zA-Z0-9_.()]+$') && !self.endsWith('.')")
            .message("must be a resource group name: letters, digits and -_.(), no dot at the end")
    )]
    pub resource_group_name: String,

    /// The region, as in `eastus`.
    #[schemars(length(min = 1, max = 50))]
    #[x_kube(
        validation = immutable(),
        validation = Rule::new("self.matches('^[a-z0-9]+$')")
            .message("must be a region's short name in lower case, as in eastus")
    )]
    pub location: String,

    /// ARM id of the subnet from which the Private Link Service takes its NAT addresses. If absent,
    /// a subnet is made in the load balancer's VNet.
    #[serde(rename = "natSubnetID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 355))]
    #[x_kube(validation = immutable(), validation = arm_id("virtualNetworks/[^/]+/subnets"))]
    pub nat_subnet_id: Option<String>,

    /// Subscriptions that may connect besides the guest's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "subscriptions")]
    pub additional_allowed_subscriptions: Option<Vec<String>>,

    /// ARM id of the guest's subnet that gets the Private Endpoint.
    #[serde(rename = "guestSubnetID")]
    #[schemars(length(min = 1, max = 355))]
    #[x_kube(validation = immutable(), validation = arm_id("virtualNetworks/[^/]+/subnets"))]
    pub guest_subnet_id: String,

    /// ARM id of the guest's VNet, to which the private DNS zones are linked.
    #[serde(rename = "guestVNetID")]
    #[schemars(length(min = 1, max = 355))]
    #[x_kube(validation = immutable(), validation = arm_id("virtualNetworks"))]
    pub guest_vnet_id: String,

    /// Domain of the cluster's public names; a private zone of that name is made for the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = immutable(), validation = dns_name())]
    pub base_domain: Option<String>,
}

impl AzurePrivateLinkService {
    /// Its conditions, in the order of the path; the summary last.
    pub const CONDITIONS: [ConditionType; 5] = ConditionType::OF_AZURE;

    /// What each role writes.
    pub const PARTS: [RolePart; 2] = [
        RolePart {
            role: Role::Ho,
            finalizer: HO_FINALIZER,
            conditions: &[
                ConditionType::AzureInternalLoadBalancerAvailable,
                ConditionType::AzurePLSCreated,
            ],
            summary: None,
            status_fields: &[
                "internalLoadBalancerID",
                "privateLinkServiceID",
                "privateLinkServiceAlias",
            ],
            read_fields: &[],
            deleted_resources: &["privateLinkServiceID"],
            abandoned: "; a Private Link Service that is abandoned still forwards",
        },
        RolePart {
            role: Role::Cpo,
            finalizer: CPO_FINALIZER,
            conditions: &[
                ConditionType::AzurePrivateEndpointAvailable,
                ConditionType::AzurePrivateDNSAvailable,
                ConditionType::AzurePrivateLinkServiceAvailable,
            ],
            summary: Some(ConditionType::AzurePrivateLinkServiceAvailable),
            status_fields: &[
                "privateEndpointID",
                "privateEndpointIP",
                "privateDNSZoneID",
                "dnsZoneName",
                "baseDomainDNSZoneID",
            ],
            read_fields: &[
                "internalLoadBalancerID",
                "privateLinkServiceID",
                "privateLinkServiceAlias",
            ],
            deleted_resources: &["privateEndpointID", "privateDNSZoneID", "baseDomainDNSZoneID"],
            abandoned: "",
        },
    ];
}

/// What was seen in Azure. Never what is only intended.
#[derive(KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct AzurePrivateLinkServiceStatus {
    /// ARM id of the internal load balancer.
    #[serde(rename = "internalLoadBalancerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 284))]
    #[x_kube(validation = super::crd::load_balancer_id())]
    pub internal_load_balancer_id: Option<String>,

    /// ARM id of the Private Link Service.
    #[serde(rename = "privateLinkServiceID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 270))]
    #[x_kube(validation = arm_id("privateLinkServices"))]
    pub private_link_service_id: Option<String>,

    /// `<name>.<guid>.<region>.azure.privatelinkservice`, given by Azure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 170))]
    #[x_kube(validation = Rule::new(
        r"self.matches('^[^.]+\\.[0-9a-fA-F-]+\\.[a-z0-9]+\\.azure\\.privatelinkservice$')"
    ).message("must be <name>.<guid>.<region>.azure.privatelinkservice"))]
    pub private_link_service_alias: Option<String>,

    /// ARM id of the Private Endpoint.
    #[serde(rename = "privateEndpointID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 267))]
    #[x_kube(validation = arm_id("privateEndpoints"))]
    pub private_endpoint_id: Option<String>,

    /// Address of the Private Endpoint.
    #[serde(rename = "privateEndpointIP", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    #[x_kube(validation = ip())]
    pub private_endpoint_ip: Option<String>,

    /// ARM id of the internal zone.
    #[serde(rename = "privateDNSZoneID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 265))]
    #[x_kube(validation = arm_id("privateDnsZones"))]
    pub private_dns_zone_id: Option<String>,

    /// Name of the internal zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = dns_name())]
    pub dns_zone_name: Option<String>,

    /// ARM id of the base domain's zone.
    #[serde(rename = "baseDomainDNSZoneID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 265))]
    #[x_kube(validation = arm_id("privateDnsZones"))]
    pub base_domain_dns_zone_id: Option<String>,

    /// State of the path, by type.
    // The API server admits times that cannot be parsed; a condition that cannot be read is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "good_items")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_has_the_name_that_the_definition_gives_it() {
        let text = || Some("x".to_owned());
        let spec = AzurePrivateLinkServiceSpec {
            load_balancer_ip: text(),
            nat_subnet_id: text(),
            additional_allowed_subscriptions: Some(vec!["x".into()]),
            base_domain: text(),
            ..Default::default()
        };
        let condition = Condition {
            type_: "x".into(),
            status: "True".into(),
            reason: "x".into(),
            message: "x".into(),
            observed_generation: Some(1),
            last_transition_time: serde_json::from_value(json!("2026-08-22T10:00:00Z")).unwrap(),
        };
        let status = AzurePrivateLinkServiceStatus {
            internal_load_balancer_id: text(),
            private_link_service_id: text(),
            private_link_service_alias: text(),
            private_endpoint_id: text(),
            private_endpoint_ip: text(),
            private_dns_zone_id: text(),
            dns_zone_name: text(),
            base_domain_dns_zone_id: text(),
            conditions: vec![condition],
        };
        let mut crd = super::super::crd();
        let root = crd.spec.versions.remove(0).schema.unwrap().open_api_v3_schema.unwrap();
        let properties = root.properties.unwrap();
        for (part, value) in [("spec", json!(spec)), ("status", json!(status))] {
            let written: Vec<_> = value.as_object().unwrap().keys().collect();
            let defined: Vec<_> = properties[part].properties.as_ref().unwrap().keys().collect();
            assert_eq!(written, defined);
        }
    }

    #[test]
    fn an_absent_field_is_not_written() {
        let written = json!(AzurePrivateLinkServiceStatus::default());
        assert_eq!(written, json!({}));
        let written = json!(AzurePrivateLinkServiceSpec::default());
        let keys: Vec<_> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "guestSubnetID",
                "guestVNetID",
                "location",
                "resourceGroupName",
                "subscriptionID"
            ]
        );
    }

    #[test]
    fn a_condition_that_cannot_be_read_hides_no_other() {
        let condition = |kind: &str, time: &str| {
            json!({"type": kind, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": time})
        };
        let status: AzurePrivateLinkServiceStatus = serde_json::from_value(json!({
            "dnsZoneName": "example.hypershift.local",
            "conditions": [
                condition("First", "2026-08-22T10:00:00+99:99"),
                condition("Second", "2026-08-22T10:00:00Z"),
            ],
        }))
        .unwrap();
        assert_eq!(status.dns_zone_name.as_deref(), Some("example.hypershift.local"));
        let [readable] = status.conditions.as_slice() else {
            panic!("{:?}", status.conditions)
        };
        assert_eq!(readable.type_, "Second");
    }

    #[test]
    fn every_condition_has_one_owner() {
        for kind in AzurePrivateLinkService::CONDITIONS {
            let owners = AzurePrivateLinkService::PARTS
                .iter()
                .filter(|part| part.conditions.contains(&kind));
            assert_eq!(owners.count(), 1, "{kind:?}");
        }
        assert_eq!(
            AzurePrivateLinkService::PARTS.map(|part| part.role),
            [Role::Ho, Role::Cpo]
        );
    }

    #[test]
    fn watches_keep_the_finalizer_of_every_role() {
        let mut parts = AzurePrivateLinkService::PARTS.iter();
        assert!(parts.all(|part| crate::api::prune::is_known_finalizer(part.finalizer)));
    }

    #[test]
    fn fields_of_every_role_are_in_the_definition() {
        let definition = crate::api::crd_yaml().unwrap();
        for part in AzurePrivateLinkService::PARTS {
            for field in part.status_fields {
                assert!(definition.contains(&format!(" {field}:\n")), "{field}");
            }
            let mut ids = part.deleted_resources.iter();
            assert!(
                ids.all(|id| id.ends_with("ID") && part.status_fields.contains(id)),
                "{part:?}"
            );
        }
    }
}
