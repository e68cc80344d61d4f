//! Whether a worker in a VPC reaches a Service by name, as traffic would flow: zone, record, endpoint, security group,
//! connection, endpoint service, load balancer, Service. Only reads, and names the first hop that fails.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde::Serialize;

use crate::ec2::endpoint::Endpoint;
use crate::ec2::rule::{Rule, Source};
use crate::engine::state::State;
use crate::route53::names;
use crate::simulated_aws::SimulatedAws;

/// The answer: the hops that hold, and, unless all of them do, the reason.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Reachable {
    /// Whether the name leads to a Service.
    pub ok: bool,
    /// An address that the name has in this VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The hops that hold, in order.
    pub path: Vec<Hop>,
    /// `HOP: reason` of the first hop that does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One step of the path that holds.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Hop {
    /// Which step.
    pub hop: HopKind,
    /// The id of what was found there.
    pub id: String,
    /// What was observed, in words for a person.
    pub detail: String,
}

/// The steps from a name to a Service.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HopKind {
    /// The private zone, associated with the VPC, that answers for the name.
    Zone,
    /// The record.
    Record,
    /// The endpoint whose DNS name the record has.
    Endpoint,
    /// The security groups of its network interface.
    SecurityGroup,
    /// The connection, as the owner of the endpoint service has it.
    Connection,
    /// The endpoint service.
    EndpointService,
    /// The load balancer.
    LoadBalancer,
    /// What stands behind it.
    Service,
}

/// What is asked: may a worker reach this name?
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Id of the worker's VPC.
    pub vpc: &'a str,
    /// The name.
    pub name: &'a str,
    /// The worker's address; the VPC's first, unless given.
    pub from: Option<Ipv4Addr>,
    /// The port; 443 unless given.
    pub port: Option<u16>,
}

type Broken = (HopKind, String);

struct Walk<'a> {
    state: &'a State,
    from: Ipv4Addr,
    port: i32,
    path: Vec<Hop>,
    address: Option<String>,
}

impl SimulatedAws {
    /// Follows a name from a VPC to the Service.
    pub fn reachable(&mut self, now: Timestamp, question: &Question<'_>) -> Reachable {
        self.state.advance(now);
        let first = self.state.vpcs.get(question.vpc).and_then(|vpc| match vpc.cidr {
            ipnet::IpNet::V4(net) => net.hosts().next(),
            ipnet::IpNet::V6(_) => None,
        });
        let mut walk = Walk {
            state: &self.state,
            from: question.from.or(first).unwrap_or(Ipv4Addr::UNSPECIFIED),
            port: i32::from(question.port.unwrap_or(443)),
            path: vec![],
            address: None,
        };
        let broken = walk.follow(question).err();
        Reachable {
            ok: broken.is_none(),
            address: walk.address,
            path: walk.path,
            why: broken.map(|(hop, why)| {
                let hop = serde_json::to_value(hop).ok();
                format!(
                    "{}: {why}",
                    hop.as_ref().and_then(|hop| hop.as_str()).unwrap_or_default()
                )
            }),
        }
    }
}

impl Walk<'_> {
    fn holds(&mut self, hop: HopKind, id: &str, detail: impl ToString) {
        let (id, detail) = (id.to_owned(), detail.to_string());
        self.path.push(Hop { hop, id, detail });
    }

    fn follow(&mut self, question: &Question<'_>) -> Result<(), Broken> {
        let value = self.resolve(question)?;
        let (id, endpoint) = self.endpoint(&value)?;
        if endpoint.vpc != question.vpc {
            return Err((
                HopKind::Endpoint,
                format!("{id} is in {}, not in {}", endpoint.vpc, question.vpc),
            ));
        }
        self.interface(&id, &endpoint)?;
        self.provider(&id, &endpoint)
    }

    /// The value of the record that the name has in the VPC.
    fn resolve(&mut self, question: &Question<'_>) -> Result<String, Broken> {
        let name = names::plain(question.name);
        let state = self.state;
        let zones = state.zones.iter().filter(|(_, zone)| {
            zone.private && names::is_in(&name, &zone.name) && zone.vpcs.iter().any(|vpc| vpc.id == question.vpc)
        });
        // The most specific zone answers alone.
        let (id, zone) = zones.max_by_key(|(_, zone)| zone.name.len()).ok_or_else(|| {
            (
                HopKind::Zone,
                format!("no private zone of {} answers for {name}", question.vpc),
            )
        })?;
        self.holds(HopKind::Zone, id, &zone.name);
        let exact = zone
            .records
            .iter()
            .find(|record| record.name == name && record.kind == "CNAME");
        let is_taken = zone.records.iter().any(|record| record.name == name);
        let covering = zone.records.iter().filter(|record| record.kind == "CNAME" && !is_taken);
        let wildcard = covering
            .filter(|record| names::covers(&record.name, &name))
            .max_by_key(|record| record.name.len());
        let record = exact
            .or(wildcard)
            .ok_or_else(|| (HopKind::Record, format!("no CNAME for {name} in {id}")))?;
        let value = record.values.first().cloned().unwrap_or_default();
        self.holds(HopKind::Record, &record.name, &value);
        Ok(value)
    }

    /// The endpoint that has a DNS name.
    fn endpoint(&mut self, name: &str) -> Result<(String, Endpoint), Broken> {
        let name = name.trim_end_matches('.');
        let state = self.state;
        let mut endpoints = state.endpoints.iter();
        let found = endpoints.find(|(id, endpoint)| endpoint.dns_names(state, id).iter().any(|known| known == name));
        let (id, endpoint) = found.ok_or_else(|| (HopKind::Endpoint, format!("{name} is no endpoint's name")))?;
        if endpoint.state != "available" {
            return Err((HopKind::Endpoint, format!("{id} is {}", endpoint.state)));
        }
        self.holds(HopKind::Endpoint, id, &endpoint.state);
        Ok((id.clone(), endpoint.clone()))
    }

    fn interface(&mut self, id: &str, endpoint: &Endpoint) -> Result<(), Broken> {
        let state = self.state;
        let mut interfaces = state.interfaces.values().filter(|interface| interface.endpoint == id);
        let interface = interfaces.find(|interface| interface.gone_at.is_none());
        let interface = interface.ok_or_else(|| (HopKind::Endpoint, format!("{id} has no subnet")))?;
        self.address = Some(interface.address.to_string());
        let groups = interface
            .groups
            .iter()
            .filter_map(|id| Some((id, state.groups.get(id)?)));
        let open = |rule: &Rule| {
            let protocol = ["tcp", "-1"].contains(&rule.protocol.as_str());
            let port = rule.ports.is_none_or(|(from, to)| (from..=to).contains(&self.port));
            let source = matches!(&rule.source, Source::Ipv4(net) if net.contains(&self.from));
            protocol && port && source
        };
        let opening = groups.into_iter().find(|(_, group)| group.ingress.iter().any(open));
        let (group, _) = opening.ok_or_else(|| {
            let why = format!(
                "no rule of {} lets {} to port {}",
                endpoint.groups.join(", "),
                self.from,
                self.port
            );
            (HopKind::SecurityGroup, why)
        })?;
        self.holds(
            HopKind::SecurityGroup,
            group,
            format!("{} to port {}", self.from, self.port),
        );
        Ok(())
    }

    /// From the connection to the Service.
    fn provider(&mut self, id: &str, endpoint: &Endpoint) -> Result<(), Broken> {
        let state = self.state;
        if endpoint.connection_state() != "available" {
            return Err((
                HopKind::Connection,
                format!("the connection of {id} is {}", endpoint.connection_state()),
            ));
        }
        self.holds(HopKind::Connection, id, endpoint.connection_state());
        let service_id = &endpoint.service_id;
        let service = state.endpoint_services.get(service_id);
        let service = service.ok_or_else(|| (HopKind::EndpointService, format!("{service_id} is gone")))?;
        if service.state != "Available" {
            return Err((HopKind::EndpointService, format!("{service_id} is {}", service.state)));
        }
        self.holds(HopKind::EndpointService, service_id, &service.state);
        let arn = service.load_balancers.first().cloned().unwrap_or_default();
        let balancer = state.load_balancers.get(&arn);
        let balancer = balancer.ok_or_else(|| (HopKind::LoadBalancer, format!("{arn} is gone")))?;
        if !balancer.state.starts_with("active") {
            return Err((
                HopKind::LoadBalancer,
                format!("{} is {}", balancer.name, balancer.state),
            ));
        }
        self.holds(HopKind::LoadBalancer, &arn, &balancer.state);
        let behind = state.services.iter().find(|known| known.load_balancer == arn);
        let behind = behind.ok_or_else(|| (HopKind::Service, format!("nothing stands behind {}", balancer.name)))?;
        self.holds(HopKind::Service, &behind.name, &balancer.name);
        Ok(())
    }
}
