//! HyperShift's part in the life of one private hosted cluster: what its operators put into the
//! management cluster, and in which order they take it away again. Hyperlink's part is not here.

mod objects;

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Place;
use crate::wait::eventually;

/// Where the HostedClusters are, on a ground of our own.
pub const NAMESPACE: &str = "clusters";
/// May connect to every Private Link Service that has a NAT subnet of its own, in the simulator.
pub const ADDITIONAL_SUBSCRIPTION: &str = "44444444-4444-4444-8444-444444444444";
/// The Service of the router, and its custom resource.
pub const ROUTER: &str = "private-router";
/// The Service of OAuth when it has a load balancer of its own, and its custom resource.
pub const OAUTH: &str = "oauth-openshift";
const HYPERSHIFT_FINALIZER: &str = "hypershift.openshift.io/finalizer";

/// A private hosted cluster. Everything is named after it, so that many fit into one place.
#[derive(Clone, Debug)]
pub struct HostedCluster {
    name: String,
    namespace: String,
    base_domain: Option<String>,
    nat_subnet: Option<String>,
    oauth_load_balancer: bool,
    hosted_cluster_patch: Option<Value>,
    control_plane_patch: Value,
    service_patch: Value,
    location: String,
    tenant: String,
    subscription: String,
    additional_subscription: String,
}

impl HostedCluster {
    /// A cluster without a base domain, whose NAT subnet is Hyperlink's to make.
    pub fn new(place: &Place, name: &str) -> Self {
        let azure = place.azure();
        Self {
            name: place.name(name),
            namespace: place.hosted_clusters().to_owned(),
            base_domain: None,
            nat_subnet: None,
            oauth_load_balancer: false,
            hosted_cluster_patch: Some(json!({})),
            control_plane_patch: json!({}),
            service_patch: json!({}),
            location: azure.location.clone(),
            tenant: azure.tenant.clone(),
            subscription: azure.guest_subscription.clone(),
            additional_subscription: azure.additional_subscription.clone(),
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

    /// Puts the guest into another subscription.
    #[must_use]
    pub fn in_subscription(mut self, id: &str) -> Self {
        self.subscription = id.to_owned();
        self
    }

    /// Publishes OAuth with a load balancer of its own.
    #[must_use]
    pub fn with_oauth_load_balancer(mut self) -> Self {
        self.oauth_load_balancer = true;
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

    /// Lays this over each Service before it is made (RFC 7396).
    #[must_use]
    pub fn with_services(mut self, patch: Value) -> Self {
        self.service_patch = patch;
        self
    }

    /// The name of HostedCluster and HostedControlPlane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace of the HostedControlPlane.
    pub fn control_plane_namespace(&self) -> String {
        format!("{}-{}", self.namespace, self.name)
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

    /// The Services that get an internal load balancer, and so the custom resources that have to come.
    pub fn services(&self) -> &'static [&'static str] {
        if self.oauth_load_balancer {
            &[ROUTER, OAUTH]
        } else {
            &[ROUTER]
        }
    }

    /// ARM id of the router's Private Link Service that has to come.
    pub fn link_service(&self, place: &Place) -> String {
        self.link_service_of(place, ROUTER)
    }

    /// ARM id of the Private Link Service of a custom resource.
    pub fn link_service_of(&self, place: &Place, service: &str) -> String {
        let azure = place.azure();
        let infix = if service == ROUTER {
            String::new()
        } else {
            format!("{service}-")
        };
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/privateLinkServices/pls-{infix}{}",
            azure.management_subscription,
            azure.management_group,
            self.cluster_id()
        )
    }

    /// ARM id of the NAT subnet that has to come, unless one was given.
    pub fn own_nat_subnet(&self, place: &Place) -> String {
        format!("{}/subnets/{}-pls-nat", place.azure().management_vnet, self.infra_id())
    }

    /// ARM id of the router's endpoint that has to come.
    pub fn endpoint(&self) -> String {
        self.endpoint_of(ROUTER)
    }

    /// ARM id of the endpoint of a custom resource.
    pub fn endpoint_of(&self, service: &str) -> String {
        format!(
            "{}/providers/Microsoft.Network/privateEndpoints/{service}-pe",
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

    /// The Service that a worker has to reach under one of [`HostedCluster::host_names`]; `<namespace>/<name>`.
    pub fn service_behind(&self, host_name: &str) -> String {
        let oauth = host_name.starts_with(&format!("oauth-{}.", self.name));
        let service = if oauth && self.oauth_load_balancer {
            OAUTH
        } else {
            ROUTER
        };
        format!("{}/{service}", self.control_plane_namespace())
    }

    /// Does what an administrator and HyperShift do until Hyperlink's turn comes: the workers'
    /// network in Azure, the HostedCluster, the control plane's namespace, the HostedControlPlane
    /// and the Services.
    ///
    /// # Errors
    ///
    /// Azure or the API server refuses.
    pub async fn create(&self, place: &Place) -> Result<()> {
        self.create_guest_network(place).await?;
        self.create_namespaces(place).await?;
        if self.hosted_cluster_patch.is_some() {
            self.create_hosted_cluster(place).await?;
        }
        let owner = self.create_control_plane(place).await?;
        self.create_services(place, Some(&owner)).await
    }

    /// Makes the namespaces of the HostedCluster and of the control plane.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_namespaces(&self, place: &Place) -> Result<()> {
        let names = [self.namespace.as_str(), &self.control_plane_namespace()];
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
        let text = names.map(namespace).join("\n---\n");
        place.apply_yaml(&text).await.map(drop)
    }

    /// Makes the HostedControlPlane; its uid.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_control_plane(&self, place: &Place) -> Result<String> {
        let text = self.hosted_control_plane().to_string();
        let applied = place.apply_yaml(&text).await?;
        let uid = applied
            .last()
            .and_then(|control_plane| control_plane.metadata.uid.clone());
        uid.context("no uid")
    }

    /// Makes the Services that the HostedControlPlane of this uid owns, or nobody yet; gives those that are there their owner.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_services(&self, place: &Place, owner: Option<&str>) -> Result<()> {
        let services = self.services().iter();
        let text: Vec<_> = services.map(|name| self.service(name, owner).to_string()).collect();
        place.apply_yaml(&text.join("\n---\n")).await.map(drop)
    }

    /// Makes the HostedCluster, which [`HostedCluster::create`] does already unless told otherwise.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_hosted_cluster(&self, place: &Place) -> Result<()> {
        let mut object = self.hosted_cluster();
        if let Some(patch) = &self.hosted_cluster_patch {
            merge(&mut object, patch);
        }
        place.apply_yaml(&object.to_string()).await.map(drop)
    }

    /// Makes the workers' network in Azure.
    ///
    /// # Errors
    ///
    /// Azure refuses.
    pub async fn create_guest_network(&self, place: &Place) -> Result<()> {
        let oracle = place.oracle();
        oracle
            .drift_put(&self.resource_group(), &json!({"location": self.location}))
            .await?;
        let vnet = json!({"location": self.location, "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "default", "properties": {
                "addressPrefix": "10.0.0.0/24", "privateEndpointNetworkPolicies": "Disabled"}}]}});
        oracle.drift_put(&self.vnet(), &vnet).await
    }

    /// Publishes one of the control plane's services by a route of this name, or of none, as only its own operators can.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn publish(&self, client: &kube::Client, service: &str, host: Option<&str>) -> Result<()> {
        let api = self.api(client, "HostedControlPlane", &self.control_plane_namespace());
        let mut found = api.get(&self.name).await?;
        let services = found.data["spec"]["services"].as_array_mut().context("no services")?;
        let one = services.iter_mut().find(|one| one["service"] == service);
        one.context("no such service")?["servicePublishingStrategy"] = match host {
            Some(host) => json!({"type": "Route", "route": {"hostname": host}}),
            None => json!({"type": "Route"}),
        };
        let patch = json!({"spec": {"services": found.data["spec"]["services"]}});
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// The custom resource that Hyperlink keeps for the cluster's router, if it is there.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_link_service(&self, client: &kube::Client) -> Result<Option<DynamicObject>> {
        self.get_custom_resource(client, ROUTER).await
    }

    /// The custom resource of one of the cluster's Services, if it is there.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_custom_resource(&self, client: &kube::Client, service: &str) -> Result<Option<DynamicObject>> {
        let api = self.api(client, "AzurePrivateLinkService", &self.control_plane_namespace());
        Ok(api.get_opt(service).await?)
    }

    /// A Service of the control plane, if it is there.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_service(&self, client: &kube::Client, name: &str) -> Result<Option<Service>> {
        Ok(Api::namespaced(client.clone(), &self.control_plane_namespace())
            .get_opt(name)
            .await?)
    }

    /// Waits until Hyperlink reports all parts of all paths as available.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error has the conditions.
    pub async fn becomes_available(&self, place: &Place, timeout: Duration) -> Result<()> {
        let client = place.client()?;
        for service in self.services() {
            eventually(&format!("{service} is available"), timeout, || async {
                let found = self.get_custom_resource(&client, service).await?;
                let conditions = conditions(&found.context("no AzurePrivateLinkService")?);
                let summary = conditions
                    .iter()
                    .find(|one| one.kind == "AzurePrivateLinkServiceAvailable");
                ensure!(summary.is_some_and(|one| one.status == "True"), "{conditions:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until a worker reaches the right Service under each of its names.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error says which hop fails.
    pub async fn becomes_reachable(&self, place: &Place, timeout: Duration) -> Result<()> {
        for name in self.host_names() {
            eventually(&format!("{name} is reachable"), timeout, || async {
                let found = place.oracle().reachable(&self.vnet(), &name).await?;
                ensure!(found.ok, "{}", found.why.unwrap_or_default());
                let (reached, wanted) = (found.path.last().map(|hop| &hop.id), self.service_behind(&name));
                ensure!(reached == Some(&wanted), "it leads to {reached:?}");
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
    pub async fn delete(&self, place: &Place, timeout: Duration) -> Result<()> {
        let client = place.client()?;
        let hosted_clusters = self.api(&client, "HostedCluster", &self.namespace);
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
