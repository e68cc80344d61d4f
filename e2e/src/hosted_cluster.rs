//! HyperShift's part in the life of one private hosted cluster: what its operators put into the
//! management cluster, and in which order they take it away again. Hyperlink's part is not here.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::ground::Ground;
use crate::wait::eventually;

/// Where the HostedClusters are.
pub const NAMESPACE: &str = "clusters";
/// May connect to every Private Link Service that has a NAT subnet of its own.
pub const ADDITIONAL_SUBSCRIPTION: &str = "44444444-4444-4444-8444-444444444444";
const SERVICE: &str = "private-router";
const HYPERSHIFT_FINALIZER: &str = "hypershift.openshift.io/finalizer";

/// A private hosted cluster. Everything is named after it, so that many fit onto one ground.
#[derive(Clone, Debug)]
pub struct HostedCluster {
    name: String,
    base_domain: Option<String>,
    nat_subnet: Option<String>,
    hosted_cluster_patch: Option<Value>,
    control_plane_patch: Value,
    location: String,
    tenant: String,
    subscription: String,
}

impl HostedCluster {
    /// A cluster without a base domain, whose NAT subnet is Hyperlink's to make.
    pub fn new(ground: &Ground, name: &str) -> Self {
        let azure = ground.azure();
        Self {
            name: name.to_owned(),
            base_domain: None,
            nat_subnet: None,
            hosted_cluster_patch: Some(json!({})),
            control_plane_patch: json!({}),
            location: azure.location.clone(),
            tenant: azure.tenant.clone(),
            subscription: azure.guest_subscription.clone(),
        }
    }

    /// Publishes the API and OAuth under this domain.
    #[must_use]
    pub fn with_base_domain(mut self, domain: &str) -> Self {
        self.base_domain = Some(domain.to_owned());
        self
    }

    /// Names a NAT subnet (an ARM id), which has to be there.
    #[must_use]
    pub fn with_nat_subnet(mut self, id: &str) -> Self {
        self.nat_subnet = Some(id.to_owned());
        self
    }

    /// Lays this over the HostedCluster before it is made (RFC 7396).
    #[must_use]
    pub fn with_hosted_cluster(mut self, patch: Value) -> Self {
        self.hosted_cluster_patch = Some(patch);
        self
    }

    /// Makes no HostedCluster; [`HostedCluster::create_hosted_cluster`] does it later.
    #[must_use]
    pub fn without_hosted_cluster(mut self) -> Self {
        self.hosted_cluster_patch = None;
        self
    }

    /// Lays this over the HostedControlPlane before it is made (RFC 7396).
    #[must_use]
    pub fn with_control_plane(mut self, patch: Value) -> Self {
        self.control_plane_patch = patch;
        self
    }

    /// The name of HostedCluster and HostedControlPlane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace of the HostedControlPlane.
    pub fn control_plane_namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    /// `spec.clusterID`.
    pub fn cluster_id(&self) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_DNS, self.name.as_bytes()).to_string()
    }

    /// `spec.infraID`; the guest's resource group has the same name.
    pub fn infra_id(&self) -> String {
        let id = self.cluster_id();
        format!("{}-{}", self.name, id.get(..5).unwrap_or_default())
    }

    /// ARM id of the resource group that the cluster's resources are in.
    pub fn resource_group(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}",
            self.subscription,
            self.infra_id()
        )
    }

    /// ARM id of the workers' VNet.
    pub fn vnet(&self) -> String {
        format!(
            "{}/providers/Microsoft.Network/virtualNetworks/{}",
            self.resource_group(),
            self.name
        )
    }

    /// ARM id of the workers' subnet.
    pub fn subnet(&self) -> String {
        format!("{}/subnets/default", self.vnet())
    }

    /// ARM id of the Private Link Service that has to come.
    pub fn link_service(&self, ground: &Ground) -> String {
        let azure = ground.azure();
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/privateLinkServices/pls-{}",
            azure.management_subscription,
            azure.management_group,
            self.cluster_id()
        )
    }

    /// ARM id of the NAT subnet that has to come, unless one was given.
    pub fn own_nat_subnet(&self, ground: &Ground) -> String {
        format!("{}/subnets/{}-pls-nat", ground.azure().management_vnet, self.infra_id())
    }

    /// ARM id of the endpoint that has to come.
    pub fn endpoint(&self) -> String {
        format!(
            "{}/providers/Microsoft.Network/privateEndpoints/{SERVICE}-pe",
            self.resource_group()
        )
    }

    /// ARM ids of the zones that have to come.
    pub fn zones(&self) -> Vec<String> {
        let names = std::iter::once(format!("{}.hypershift.local", self.name)).chain(self.base_domain.clone());
        names
            .map(|name| {
                format!(
                    "{}/providers/Microsoft.Network/privateDnsZones/{name}",
                    self.resource_group()
                )
            })
            .collect()
    }

    /// The names under which a worker has to reach the control plane.
    pub fn host_names(&self) -> Vec<String> {
        let name = &self.name;
        let mut names = vec![
            format!("api.{name}.hypershift.local"),
            format!("x.apps.{name}.hypershift.local"),
        ];
        if let Some(domain) = &self.base_domain {
            names.push(format!("api-{name}.{domain}"));
            names.push(format!("oauth-{name}.{domain}"));
        }
        names
    }

    /// Does what an administrator and HyperShift do until Hyperlink's turn comes: the workers'
    /// network in Azure, the HostedCluster, the control plane's namespace, the HostedControlPlane
    /// and the Service.
    ///
    /// # Errors
    ///
    /// Azure or the API server refuses.
    pub async fn create(&self, ground: &Ground) -> Result<()> {
        self.create_guest_network(ground).await?;
        let control_plane = ground.control_plane();
        let namespace = self.control_plane_namespace();
        control_plane
            .apply_yaml(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).to_string())
            .await?;
        if self.hosted_cluster_patch.is_some() {
            self.create_hosted_cluster(ground).await?;
        }
        let documents = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            self.hosted_control_plane(),
        ];
        let applied = control_plane
            .apply_yaml(&documents.map(|one| one.to_string()).join("\n---\n"))
            .await?;
        let owner = applied
            .last()
            .and_then(|hcp| hcp.metadata.uid.clone())
            .context("no uid")?;
        control_plane.apply_yaml(&self.service(&owner).to_string()).await?;
        Ok(())
    }

    /// Makes the HostedCluster, which [`HostedCluster::create`] does already unless told otherwise.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_hosted_cluster(&self, ground: &Ground) -> Result<()> {
        let mut object = self.hosted_cluster();
        if let Some(patch) = &self.hosted_cluster_patch {
            merge(&mut object, patch);
        }
        ground.control_plane().apply_yaml(&object.to_string()).await.map(drop)
    }

    async fn create_guest_network(&self, ground: &Ground) -> Result<()> {
        let oracle = ground.oracle();
        oracle
            .drift_put(&self.resource_group(), &json!({"location": self.location}))
            .await?;
        let vnet = json!({"location": self.location, "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "default", "properties": {
                "addressPrefix": "10.0.0.0/24", "privateEndpointNetworkPolicies": "Disabled"}}]}});
        oracle.drift_put(&self.vnet(), &vnet).await
    }

    /// The fields that HostedCluster and HostedControlPlane share.
    fn common_spec(&self) -> Value {
        let route = |service: &str, prefix: &str| {
            let host = self
                .base_domain
                .as_ref()
                .map(|domain| format!("{prefix}-{}.{domain}", self.name));
            let route = host.map_or_else(|| json!({}), |host| json!({"hostname": host}));
            json!({"service": service, "servicePublishingStrategy": {"type": "Route", "route": route}})
        };
        let plain = |service: &str| json!({"service": service, "servicePublishingStrategy": {"type": "Route"}});
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
            "services": [
                route("APIServer", "api"), route("OAuthServer", "oauth"), plain("Konnectivity"), plain("Ignition"),
            ],
        })
    }

    fn platform(&self) -> Value {
        // The field may not be empty.
        let link = match &self.nat_subnet {
            Some(id) => json!({"natSubnetID": id}),
            None => json!({"additionalAllowedSubscriptions": [ADDITIONAL_SUBSCRIPTION]}),
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

    fn hosted_cluster(&self) -> Value {
        let mut spec = self.common_spec();
        spec["release"] = json!({"image": "example.com/release:4.22.0"});
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "finalizers": [HYPERSHIFT_FINALIZER]},
            "spec": spec,
        })
    }

    fn hosted_control_plane(&self) -> Value {
        let mut spec = self.common_spec();
        spec["issuerURL"] = "https://issuer.example.com".into();
        spec["releaseImage"] = "example.com/release:4.22.0".into();
        let mut object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedControlPlane",
            "metadata": {
                "name": self.name,
                "namespace": self.control_plane_namespace(),
                "annotations": {"hypershift.openshift.io/cluster": format!("{NAMESPACE}/{}", self.name)},
                "finalizers": [HYPERSHIFT_FINALIZER],
            },
            "spec": spec,
        });
        merge(&mut object, &self.control_plane_patch);
        object
    }

    fn service(&self, owner: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": SERVICE,
                "namespace": self.control_plane_namespace(),
                "labels": {"app": SERVICE},
                "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
                "ownerReferences": [{
                    "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                    "name": self.name, "uid": owner, "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": SERVICE},
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
            },
        })
    }

    /// The custom resource that Hyperlink keeps for the cluster, if it is there.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_link_service(&self, client: &kube::Client) -> Result<Option<DynamicObject>> {
        let api = self.api(client, "AzurePrivateLinkService", &self.control_plane_namespace());
        Ok(api.get_opt(SERVICE).await?)
    }

    /// The Service that workers are to reach, if it is there.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_service(&self, client: &kube::Client) -> Result<Option<Service>> {
        Ok(Api::namespaced(client.clone(), &self.control_plane_namespace())
            .get_opt(SERVICE)
            .await?)
    }

    /// Waits until Hyperlink reports all parts as available.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error has the conditions.
    pub async fn becomes_available(&self, ground: &Ground, timeout: Duration) -> Result<()> {
        let client = ground.client()?;
        eventually("AzurePrivateLinkServiceAvailable is True", timeout, || async {
            let found = self
                .get_link_service(&client)
                .await?
                .context("no AzurePrivateLinkService")?;
            let conditions = conditions(&found);
            let summary = conditions
                .iter()
                .find(|one| one.kind == "AzurePrivateLinkServiceAvailable");
            ensure!(summary.is_some_and(|one| one.status == "True"), "{conditions:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a worker reaches the control plane under all its names.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error says which hop fails.
    pub async fn becomes_reachable(&self, ground: &Ground, timeout: Duration) -> Result<()> {
        for name in self.host_names() {
            eventually(&format!("{name} is reachable"), timeout, || async {
                let found = ground.oracle().reachable(&self.vnet(), &name).await?;
                ensure!(found.ok, "{}", found.why.unwrap_or_default());
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// The objects of one of HyperShift's kinds in a namespace.
    pub fn api(&self, client: &kube::Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", kind));
        Api::namespaced_with(client.clone(), namespace, &kind)
    }

    /// Takes the cluster away as HyperShift does: first the HostedControlPlane, whose finalizer
    /// of HyperShift goes when all others have gone, then the namespace with what is left in it,
    /// then the HostedCluster. Returns when all three are really gone.
    ///
    /// # Errors
    ///
    /// Something is still there after `timeout`; the error says what holds it.
    pub async fn delete(&self, ground: &Ground, timeout: Duration) -> Result<()> {
        let client = ground.client()?;
        let hosted_clusters = self.api(&client, "HostedCluster", NAMESPACE);
        hosted_clusters.delete(&self.name, &DeleteParams::default()).await?;
        self.delete_control_plane(&client, timeout).await?;
        self.delete_namespace(&client, timeout).await?;
        release(&hosted_clusters, &self.name).await?;
        eventually("the HostedCluster is gone", timeout, || async {
            gone(hosted_clusters.get_opt(&self.name).await?)
        })
        .await
    }

    /// Deletes the HostedControlPlane and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It is still there after `timeout`.
    pub async fn delete_control_plane(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let control_planes = self.api(client, "HostedControlPlane", &self.control_plane_namespace());
        control_planes.delete(&self.name, &DeleteParams::default()).await?;
        eventually(
            "the HostedControlPlane is held by HyperShift alone",
            timeout,
            || async {
                let Some(found) = control_planes.get_opt(&self.name).await? else {
                    return Ok(());
                };
                let finalizers = found.metadata.finalizers.unwrap_or_default();
                ensure!(finalizers == [HYPERSHIFT_FINALIZER], "finalizers {finalizers:?}");
                Ok(())
            },
        )
        .await?;
        release(&control_planes, &self.name).await?;
        eventually("the HostedControlPlane is gone", timeout, || async {
            gone(control_planes.get_opt(&self.name).await?)
        })
        .await
    }

    /// Deletes the namespace of the control plane and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It is still there after `timeout`.
    pub async fn delete_namespace(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let name = self.control_plane_namespace();
        namespaces.delete(&name, &DeleteParams::default()).await?;
        eventually("the namespace is gone", timeout, || async {
            let Some(left) = namespaces.get_opt(&name).await? else {
                return Ok(());
            };
            let conditions = left.status.and_then(|status| status.conditions).unwrap_or_default();
            let held: Vec<_> = conditions
                .into_iter()
                .filter(|one| one.status == "True")
                .filter_map(|one| one.message)
                .collect();
            Err(anyhow!("{held:?}"))
        })
        .await
    }
}

/// A condition of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
}

/// The conditions of an object; none if it has no well-formed list of them.
pub fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let list = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    serde_json::from_value(list).unwrap_or_default()
}

/// Lays a JSON merge patch over an object.
fn merge(object: &mut Value, patch: &Value) {
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

fn gone(found: Option<DynamicObject>) -> Result<()> {
    found.map_or(Ok(()), |found| {
        Err(anyhow!("finalizers {:?}", found.metadata.finalizers))
    })
}

/// Takes HyperShift's finalizer away, and only that one.
///
/// # Errors
///
/// The API server refuses.
pub async fn release(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    let Some(found) = api.get_opt(name).await? else {
        return Ok(());
    };
    let left: Vec<_> = found
        .metadata
        .finalizers
        .unwrap_or_default()
        .into_iter()
        .filter(|one| one != HYPERSHIFT_FINALIZER)
        .collect();
    let patch = json!({"metadata": {"finalizers": left, "resourceVersion": found.metadata.resource_version}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
