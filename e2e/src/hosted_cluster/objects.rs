//! The objects of a hosted cluster as HyperShift writes them.

use serde_json::{Value, json};

use super::{HYPERSHIFT_FINALIZER, HostedCluster, ROUTER};

/// The annotation that makes a Service's load balancer internal.
const INTERNAL: (&str, &str) = ("service.beta.kubernetes.io/azure-load-balancer-internal", "true");
/// The annotation with the public name that external-dns creates for a Service.
const PUBLIC_NAME: &str = "external-dns.alpha.kubernetes.io/hostname";

impl HostedCluster {
    /// The fields that HostedCluster and HostedControlPlane share.
    fn common_spec(&self) -> Value {
        json!({
            "clusterID": self.cluster_id(),
            "infraID": self.infra_id(),
            "dns": {"baseDomain": self.base_domain.clone().unwrap_or_default()},
            "etcd": {"managementType": "Managed", "managed": {"storage": {
                "type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}}},
            "networking": {
                "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
                "machineNetwork": [{"cidr": "10.0.0.0/16"}],
                "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            },
            "platform": {"type": "Azure", "azure": self.platform()},
            "pullSecret": {"name": "pull-secret"},
            "sshKey": {"name": "ssh-key"},
            "services": self.published_services(),
        })
    }

    fn published_services(&self) -> Vec<Value> {
        let published = |service: &str, by: &str, host: Option<String>| {
            let how = host.map_or_else(|| json!({}), |host| json!({"hostname": host}));
            let field = if by == "Route" { "route" } else { "loadBalancer" };
            json!({"service": service, "servicePublishingStrategy": {"type": by, field: how}})
        };
        let host = |prefix: &str| {
            self.base_domain
                .as_ref()
                .map(|domain| format!("{prefix}-{}.{domain}", self.name))
        };
        let oauth = if self.oauth_load_balancer {
            "LoadBalancer"
        } else {
            "Route"
        };
        vec![
            published("APIServer", "Route", host("api")),
            published("OAuthServer", oauth, host("oauth")),
            published("Konnectivity", "Route", None),
            published("Ignition", "Route", None),
        ]
    }

    fn platform(&self) -> Value {
        // `privateLink` must not be empty.
        let link = match &self.nat_subnet {
            Some(id) => json!({"natSubnetID": id}),
            None => json!({"additionalAllowedSubscriptions": [self.additional_subscription]}),
        };
        let identities = [
            "cloudProvider",
            "controlPlaneOperator",
            "disk",
            "file",
            "imageRegistry",
            "ingress",
            "network",
            "nodePoolManagement",
        ];
        let identities: serde_json::Map<_, _> = identities
            .into_iter()
            .map(|name| {
                (
                    name.to_owned(),
                    json!({"clientID": "aaaaaaaa-0002-4000-8000-000000000002"}),
                )
            })
            .collect();
        json!({
            "cloud": "AzurePublicCloud",
            "location": self.location,
            "resourceGroup": self.infra_id(),
            "subscriptionID": self.subscription,
            "tenantID": self.tenant,
            "vnetID": self.vnet(),
            "subnetID": self.subnet(),
            "securityGroupID": format!(
                "{}/providers/Microsoft.Network/networkSecurityGroups/{}", self.resource_group(), self.name),
            "topology": "Private",
            "private": {"type": "PrivateLink", "privateLink": link},
            "azureAuthenticationConfig": {
                "azureAuthenticationConfigType": "WorkloadIdentities", "workloadIdentities": identities},
        })
    }

    pub(super) fn hosted_cluster(&self) -> Value {
        let mut spec = self.common_spec();
        spec["release"] = json!({"image": "example.com/release:4.22.0"});
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "metadata": {"name": self.name, "namespace": self.namespace, "finalizers": [HYPERSHIFT_FINALIZER]},
            "spec": spec,
        })
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
                "annotations": {"hypershift.openshift.io/cluster": format!("{}/{}", self.namespace, self.name)},
                "finalizers": [HYPERSHIFT_FINALIZER],
            },
            "spec": spec,
        });
        merge(&mut object, &self.control_plane_patch);
        object
    }

    pub(super) fn service(&self, name: &str, owner: Option<&str>) -> Value {
        let owner = owner.map(|uid| {
            json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "name": self.name, "uid": uid, "controller": true, "blockOwnerDeletion": true})
        });
        let mut annotations = json!({INTERNAL.0: INTERNAL.1});
        let ports = if name == ROUTER {
            json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}])
        } else {
            if let Some(domain) = &self.base_domain {
                let host = format!("oauth-{}.{domain}", self.name);
                annotations[PUBLIC_NAME] = host.into();
            }
            json!([{"port": 443, "protocol": "TCP", "targetPort": 6443}])
        };
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "namespace": self.control_plane_namespace(),
                "labels": {"app": name},
                "annotations": annotations,
                "ownerReferences": Vec::from_iter(owner),
            },
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": name},
                "ports": ports,
            },
        });
        merge(&mut object, &self.service_patch);
        object
    }
}

/// Applies a JSON merge patch (RFC 7396) to an object.
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        object.clone_from(patch);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            object.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut object[name.as_str()], value);
        }
    }
}
