//! What watches keep of the objects of clusters on AWS.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, LoadBalancerIngress, LoadBalancerStatus, ServiceStatus};

use super::{ANNOTATION, TEXT, prune_conditions, prune_metadata, shorten};
use crate::api::hypershift::{AwsPlatform, RolesRef};
use crate::api::markers::aws::{KARPENTER_LABEL, KARPENTER_SUBNETS_KEY, READ_ANNOTATIONS};
use crate::api::{AWSEndpointService, NodePool};
use crate::runtime::prune::Prune;

/// The most ingresses that are kept of a Service: a load balancer has one.
const INGRESSES: usize = 4;
/// The most bytes of an ARN that are kept; HyperShift's definition allows as many.
const ARN: usize = 2048;

impl Prune for AWSEndpointService {
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &READ_ANNOTATIONS, &[]);
        if let Some(status) = &mut self.status {
            prune_conditions(&mut status.conditions, &Self::CONDITIONS);
        }
    }
}

impl Prune for NodePool {
    /// Keeps the cluster's name and the subnet.
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &[], &[]);
        let short = |text: &String| text.len() <= TEXT;
        self.spec.cluster_name = self.spec.cluster_name.take().filter(short);
        if let Some(aws) = &mut self.spec.platform.aws {
            aws.subnet.id = aws.subnet.id.take().filter(short);
        }
    }
}

impl Prune for ConfigMap {
    /// Keeps what is read of Karpenter's ConfigMap. A list that is too long is cut, and so cannot be read.
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &[], &[KARPENTER_LABEL]);
        self.binary_data = None;
        let list = self
            .data
            .take()
            .and_then(|mut data| data.remove_entry(KARPENTER_SUBNETS_KEY));
        self.data = list.map(|(key, mut value)| {
            shorten(&mut value, ANNOTATION);
            BTreeMap::from([(key, value)])
        });
    }
}

/// The host names of a Service's load balancer; none if it has only addresses.
pub(super) fn host_names(status: Option<ServiceStatus>) -> Option<ServiceStatus> {
    let ingress = status?.load_balancer?.ingress?;
    let named = ingress.into_iter().filter_map(|ingress| {
        let hostname = ingress.hostname.filter(|name| name.len() <= TEXT)?;
        Some(LoadBalancerIngress {
            hostname: Some(hostname),
            ..LoadBalancerIngress::default()
        })
    });
    let named: Vec<_> = named.take(INGRESSES).collect();
    (!named.is_empty()).then(|| ServiceStatus {
        load_balancer: Some(LoadBalancerStatus { ingress: Some(named) }),
        ..ServiceStatus::default()
    })
}

/// What is kept of a control plane's platform: access, and the role, which tells the account.
pub(super) fn platform(aws: AwsPlatform) -> AwsPlatform {
    let role = aws.roles_ref.control_plane_operator_arn;
    AwsPlatform {
        endpoint_access: aws.endpoint_access,
        roles_ref: RolesRef {
            control_plane_operator_arn: role.filter(|arn| arn.len() <= ARN),
        },
        ..AwsPlatform::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::HostedControlPlane;
    use crate::api::hypershift::EndpointAccess;
    use crate::api::markers::aws::{CPO_FINALIZER, HO_FINALIZER, SERVICE_ZONES};

    fn large() -> String {
        "ü".repeat(100_000)
    }

    fn size(object: &impl std::fmt::Debug) -> usize {
        format!("{object:?}").len()
    }

    fn metadata() -> Value {
        json!({"name": "private-router", "namespace": "n", "uid": "u", "generation": 3,
            "annotations": {"example.com/note": large(), SERVICE_ZONES: "use1-az1"},
            "labels": {"example.com/label": large(), KARPENTER_LABEL: "karpenter"},
            "finalizers": ["example.com/theirs", HO_FINALIZER, CPO_FINALIZER],
            "managedFields": [{"manager": large(), "operation": "Update"}]})
    }

    #[test]
    fn large_texts_of_a_custom_resource_are_not_kept() {
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "AWSSuccess", "message": large(),
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let mut cr: AWSEndpointService = serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService", "metadata": metadata(),
            "spec": {"networkLoadBalancerName": "a1b2"},
            "status": {"endpointID": "vpce-1",
                "conditions": [condition("Theirs"), condition("AWSEndpointAvailable")]}}))
        .unwrap();
        cr.prune();
        assert!(size(&cr) < 8 * 1024, "{}", size(&cr));
        assert_eq!(cr.metadata.finalizers.unwrap(), [HO_FINALIZER, CPO_FINALIZER]);
        let annotations = cr.metadata.annotations.unwrap();
        assert_eq!(annotations.keys().collect::<Vec<_>>(), [SERVICE_ZONES]);
        let status = cr.status.unwrap();
        assert_eq!(
            (status.endpoint_id.as_deref(), status.conditions.len()),
            (Some("vpce-1"), 1)
        );
    }

    #[test]
    fn large_fields_of_a_node_pool_are_not_kept() {
        let pool = |cluster: &str, subnet: &str| {
            let spec = json!({"clusterName": cluster, "platform": {"aws": {"subnet": {"id": subnet}}}});
            let mut pool: NodePool = serde_json::from_value(json!({"metadata": metadata(), "spec": spec})).unwrap();
            pool.prune();
            pool
        };
        let kept = pool("example", "subnet-1").spec;
        assert_eq!(kept.cluster_name.as_deref(), Some("example"));
        assert_eq!(kept.platform.aws.unwrap().subnet.id.as_deref(), Some("subnet-1"));
        let shortened = pool(&large(), &large());
        assert!(size(&shortened) < 4 * 1024, "{}", size(&shortened));
    }

    #[test]
    fn only_the_list_of_karpenters_config_map_is_kept() {
        let config_map = |list: &str| {
            let data = json!({KARPENTER_SUBNETS_KEY: list, "other": large()});
            let mut map: ConfigMap = serde_json::from_value(json!({"metadata": metadata(), "data": data,
                "binaryData": {"x": "eA=="}}))
            .unwrap();
            map.prune();
            map
        };
        let kept = config_map("[\"subnet-1\"]");
        assert_eq!(kept.metadata.labels.unwrap()[KARPENTER_LABEL], "karpenter");
        assert_eq!(
            kept.data.unwrap(),
            [(KARPENTER_SUBNETS_KEY.to_owned(), "[\"subnet-1\"]".to_owned())].into()
        );
        let cut = config_map(&large());
        assert!(cut.binary_data.is_none() && size(&cut) < 32 * 1024, "{}", size(&cut));
    }

    #[test]
    fn host_names_of_a_service_are_kept_without_addresses() {
        let service = |ingress: Value| {
            let mut service: Service = serde_json::from_value(
                json!({"metadata": metadata(), "status": {"loadBalancer": {"ingress": ingress}}}),
            )
            .unwrap();
            service.prune();
            service.status.map(|status| json!(status))
        };
        let name = "a-1.elb.us-east-1.amazonaws.com";
        let ports = json!([{"port": 1, "protocol": "TCP"}]);
        let named = json!([{"ip": "10.0.0.4"}, {"hostname": name, "ports": ports}, {"hostname": large()}]);
        let kept = json!({"loadBalancer": {"ingress": [{"hostname": name}]}});
        assert_eq!(service(named), Some(kept));
        assert_eq!(service(json!([{"ip": "10.0.0.4"}])), None);
    }

    #[test]
    fn access_and_role_of_a_control_plane_are_kept() {
        let role = "arn:aws:iam::123456789012:role/cpo";
        let aws =
            json!({"region": large(), "endpointAccess": "Private", "rolesRef": {"controlPlaneOperatorARN": role}});
        let mut plane: HostedControlPlane =
            serde_json::from_value(json!({"metadata": metadata(), "spec": {"platform": {"type": "AWS", "aws": aws}}}))
                .unwrap();
        plane.prune();
        assert!(size(&plane) < 8 * 1024, "{}", size(&plane));
        let kept = plane.spec.platform.aws.unwrap();
        assert_eq!(kept.access(), EndpointAccess::Private);
        assert_eq!(kept.roles_ref.control_plane_operator_arn.as_deref(), Some(role));
        assert_eq!(
            platform(AwsPlatform {
                region: Some(large()),
                ..AwsPlatform::default()
            }),
            AwsPlatform::default()
        );
    }
}
