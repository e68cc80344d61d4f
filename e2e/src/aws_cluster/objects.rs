//! The objects of a hosted cluster on AWS as HyperShift writes them.

use serde_json::{Value, json};

use super::AwsHostedCluster;
use crate::aws_sim::{CPO_ROLE, GUEST, REGION};
use crate::hosted_cluster::{HYPERSHIFT_FINALIZER, NAMESPACE, merge};

impl AwsHostedCluster {
    /// The fields that HostedCluster and HostedControlPlane share.
    fn common_spec(&self) -> Value {
        let mut platform = self.platform();
        merge(&mut platform, &self.platform_patch);
        json!({
            "clusterID": self.cluster_id(),
            "infraID": self.infra_id(),
            "dns": {"baseDomain": "aws.example.com", "privateZoneID": "Z0PRIVATE0123456789"},
            "etcd": {"managementType": "Managed", "managed": {"storage": {
                "type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}}},
            "networking": {
                "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
                "machineNetwork": [{"cidr": "10.0.0.0/16"}],
                "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            },
            "platform": {"type": "AWS", "aws": platform},
            "pullSecret": {"name": "pull-secret"},
            "sshKey": {"name": "ssh-key"},
            "services": self.published_services(),
        })
    }

    fn published_services(&self) -> Value {
        let by_route = |service: &str, route: Value| json!({"service": service, "servicePublishingStrategy": {"type": "Route", "route": route}});
        let host = |prefix: &str| json!({"hostname": format!("{prefix}-{}.apps.aws.example.com", self.name)});
        let own = json!({"service": "APIServer", "servicePublishingStrategy": {"type": "LoadBalancer",
            "loadBalancer": host("api")}});
        json!([
            if self.api_server_is_routed {
                by_route("APIServer", host("api"))
            } else {
                own
            },
            by_route("OAuthServer", host("oauth")),
            by_route("Konnectivity", json!({})),
            by_route("Ignition", json!({})),
        ])
    }

    fn platform(&self) -> Value {
        let role = |name: &str| format!("arn:aws:iam::{GUEST}:role/{}-{name}", self.infra_id());
        let [first, ..] = self.subnets();
        let tags = self.resource_tags.iter();
        let tags: Vec<_> = tags.map(|(key, value)| json!({"key": key, "value": value})).collect();
        json!({
            "region": REGION,
            "endpointAccess": "Private",
            "cloudProviderConfig": {"vpc": self.vpc(), "zone": format!("{REGION}a"), "subnet": {"id": first}},
            "rolesRef": {
                "controlPlaneOperatorARN": CPO_ROLE,
                "imageRegistryARN": role("openshift-image-registry"),
                "ingressARN": role("openshift-ingress"),
                "kubeCloudControllerARN": role("cloud-controller"),
                "networkARN": role("cloud-network-config-controller"),
                "nodePoolManagementARN": role("node-pool"),
                "storageARN": role("aws-ebs-csi-driver-controller"),
            },
            "resourceTags": tags,
        })
    }

    pub(super) fn hosted_cluster(&self) -> Value {
        let mut spec = self.common_spec();
        spec["release"] = json!({"image": "example.com/release:4.22.0"});
        let mut object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "finalizers": [HYPERSHIFT_FINALIZER]},
            "spec": spec,
        });
        merge(&mut object, &self.hosted_cluster_patch);
        object
    }

    pub(super) fn hosted_control_plane(&self) -> Value {
        let mut spec = self.common_spec();
        spec["issuerURL"] = "https://issuer.example.com".into();
        spec["releaseImage"] = "example.com/release:4.22.0".into();
        let mut object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedControlPlane",
            "metadata": {
                "name": self.name,
                "namespace": self.control_plane_namespace(),
                "annotations": {"hypershift.openshift.io/cluster": self.full_name()},
                "finalizers": [HYPERSHIFT_FINALIZER],
            },
            "spec": spec,
        });
        merge(&mut object, &self.control_plane_patch);
        object
    }

    pub(super) fn node_pool_name(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    pub(super) fn node_pool(&self, number: usize, subnet: &str) -> Value {
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": {"name": self.node_pool_name(number), "namespace": NAMESPACE},
            "spec": {
                "arch": "amd64",
                "clusterName": self.name,
                "management": {"autoRepair": false, "upgradeType": "Replace"},
                "platform": {"type": "AWS", "aws": {
                    "instanceType": "m5.large",
                    "instanceProfile": format!("{}-worker", self.infra_id()),
                    "rootVolume": {"size": 120, "type": "gp3"},
                    "subnet": {"id": subnet},
                }},
                "release": {"image": "example.com/release:4.22.0"},
                "replicas": 2,
            },
        })
    }

    pub(super) fn service(&self, name: &str, owner: Option<&str>) -> Value {
        let owner = owner.map(|uid| {
            json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "name": self.name, "uid": uid, "controller": true, "blockOwnerDeletion": true})
        });
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "namespace": self.control_plane_namespace(),
                "labels": {"app": name},
                "annotations": {
                    "service.beta.kubernetes.io/aws-load-balancer-attributes": "load_balancing.cross_zone.enabled=true",
                    "service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled": "true",
                    "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
                    "service.beta.kubernetes.io/aws-load-balancer-type": "nlb",
                },
                "ownerReferences": Vec::from_iter(owner),
            },
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": name},
                "ports": [{"name": "https", "port": Self::port(name), "protocol": "TCP", "targetPort": "https"}],
            },
        });
        merge(&mut object, &self.service_patch);
        object
    }
}
