//! Many clusters of one process: their desired resources, and reconciles of all of them, each when it is due.

use std::collections::BTreeSet;
use std::time::Duration;

use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::azure::cloud::Arm;
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone;
use hyperlink::azure::kinds::private_endpoint::PrivateEndpoint;
use hyperlink::azure::kinds::private_link_service::{OwnedPrivateLinkService, PrivateLinkService, alias};
use hyperlink::azure::kinds::record_set::RecordSet;
use hyperlink::azure::kinds::subnet::NatSubnet;
use hyperlink::azure::kinds::virtual_network_link::VirtualNetworkLink;
use hyperlink::azure::owner_tags::OwnerTags;
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::Resource;
use hyperlink::engine::urgency::Urgency;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::desired::{ADDRESS, GUEST_SUB, NET, id, stamp};
use crate::seed::seed;
use crate::sim::Sim;

/// The desired resources of one role for one cluster, which one reconcile handles.
pub(crate) type Group = Vec<Box<dyn Resource<Arm>>>;

/// A seed for so many clusters, each with its own group, network and frontend.
pub(crate) fn seed_for(clusters: usize) -> Value {
    let mut seed = seed();
    let quotas = json!({"pls_per_load_balancer": 1_000});
    seed["subscriptions"][0]["quotas"] = quotas;
    let resources = seed["resources"].as_array_mut().unwrap();
    let balancer = resources.iter_mut().find(|one| one["sku"].is_object()).unwrap();
    let frontends = balancer["properties"]["frontendIPConfigurations"]
        .as_array_mut()
        .unwrap();
    let first = frontends[0].clone();
    for n in 0..clusters {
        let mut frontend = first.clone();
        frontend["name"] = json!(format!("f{n}"));
        frontends.push(frontend);
    }
    for n in 0..clusters {
        resources.push(json!({"id": group(n), "location": "westus2"}));
        resources.push(
            json!({"id": format!("{}/virtualNetworks/workers", guest(n)), "location": "westus2", "properties": {
            "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
            "subnets": [{"name": "guest", "properties": {"addressPrefix": "10.1.0.0/28"}}]}}),
        );
    }
    seed
}

fn group(n: usize) -> String {
    format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest-{n}")
}

fn guest(n: usize) -> String {
    format!("{}/providers/Microsoft.Network", group(n))
}

fn owner_tags(n: usize) -> OwnerTags {
    OwnerTags {
        owner: ("cluster".into(), n.to_string()),
        ..OwnerTags::default()
    }
}

/// The NAT subnet of the nth cluster, in the network that all of them share.
pub(crate) fn nat_subnet(n: usize) -> NatSubnet {
    NatSubnet {
        id: id(&format!("{NET}/virtualNetworks/hub/subnets/c{n}-pls-nat")),
        prefix: format!("10.0.{}.{}/28", 16 + n / 16, n % 16 * 16).parse().ok(),
    }
}

/// The Private Link Service of the nth cluster.
pub(crate) fn service(n: usize) -> PrivateLinkService {
    PrivateLinkService {
        owned: OwnedPrivateLinkService {
            id: id(&format!("{NET}/privateLinkServices/pls-{n}")),
            owner_tags: owner_tags(n),
            stamp: stamp(),
            frontend: Some(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/f{n}")),
            proven: false,
        },
        location: "westus2".into(),
        nat_subnet: nat_subnet(n).id,
        subscriptions: BTreeSet::from([SubscriptionId::parse(GUEST_SUB).unwrap()]),
    }
}

/// The endpoint of the nth cluster.
pub(crate) fn endpoint(n: usize, alias: &str) -> PrivateEndpoint {
    PrivateEndpoint {
        id: id(&format!("{}/privateEndpoints/private-router-pe", guest(n))),
        location: "westus2".into(),
        owner_tags: owner_tags(n),
        subnet: id(&format!("{}/virtualNetworks/workers/subnets/guest", guest(n))),
        alias: Some(alias.to_owned()),
        proven: false,
        request_message: "",
    }
}

/// One of the zones of the nth cluster.
pub(crate) fn zone(n: usize, name: &str) -> PrivateDnsZone {
    PrivateDnsZone {
        id: id(&format!("{}/privateDnsZones/{name}", guest(n))),
        owner_tags: owner_tags(n),
        proven: false,
    }
}

/// A record of the nth cluster's internal zone.
pub(crate) fn record(n: usize, zone: &PrivateDnsZone, name: &str) -> RecordSet {
    RecordSet {
        id: zone.id.child(Kind::RecordSet, name).unwrap(),
        owner_tags: owner_tags(n),
        address: ADDRESS.parse().ok(),
    }
}

/// The name of the nth cluster's internal zone.
pub(crate) fn internal(n: usize) -> String {
    format!("c{n}.hypershift.local")
}

/// A zone of the nth cluster with its link and records.
pub(crate) fn zone_with_content(n: usize, name: &str, records: [&str; 2]) -> Group {
    let zone = zone(n, name);
    let link = VirtualNetworkLink {
        id: zone
            .id
            .child(Kind::VirtualNetworkLink, "private-router-vnet-link")
            .unwrap(),
        owner_tags: owner_tags(n),
        virtual_network: id(&format!("{}/virtualNetworks/workers", guest(n))),
        proven: true,
    };
    let records = records.map(|name| record(n, &zone, name));
    let [one, two] = records;
    vec![Box::new(zone), Box::new(link), Box::new(one), Box::new(two)]
}

/// The process with so many clusters, all of them as desired.
pub(crate) struct Fleet {
    pub(crate) sim: Sim,
    pub(crate) groups: Vec<Group>,
}

impl Fleet {
    pub(crate) async fn new(clusters: usize) -> Self {
        Self::in_a_world(&seed_for(clusters), clusters).await
    }

    pub(crate) async fn in_a_world(seed: &Value, clusters: usize) -> Self {
        let mut sim = Sim::seeded(seed);
        let mut groups = Vec::new();
        for n in 0..clusters {
            let management: Group = vec![Box::new(nat_subnet(n)), Box::new(service(n))];
            for desired in &management {
                sim.until_present(desired.as_ref()).await;
            }
            let alias = alias(&sim.shown(&service(n).owned.id).unwrap()).unwrap().to_owned();
            let mut guest: Group = vec![Box::new(endpoint(n, &alias))];
            guest.extend(zone_with_content(n, &internal(n), ["api", "*.apps"]));
            let (api, oauth) = (format!("api-c{n}"), format!("oauth-c{n}"));
            guest.extend(zone_with_content(n, &format!("apps{n}.example.com"), [&api, &oauth]));
            for desired in &guest {
                sim.until_present(desired.as_ref()).await;
            }
            groups.extend([management, guest]);
        }
        Self { sim, groups }
    }

    /// Replaces the process by another one, which reconciles every group once. Nobody waits for that.
    pub(crate) async fn restart(&mut self) {
        self.sim.restart();
        self.sim.urgency = Urgency::Routine {
            served: self.groups.len() / 2,
        };
        for at in 0..self.groups.len() {
            self.reconcile(at).await;
        }
    }

    async fn reconcile(&mut self, at: usize) {
        for desired in &self.groups[at] {
            self.sim.reconcile(ensure_present, desired.as_ref()).await;
        }
    }

    /// Reconciles each group when the next read of one of its resources is due.
    pub(crate) async fn run(&mut self, span: Duration) {
        let end = Instant::now() + span;
        loop {
            let due = |group: &Group| {
                self.sim
                    .observations
                    .next_read(group.iter().map(|desired| desired.key()))
            };
            let next = self
                .groups
                .iter()
                .enumerate()
                .filter_map(|(at, group)| Some((due(group)?, at)));
            let (due, at) = next.min().unwrap();
            if due >= end {
                return sleep_until(end).await;
            }
            sleep_until(due).await;
            self.reconcile(at).await;
        }
    }

    /// The number of calls to paths with this end.
    pub(crate) fn calls_to(&self, end: &str) -> usize {
        let sent = self.sim.azure.sent();
        sent.iter()
            .filter(|call| call.request.uri().path().ends_with(end))
            .count()
    }

    /// The verbs of the calls to the paths that `which` selects.
    pub(crate) fn verbs_to(&self, which: impl Fn(&str) -> bool) -> String {
        let sent = self.sim.azure.sent();
        let verbs = sent
            .iter()
            .filter(|call| which(call.request.uri().path()))
            .map(|call| call.verb());
        verbs.collect::<Vec<_>>().join(" ")
    }

    /// Reads of resources whose type is last in their path.
    pub(crate) fn single_reads(&self, kind: &str) -> usize {
        let sent = self.sim.azure.sent();
        let reads = sent.iter().filter(|call| {
            let name = call.request.uri().path().rsplit_once(kind).map(|(_, name)| name);
            call.verb() == "GET" && name.is_some_and(|name| !name.contains('/'))
        });
        reads.count()
    }
}
