//! The CustomResourceDefinitions: the rules that several fields share, and the whole as YAML.
//!
//! `kube` derives them from the Rust types; `corrected` writes as Kubernetes does what schemars writes differently.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube::CustomResourceExt;
use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::{AWSEndpointService, AzurePrivateLinkService};

const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";

/// The field may be set once, and then never changed.
pub(super) fn immutable() -> Rule {
    Rule::new("self == oldSelf").message("cannot be changed once set")
}

/// An IPv4 or IPv6 address.
pub(super) fn ip() -> Rule {
    Rule::new("isIP(self)").message("must be an IPv4 or IPv6 address")
}

/// A UUID, as subscriptions have.
pub(super) fn uuid() -> Rule {
    Rule::new(format!("self.matches('^{UUID}$')")).message("must be a UUID")
}

/// A DNS name without a dot at the end.
pub(super) fn dns_name() -> Rule {
    const LABEL: &str = "[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?";
    Rule::new(format!(r"self.matches('^{LABEL}(\\.{LABEL})*$')")).message("must be a DNS name")
}

/// An ARM id of `Microsoft.Network/<types>`; `types` is a regular expression.
pub(super) fn arm_id(types: &str) -> Rule {
    network_id("[^/]+", types)
}

/// An ARM id of a load balancer, whose subscription must be a UUID.
pub(super) fn load_balancer_id() -> Rule {
    network_id(UUID, "loadBalancers")
}

fn network_id(subscription: &str, types: &str) -> Rule {
    let rule = format!(
        r"self.matches('^/subscriptions/{subscription}/resourceGroups/[^/]+/providers/Microsoft\\.Network/{types}/[^/]+$')"
    );
    let named = types.replace("/[^/]+/", "/…/");
    Rule::new(rule).message(format!("must be an ARM id of Microsoft.Network/{named}").as_str())
}

/// `spec.additionalAllowedSubscriptions`: schemars has no rules for the items of a list.
pub(super) fn subscriptions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 50,
        "x-kubernetes-list-type": "set",
        "items": {
            "description": "A subscription's UUID.",
            "type": "string",
            "minLength": 36,
            "maxLength": 36,
            "x-kubernetes-validations": [uuid()],
        },
    })
}

/// Key or value of a tag that every service of AWS takes.
pub(super) fn tag_text() -> Rule {
    Rule::new("self.matches('^[0-9A-Za-z_.:/=+@-]+$')").message("must be of letters, digits and _.:/=+-@")
}

/// `spec.subnetIDs`, for the same reason as [`subscriptions`].
pub(super) fn subnet_ids(_: &mut SchemaGenerator) -> Schema {
    ten_texts("A subnet's id.", 63)
}

/// `status.dnsNames`, for the same reason as [`subscriptions`].
pub(super) fn short_texts(_: &mut SchemaGenerator) -> Schema {
    ten_texts("A DNS name.", 253)
}

fn ten_texts(description: &str, max_length: u32) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 10,
        "items": {"description": description, "type": "string", "maxLength": max_length},
    })
}

/// `status.conditions`, of which there may be none.
pub(super) fn optional_conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = conditions(generator);
    schema.remove("minItems");
    schema
}

/// `status.conditions`: the standard condition, whose Rust type carries none of its rules.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 10,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One aspect of the state.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "What a person should know.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The metadata.generation that this was decided from.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why, as one CamelCase word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether it is so.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Which aspect.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// The definition of AzurePrivateLinkService to install. Not the trait's `crd`, which lets optional fields be null and
/// leaves out the three fields that every object has.
pub fn crd() -> CustomResourceDefinition {
    corrected(AzurePrivateLinkService::crd())
}

/// The definition of AWSEndpointService to install, as [`crd`]. HyperShift's requires no spec.
pub fn aws_crd() -> CustomResourceDefinition {
    let mut crd = corrected(AWSEndpointService::crd());
    roots(&mut crd).for_each(|root| root.required = None);
    crd
}

/// The schemas of whole objects.
fn roots(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let schemas = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut())
}

fn corrected(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for root in roots(&mut crd) {
        refuse_null(root);
        root.title = None;
        let properties = root.properties.get_or_insert_default();
        for (name, kind) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            let of_kind = JSONSchemaProps {
                type_: Some(kind.into()),
                ..Default::default()
            };
            properties.insert(name.into(), of_kind);
        }
    }
    crd
}

/// [`crd`] as YAML.
pub fn crd_yaml() -> Result<String, serde_saphyr::ser_error::Error> {
    yaml(&crd())
}

/// [`aws_crd`] as YAML.
pub fn aws_crd_yaml() -> Result<String, serde_saphyr::ser_error::Error> {
    yaml(&aws_crd())
}

fn yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser_error::Error> {
    // Long rules and descriptions stay on one line, where a search finds them.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(crd, options)
}

/// Removes `nullable`: schemars lets every `Option` be null; Kubernetes' own types never do.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema
        .properties
        .iter_mut()
        .flatten()
        .for_each(|(_, property)| refuse_null(property));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_as_reviewed() {
        insta::assert_snapshot!(crd_yaml().unwrap());
    }

    #[test]
    fn the_definition_for_aws_is_as_reviewed() {
        insta::assert_snapshot!(aws_crd_yaml().unwrap());
    }

    #[test]
    fn definition_is_the_same_as_yaml() {
        let read: serde_json::Value = serde_saphyr::from_str(&crd_yaml().unwrap()).unwrap();
        assert_eq!(read, serde_json::to_value(crd()).unwrap());
    }

    #[test]
    fn no_field_may_be_null() {
        for yaml in [crd_yaml(), aws_crd_yaml()] {
            let yaml = yaml.unwrap();
            assert!(!yaml.contains("nullable"), "{yaml}");
        }
    }
}
