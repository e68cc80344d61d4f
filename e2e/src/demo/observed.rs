//! What exists of one hosted cluster at one moment, in words: the Service's address, the custom resource and its
//! conditions, the resources in Azure, and which names lead to a Service.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::hosted_cluster::{Condition, HostedCluster, conditions};
use crate::test_env::TestEnv;

/// Everything that exists of the cluster, each thing with its state. What does not exist has no entry.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    things: BTreeMap<String, String>,
    available: bool,
    unreachable: Vec<String>,
}

impl Observed {
    /// Reads everything once.
    ///
    /// # Errors
    ///
    /// The API server or the oracle does not answer.
    pub async fn read(test_env: &TestEnv, client: &kube::Client, cluster: &HostedCluster) -> Result<Self> {
        let mut observed = Self::default();
        observed.read_kubernetes(client, cluster).await?;
        for subscription in [
            &test_env.azure().management_subscription,
            &test_env.azure().guest_subscription,
        ] {
            for resource in test_env
                .oracle()
                .resources(&format!("/subscriptions/{subscription}"))
                .await?
            {
                observed.add_resource(&resource, cluster);
            }
        }
        for name in cluster.host_names() {
            let found = test_env.oracle().reachable(&cluster.vnet(), &name).await?;
            let service = found.path.last().map(|hop| hop.id.clone()).unwrap_or_default();
            let state = match (found.ok, found.address) {
                (true, address) => format!("leads to {service} by {}", address.unwrap_or_default()),
                (false, _) => format!("leads nowhere: {}", found.why.unwrap_or_default()),
            };
            if !found.ok || service != cluster.service_behind(&name) {
                observed.unreachable.push(name.clone());
            }
            observed.things.insert(format!("name {name}"), state);
        }
        Ok(observed)
    }

    async fn read_kubernetes(&mut self, client: &kube::Client, cluster: &HostedCluster) -> Result<()> {
        self.available = true;
        for name in cluster.services() {
            if let Some(service) = cluster.get_service(client, name).await? {
                let ingress = service
                    .status
                    .and_then(|status| status.load_balancer)
                    .and_then(|status| status.ingress);
                if let Some(address) = ingress.unwrap_or_default().into_iter().find_map(|one| one.ip) {
                    self.things
                        .insert(format!("load balancer of {name}"), format!("gives it {address}"));
                }
            }
            let found = cluster.get_custom_resource(client, name).await?;
            self.available &= found.is_some_and(|found| self.add_custom_resource(name, &found));
        }
        Ok(())
    }

    /// Adds a custom resource; returns whether its summary condition is True.
    fn add_custom_resource(&mut self, name: &str, found: &DynamicObject) -> bool {
        let state = if found.metadata.deletion_timestamp.is_some() {
            "deleting"
        } else {
            "there"
        };
        self.things.insert(format!("custom resource {name}"), state.into());
        if let Some(alias) = found
            .data
            .pointer("/status/privateLinkServiceAlias")
            .and_then(Value::as_str)
        {
            self.things.insert(format!("alias in {name}"), alias.to_owned());
        }
        let mut available = false;
        for Condition {
            kind,
            status,
            reason,
            message,
            ..
        } in conditions(found)
        {
            available |= kind == "AzurePrivateLinkServiceAvailable" && status == "True";
            self.things.insert(
                format!("condition of {name} {kind}"),
                format!("{status} {reason}: {message}"),
            );
        }
        available
    }

    fn add_resource(&mut self, resource: &Value, cluster: &HostedCluster) {
        let id = resource["id"].as_str().unwrap_or_default();
        let Some((kind, name)) = kind_and_name(id) else { return };
        if !id.contains(&cluster.infra_id()) && !id.contains(&cluster.cluster_id()) {
            return;
        }
        let properties = &resource["properties"];
        let state = properties["provisioningState"].as_str().unwrap_or_default();
        let (label, detail) = match kind.as_str() {
            "virtualnetworks/subnets" if name.ends_with("-pls-nat") => {
                ("NAT subnet", text(&properties["addressPrefix"]))
            }
            "privatelinkservices" => ("Private Link Service", text(&properties["alias"])),
            "privateendpoints" => ("Private Endpoint", connection(properties)),
            "privatednszones" => ("zone", String::new()),
            "privatednszones/virtualnetworklinks" => ("zone link", text(&properties["virtualNetworkLinkState"])),
            "privatednszones/a" => ("record", addresses(properties)),
            _ => return,
        };
        self.things
            .insert(format!("{label} {name}"), format!("{state} {detail}").trim().to_owned());
    }

    /// Whether Hyperlink reports everything as available, and every name really leads to its Service.
    pub fn is_up(&self) -> bool {
        self.available && self.unreachable.is_empty()
    }

    /// What the cluster still lacks to be up, for a progress line.
    pub fn lacks(&self) -> String {
        match self.unreachable.first() {
            Some(name) => format!(
                "{name} {}",
                self.things.get(&format!("name {name}")).map_or("", String::as_str)
            ),
            None if self.available => "nothing".into(),
            None => "the summary condition".into(),
        }
    }

    /// How many things exist.
    pub fn count(&self) -> usize {
        self.things.len()
    }

    /// What differs from what was observed before, one line for each thing.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = self
            .things
            .iter()
            .filter(|(name, state)| before.things.get(*name) != Some(*state))
            .map(|(name, state)| format!("{name}  {state}"));
        let gone = before.things.keys().filter(|name| !self.things.contains_key(*name));
        new.chain(gone.map(|name| format!("{name}  is gone"))).collect()
    }
}

/// The type below `Microsoft.Network` in lower case, and the name; for private DNS, the name includes its parents'
/// names.
fn kind_and_name(id: &str) -> Option<(String, String)> {
    let (_, below) = id.split_once("/providers/Microsoft.Network/")?;
    let parts: Vec<_> = below.split('/').collect();
    let kinds: Vec<_> = parts.iter().step_by(2).map(|part| part.to_lowercase()).collect();
    let names: Vec<_> = parts.iter().skip(1).step_by(2).rev().copied().collect();
    let name = if kinds.first().is_some_and(|kind| kind == "privatednszones") {
        names.join(".")
    } else {
        (*names.first()?).to_owned()
    };
    Some((kinds.join("/"), name))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn connection(endpoint: &Value) -> String {
    let states = endpoint["manualPrivateLinkServiceConnections"]
        .as_array()
        .into_iter()
        .flatten();
    let states: Vec<_> = states
        .map(|one| text(&one["properties"]["privateLinkServiceConnectionState"]["status"]))
        .collect();
    states.join(" ")
}

fn addresses(record: &Value) -> String {
    let records = record["aRecords"].as_array().or(record["ARecords"].as_array());
    let all: Vec<_> = records
        .into_iter()
        .flatten()
        .map(|one| text(&one["ipv4Address"]))
        .collect();
    all.join(" ")
}
