//! The walk itself, hop by hop: each step either adds a hop to the path or gives the reason why it does not hold.
//!
//! What the endpoint's side shows of its connection is not believed, the provider's side is. How a name becomes addresses
//! is the part of [`super::lookup`].

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{Hop, HopKind};
use crate::engine::context::Context;
use crate::engine::resource::{ProvisioningState, Resource};
use crate::engine::seed::Service;
use crate::network::{connection, endpoint, nic};

/// A hop that does not hold.
pub(super) struct Broken {
    pub(super) hop: HopKind,
    pub(super) why: String,
}

pub(super) type Step<T> = Result<T, Broken>;

pub(super) fn broken<T>(hop: HopKind, why: impl Into<String>) -> Step<T> {
    Err(Broken { hop, why: why.into() })
}

/// A worker on its way.
pub(super) struct Walk<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) vnet: &'a str,
    pub(super) path: Vec<Hop>,
    pub(super) address: Option<String>,
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
        let addresses = self.addresses_of(name)?;
        self.address = addresses.first().map(Ipv4Addr::to_string);
        let several = addresses.len();
        let mut reached: Vec<&str> = Vec::new();
        for address in addresses {
            let service = self.by_address(address).map_err(|mut broken| {
                if several > 1 {
                    broken.why.push_str(&format!(" ({address} is one of {several} values)"));
                }
                broken
            })?;
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
        let mut holding = self.all(nic::TYPE).flat_map(|nic| {
            let subnets = list(nic.property("ipConfigurations"))
                .map(|configuration| &configuration["properties"])
                .filter(|ip| text(&ip["privateIPAddress"]).parse() == Ok(address))
                .map(|ip| text(&ip["subnet"]["id"]).to_ascii_lowercase());
            subnets.map(move |subnet| (nic, subnet))
        });
        let mut elsewhere = None;
        let here = holding.find(|(nic, subnet)| {
            elsewhere = elsewhere.or(Some(*nic));
            subnet.starts_with(&in_vnet)
        });
        let Some((nic, _)) = here else {
            let mut why = format!("nothing in the virtual network has {address}");
            if let Some(nic) = elsewhere {
                let owner = text(&nic.body["managedBy"]);
                why.push_str(&format!(
                    "; {owner} has it in another virtual network, and peering is not simulated"
                ));
            }
            return broken(HopKind::Endpoint, why);
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

    pub(super) fn all(&self, resource_type: &'static str) -> impl Iterator<Item = &'a Resource> + use<'a> {
        self.cx.state.store.all_of_type(resource_type)
    }

    pub(super) fn hold(&mut self, hop: HopKind, found: &Resource, detail: impl Into<String>) {
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

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
