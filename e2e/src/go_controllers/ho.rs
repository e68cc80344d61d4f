//! HyperShift's operator: NAT subnet, Private Link Service and its alias.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, ensure};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::arm::{classify, not_found};
use super::object::{CLUSTER_ANNOTATION, Change, has_finalizer, is_conflict, is_deleting, text, update_finalizer};
use super::queue::GoReconciler;
use super::{ClusterClients, Next, queue};
use crate::TestEnv;

const FINALIZER: &str = "hypershift.openshift.io/azure-pls-cleanup";
pub(super) const MANAGER: &str = "hypershift-operator-manager";

const BALANCER: &str = "AzureInternalLoadBalancerAvailable";
const CREATED: &str = "AzurePLSCreated";
const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

pub(super) struct Operator {
    clients: ClusterClients,
    location: String,
    /// The id prefix `/subscriptions/…/resourceGroups/…/providers/Microsoft.Network`.
    network: String,
}

/// The names and ids of a hosted cluster, and whether it is paused.
struct Cluster {
    name: String,
    id: String,
    infra_id: String,
    paused: bool,
}

impl Operator {
    pub(super) fn new(test_env: &TestEnv, clients: ClusterClients) -> Self {
        let azure = test_env.azure();
        Self {
            clients,
            location: azure.location.clone(),
            network: format!(
                "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
                azure.management_subscription, azure.management_group
            ),
        }
    }

    pub(super) async fn run(&self) -> Result<()> {
        let events = queue::names(queue::changes(self.clients.link_services()));
        queue::work(events, self.clients.speed, self).await
    }
}

impl GoReconciler for Operator {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let api = self.clients.link_services();
        let Some(mut cr) = api.get_opt(name).await? else {
            return Ok(Next::Event);
        };
        if is_deleting(&cr) {
            if !has_finalizer(&cr, FINALIZER) {
                return Ok(Next::Event);
            }
            if !self.delete(&cr).await? {
                return Ok(Next::WAIT);
            }
            update_finalizer(&api, &cr, FINALIZER, false, MANAGER).await?;
            return Ok(Next::Event);
        }
        if !has_finalizer(&cr, FINALIZER) {
            return match update_finalizer(&api, &cr, FINALIZER, true, MANAGER).await {
                Err(error) if is_conflict(&error) => Ok(Next::CONFLICT),
                outcome => outcome.map(|()| Next::Event),
            };
        }
        let cluster = self.cluster_of(&cr).await?;
        if cluster.paused {
            return Ok(Next::Event);
        }
        if text(&cr, "/spec/loadBalancerIP").is_empty() {
            return Ok(Next::WAIT);
        }
        match self.ensure_present(&api, &mut cr, &cluster).await {
            Ok(next) => Ok(next),
            Err(Failed { reason: None, error }) => Err(error),
            Err(Failed {
                reason: Some(reason),
                error,
            }) => {
                let (wait, class) = classify(&error);
                let message = format!("{class}: {error}");
                let change = Change::of(&cr)
                    .condition(CREATED, false, reason, &message)
                    .condition(AVAILABLE, false, reason, &message);
                change.send(&api, &mut cr, MANAGER).await?;
                Ok(Next::After(wait))
            }
        }
    }
}

impl Operator {
    async fn ensure_present(
        &self,
        api: &Api<DynamicObject>,
        cr: &mut DynamicObject,
        cluster: &Cluster,
    ) -> Result<Next, Failed> {
        let arm = &self.clients.arm;
        let id = self.link_service(&cr.name_any(), cluster);
        let allowed = allowed(cr);
        if let Some(mut found) = arm.get(&id).await.map_err(Failed::plain)? {
            if drifted(&found, &allowed) {
                for list in ["visibility", "autoApproval"] {
                    found["properties"][list] = json!({"subscriptions": allowed});
                }
                found = arm.put(&id, &found).await.map_err(Failed::because("PLSUpdateFailed"))?;
            }
            return self.publish(api, cr, &found).await;
        }
        if !text(cr, "/status/privateLinkServiceID").is_empty() {
            let message = "Private Link Service was deleted externally, recreating";
            let change = Change::of(cr)
                .field("privateLinkServiceID", Value::Null)
                .field("privateLinkServiceAlias", Value::Null)
                .condition(CREATED, false, "AzureError", message);
            change.send(api, cr, MANAGER).await.map_err(Failed::plain)?;
        }
        let frontend = self.frontend(text(cr, "/spec/loadBalancerIP")).await;
        let Some((balancer, frontend, subnet)) = frontend.map_err(Failed::because("ILBLookupFailed"))? else {
            return Ok(Next::WAIT);
        };
        let change = Change::of(cr).field("internalLoadBalancerID", balancer).condition(
            BALANCER,
            true,
            "AzureSuccess",
            "Internal Load Balancer found",
        );
        change.send(api, cr, MANAGER).await.map_err(Failed::plain)?;
        let nat = match text(cr, "/spec/natSubnetID") {
            "" => self
                .nat_subnet(&subnet, cluster)
                .await
                .map_err(Failed::because("NATSubnetCreationFailed"))?,
            given => given.to_owned(),
        };
        let body = self.body(cluster, &frontend, &nat, &allowed);
        let made = arm
            .put(&id, &body)
            .await
            .map_err(Failed::because("PLSCreationFailed"))?;
        self.publish(api, cr, &made).await
    }

    /// Publishes id, alias and the two conditions, after every read of the service.
    async fn publish(&self, api: &Api<DynamicObject>, cr: &mut DynamicObject, found: &Value) -> Result<Next, Failed> {
        let alias = found["properties"]["alias"].as_str();
        let frontends = found["properties"]["loadBalancerFrontendIpConfigurations"].as_array();
        let ready = alias.is_some() && frontends.is_some_and(|list| !list.is_empty());
        let (reason, message) = if ready {
            ("AzureSuccess", "Azure Private Link Service is ready")
        } else {
            ("AzureError", "Azure Private Link Service is not properly configured")
        };
        let mut change = Change::of(cr)
            .condition(CREATED, ready, reason, message)
            .condition(AVAILABLE, ready, reason, message);
        for (field, value) in [
            ("privateLinkServiceID", found["id"].as_str()),
            ("privateLinkServiceAlias", alias),
        ] {
            if let Some(value) = value {
                change = change.field(field, value);
            }
        }
        change.send(api, cr, MANAGER).await.map_err(Failed::plain)?;
        Ok(Next::DRIFT)
    }

    fn body(&self, cluster: &Cluster, frontend: &str, nat: &str, allowed: &[String]) -> Value {
        json!({
            "location": self.location,
            "tags": {
                format!("kubernetes.io_cluster_{}", cluster.name): "owned",
                "hypershift.openshift.io_resource-type": "private-link-service",
            },
            "properties": {
                "loadBalancerFrontendIpConfigurations": [{"id": frontend}],
                "ipConfigurations": [{"name": "pls-nat-ip", "properties": {
                    "privateIPAllocationMethod": "Dynamic", "primary": true, "subnet": {"id": nat}}}],
                "visibility": {"subscriptions": allowed},
                "autoApproval": {"subscriptions": allowed},
                "enableProxyProtocol": false,
            },
        })
    }

    fn link_service(&self, cr: &str, cluster: &Cluster) -> String {
        let name = match cr {
            "private-router" => format!("pls-{}", cluster.id),
            other => format!("pls-{other}-{}", cluster.id),
        };
        format!("{}/privateLinkServices/{name}", self.network)
    }

    async fn cluster_of(&self, cr: &DynamicObject) -> Result<Cluster> {
        let annotation = cr
            .annotations()
            .get(CLUSTER_ANNOTATION)
            .context("no cluster annotation")?;
        let (namespace, name) = annotation.split_once('/').context("cluster annotation format")?;
        ensure!(!namespace.is_empty() && !name.is_empty(), "cluster annotation format");
        let api = self.clients.cluster.api(&self.clients.kube, "HostedCluster", namespace);
        let found = api.get(name).await?;
        Ok(Cluster {
            name: name.to_owned(),
            id: text(&found, "/spec/clusterID").to_owned(),
            infra_id: text(&found, "/spec/infraID").to_owned(),
            paused: text(&found, "/spec/pausedUntil") == "true",
        })
    }

    /// The first frontend with this address, on any load balancer of the group: the ids of balancer, frontend and
    /// subnet.
    async fn frontend(&self, address: &str) -> Result<Option<(String, String, String)>> {
        for balancer in self
            .clients
            .arm
            .list(&format!("{}/loadBalancers", self.network))
            .await?
        {
            for frontend in balancer["properties"]["frontendIPConfigurations"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let properties = &frontend["properties"];
                if properties["privateIPAddress"] == address {
                    let id = |value: &Value| value.as_str().map(str::to_owned).context("an id");
                    let subnet = id(&properties["subnet"]["id"])?;
                    return Ok(Some((id(&balancer["id"])?, id(&frontend["id"])?, subnet)));
                }
            }
        }
        Ok(None)
    }

    /// The id of the NAT subnet. An existing subnet of that name is used as it is; a new one gets the first free prefix
    /// of 10.0.1.0/24 … 10.0.255.0/24.
    async fn nat_subnet(&self, frontend_subnet: &str, cluster: &Cluster) -> Result<String> {
        let arm = &self.clients.arm;
        let (vnet, _) = frontend_subnet.split_once("/subnets/").context("a subnet's id")?;
        let id = format!("{vnet}/subnets/{}-pls-nat", cluster.infra_id);
        if arm.get(&id).await?.is_some() {
            return Ok(id);
        }
        let subnets = arm.list(&format!("{vnet}/subnets")).await?;
        let is_used = |prefix: &str| {
            subnets
                .iter()
                .any(|subnet| subnet["properties"]["addressPrefix"] == prefix)
        };
        let free = (1..=255)
            .map(|third| format!("10.0.{third}.0/24"))
            .find(|prefix| !is_used(prefix));
        let prefix = free.ok_or_else(|| anyhow!("no free prefix"))?;
        let body = json!({"properties": {"addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"}});
        arm.put(&id, &body).await?;
        Ok(id)
    }

    /// Rejects all connections, then deletes the service; returns whether it is gone. It deletes only a service that
    /// the status names.
    async fn delete(&self, cr: &DynamicObject) -> Result<bool> {
        let arm = &self.clients.arm;
        let recorded = text(cr, "/status/privateLinkServiceID");
        let Some(name) = recorded.rsplit('/').next().filter(|name| !name.is_empty()) else {
            return Ok(true);
        };
        let id = format!("{}/privateLinkServices/{name}", self.network);
        let Some(found) = arm.get(&id).await? else {
            return Ok(true);
        };
        let mut rejected = false;
        for connection in found["properties"]["privateEndpointConnections"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let state = connection["properties"]["privateLinkServiceConnectionState"]["status"].as_str();
            if matches!(state, Some("Approved" | "Pending")) {
                let name = connection["name"].as_str().context("a connection's name")?;
                let state =
                    json!({"status": "Rejected", "description": "Rejected during Private Link Service deletion"});
                let body = json!({"name": name, "properties": {"privateLinkServiceConnectionState": state}});
                let connection = format!("{id}/privateEndpointConnections/{name}");
                match arm.put_once(&connection, &body).await {
                    Err(error) if not_found(&error) => {}
                    outcome => outcome?,
                }
                rejected = true;
            }
        }
        if rejected {
            return Ok(false);
        }
        arm.delete(&id).await?;
        Ok(true)
    }
}

/// The subscription of the guest subnet, then the `additionalAllowedSubscriptions` without that one.
fn allowed(cr: &DynamicObject) -> Vec<String> {
    let guest = text(cr, "/spec/guestSubnetID").split('/').nth(2).unwrap_or_default();
    let more = cr
        .data
        .pointer("/spec/additionalAllowedSubscriptions")
        .and_then(Value::as_array);
    let more = more
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|one| *one != guest);
    std::iter::once(guest).chain(more).map(str::to_owned).collect()
}

fn drifted(found: &Value, allowed: &[String]) -> bool {
    let desired: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
    ["visibility", "autoApproval"].into_iter().any(|list| {
        let has = found["properties"][list]["subscriptions"].as_array();
        let has: BTreeSet<&str> = has.into_iter().flatten().filter_map(Value::as_str).collect();
        has != desired
    })
}

/// A failure, with the reason of its condition. Most failures of HyperShift's operator have none.
struct Failed {
    reason: Option<&'static str>,
    error: anyhow::Error,
}

impl Failed {
    fn plain(error: anyhow::Error) -> Self {
        Self { reason: None, error }
    }

    fn because(reason: &'static str) -> impl FnOnce(anyhow::Error) -> Self {
        move |error| Self {
            reason: Some(reason),
            error,
        }
    }
}
