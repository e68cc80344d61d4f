//! The control-plane-operator: Private Endpoint and external Services, and their deletion. The zones are in `dns`.

use anyhow::{Context, Result, bail};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use super::arm::classify;
use super::object::{Change, has_finalizer, is_conflict, is_deleting, patch_finalizer, text, update_finalizer};
use super::observer::control_plane_reference;
use super::queue::GoReconciler;
use super::{ClusterClients, Next, queue};

pub(super) const FINALIZER: &str = "hypershift.openshift.io/azure-private-link-service";
const CONTROL_PLANE_FINALIZER: &str = "hypershift.openshift.io/azure-pls-endpoint-cleanup";
pub(super) const MANAGER: &str = "hypershift-controlplane-manager";
pub(super) const ROUTER: &str = "private-router";

const ENDPOINT: &str = "AzurePrivateEndpointAvailable";
const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

pub(super) struct Operator {
    pub(super) clients: ClusterClients,
}

/// What one reconcile of a custom resource works on.
pub(super) struct ReconcileContext {
    pub(super) api: Api<DynamicObject>,
    pub(super) cr: DynamicObject,
    pub(super) cluster: String,
}

impl ReconcileContext {
    pub(super) async fn send(&mut self, change: Change) -> Result<()> {
        change.send(&self.api, &mut self.cr, MANAGER).await
    }

    /// Publishes a condition for a failure of an Azure call; returns when to requeue.
    pub(super) async fn failed(&mut self, kind: &str, reason: &str, error: &anyhow::Error) -> Result<Next> {
        let (wait, class) = classify(error);
        let change = Change::of(&self.cr).condition(kind, false, reason, &format!("{class}: {error}"));
        self.send(change).await?;
        Ok(Next::After(wait))
    }
}

impl Operator {
    pub(super) fn new(clients: ClusterClients) -> Self {
        Self { clients }
    }

    /// Reconciles on changes of custom resources, and of the control plane while it has the finalizer.
    pub(super) async fn run(&self) -> Result<()> {
        let own = queue::changes(self.clients.link_services()).map(|cr| cr.name_any());
        let list = self.clients.link_services();
        let owners = queue::changes(self.clients.api("HostedControlPlane")).then(move |control_plane| {
            let list = list.clone();
            async move {
                if !has_finalizer(&control_plane, CONTROL_PLANE_FINALIZER) {
                    return Vec::new();
                }
                let all = list.list(&ListParams::default()).await;
                all.map_or_else(|_| Vec::new(), |all| all.iter().map(ResourceExt::name_any).collect())
            }
        });
        let events = stream::select(own, owners.flat_map(stream::iter)).boxed();
        queue::work(events, self.clients.speed, self).await
    }
}

impl GoReconciler for Operator {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let api = self.clients.link_services();
        let Some(cr) = api.get_opt(name).await? else {
            return Ok(Next::Event);
        };
        if is_deleting(&cr) {
            if has_finalizer(&cr, FINALIZER) {
                self.delete(&cr).await?;
                update_finalizer(&api, &cr, FINALIZER, false, MANAGER).await?;
            }
            return Ok(Next::Event);
        }
        let owner = owner(&cr.metadata).context("no HostedControlPlane owner")?;
        let control_planes = self.clients.api("HostedControlPlane");
        let Some(control_plane) = control_planes.get_opt(&owner).await? else {
            if has_finalizer(&cr, FINALIZER) {
                update_finalizer(&api, &cr, FINALIZER, false, MANAGER).await?;
            }
            return Ok(Next::Event);
        };
        if is_deleting(&control_plane) {
            return self.control_plane_deleting(&control_plane).await;
        }
        if !has_finalizer(&cr, FINALIZER) {
            return match update_finalizer(&api, &cr, FINALIZER, true, MANAGER).await {
                Err(error) if is_conflict(&error) => Ok(Next::CONFLICT),
                outcome => outcome.map(|()| Next::Event),
            };
        }
        if text(&cr, "/status/privateLinkServiceAlias").is_empty() {
            return Ok(Next::WAIT);
        }
        if !has_finalizer(&control_plane, CONTROL_PLANE_FINALIZER) {
            let add = patch_finalizer(&control_planes, &control_plane, CONTROL_PLANE_FINALIZER, true, MANAGER);
            match add.await {
                Err(error) if is_conflict(&error) => return Ok(Next::CONFLICT),
                outcome => outcome?,
            }
        }
        let cluster = control_plane.name_any();
        let mut cx = ReconcileContext { api, cr, cluster };
        self.ensure_present(&mut cx, &control_plane).await
    }
}

impl Operator {
    async fn ensure_present(&self, cx: &mut ReconcileContext, control_plane: &DynamicObject) -> Result<Next> {
        if let Some(next) = self.endpoint(cx).await? {
            return Ok(next);
        }
        if let Some(next) = self.zones(cx).await? {
            return Ok(next);
        }
        if cx.cr.name_any() == ROUTER {
            self.external_services(cx, control_plane).await?;
        }
        let change = Change::of(&cx.cr).condition(
            AVAILABLE,
            true,
            "AzureSuccess",
            "All Azure Private Link Service resources are available",
        );
        cx.send(change).await?;
        Ok(Next::DRIFT)
    }

    pub(super) fn group(cr: &DynamicObject) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
            text(cr, "/spec/subscriptionID"),
            text(cr, "/spec/resourceGroupName")
        )
    }

    fn endpoint_id(cr: &DynamicObject) -> String {
        format!("{}/privateEndpoints/{}-pe", Self::group(cr), cr.name_any())
    }

    /// Creates the Private Endpoint if it is missing. An existing one is never compared with what is desired.
    async fn endpoint(&self, cx: &mut ReconcileContext) -> Result<Option<Next>> {
        let arm = &self.clients.arm;
        let (cr, id) = (&cx.cr, Self::endpoint_id(&cx.cr));
        let expand = "&$expand=networkInterfaces";
        let found = match arm.get_expanded(&id, expand).await {
            Err(error) => {
                return cx.failed(ENDPOINT, "PrivateEndpointGetFailed", &error).await.map(Some);
            }
            Ok(Some(found)) => found,
            // The last GET of the PUT is not expanded: the next reconcile finds the address.
            Ok(None) => {
                let connection = json!({"name": format!("{}-pe", cr.name_any()), "properties": {
                    "privateLinkServiceId": text(cr, "/status/privateLinkServiceAlias"),
                    "requestMessage": "HyperShift CPO auto-connect"}});
                let body = json!({
                    "location": text(cr, "/spec/location"),
                    "tags": {"hypershift.openshift.io_resource-type": "private-endpoint"},
                    "properties": {
                        "subnet": {"id": text(cr, "/spec/guestSubnetID")},
                        "manualPrivateLinkServiceConnections": [connection]}});
                match arm.put(&id, &body).await {
                    Ok(made) => made,
                    Err(error) => {
                        return cx
                            .failed(ENDPOINT, "PrivateEndpointCreationFailed", &error)
                            .await
                            .map(Some);
                    }
                }
            }
        };
        self.publish(cx, &found).await
    }

    async fn publish(&self, cx: &mut ReconcileContext, found: &Value) -> Result<Option<Next>> {
        let properties = &found["properties"];
        let custom = properties.pointer("/customDnsConfigs/0/ipAddresses/0");
        let interface = "/networkInterfaces/0/properties/ipConfigurations/0/properties/privateIPAddress";
        let address = custom.or_else(|| properties.pointer(interface)).and_then(Value::as_str);
        let state = "/manualPrivateLinkServiceConnections/0/properties/privateLinkServiceConnectionState/status";
        let state = properties.pointer(state).and_then(Value::as_str).unwrap_or_default();
        let mut change = Change::of(&cx.cr).field("privateEndpointID", found["id"].as_str().context("an id")?);
        if let Some(address) = address {
            change = change.field("privateEndpointIP", address);
        }
        if !matches!(state, "" | "Approved") {
            let message = format!(
                "Private Endpoint connection state is \"{state}\", not Approved. Ensure the guest subscription is in the PLS \
                 auto-approval list, or manually approve the connection on the Private Link Service."
            );
            let change = change.condition(ENDPOINT, false, "PrivateEndpointConnectionNotApproved", &message);
            cx.send(change).await?;
            return Ok(Some(Next::WAIT));
        }
        let change = change.condition(ENDPOINT, true, "AzureSuccess", "Private Endpoint is available");
        cx.send(change).await?;
        Ok(address.is_none().then_some(Next::WAIT))
    }

    async fn external_services(&self, cx: &ReconcileContext, control_plane: &DynamicObject) -> Result<()> {
        let namespace = self.clients.cluster.control_plane_namespace();
        let services: Api<Service> = Api::namespaced(self.clients.kube.clone(), &namespace);
        let private = text(control_plane, "/spec/platform/azure/topology") == "Private";
        let published = control_plane.data.pointer("/spec/services").and_then(Value::as_array);
        for (service, name) in [
            ("APIServer", "kube-apiserver-private-external"),
            ("OAuthServer", "oauth-private-external"),
        ] {
            let entry = published.into_iter().flatten().find(|one| one["service"] == service);
            let Some(host) = entry.and_then(|one| one["servicePublishingStrategy"]["route"]["hostname"].as_str())
            else {
                continue;
            };
            if !private {
                if services.get_opt(name).await?.is_some() {
                    services.delete(name, &DeleteParams::default()).await?;
                }
                continue;
            }
            let body = json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name,
                    "labels": {"hypershift.openshift.io/azure-pls-external-private-svc": "true"},
                    "annotations": {"external-dns.alpha.kubernetes.io/hostname": host},
                    "ownerReferences": [control_plane_reference(control_plane)?]},
                "spec": {"type": "ExternalName", "externalName": text(&cx.cr, "/status/privateEndpointIP")}});
            create_or_merge(&services, name, body).await?;
        }
        Ok(())
    }

    /// Like `reconcileDelete`: deletes records, links and zones, then the Private Endpoint by its name.
    async fn delete(&self, cr: &DynamicObject) -> Result<()> {
        self.delete_zones(cr).await?;
        self.clients.arm.delete(&Self::endpoint_id(cr)).await
    }

    /// Like `reconcileHCPDeletion`: deletes the resources of all custom resources first, then the zone of their base
    /// domain, which each of two siblings has left to the other. Then it removes their finalizers, and then the control
    /// plane's.
    async fn control_plane_deleting(&self, control_plane: &DynamicObject) -> Result<Next> {
        if !has_finalizer(control_plane, CONTROL_PLANE_FINALIZER) {
            return Ok(Next::Event);
        }
        let api = self.clients.link_services();
        let all = api.list(&ListParams::default()).await?;
        let mut failures = Vec::new();
        for cr in &all {
            if let Err(error) = self.delete(cr).await {
                failures.push(format!("{error:#}"));
            }
        }
        if let Some(cr) = all.iter().find(|cr| !text(cr, "/spec/baseDomain").is_empty())
            && let Err(error) = self.clients.arm.delete(&Self::base_domain_zone(cr)).await
        {
            failures.push(format!("{error:#}"));
        }
        if !failures.is_empty() {
            bail!(failures.join("; "));
        }
        for cr in &all {
            if has_finalizer(cr, FINALIZER) {
                patch_finalizer(&api, cr, FINALIZER, false, MANAGER).await?;
            }
        }
        let control_planes = self.clients.api("HostedControlPlane");
        let remove = patch_finalizer(&control_planes, control_plane, CONTROL_PLANE_FINALIZER, false, MANAGER);
        match remove.await {
            Err(error) if is_conflict(&error) => Ok(Next::CONFLICT),
            outcome => outcome.map(|()| Next::Event),
        }
    }
}

/// Creates a Service or merges `body` into it, like `CreateOrUpdate`: fields that others have set stay.
pub(super) async fn create_or_merge(services: &Api<Service>, name: &str, body: Value) -> Result<()> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match services.get_opt(name).await? {
        None => {
            let service = serde_json::from_value(body)?;
            services.create(&Default::default(), &service).await.map(drop)?;
        }
        Some(found) if contains(&serde_json::to_value(&found)?, &body) => {}
        Some(_) => drop(services.patch(name, &params, &Patch::Merge(body)).await?),
    }
    Ok(())
}

/// Whether everything in `part` is in `whole`, apart from the fields that a typed object leaves out.
fn contains(whole: &Value, part: &Value) -> bool {
    match part {
        Value::Object(fields) => fields
            .iter()
            .all(|(name, value)| matches!(name.as_str(), "apiVersion" | "kind") || contains(&whole[name], value)),
        _ => whole == part,
    }
}

/// The name of the HostedControlPlane that owns an object.
pub(super) fn owner(object: &ObjectMeta) -> Option<String> {
    let owners = object.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == "HostedControlPlane");
    owners.next().map(|owner| owner.name.clone())
}
