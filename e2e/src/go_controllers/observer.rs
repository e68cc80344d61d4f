//! The control-plane-operator's observer: it creates or updates the custom resource whenever the Service changes.

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::object::{CLUSTER_ANNOTATION, is_deleting, text, update};
use super::queue::GoReconciler;
use super::{ClusterClients, Next, cpo, queue};

/// The names of the Services that have a custom resource.
const OBSERVED: [&str; 2] = ["private-router", "oauth-openshift"];
const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

pub(super) struct Observer {
    clients: ClusterClients,
}

impl Observer {
    pub(super) fn new(clients: ClusterClients) -> Self {
        Self { clients }
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(
            self.clients.kube.clone(),
            &self.clients.cluster.control_plane_namespace(),
        )
    }

    pub(super) async fn run(&self) -> Result<()> {
        let changes = queue::changes(self.services());
        let events = changes.filter(|service| {
            let observed = OBSERVED.contains(&service.name_any().as_str());
            async move { observed }
        });
        queue::work(queue::names(events), self.clients.speed, self).await
    }
}

impl GoReconciler for Observer {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let Some(service) = self.services().get_opt(name).await? else {
            return Ok(Next::Event);
        };
        if service.annotations().get(INTERNAL).map(String::as_str) != Some("true") {
            return Ok(Next::Event);
        }
        let owner = cpo::owner(&service.metadata).context("no HostedControlPlane owner")?;
        let control_plane = self.clients.api("HostedControlPlane").get(&owner).await?;
        if is_deleting(&control_plane) {
            return Ok(Next::Event);
        }
        let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()?.first()?.ip.clone());
        let Some(address) = ingress.filter(|ip| !ip.is_empty()) else {
            return Ok(Next::WAIT);
        };
        self.create_or_update(name, &control_plane, &address).await?;
        Ok(Next::Event)
    }
}

impl Observer {
    async fn create_or_update(&self, name: &str, control_plane: &DynamicObject, address: &str) -> Result<()> {
        let api = self.clients.link_services();
        let found = api.get_opt(name).await?;
        let mut whole = found.clone().unwrap_or_else(|| {
            let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "AzurePrivateLinkService");
            DynamicObject::new(name, &ApiResource::from_gvk(&kind)).data(json!({}))
        });
        let owner = control_plane_reference(control_plane)?;
        whole.owner_references_mut().retain(|one| one.uid != owner.uid);
        whole.owner_references_mut().push(owner);
        if let Some(cluster) = control_plane.annotations().get(CLUSTER_ANNOTATION) {
            whole
                .annotations_mut()
                .insert(CLUSTER_ANNOTATION.to_owned(), cluster.clone());
        }
        merge_fields(&mut whole.data["spec"], spec(control_plane, address));
        match found {
            None => {
                let params = PostParams {
                    field_manager: Some(cpo::MANAGER.to_owned()),
                    ..PostParams::default()
                };
                api.create(&params, &whole).await.map(drop)?;
            }
            Some(found) if found == whole => {}
            Some(_) => drop(update(&api, &whole, cpo::MANAGER).await?),
        }
        Ok(())
    }
}

/// The fields of the spec that the Go observer derives from the control plane and the Service.
fn spec(control_plane: &DynamicObject, address: &str) -> Map<String, Value> {
    let azure = |field: &str| text(control_plane, &format!("/spec/platform/azure/{field}")).to_owned();
    let mut spec = Map::from_iter([
        ("loadBalancerIP".to_owned(), json!(address)),
        ("subscriptionID".to_owned(), azure("subscriptionID").into()),
        ("resourceGroupName".to_owned(), azure("resourceGroup").into()),
        ("location".to_owned(), azure("location").into()),
        ("guestSubnetID".to_owned(), azure("subnetID").into()),
        ("guestVNetID".to_owned(), azure("vnetID").into()),
    ]);
    let link = |field: &str| {
        let found = control_plane
            .data
            .pointer(&format!("/spec/platform/azure/private/privateLink/{field}"));
        found.cloned().unwrap_or_default()
    };
    spec.insert("natSubnetID".to_owned(), link("natSubnetID"));
    spec.insert(
        "additionalAllowedSubscriptions".to_owned(),
        link("additionalAllowedSubscriptions"),
    );
    if let Some(domain) = base_domain(control_plane) {
        spec.insert("baseDomain".to_owned(), domain.into());
    }
    spec
}

/// Sets these fields, and removes those that are null, because an Update from Go leaves out empty fields.
fn merge_fields(spec: &mut Value, fields: Map<String, Value>) {
    if !spec.is_object() {
        *spec = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            spec.as_object_mut().map(|spec| spec.remove(&name));
        } else {
            spec[name] = value;
        }
    }
}

fn base_domain(control_plane: &DynamicObject) -> Option<String> {
    let prefix = format!("oauth-{}.", control_plane.name_any());
    let services = control_plane.data.pointer("/spec/services").and_then(Value::as_array);
    let oauth = services
        .into_iter()
        .flatten()
        .find(|one| one["service"] == "OAuthServer");
    let strategy = oauth.map(|one| &one["servicePublishingStrategy"]);
    let host = strategy.and_then(|one| {
        one["route"]["hostname"]
            .as_str()
            .or(one["loadBalancer"]["hostname"].as_str())
    });
    let domain = host.and_then(|host| host.strip_prefix(&prefix));
    let domain = domain.unwrap_or_else(|| text(control_plane, "/spec/dns/baseDomain"));
    Some(domain.to_owned()).filter(|domain| !domain.is_empty())
}

/// The controller owner reference to a HostedControlPlane.
pub(super) fn control_plane_reference(
    control_plane: &DynamicObject,
) -> Result<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference> {
    let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "HostedControlPlane");
    let reference = control_plane.controller_owner_ref(&ApiResource::from_gvk(&kind));
    reference.context("a HostedControlPlane without a uid")
}
