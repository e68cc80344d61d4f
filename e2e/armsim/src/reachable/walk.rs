//! The walk itself, hop by hop: each step either adds a hop to the path or says why it does not hold.
//!
//! Look-ups of names follow [`resolve`]; what the endpoint's side shows of its connection is not believed, the provider's
//! side is.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{Hop, HopKind};
use crate::dns::{links, record_sets, resolve, zone};
use crate::engine::context::Context;
use crate::engine::resource::{ProvisioningState, Resource};
use crate::engine::seed::Service;
use crate::network::{connection, endpoint, nic};

/// Azure's own resolver: a VNet that lists it among its DNS servers still sees private zones.
const AZURE_RESOLVER: &str = "168.63.129.16";
/// CNAMEs followed before a look-up is given up.
const MOST_ALIASES: usize = 8;

/// A hop that does not hold.
pub(super) struct Broken {
    pub(super) hop: HopKind,
    pub(super) why: String,
}

pub(super) type Step<T> = Result<T, Broken>;

fn broken<T>(hop: HopKind, why: impl Into<String>) -> Step<T> {
    Err(Broken { hop, why: why.into() })
}

/// A worker on its way.
pub(super) struct Walk<'a> {
    cx: &'a Context<'a>,
    vnet: &'a str,
    pub(super) path: Vec<Hop>,
    pub(super) address: Option<String>,
}

/// What a record set says about a name.
enum Answer {
    Addresses(Vec<Ipv4Addr>),
    Alias(String),
}

impl<'a> Walk<'a> {
    pub(super) fn new(cx: &'a Context<'a>, vnet: &'a str) -> Self {
        Self {
            cx,
            vnet,
            path: Vec::new(),
            address: None,
        }
    }

    /// The whole way from a name.
    pub(super) fn by_name(&mut self, name: &str) -> Step<()> {
        self.asks_azure_dns()?;
        let addresses = self.look_up(name)?;
        self.address = addresses.first().map(Ipv4Addr::to_string);
        let mut reached: Vec<&str> = Vec::new();
        for address in addresses {
            let service = self.by_address(address)?;
            if !reached.contains(&service) {
                reached.push(service);
            }
        }
        match reached.as_slice() {
            [_] => Ok(()),
            several => {
                let several = several.join(", ");
                broken(
                    HopKind::Service,
                    format!("the values lead to different Services: {several}"),
                )
            }
        }
    }

    /// Private zones are only seen through Azure's resolver.
    fn asks_azure_dns(&self) -> Step<()> {
        let Some(vnet) = self.cx.state.store.find(self.vnet) else {
            return broken(
                HopKind::Zone,
                format!("the virtual network {} does not exist", self.vnet),
            );
        };
        let servers: Vec<&str> = list(&vnet.property("dhcpOptions")["dnsServers"]).map(text).collect();
        if servers.is_empty() || servers.contains(&AZURE_RESOLVER) {
            return Ok(());
        }
        let servers = servers.join(", ");
        let why = format!("the virtual network asks its own DNS servers ({servers}), which see no private zones");
        broken(HopKind::Zone, why)
    }

    fn look_up(&mut self, name: &str) -> Step<Vec<Ipv4Addr>> {
        let mut name = resolve::normal(name);
        for _ in 0..MOST_ALIASES {
            let zone = self.answering_zone(&name)?;
            match self.record_in(zone, &name)? {
                Answer::Addresses(addresses) => return Ok(addresses),
                Answer::Alias(target) => name = resolve::normal(&target),
            }
        }
        broken(
            HopKind::Record,
            format!("more than {MOST_ALIASES} CNAMEs follow one another"),
        )
    }

    /// The most specific zone with a completed link; it alone answers.
    fn answering_zone(&mut self, name: &str) -> Step<&'a Resource> {
        let holding = self
            .all(zone::TYPE)
            .filter(|zone| resolve::relative(name, zone.id.name()).is_some());
        let zones: Vec<(&Resource, Option<&Resource>)> = holding.map(|zone| (zone, self.link_of(zone))).collect();
        let linked: Vec<(&Resource, &Resource)> = zones
            .iter()
            .filter_map(|(zone, link)| Some((*zone, link.filter(|link| self.completed(link))?)))
            .collect();
        if let Some(best) = resolve::most_specific(linked.iter().map(|(zone, _)| zone.id.name()), name) {
            let (zone, link) = linked[best];
            self.hold(HopKind::Zone, zone, format!("{} answers for {name}", zone.id.name()));
            self.hold(HopKind::Link, link, "Completed");
            return Ok(zone);
        }
        let Some(best) = resolve::most_specific(zones.iter().map(|(zone, _)| zone.id.name()), name) else {
            return broken(HopKind::Zone, format!("no private zone holds {name}"));
        };
        let (zone, link) = zones[best];
        self.hold(HopKind::Zone, zone, format!("{} holds {name}", zone.id.name()));
        broken(
            HopKind::Link,
            match link {
                None => format!("{} is not linked to the virtual network", zone.id.name()),
                Some(link) => format!("{} is not completed yet", link.id),
            },
        )
    }

    fn link_of(&self, zone: &Resource) -> Option<&'a Resource> {
        let links = links::of(&self.cx.state.store, &zone.id);
        links
            .filter(|link| same(text(&link.property("virtualNetwork")["id"]), self.vnet))
            .max_by_key(|link| self.completed(link))
    }

    fn record_in(&mut self, zone: &Resource, name: &str) -> Step<Answer> {
        let relative = resolve::relative(name, zone.id.name()).unwrap_or_default();
        let sets: Vec<&Resource> = record_sets::of(&self.cx.state.store, &zone.id).collect();
        let names: Vec<&str> = sets.iter().map(|set| set.id.name()).collect();
        let Some(answering) = resolve::answering(&names, &relative) else {
            return broken(HopKind::Record, format!("{} has no record for {name}", zone.id.name()));
        };
        let of_type = |kind: &str| {
            let mut named = sets.iter().filter(|set| set.id.name() == answering);
            named.find(|set| set.resource_type.ends_with(kind)).copied()
        };
        if let Some(alias) = of_type("/CNAME") {
            let target = text(&alias.property("cnameRecord")["cname"]).to_owned();
            self.hold(HopKind::Record, alias, format!("{name} is an alias of {target}"));
            return Ok(Answer::Alias(target));
        }
        let Some(set) = of_type("/A") else {
            return broken(
                HopKind::Record,
                format!("{} has no A record for {name}", zone.id.name()),
            );
        };
        let values: Vec<&str> = list(set.property("aRecords"))
            .map(|record| text(&record["ipv4Address"]))
            .collect();
        let addresses: Vec<Ipv4Addr> = values.iter().filter_map(|value| value.parse().ok()).collect();
        if addresses.is_empty() {
            return broken(HopKind::Record, format!("{} has no records", set.id));
        }
        self.hold(HopKind::Record, set, format!("{name} is {}", values.join(", ")));
        Ok(Answer::Addresses(addresses))
    }

    /// From one address to the Service behind it; answers the Service's name.
    fn by_address(&mut self, address: Ipv4Addr) -> Step<&'a str> {
        let endpoint = self.endpoint_at(address)?;
        let link_service = self.approving_service(endpoint)?;
        if link_service.state != ProvisioningState::Succeeded {
            return broken(
                HopKind::LinkService,
                format!("{} is {}", link_service.id, link_service.state.as_str()),
            );
        }
        self.hold(HopKind::LinkService, link_service, text(link_service.property("alias")));
        self.service_behind(link_service)
    }

    fn endpoint_at(&mut self, address: Ipv4Addr) -> Step<&'a Resource> {
        let in_vnet = format!("{}/subnets/", self.vnet.to_ascii_lowercase());
        let holds = |nic: &&Resource| {
            list(nic.property("ipConfigurations"))
                .map(|configuration| &configuration["properties"])
                .any(|ip| {
                    text(&ip["privateIPAddress"]).parse() == Ok(address)
                        && text(&ip["subnet"]["id"]).to_ascii_lowercase().starts_with(&in_vnet)
                })
        };
        let Some(nic) = self.all(nic::TYPE).find(holds) else {
            return broken(
                HopKind::Endpoint,
                format!("nothing in the virtual network has {address}"),
            );
        };
        let Some(endpoint) = self.cx.state.store.find(text(&nic.property("privateEndpoint")["id"])) else {
            return broken(
                HopKind::Endpoint,
                format!("{address} belongs to {}, not to a private endpoint", nic.id),
            );
        };
        if endpoint.state != ProvisioningState::Succeeded {
            return broken(
                HopKind::Endpoint,
                format!("{} is {}", endpoint.id, endpoint.state.as_str()),
            );
        }
        self.hold(HopKind::Endpoint, endpoint, format!("has {address}"));
        Ok(endpoint)
    }

    /// The Private Link Service that the endpoint asks for, if it has approved the connection: its word counts, not the
    /// endpoint's.
    fn approving_service(&mut self, endpoint: &Resource) -> Step<&'a Resource> {
        let service = endpoint::service_of(self.cx, endpoint);
        let Some(link_service) = service.and_then(|service| self.cx.state.store.get(&service)) else {
            return broken(
                HopKind::Connection,
                format!("{} asks for a service that does not exist", endpoint.id),
            );
        };
        let Some(connection) = connection::made_by(self.cx, &link_service.id, &endpoint.id) else {
            return broken(
                HopKind::Connection,
                format!("{} has no connection of {}", link_service.id, endpoint.id),
            );
        };
        let status = connection::status(connection);
        if status != "Approved" {
            return broken(HopKind::Connection, format!("{} is {status}", connection.id));
        }
        self.hold(HopKind::Connection, connection, status);
        Ok(link_service)
    }

    fn service_behind(&mut self, link_service: &Resource) -> Step<&'a str> {
        let frontends = list(link_service.property("loadBalancerFrontendIpConfigurations"));
        let Some(frontend) = frontends.map(|frontend| text(&frontend["id"])).next() else {
            return broken(HopKind::Frontend, format!("{} has no frontend", link_service.id));
        };
        let Some((balancer, name)) = frontend_of(frontend) else {
            return broken(HopKind::Frontend, format!("'{frontend}' is not a frontend's id"));
        };
        let exists = self.cx.state.store.find(balancer).is_some_and(|balancer| {
            list(balancer.property("frontendIPConfigurations")).any(|frontend| same(text(&frontend["name"]), name))
        });
        if !exists {
            return broken(HopKind::Frontend, format!("{frontend} does not exist"));
        }
        self.path.push(Hop {
            hop: HopKind::Frontend,
            id: frontend.to_owned(),
            detail: name.to_owned(),
        });
        let behind = |service: &&Service| same(&service.load_balancer, balancer) && same(&service.frontend, name);
        let Some(service) = self.cx.state.services.iter().find(behind) else {
            return broken(HopKind::Service, format!("nothing stands behind {frontend}"));
        };
        self.path.push(Hop {
            hop: HopKind::Service,
            id: service.name.clone(),
            detail: format!("behind {name}"),
        });
        Ok(&service.name)
    }

    fn completed(&self, link: &Resource) -> bool {
        links::is_complete(link, self.cx.now, self.cx.state.switches.link_complete_lag_s)
    }

    fn all(&self, resource_type: &'static str) -> impl Iterator<Item = &'a Resource> + use<'a> {
        self.cx.state.store.all_of_type(resource_type)
    }

    fn hold(&mut self, hop: HopKind, found: &Resource, detail: impl Into<String>) {
        self.path.push(Hop {
            hop,
            id: found.id.to_string(),
            detail: detail.into(),
        });
    }
}

/// The load balancer's id and the frontend's name in a frontend's id.
fn frontend_of(id: &str) -> Option<(&str, &str)> {
    let (head, name) = id.rsplit_once('/')?;
    let (balancer, kind) = head.rsplit_once('/')?;
    same(kind, "frontendIPConfigurations").then_some((balancer, name))
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
