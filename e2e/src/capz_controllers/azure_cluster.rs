//! What CAPZ reads of an AzureCluster.

use anyhow::{Context, Result};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

/// An AzureCluster as it was read.
pub(super) struct AzureCluster<'a> {
    pub(super) object: &'a DynamicObject,
    pub(super) location: &'a str,
    group: String,
}

impl<'a> AzureCluster<'a> {
    pub(super) fn of(object: &'a DynamicObject) -> Result<Self> {
        let spec = &object.data["spec"];
        let subscription = spec["subscriptionID"].as_str().context("no subscription")?;
        let name = object.name_any();
        let group = spec["resourceGroup"].as_str().unwrap_or(&name);
        Ok(Self {
            object,
            location: spec["location"].as_str().context("no location")?,
            group: format!("/subscriptions/{subscription}/resourceGroups/{group}"),
        })
    }

    /// ARM id of a resource of Microsoft.Network in its group; without a name, of all of that kind.
    pub(super) fn network_id(&self, kind: &str, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("{}/providers/Microsoft.Network/{kind}{slash}{name}", self.group)
    }

    /// ARM id of its VNet.
    pub(super) fn vnet(&self) -> String {
        let name = self.object.data["spec"]["networkSpec"]["vnet"]["name"].as_str();
        self.network_id("virtualNetworks", name.unwrap_or_default())
    }

    /// ARM id of one of its subnets.
    pub(super) fn subnet(&self, name: &str) -> String {
        format!("{}/subnets/{name}", self.vnet())
    }

    /// The tag on what CAPZ makes for it, with the value `owned`.
    pub(super) fn tag(&self) -> String {
        format!(
            "sigs.k8s.io_cluster-api-provider-azure_cluster_{}",
            self.object.name_any()
        )
    }

    /// Whether CAPZ has made a resource for it.
    pub(super) fn has_made(&self, resource: &Value) -> bool {
        resource["tags"][self.tag()] == "owned"
    }

    /// The load balancer of its API server.
    pub(super) fn load_balancer(&self) -> &'a Value {
        &self.object.data["spec"]["networkSpec"]["apiServerLB"]
    }
}

/// The texts of a list; everything else in it is left out.
pub(super) fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
