//! The Private Link Service, and the connections of Private Endpoints to it.

pub mod narrowed;
pub mod quota;

use std::collections::BTreeSet;
use std::time::Duration;

use hyperlink_engine::kind_rules::ListRules;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, KindSpec, ListScope, MAX_NAME, NETWORK, NETWORK_API, Rules};
use crate::arm::id::{ResourceId, SubscriptionId, same};
use crate::body::{base, id_at, mark, set};
use crate::cloud::Arm;
use crate::owner_tags::{MAX_TAGS, OwnerTags, Stamp, Stamped};

/// What generic code has to know of Private Link Services.
pub const SPEC: KindSpec = KindSpec {
    label: "private_link_service",
    provider: NETWORK,
    path: &["privateLinkServices"],
    api_version: NETWORK_API,
    service: NETWORK,
    max_name: Some(MAX_NAME),
    rules: Rules {
        // The time between two reads of a Private Link Service in progress if Azure gives no time. A create takes 10 to
        // 16 s, a delete about 10 s.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/link_service.rs`.
        pace: Duration::from_secs(4),
        list: Some(ListRules {
            of: ListScope::Group,
            min_served: 10,
            rows: None,
            suffices: None,
        }),
        children: Some(connections),
        lies_in: Some(Kind::Subnet),
        shows_predecessor: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// The name of the one NAT configuration.
const NAT_CONFIGURATION: &str = "pls-nat-ip";

/// What must be known of a Private Link Service to delete it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedPrivateLinkService {
    /// The service's ARM id.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub owner_tags: OwnerTags,
    /// The tag that distinguishes the services of management clusters that share a resource group.
    pub stamp: Stamp,
    /// The frontend that it forwards to, as Azure spells the id; none while that is not known.
    pub frontend: Option<String>,
    /// Whether other resources prove that it is owned: it forwards, or did, to a frontend of the cluster.
    pub proven: bool,
}

/// A desired Private Link Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateLinkService {
    /// Its id, and what proves that it is owned.
    pub owned: OwnedPrivateLinkService,
    /// The Azure region.
    pub location: String,
    /// The subnet of its NAT address.
    pub nat_subnet: ResourceId,
    /// The subscriptions that see the service, and whose connections are approved at once.
    pub subscriptions: BTreeSet<SubscriptionId>,
}

/// The service's alias; complete only once the service is ready.
pub fn alias(body: &Value) -> Option<&str> {
    body.pointer("/properties/alias").and_then(Value::as_str)
}

/// The connections of Private Endpoints that the service has now.
pub fn connections(body: &Value) -> Vec<ResourceId> {
    let ids = ids_of_connections(body, "/id");
    ids.filter(|id| id.is(Kind::PrivateEndpointConnection)).collect()
}

/// The Private Endpoints that are connected to the service, or have requested a connection.
pub fn connected_endpoints(body: &Value) -> Vec<ResourceId> {
    ids_of_connections(body, "/properties/privateEndpoint/id").collect()
}

fn ids_of_connections<'a>(body: &'a Value, pointer: &'a str) -> impl Iterator<Item = ResourceId> + 'a {
    let list = body.pointer("/properties/privateEndpointConnections");
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(move |item| id_at(item, pointer))
}

/// The frontends that the service forwards to.
pub fn frontends(body: &Value) -> Vec<&str> {
    let list = body
        .pointer("/properties/loadBalancerFrontendIpConfigurations")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|f| f.get("id").and_then(Value::as_str))
        .collect()
}

/// The subnet of the service's first NAT address, which never changes. Others may have added addresses for more ports.
pub fn nat_subnet(body: &Value) -> Option<ResourceId> {
    let list = body.pointer("/properties/ipConfigurations").and_then(Value::as_array)?;
    let primary = |c: &&Value| c.pointer("/properties/primary") == Some(&Value::Bool(true));
    let first = list.iter().find(primary).or_else(|| list.first())?;
    id_at(first, "/properties/subnet/id")
}

fn subscriptions(body: &Value, list: &str) -> BTreeSet<String> {
    let list = body
        .pointer(&format!("/properties/{list}/subscriptions"))
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_ascii_lowercase)
        .collect()
}

impl OwnedPrivateLinkService {
    fn forwards_to_desired(&self, current: &Value) -> bool {
        let desired = self.frontend.as_deref();
        matches!((frontends(current).as_slice(), desired), ([only], Some(desired)) if same(only, desired))
    }

    /// Whether it belongs to the cluster without the owner tags: it forwards, or did, to a frontend of the cluster.
    fn belongs_to_cluster(&self, current: &Value) -> bool {
        self.forwards_to_desired(current) || (self.proven && !self.owner_tags.deny(current))
    }
}

impl Owned<Arm> for OwnedPrivateLinkService {
    fn kind(&self) -> Kind {
        Kind::PrivateLinkService
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        match self.stamp.on(current) {
            Stamped::Other => false,
            Stamped::Own | Stamped::Former => self.owner_tags.prove(current) || self.belongs_to_cluster(current),
            // A service without a stamp may be another management cluster's, unless this cluster has a predecessor.
            Stamped::Not => {
                let inherited = self.stamp.former.is_some() && !self.owner_tags.deny(current);
                inherited || self.belongs_to_cluster(current)
            }
        }
    }
}

impl PrivateLinkService {
    fn desired_subscriptions(&self) -> BTreeSet<String> {
        self.subscriptions.iter().map(|s| s.as_str().to_owned()).collect()
    }
}

impl Owned<Arm> for PrivateLinkService {
    fn kind(&self) -> Kind {
        self.owned.kind()
    }

    fn key(&self) -> &ResourceId {
        self.owned.key()
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owned.is_owned(current)
    }
}

impl Resource<Arm> for PrivateLinkService {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let desired = self.desired_subscriptions();
        let proxy = current
            .pointer("/properties/enableProxyProtocol")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let rules = [
            (
                !self.owned.forwards_to_desired(current),
                Difference::by_replacement("loadBalancerFrontendIpConfigurations"),
            ),
            (
                nat_subnet(current).as_ref() != Some(&self.nat_subnet),
                Difference::by_replacement("ipConfigurations"),
            ),
            (
                subscriptions(current, "visibility") != desired,
                Difference::of("visibility"),
            ),
            (
                subscriptions(current, "autoApproval") != desired,
                Difference::of("autoApproval"),
            ),
            (proxy, Difference::of("enableProxyProtocol")),
            (self.owned.stamp.on(current) == Stamped::Former, Difference::of("tags")),
        ];
        rules
            .into_iter()
            .filter_map(|(differs, difference)| differs.then_some(difference))
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        let list = json!({"subscriptions": self.desired_subscriptions()});
        set(&mut body, &["location"], json!(self.location));
        set(&mut body, &["properties", "visibility"], list.clone());
        set(&mut body, &["properties", "autoApproval"], list);
        set(&mut body, &["properties", "enableProxyProtocol"], json!(false));
        if current.is_none() {
            set(
                &mut body,
                &["properties", "loadBalancerFrontendIpConfigurations"],
                json!([{"id": self.owned.frontend}]),
            );
            let subnet = json!({"id": self.nat_subnet.to_string()});
            let properties = json!({"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": subnet});
            let configuration = json!([{"name": NAT_CONFIGURATION, "properties": properties}]);
            set(&mut body, &["properties", "ipConfigurations"], configuration);
        }
        // The stamp is set first: it replaces another one even if there is no room for all tags.
        let stamp = &self.owned.stamp;
        mark(
            &mut body,
            "tags",
            &[(stamp.tag.clone(), stamp.own.clone())].into(),
            MAX_TAGS,
        );
        mark(&mut body, "tags", &self.owned.owner_tags.all(), MAX_TAGS);
        body
    }
}

#[cfg(test)]
mod tests;
