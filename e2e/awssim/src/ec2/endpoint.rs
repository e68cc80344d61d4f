//! Interface endpoints and their network interfaces: what they are, and how their state moves.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::endpoint_service::{dns_suffix, service_name};
use super::time;
use super::vpc::long_ago;
use crate::engine::call::Call;
use crate::engine::preset::{Phase, Preset};
use crate::engine::state::State;
use crate::engine::tags::{self, Tags};
use crate::wire::xml::{Xml, group, list, text, texts};

/// An interface endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    pub(crate) vpc: String,
    /// Id of the endpoint service.
    pub(crate) service_id: String,
    /// In camel case, as on the wire.
    pub(crate) state: String,
    /// The next state and when it begins.
    #[serde(default)]
    pub(crate) next: Option<(Timestamp, String)>,
    /// The owner of the service has rejected it.
    #[serde(default)]
    pub(crate) rejected: bool,
    #[serde(default)]
    pub(crate) subnets: Vec<String>,
    #[serde(default)]
    pub(crate) groups: Vec<String>,
    /// A part of its DNS names.
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) tags: Tags,
    #[serde(default = "long_ago")]
    pub(crate) created: Timestamp,
    /// When its owner sees it no longer.
    #[serde(default)]
    pub(crate) unlisted_at: Option<Timestamp>,
}

/// A network interface of an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interface {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    pub(crate) vpc: String,
    pub(crate) subnet: String,
    #[serde(default)]
    pub(crate) groups: Vec<String>,
    pub(crate) address: std::net::Ipv4Addr,
    pub(crate) endpoint: String,
    /// When it is gone.
    #[serde(default)]
    pub(crate) gone_at: Option<Timestamp>,
}

impl Endpoint {
    /// Begins the states whose time has come.
    pub(crate) fn advance(&mut self, now: Timestamp, preset: Preset) {
        if let Some((at, to)) = self.next.take_if(|(at, _)| *at <= now) {
            if to == "deleted" {
                self.unlisted_at = Some(at + preset.lasts(Phase::EndpointDeleting));
            }
            self.state = to;
        }
    }

    /// Whether nobody sees it any more. Rejected ones stay so much longer for the owner of the service.
    pub(crate) fn is_gone(&self, now: Timestamp, rejected: SignedDuration) -> bool {
        let longer = if self.rejected { rejected } else { SignedDuration::ZERO };
        self.unlisted_at.is_some_and(|at| at + longer <= now)
    }

    /// Whether its owner sees it.
    pub(crate) fn is_listed(&self, now: Timestamp) -> bool {
        self.unlisted_at.is_none_or(|at| at > now)
    }

    /// Whether it is, or may become, available.
    pub(crate) fn is_live(&self) -> bool {
        ["pendingAcceptance", "pending", "available"].contains(&self.state.as_str())
    }

    /// The state that the owner of the service sees.
    pub(crate) fn connection_state(&self) -> &str {
        match self.rejected {
            true => "rejected",
            false => &self.state,
        }
    }

    /// Its names: the regional one first, then one for each zone.
    pub(crate) fn dns_names(&self, state: &State, id: &str) -> Vec<String> {
        let Self {
            account,
            region,
            service_id,
            label,
            ..
        } = self;
        let suffix = format!("{service_id}.{region}.vpce.{}", dns_suffix(state.partition(account)));
        let zones = self.subnets.iter().filter_map(|subnet| state.subnets.get(subnet));
        let zones = zones.map(|subnet| format!("-{}", state.zone_name(account, region, &subnet.zone_id)));
        let labels = [String::new()].into_iter().chain(zones);
        labels.map(|zone| format!("{id}-{label}{zone}.{suffix}")).collect()
    }

    pub(crate) fn dns_entries(&self, state: &State, id: &str) -> Xml {
        let names = self.dns_names(state, id).into_iter();
        // The zone that AWS keeps these names in.
        let entry = |name| vec![text("dnsName", name), text("hostedZoneId", "Z7HUB22UULQXV")];
        list("dnsEntrySet", "item", names.map(entry))
    }

    pub(super) fn show(&self, call: &Call<'_>, id: &str, tags: &Tags) -> Vec<Xml> {
        let interfaces = call
            .state
            .interfaces
            .iter()
            .filter(|(_, interface)| interface.endpoint == id);
        let interfaces: Vec<&String> = interfaces.map(|(id, _)| id).collect();
        let groups = self.groups.iter().map(|id| {
            let name = call.state.groups.get(id).map(|group| group.name.clone());
            vec![text("groupId", id), text("groupName", name.unwrap_or_default())]
        });
        let policy = r#"{"Statement":[{"Action":"*","Effect":"Allow","Principal":"*","Resource":"*"}]}"#;
        vec![
            text("vpcEndpointId", id),
            text("vpcEndpointType", "Interface"),
            text("vpcId", &self.vpc),
            text("serviceName", service_name(&self.region, &self.service_id)),
            text("state", &self.state),
            text("policyDocument", policy),
            group("routeTableIdSet", vec![]),
            texts("subnetIdSet", "item", &self.subnets),
            list("groupSet", "item", groups),
            text("ipAddressType", "ipv4"),
            group("dnsOptions", vec![text("dnsRecordIpType", "ipv4")]),
            text("privateDnsEnabled", false),
            text("requesterManaged", false),
            texts("networkInterfaceIdSet", "item", interfaces),
            self.dns_entries(call.state, id),
            text("creationTimestamp", time(self.created)),
            tags::show(tags),
            text("ownerId", &self.account),
        ]
    }
}

impl Interface {
    pub(super) fn show(&self, call: &Call<'_>, id: &str) -> Vec<Xml> {
        let zone_id = call
            .state
            .subnets
            .get(&self.subnet)
            .map(|subnet| subnet.zone_id.clone())
            .unwrap_or_default();
        let groups = self.groups.iter().map(|group| vec![text("groupId", group)]);
        vec![
            text("networkInterfaceId", id),
            text("subnetId", &self.subnet),
            text("vpcId", &self.vpc),
            text(
                "availabilityZone",
                call.state.zone_name(&self.account, &self.region, &zone_id),
            ),
            text("description", format!("VPC Endpoint Interface {}", self.endpoint)),
            text("ownerId", &self.account),
            text("requesterManaged", true),
            text("status", "in-use"),
            text("privateIpAddress", self.address),
            text("interfaceType", "vpc_endpoint"),
            list("groupSet", "item", groups),
        ]
    }
}

/// Takes the first free address of a subnet; AWS keeps its first four and its last.
pub(super) fn free_address(state: &State, subnet: &str) -> Option<std::net::Ipv4Addr> {
    let ipnet::IpNet::V4(net) = state.subnets.get(subnet)?.cidr else {
        return None;
    };
    let used: Vec<_> = state
        .interfaces
        .values()
        .filter(|known| known.subnet == subnet)
        .map(|known| known.address)
        .collect();
    let (first, last) = (u32::from(net.network()) + 4, u32::from(net.broadcast()));
    (first..last)
        .map(std::net::Ipv4Addr::from)
        .find(|address| !used.contains(address))
}
