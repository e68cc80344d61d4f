//! What watches keep of an object: the fields and annotations that are read, each of a bounded size. Otherwise whoever
//! may write an object could make this process keep megabytes for each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use kube::Resource;

use super::hypershift::{AzurePlatform, Platform, PlatformType};
use super::markers::{
    EXTERNAL_HOST_ANNOTATION, EXTERNAL_LABEL, HCP_FINALIZER, INTERNAL_LOAD_BALANCER_ANNOTATION, READ_ANNOTATIONS,
    READ_CLUSTER_ANNOTATIONS,
};
use super::{AWSEndpointService, AzurePrivateLinkService, ConditionType, HostedCluster, HostedControlPlane, markers};
use crate::runtime::prune::Prune;

mod aws;
mod capi;

pub use capi::prune_workload;

/// The most bytes that are kept of an annotation. An intent with its ids has 2000 bytes, with the longest names 5000.
const ANNOTATION: usize = 8192;
/// The most bytes that are kept of a condition's reason or message.
const MESSAGE: usize = 1024;
/// The most bytes that are kept of any other text; names in Kubernetes have 253 at most.
const TEXT: usize = 256;
/// The most owners that are kept: HyperShift sets one.
const OWNERS: usize = 4;
/// The most labels that are kept of a HostedCluster; Kubernetes bounds their names and values.
const LABELS: usize = 32;

impl Prune for AzurePrivateLinkService {
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &READ_ANNOTATIONS, &[]);
        if let Some(status) = &mut self.status {
            prune_conditions(&mut status.conditions, &Self::CONDITIONS);
        }
    }
}

impl Prune for HostedCluster {
    fn prune(&mut self) {
        let labels = self.metadata.labels.take();
        prune_metadata(&mut self.metadata, &READ_CLUSTER_ANNOTATIONS, &[]);
        // The operator's file may name any label.
        self.metadata.labels = labels.map(|labels| labels.into_iter().take(LABELS).collect());
    }
}

impl Prune for HostedControlPlane {
    /// Of a watched object only the metadata is used, and what shows whether the process serves it: the subscription,
    /// or access and role. The spec is read from the API server.
    fn prune(&mut self) {
        prune_control_plane(&mut self.metadata);
        let Platform { kind, azure, aws } = std::mem::take(&mut self.spec).platform;
        if kind == Some(PlatformType::Aws) {
            self.spec.platform.kind = kind;
            self.spec.platform.aws = aws.map(aws::platform);
        }
        let subscription_id = azure
            .and_then(|azure| azure.subscription_id)
            .filter(|id| id.len() <= TEXT);
        self.spec.platform.azure = subscription_id.map(|id| AzurePlatform {
            subscription_id: Some(id),
            ..AzurePlatform::default()
        });
    }
}

impl Prune for Service {
    fn prune(&mut self) {
        let annotations = [EXTERNAL_HOST_ANNOTATION, INTERNAL_LOAD_BALANCER_ANNOTATION];
        prune_metadata(
            &mut self.metadata,
            &annotations,
            &[EXTERNAL_LABEL, markers::aws::EXTERNAL_LABEL],
        );
        self.status = aws::host_names(self.status.take());
        self.spec = self.spec.take().map(|spec| ServiceSpec {
            type_: spec.type_,
            external_name: spec.external_name,
            ..ServiceSpec::default()
        });
    }
}

/// Keeps the metadata that is read of a control plane.
pub fn prune_control_plane(metadata: &mut ObjectMeta) {
    prune_metadata(metadata, &READ_CLUSTER_ANNOTATIONS, &[]);
}

/// The part of an annotation's value that is used. Neither Hyperlink nor HyperShift writes a longer one.
pub fn read_part(value: &str) -> &str {
    &value[..value.floor_char_boundary(ANNOTATION)]
}

/// The part of a condition's reason or message that is used.
pub fn read_message(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE)]
}

/// Whether a role keeps this finalizer on a custom resource or a control plane.
pub fn is_known_finalizer(name: &str) -> bool {
    let mut parts = AzurePrivateLinkService::PARTS.iter().chain(&AWSEndpointService::PARTS);
    name == HCP_FINALIZER || parts.any(|part| part.finalizer == name)
}

/// Keeps the conditions of these types, and of their texts what is read.
pub(super) fn prune_conditions(conditions: &mut Vec<Condition>, read: &[ConditionType]) {
    conditions.retain(|condition| read.iter().any(|kind| kind.as_str() == condition.type_));
    for condition in conditions.iter_mut() {
        shorten(&mut condition.reason, MESSAGE);
        shorten(&mut condition.message, MESSAGE);
    }
    conditions.shrink_to_fit();
}

/// Keeps the metadata that is read, with these annotations and labels.
pub(super) fn prune_metadata(metadata: &mut ObjectMeta, annotations: &[&str], labels: &[&str]) {
    metadata.managed_fields = None;
    metadata.annotations = picked(metadata.annotations.take(), annotations);
    metadata.labels = picked(metadata.labels.take(), labels);
    metadata.owner_references = metadata.owner_references.take().map(owners);
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|name| is_known_finalizer(name));
        finalizers.shrink_to_fit();
    }
}

fn picked(all: Option<BTreeMap<String, String>>, names: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut all = all?;
    let picked = names.iter().filter_map(|name| {
        let (name, mut value) = all.remove_entry(*name)?;
        shorten(&mut value, ANNOTATION);
        Some((name, value))
    });
    let picked: BTreeMap<String, String> = picked.collect();
    (!picked.is_empty()).then_some(picked)
}

/// The control planes among the owners, without names that are too long for an object.
fn owners(all: Vec<OwnerReference>) -> Vec<OwnerReference> {
    let kind = HostedControlPlane::kind(&());
    let short = |owner: &OwnerReference| owner.name.len() + owner.uid.len() + owner.api_version.len() <= 3 * TEXT;
    let read = all.into_iter().filter(|owner| owner.kind == kind && short(owner));
    read.take(OWNERS).collect()
}

fn shorten(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
    text.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::markers::{HO_FINALIZER, HO_INTENT};

    fn large() -> String {
        "ü".repeat(100_000)
    }

    fn metadata() -> Value {
        json!({"name": "private-router", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
            "annotations": {"example.com/note": large(), HO_INTENT: large(), EXTERNAL_HOST_ANNOTATION: "a.example.com"},
            "labels": {"example.com/label": large(), EXTERNAL_LABEL: "true"},
            "finalizers": ["example.com/theirs", HO_FINALIZER],
            "managedFields": [{"manager": large(), "operation": "Update"}],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"},
                {"apiVersion": "v1", "kind": "HostedControlPlane", "name": large(), "uid": "l"},
                {"apiVersion": "v1", "kind": "HostedControlPlane", "name": "example", "uid": "h"}]})
    }

    fn size(object: &impl std::fmt::Debug) -> usize {
        format!("{object:?}").len()
    }

    #[test]
    fn large_texts_of_a_custom_resource_are_not_kept() {
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "AzureSuccess", "message": large(),
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let mut cr: AzurePrivateLinkService = serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService", "metadata": metadata(),
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "l", "guestSubnetID": "x", "guestVNetID": "y"},
            "status": {"dnsZoneName": "a.b", "conditions": [condition("Theirs"), condition("AzurePLSCreated")]}}))
        .unwrap();
        cr.prune();
        assert!(size(&cr) < 16 * 1024, "{}", size(&cr));
        assert_eq!(cr.metadata.generation, Some(3));
        assert_eq!(cr.metadata.finalizers.as_deref(), Some(&[HO_FINALIZER.to_owned()][..]));
        let annotations = cr.metadata.annotations.unwrap();
        assert_eq!(annotations.keys().collect::<Vec<_>>(), [HO_INTENT]);
        assert_eq!(annotations[HO_INTENT], read_part(&large()));
        let owners = cr.metadata.owner_references.unwrap();
        assert_eq!(owners.iter().map(|owner| &owner.uid).collect::<Vec<_>>(), ["h"]);
        let status = cr.status.unwrap();
        assert_eq!(status.dns_zone_name.as_deref(), Some("a.b"));
        let [condition] = status.conditions.as_slice() else {
            panic!("{:?}", status.conditions)
        };
        assert_eq!(
            (condition.type_.as_str(), condition.message.len()),
            ("AzurePLSCreated", MESSAGE)
        );
    }

    #[test]
    fn labels_of_a_hosted_cluster_are_kept_up_to_a_bound() {
        let labels: BTreeMap<String, String> = (10..60).map(|n| (format!("l{n}"), "x".to_owned())).collect();
        let metadata = json!({"name": "example", "namespace": "clusters", "labels": labels});
        let mut cluster: HostedCluster = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
        cluster.prune();
        let kept = cluster.metadata.labels.unwrap();
        assert_eq!((kept.len(), kept["l10"].as_str()), (LABELS, "x"));
    }

    #[test]
    fn large_fields_of_a_control_plane_are_not_kept() {
        let mut plane: HostedControlPlane = serde_json::from_value(json!({"metadata": metadata(),
            "spec": {"clusterID": "id", "infraID": large(), "services": [{"service": large()}],
                "platform": {"azure": {"subscriptionID": "s", "location": large()}}}}))
        .unwrap();
        plane.prune();
        assert!(size(&plane) < 16 * 1024, "{}", size(&plane));
        let subscription = |plane: HostedControlPlane| plane.spec.platform.azure.unwrap().subscription_id.unwrap();
        assert_eq!(subscription(plane), "s");
    }

    #[test]
    fn label_of_an_external_service_on_aws_is_kept() {
        let label = markers::aws::EXTERNAL_LABEL;
        let mut service: Service = serde_json::from_value(json!({"metadata": {"labels": {label: "true"}}})).unwrap();
        service.prune();
        assert_eq!(
            service.metadata.labels,
            Some([(label.to_owned(), "true".to_owned())].into())
        );
    }

    #[test]
    fn large_fields_of_a_service_are_not_kept() {
        let mut service: Service = serde_json::from_value(json!({"metadata": metadata(),
            "spec": {"type": "ExternalName", "externalName": "10.0.0.1", "selector": {"a": large()}},
            "status": {"conditions": []}}))
        .unwrap();
        service.prune();
        assert!(size(&service) < 16 * 1024, "{}", size(&service));
        let spec = service.spec.unwrap();
        assert_eq!(
            (spec.type_.as_deref(), spec.external_name.as_deref()),
            (Some("ExternalName"), Some("10.0.0.1"))
        );
        assert_eq!(
            service.metadata.labels,
            Some([(EXTERNAL_LABEL.to_owned(), "true".to_owned())].into())
        );
        let host = service.metadata.annotations.unwrap();
        assert_eq!(host[EXTERNAL_HOST_ANNOTATION], "a.example.com");
    }
}
