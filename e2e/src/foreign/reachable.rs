//! Whether a worker reaches a Service by name, according to ARM's resources: the zone and its link, the record, the
//! Private Endpoint, its connection as the Private Link Service has it, that service's frontend, and the cluster's
//! Service with the frontend's address.
//!
//! It only reads, and relies on nothing that Hyperlink reports.

use anyhow::Result;
use k8s_openapi::api::core::v1::Service;
use kube::api::Api;
use serde_json::Value;

use super::arm::Arm;
use crate::test_env::{Hop, Reachable};

/// The result of a hop: its resource, or why it does not work.
type Step<T> = Result<std::result::Result<T, String>>;

macro_rules! hold {
    ($step:expr) => {
        match $step? {
            Ok(held) => held,
            Err(why) => return Ok(Err(why)),
        }
    };
}

/// The path of a worker in a VNet, hop by hop.
pub(super) struct Walk<'a> {
    arm: &'a Arm,
    client: &'a kube::Client,
    vnet: &'a str,
    network: String,
    path: Vec<Hop>,
    address: Option<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(arm: &'a Arm, client: &'a kube::Client, vnet: &'a str) -> Self {
        let subscription = &arm.bounds().subscription;
        Self {
            arm,
            client,
            vnet,
            network: format!("/subscriptions/{subscription}/providers/Microsoft.Network"),
            path: Vec::new(),
            address: None,
        }
    }

    pub(super) async fn by_name(mut self, name: &str) -> Result<Reachable> {
        let end = self.walk(name).await?;
        Ok(Reachable {
            ok: end.is_ok(),
            address: self.address,
            path: self.path,
            why: end.err(),
        })
    }

    async fn walk(&mut self, name: &str) -> Step<()> {
        let zone = hold!(self.zone(name).await);
        let address = hold!(self.record(&zone, name).await);
        self.address = Some(address.clone());
        let endpoint = hold!(self.endpoint_at(&address).await);
        let service = hold!(self.approving_service(&endpoint).await);
        let address = hold!(self.frontend(&service).await);
        self.service_at(&address).await
    }

    /// The most specific zone that contains the name and is linked to the VNet. Azure asks no other zone.
    async fn zone(&mut self, name: &str) -> Step<Value> {
        let zones = self.arm.list(&format!("{}/privateDnsZones", self.network)).await?;
        let mut zones: Vec<_> = zones
            .into_iter()
            .filter(|zone| relative(name, zone).is_some())
            .collect();
        zones.sort_by_key(|zone| std::cmp::Reverse(text(&zone["name"]).len()));
        for zone in zones {
            let links = self
                .arm
                .list(&format!("{}/virtualNetworkLinks", text(&zone["id"])))
                .await?;
            let linked = links.iter().find(|link| {
                let properties = &link["properties"];
                same(text(&properties["virtualNetwork"]["id"]), self.vnet)
                    && properties["virtualNetworkLinkState"] == "Completed"
            });
            if let Some(link) = linked {
                self.hold("zone", &zone);
                self.hold("link", link);
                return Ok(Ok(zone));
            }
        }
        Ok(Err(format!("zone: none that holds {name} is linked to {}", self.vnet)))
    }

    /// The address of the name's record: of the exact name, or else of the most specific wildcard.
    async fn record(&mut self, zone: &Value, name: &str) -> Step<String> {
        let relative = relative(name, zone).unwrap_or_default();
        let labels: Vec<_> = relative.split('.').collect();
        let wildcards = (1..=labels.len()).map(|cut| [&["*"][..], &labels[cut..]].concat().join("."));
        for candidate in std::iter::once(relative.clone()).chain(wildcards) {
            let id = format!("{}/A/{candidate}", text(&zone["id"]));
            let Some(set) = self.arm.get(&id).await? else {
                continue;
            };
            let values = set["properties"]["aRecords"].as_array().cloned().unwrap_or_default();
            let [value] = values.as_slice() else {
                return Ok(Err(format!("record: {id} has {} values", values.len())));
            };
            self.hold("record", &set);
            return Ok(Ok(text(&value["ipv4Address"]).to_owned()));
        }
        Ok(Err(format!("record: {} has none for {name}", text(&zone["id"]))))
    }

    async fn endpoint_at(&mut self, address: &str) -> Step<Value> {
        let within = format!("{}/subnets/", self.vnet);
        for endpoint in self.arm.list(&format!("{}/privateEndpoints", self.network)).await? {
            let properties = &endpoint["properties"];
            if !begins(text(&properties["subnet"]["id"]), &within) {
                continue;
            }
            if self.has_address(&properties["networkInterfaces"], address).await? {
                self.hold("endpoint", &endpoint);
                return Ok(Ok(endpoint));
            }
        }
        Ok(Err(format!("endpoint: none in {} has {address}", self.vnet)))
    }

    async fn has_address(&self, interfaces: &Value, address: &str) -> Result<bool> {
        for reference in list(interfaces) {
            let found = self.arm.get(text(&reference["id"])).await?.unwrap_or_default();
            let mut configurations = list(&found["properties"]["ipConfigurations"]);
            if configurations.any(|one| one["properties"]["privateIPAddress"] == address) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The Private Link Service that has approved the endpoint. Only the service's side of the connection counts.
    async fn approving_service(&mut self, endpoint: &Value) -> Step<Value> {
        let id = text(&endpoint["id"]);
        for service in self.arm.list(&format!("{}/privateLinkServices", self.network)).await? {
            let connection = list(&service["properties"]["privateEndpointConnections"])
                .find(|one| same(text(&one["properties"]["privateEndpoint"]["id"]), id));
            let Some(connection) = connection else {
                continue;
            };
            let status = text(&connection["properties"]["privateLinkServiceConnectionState"]["status"]);
            if status != "Approved" {
                return Ok(Err(format!("connection: {} is {status}", text(&connection["id"]))));
            }
            self.hold("connection", connection);
            self.hold("link_service", &service);
            return Ok(Ok(service));
        }
        Ok(Err(format!("connection: no service has one of {id}")))
    }

    /// The address of the service's frontend.
    async fn frontend(&mut self, service: &Value) -> Step<String> {
        let configurations = &service["properties"]["loadBalancerFrontendIpConfigurations"];
        let id = list(configurations)
            .next()
            .map(|one| text(&one["id"]))
            .unwrap_or_default();
        let balancer = id.split("/frontendIPConfigurations/").next().unwrap_or_default();
        let found = self.arm.get(balancer).await?.unwrap_or_default();
        let frontend = list(&found["properties"]["frontendIPConfigurations"]).find(|one| same(text(&one["id"]), id));
        let Some(frontend) = frontend else {
            return Ok(Err(format!("frontend: {id} does not exist")));
        };
        self.hold("frontend", frontend);
        Ok(Ok(text(&frontend["properties"]["privateIPAddress"]).to_owned()))
    }

    async fn service_at(&mut self, address: &str) -> Step<()> {
        let services: Api<Service> = Api::all(self.client.clone());
        for service in services.list(&Default::default()).await? {
            let status = service.status.and_then(|status| status.load_balancer);
            let ingress = status.and_then(|status| status.ingress).unwrap_or_default();
            if ingress.iter().any(|one| one.ip.as_deref() == Some(address)) {
                let metadata = service.metadata;
                let id = [metadata.namespace, metadata.name]
                    .map(Option::unwrap_or_default)
                    .join("/");
                self.path.push(Hop {
                    hop: "service".to_owned(),
                    id,
                });
                return Ok(Ok(()));
            }
        }
        Ok(Err(format!("service: none has {address}")))
    }

    fn hold(&mut self, hop: &str, found: &Value) {
        self.path.push(Hop {
            hop: hop.to_owned(),
            id: text(&found["id"]).to_owned(),
        });
    }
}

/// A name without its zone; none where the zone does not contain it.
fn relative(name: &str, zone: &Value) -> Option<String> {
    let zone = text(&zone["name"]);
    let rest = name.strip_suffix(zone)?.strip_suffix('.')?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn begins(id: &str, prefix: &str) -> bool {
    id.to_ascii_lowercase().starts_with(&prefix.to_ascii_lowercase())
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
