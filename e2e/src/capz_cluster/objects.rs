//! The Kubernetes objects of a cluster as Giant Swarm's charts and Cluster API's core have them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{CONTROL_PLANE_SUBNET, CapzCluster, IdentityType, LoadBalancer, NODE_SUBNET};
use crate::CapzEnv;
use crate::capz_env::{SECRET, TENANT};
use crate::hosted_cluster::merge;

/// CAPI's group and the kind of its clusters.
pub(crate) const CLUSTER: (&str, &str, &str) = ("cluster.x-k8s.io", "v1beta2", "Cluster");
/// CAPZ's kinds.
pub(crate) const AZURE_CLUSTER: (&str, &str, &str) = ("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureCluster");
pub(crate) const IDENTITY: (&str, &str, &str) = ("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureClusterIdentity");
const MACHINE_TEMPLATE: (&str, &str, &str) = ("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureMachineTemplate");
/// CAPI's control planes by kubeadm.
pub(crate) const CONTROL_PLANE: (&str, &str, &str) =
    ("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane");

fn object((group, version, kind): (&str, &str, &str), metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": metadata, "spec": spec})
}

fn reference((group, _, kind): (&str, &str, &str), name: &str) -> Value {
    json!({"apiGroup": group, "kind": kind, "name": name})
}

impl CapzCluster {
    fn metadata(&self) -> Value {
        json!({"namespace": self.namespace, "name": self.name,
            "labels": {"cluster.x-k8s.io/cluster-name": self.name}})
    }

    /// The same, owned by the Cluster with this uid.
    fn owned(&self, uid: &str) -> Value {
        let (group, version, kind) = CLUSTER;
        let mut metadata = self.metadata();
        metadata["ownerReferences"] = json!([{"apiVersion": format!("{group}/{version}"), "kind": kind,
            "name": self.name, "uid": uid, "controller": true, "blockOwnerDeletion": true}]);
        metadata
    }

    pub(super) fn cluster(&self) -> Value {
        let spec = json!({
            "clusterNetwork": {
                "pods": {"cidrBlocks": ["10.244.0.0/16"]},
                "services": {"cidrBlocks": ["172.31.0.0/16"]},
            },
            "infrastructureRef": reference(AZURE_CLUSTER, &self.name),
            "controlPlaneRef": reference(CONTROL_PLANE, &self.name),
        });
        let mut cluster = object(CLUSTER, self.metadata(), spec);
        merge(&mut cluster, &self.cluster_patch);
        cluster
    }

    pub(super) fn azure_cluster(&self, owner: &str) -> Value {
        let subnet = |name: &str, role: &str, prefix: &str| json!({"name": name, "role": role, "cidrBlocks": [prefix]});
        let spec = json!({
            "azureEnvironment": "AzurePublicCloud",
            "identityRef": {"kind": "AzureClusterIdentity", "name": self.identity_of, "namespace": self.namespace},
            "location": self.location,
            "networkSpec": {
                "apiServerLB": self.api_server_load_balancer(),
                "subnets": [
                    subnet(CONTROL_PLANE_SUBNET, "control-plane", CONTROL_PLANE_PREFIX),
                    subnet(NODE_SUBNET, "node", NODE_PREFIX),
                ],
                "vnet": {"name": self.vnet_name(), "resourceGroup": self.resource_group, "cidrBlocks": [VNET_PREFIX]},
            },
            "resourceGroup": self.resource_group,
            "subscriptionID": self.subscription,
        });
        let mut object = object(AZURE_CLUSTER, self.owned(owner), spec);
        merge(&mut object, &self.azure_cluster_patch);
        object
    }

    fn api_server_load_balancer(&self) -> Value {
        let frontends = self.frontends();
        let links = self.links.iter().zip(&frontends);
        let links: Vec<_> = links.map(|(link, frontend)| link.item(frontend)).collect();
        let frontend = |name: &String| match self.load_balancer {
            LoadBalancer::Internal => json!({"name": name}),
            LoadBalancer::Public => json!({"name": name, "publicIP": {"name": format!("{name}-ip")}}),
        };
        let kind = match self.load_balancer {
            LoadBalancer::Internal => "Internal",
            LoadBalancer::Public => "Public",
        };
        let mut balancer = json!({
            "name": self.load_balancer_name(),
            "sku": "Standard",
            "type": kind,
            "frontendIPs": frontends.iter().map(frontend).collect::<Vec<_>>(),
        });
        if !links.is_empty() {
            balancer["privateLinks"] = links.into();
        }
        balancer
    }

    pub(super) fn identity(&self) -> Value {
        let mut spec = json!({
            "type": self.identity.as_str(),
            "tenantID": TENANT,
            "clientID": self.identity.client_id(),
            "allowedNamespaces": {"list": [self.namespace]},
        });
        if self.has_secret() {
            spec["clientSecret"] = json!({"name": self.secret_name(), "namespace": self.namespace});
        }
        let mut object = object(IDENTITY, self.metadata(), spec);
        merge(&mut object, &self.identity_patch);
        object
    }

    fn has_secret(&self) -> bool {
        matches!(
            self.identity,
            IdentityType::ServicePrincipal | IdentityType::ServicePrincipalCertificate
        )
    }

    /// The name of the Secret of its identity.
    pub fn secret_name(&self) -> String {
        format!("{}-identity", self.name)
    }

    /// The Secret of its identity, if it has one.
    pub(super) fn secret(&self, env: &CapzEnv) -> Option<Value> {
        let text = match self.identity {
            IdentityType::ServicePrincipal => SECRET,
            IdentityType::ServicePrincipalCertificate => env.certificate(),
            IdentityType::WorkloadIdentity | IdentityType::UserAssignedMsi => return None,
        };
        Some(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": self.namespace, "name": self.secret_name()},
            "data": {"clientSecret": BASE64_STANDARD.encode(text)}}))
    }

    /// The template of the machines of its control plane.
    pub(super) fn machine_template(&self) -> Value {
        let machine = json!({
            "osDisk": {"osType": "Linux", "diskSizeGB": 128},
            "sshPublicKey": "",
            "vmSize": "Standard_D4s_v5",
        });
        object(
            MACHINE_TEMPLATE,
            self.metadata(),
            json!({"template": {"spec": machine}}),
        )
    }

    pub(super) fn control_plane(&self, owner: &str) -> Value {
        let template = reference(MACHINE_TEMPLATE, &self.name);
        let spec = json!({
            "replicas": 1,
            "version": "v1.32.0",
            "kubeadmConfigSpec": {"initConfiguration": {
                "nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}"}}},
            "machineTemplate": {"spec": {"infrastructureRef": template}},
        });
        let mut object = object(CONTROL_PLANE, self.owned(owner), spec);
        merge(&mut object, &self.control_plane_patch);
        object
    }

    /// The resources that it has in Azure before any private link, in the order in which they refer to each other.
    pub(super) fn resources(&self) -> Vec<(String, Value)> {
        let subnet = |name: &str, prefix: &str| {
            json!({"name": name, "properties": {"addressPrefix": prefix,
                "privateEndpointNetworkPolicies": "Disabled", "privateLinkServiceNetworkPolicies": "Disabled"}})
        };
        let vnet = json!({"location": self.location, "properties": {
            "addressSpace": {"addressPrefixes": [VNET_PREFIX]},
            "subnets": [subnet(CONTROL_PLANE_SUBNET, CONTROL_PLANE_PREFIX), subnet(NODE_SUBNET, NODE_PREFIX)]}});
        let mut resources = vec![
            (self.resource_group(), json!({"location": self.location})),
            (self.vnet(), vnet),
        ];
        if self.load_balancer == LoadBalancer::Internal {
            let balancer = self.internal_load_balancer(&self.frontends(), CONTROL_PLANE_SUBNET);
            resources.push((self.load_balancer_id(), balancer));
        }
        resources
    }

    /// A load balancer with these frontends in this subnet.
    pub(super) fn internal_load_balancer(&self, frontends: &[String], subnet: &str) -> Value {
        let subnet = format!("{}/subnets/{subnet}", self.vnet());
        let frontends = frontends.iter();
        let frontends = frontends.map(|name| json!({"name": name, "properties": {"subnet": {"id": subnet}}}));
        json!({"location": self.location, "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": frontends.collect::<Vec<_>>()}})
    }
}

const VNET_PREFIX: &str = "10.0.0.0/16";
const NODE_PREFIX: &str = "10.0.0.0/17";
const CONTROL_PLANE_PREFIX: &str = "10.0.128.0/24";
