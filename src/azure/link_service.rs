//! The private link service, and the connections at its end.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::id::{ResourceId, SubscriptionId, same};
use super::mark::{MAX_TAGS, Marks};
use super::resource::{Difference, Kind, Owned, Resource, base, id_at, mark, set};

/// The name of the one NAT configuration.
const NAT_CONFIGURATION: &str = "pls-nat-ip";

/// A private link service as far as it must be known to be taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedLinkService {
    /// Its id.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub marks: Marks,
    /// The frontend that it forwards to, as Azure spells the id.
    pub frontend: String,
    /// The `resourceGuid` or the alias under which exactly this id was recorded as ours: of what is made anew both differ.
    pub known_as: Vec<String>,
}

/// A private link service as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkService {
    /// Which one, and what proves it ours.
    pub owned: OwnedLinkService,
    /// The region.
    pub location: String,
    /// The subnet of its NAT address.
    pub nat_subnet: ResourceId,
    /// Who sees it, and whose connections are approved at once.
    pub subscriptions: BTreeSet<SubscriptionId>,
}

/// The guid that Azure gives a resource when it is made.
pub fn resource_guid(body: &Value) -> Option<&str> {
    body.pointer("/properties/resourceGuid").and_then(Value::as_str)
}

/// The alias; complete only once the service is settled.
pub fn alias(body: &Value) -> Option<&str> {
    body.pointer("/properties/alias").and_then(Value::as_str)
}

/// The connections of private endpoints that the service has now.
pub fn connections(body: &Value) -> Vec<ResourceId> {
    let list = body
        .pointer("/properties/privateEndpointConnections")
        .and_then(Value::as_array);
    let ids = list.into_iter().flatten().filter_map(|item| id_at(item, "/id"));
    ids.filter(|id| id.is(Kind::Connection)).collect()
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

/// The subnet of the service's first NAT address, which can never be another. Others may have been added for more ports.
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

impl OwnedLinkService {
    fn forwards_to_ours(&self, current: &Value) -> bool {
        matches!(frontends(current).as_slice(), [only] if same(only, &self.frontend))
    }

    fn is_known(&self, current: &Value) -> bool {
        let mut names = [resource_guid(current), alias(current)].into_iter().flatten();
        names.any(|name| self.known_as.iter().any(|known| same(known, name)))
    }
}

impl Owned for OwnedLinkService {
    fn kind(&self) -> Kind {
        Kind::LinkService
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn ours(&self, current: &Value) -> bool {
        self.marks.prove(current) || self.forwards_to_ours(current) || self.is_known(current)
    }
}

impl LinkService {
    fn wanted_subscriptions(&self) -> BTreeSet<String> {
        self.subscriptions.iter().map(|s| s.as_str().to_owned()).collect()
    }
}

impl Owned for LinkService {
    fn kind(&self) -> Kind {
        self.owned.kind()
    }

    fn id(&self) -> &ResourceId {
        self.owned.id()
    }

    fn ours(&self, current: &Value) -> bool {
        self.owned.ours(current)
    }
}

impl Resource for LinkService {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let wanted = self.wanted_subscriptions();
        let proxy = current
            .pointer("/properties/enableProxyProtocol")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let rules = [
            (
                !self.owned.forwards_to_ours(current),
                Difference::immutable("loadBalancerFrontendIpConfigurations"),
            ),
            (
                nat_subnet(current).as_ref() != Some(&self.nat_subnet),
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
                json!([{"id": self.owned.frontend}]),
            );
            let subnet = json!({"id": self.nat_subnet.to_string()});
            let properties = json!({"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": subnet});
            let configuration = json!([{"name": NAT_CONFIGURATION, "properties": properties}]);
            set(&mut body, &["properties", "ipConfigurations"], configuration);
        }
        mark(&mut body, "tags", &self.owned.marks.all(), MAX_TAGS);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn wanted() -> LinkService {
        let owned = OwnedLinkService {
            id: ResourceId::parse(&format!("{NET}/privateLinkServices/pls-x")).unwrap(),
            marks: Marks {
                owner: ("cluster".into(), "x".into()),
                ..Marks::default()
            },
            frontend: format!("{NET}/loadBalancers/lb/frontendIPConfigurations/f"),
            known_as: Vec::new(),
        };
        LinkService {
            owned,
            location: "eastus".into(),
            nat_subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/v/subnets/nat")).unwrap(),
            subscriptions: BTreeSet::from([SubscriptionId::parse("guest").unwrap()]),
        }
    }

    /// The body as Azure spells it back: other casing, and fields of its own.
    fn found() -> Value {
        let mut body = wanted().body(None);
        let frontend = wanted()
            .owned
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
    fn service_that_was_recorded_is_ours_and_one_made_anew_under_its_name_is_not() {
        let recorded = OwnedLinkService {
            known_as: vec!["guid-1".into(), "pls-x.guid.eastus.azure.privatelinkservice".into()],
            ..wanted().owned
        };
        let other = |guid: &str, alias: &str| {
            json!({"properties": {"resourceGuid": guid, "alias": alias,
                "loadBalancerFrontendIpConfigurations": [{"id": "other"}]}})
        };
        assert!(recorded.ours(&other("GUID-1", "another")));
        assert!(recorded.ours(&other("guid-2", "pls-x.guid.eastus.azure.privatelinkservice")));
        assert!(!recorded.ours(&other("guid-2", "pls-x.guid2.eastus.azure.privatelinkservice")));
        assert!(!wanted().ours(&other("guid-1", "another")));
    }

    #[test]
    fn more_nat_addresses_are_no_difference_and_another_subnet_of_the_first_is() {
        let nat = |subnet: &str, primary: bool| {
            json!({"name": subnet, "properties": {"primary": primary,
                "subnet": {"id": format!("{NET}/virtualNetworks/v/subnets/{subnet}")}}})
        };
        let mut body = found();
        let list = json!([nat("more", false), nat("NAT", true)]);
        set(&mut body, &["properties", "ipConfigurations"], list);
        assert_eq!(wanted().differs(&body), []);
        set(
            &mut body,
            &["properties", "ipConfigurations"],
            json!([nat("other", true), nat("nat", false)]),
        );
        assert_eq!(wanted().differs(&body), [Difference::immutable("ipConfigurations")]);
    }

    #[test]
    fn revoked_subscription_is_a_difference_that_a_put_mends() {
        for list in ["visibility", "autoApproval"] {
            let mut body = found();
            let revoked = json!({"subscriptions": ["guest", "revoked"]});
            set(&mut body, &["properties", list], revoked);
            assert_eq!(wanted().differs(&body), [Difference::of(list)]);
            assert_eq!(wanted().differs(&wanted().body(Some(&body))), []);
        }
    }

    #[test]
    fn proxy_protocol_is_a_difference_that_a_put_mends() {
        let mut body = found();
        set(&mut body, &["properties", "enableProxyProtocol"], json!(true));
        assert_eq!(wanted().differs(&body), [Difference::of("enableProxyProtocol")]);
        assert_eq!(wanted().differs(&wanted().body(Some(&body))), []);
    }

    #[test]
    fn unmarked_service_that_forwards_elsewhere_too_is_not_ours() {
        let mut body = found();
        body.as_object_mut().unwrap().remove("tags");
        set(
            &mut body,
            &["properties", "loadBalancerFrontendIpConfigurations"],
            json!([{"id": wanted().owned.frontend}, {"id": "other"}]),
        );
        assert!(!wanted().ours(&body));
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
