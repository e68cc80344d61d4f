//! The private link service, and the connections at its end.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::id::{ResourceId, SubscriptionId, same};
use super::mark::Marks;
use super::resource::{Difference, Kind, Resource, base, id_at, mark, set};

/// Azure's limit of tags on a resource.
const MAX_TAGS: usize = 50;
/// The name of the one NAT configuration.
const NAT_CONFIGURATION: &str = "pls-nat-ip";

/// A private link service as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkService {
    /// Its id.
    pub id: ResourceId,
    /// The region.
    pub location: String,
    /// Tags, one of which proves ownership.
    pub marks: Marks,
    /// The frontend that it forwards to, as Azure spells the id.
    pub frontend: String,
    /// The subnet of its NAT address.
    pub nat_subnet: ResourceId,
    /// Who sees it, and whose connections are approved at once.
    pub subscriptions: BTreeSet<SubscriptionId>,
}

/// The alias; complete only once the service is settled.
pub fn alias(body: &Value) -> Option<&str> {
    body.pointer("/properties/alias").and_then(Value::as_str)
}

/// The connections that the service has now.
pub fn connections(body: &Value) -> Vec<Connection> {
    let list = body
        .pointer("/properties/privateEndpointConnections")
        .and_then(Value::as_array);
    let read = |item: &Value| {
        let id = id_at(item, "/id").filter(|id| id.is(Kind::Connection))?;
        let status = item
            .pointer("/properties/privateLinkServiceConnectionState/status")
            .and_then(Value::as_str);
        Some(Connection {
            id,
            status: status.unwrap_or_default().to_owned(),
        })
    };
    list.into_iter().flatten().filter_map(read).collect()
}

fn frontends(body: &Value) -> Vec<&str> {
    let list = body
        .pointer("/properties/loadBalancerFrontendIpConfigurations")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|f| f.get("id").and_then(Value::as_str))
        .collect()
}

fn nat_subnets(body: &Value) -> Vec<ResourceId> {
    let list = body.pointer("/properties/ipConfigurations").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|c| id_at(c, "/properties/subnet/id"))
        .collect()
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

impl LinkService {
    fn forwards_to_ours(&self, current: &Value) -> bool {
        matches!(frontends(current).as_slice(), [only] if same(only, &self.frontend))
    }

    fn wanted_subscriptions(&self) -> BTreeSet<String> {
        self.subscriptions.iter().map(|s| s.as_str().to_owned()).collect()
    }
}

impl Resource for LinkService {
    fn kind(&self) -> Kind {
        Kind::LinkService
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn ours(&self, current: &Value) -> bool {
        self.marks.prove(current) || self.forwards_to_ours(current)
    }

    fn differs(&self, current: &Value) -> Vec<Difference> {
        let wanted = self.wanted_subscriptions();
        let proxy = current
            .pointer("/properties/enableProxyProtocol")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let rules = [
            (
                !self.forwards_to_ours(current),
                Difference::immutable("loadBalancerFrontendIpConfigurations"),
            ),
            (
                nat_subnets(current) != [self.nat_subnet.clone()],
                Difference::immutable("ipConfigurations"),
            ),
            (
                subscriptions(current, "visibility") != wanted,
                Difference::of("visibility"),
            ),
            (
                subscriptions(current, "autoApproval") != wanted,
                Difference::of("autoApproval"),
            ),
            (proxy, Difference::of("enableProxyProtocol")),
        ];
        rules
            .into_iter()
            .filter_map(|(differs, difference)| differs.then_some(difference))
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        let list = json!({"subscriptions": self.wanted_subscriptions()});
        set(&mut body, &["location"], json!(self.location));
        set(&mut body, &["properties", "visibility"], list.clone());
        set(&mut body, &["properties", "autoApproval"], list);
        set(&mut body, &["properties", "enableProxyProtocol"], json!(false));
        if current.is_none() {
            set(
                &mut body,
                &["properties", "loadBalancerFrontendIpConfigurations"],
                json!([{"id": self.frontend}]),
            );
            let subnet = json!({"id": self.nat_subnet.to_string()});
            let properties = json!({"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": subnet});
            let configuration = json!([{"name": NAT_CONFIGURATION, "properties": properties}]);
            set(&mut body, &["properties", "ipConfigurations"], configuration);
        }
        mark(&mut body, "tags", &self.marks.all(), MAX_TAGS);
        body
    }
}

/// A private endpoint's connection, at the link service's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its id.
    pub id: ResourceId,
    /// `Approved`, `Pending`, `Rejected`, …
    pub status: String,
}

impl Resource for Connection {
    fn kind(&self) -> Kind {
        Kind::Connection
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn ours(&self, _: &Value) -> bool {
        true
    }

    fn differs(&self, _: &Value) -> Vec<Difference> {
        Vec::new()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        base(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn wanted() -> LinkService {
        LinkService {
            id: ResourceId::parse(&format!("{NET}/privateLinkServices/pls-x")).unwrap(),
            location: "eastus".into(),
            marks: Marks {
                owner: ("cluster".into(), "x".into()),
                ..Marks::default()
            },
            frontend: format!("{NET}/loadBalancers/lb/frontendIPConfigurations/f"),
            nat_subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/v/subnets/nat")).unwrap(),
            subscriptions: BTreeSet::from([SubscriptionId::parse("guest").unwrap()]),
        }
    }

    /// The body as Azure spells it back: other casing, and fields of its own.
    fn found() -> Value {
        let mut body = wanted().body(None);
        let frontend = wanted()
            .frontend
            .replace("frontendIPConfigurations", "FrontendIpConfigurations");
        set(
            &mut body,
            &["properties", "loadBalancerFrontendIpConfigurations"],
            json!([{"id": frontend}]),
        );
        set(
            &mut body,
            &["properties", "visibility"],
            json!({"subscriptions": ["GUEST"]}),
        );
        set(
            &mut body,
            &["properties", "alias"],
            json!("pls-x.guid.eastus.azure.privatelinkservice"),
        );
        body
    }

    #[test]
    fn other_casing_is_no_difference() {
        assert_eq!(wanted().differs(&found()), []);
    }

    #[test]
    fn missing_mark_is_no_difference() {
        let mut body = found();
        body.as_object_mut().unwrap().remove("tags");
        assert!(wanted().ours(&body), "the frontend proves it");
        assert_eq!(wanted().differs(&body), []);
    }

    #[test]
    fn foreign_service_under_our_name_is_not_ours() {
        let mut body = found();
        body.as_object_mut().unwrap().remove("tags");
        set(
            &mut body,
            &["properties", "loadBalancerFrontendIpConfigurations"],
            json!([{"id": "other"}]),
        );
        assert!(!wanted().ours(&body));
    }

    #[test]
    fn revoked_subscription_is_a_difference_that_a_put_mends() {
        let mut body = found();
        set(
            &mut body,
            &["properties", "autoApproval"],
            json!({"subscriptions": ["guest", "revoked"]}),
        );
        assert_eq!(wanted().differs(&body), [Difference::of("autoApproval")]);
        assert_eq!(wanted().differs(&wanted().body(Some(&body))), []);
    }

    #[test]
    fn other_frontend_needs_a_new_service() {
        let mut body = found();
        set(
            &mut body,
            &["properties", "loadBalancerFrontendIpConfigurations"],
            json!([{"id": "other"}]),
        );
        assert_eq!(
            wanted().differs(&body),
            [Difference::immutable("loadBalancerFrontendIpConfigurations")]
        );
    }

    #[test]
    fn fields_of_others_survive_a_put() {
        let mut body = found();
        set(&mut body, &["properties", "fqdns"], json!(["a.b"]));
        set(&mut body, &["tags", "cost-center"], json!("42"));
        let put = wanted().body(Some(&body));
        assert_eq!(
            (&put["properties"]["fqdns"], &put["tags"]["cost-center"]),
            (&json!(["a.b"]), &json!("42"))
        );
    }
}
