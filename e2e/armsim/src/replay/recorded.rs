//! What must have been there before: stand-ins for resources that a recording takes for granted.
//!
//! A stand-in is the nearest recorded answer that shows the resource, or the least that its type accepts. It is made when
//! the first exchange needs it, and reported.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::SimulatedAzure;
use crate::engine::id::ResourceId;
use crate::engine::registry;
use crate::engine::route::{Target, route};
use crate::resources::View;

use super::cassette::Exchange;
use super::names::Names;

const LOAD_BALANCER: &str = "Microsoft.Network/loadBalancers";
const LINK_SERVICE: &str = "Microsoft.Network/privateLinkServices";

/// All that the cassette shows of resources.
pub(super) struct RecordedState {
    /// By id in lower case: the number of the exchange and what it showed.
    observed: BTreeMap<String, Vec<(usize, Value)>>,
    /// Ids that a call which is not played may have changed.
    touched: BTreeSet<String>,
}

/// The simulated Azure to put stand-ins into, and the moment.
pub(super) struct Setup<'a> {
    pub(super) azure: &'a mut SimulatedAzure,
    pub(super) names: &'a Names,
    pub(super) now: Timestamp,
    pub(super) number: usize,
    /// The region that the request names, if it names one.
    pub(super) location: Option<String>,
    /// Ids in lower case of resources that were deleted while the recording was played.
    pub(super) gone: &'a BTreeSet<String>,
    pub(super) seeded: Vec<String>,
}

impl Setup<'_> {
    fn has(&self, id: &ResourceId) -> bool {
        self.azure.state.store.get(id).is_some()
    }

    fn put(&mut self, id: &ResourceId, body: Value) {
        if self.azure.put_resource(self.now, id.as_str(), body).is_ok() {
            self.seeded.push(id.to_string());
        }
    }
}

impl RecordedState {
    /// Collects what all exchanges of a cassette show.
    pub(super) fn of(exchanges: &[Exchange]) -> Self {
        let mut observed = BTreeMap::new();
        for (number, exchange) in exchanges
            .iter()
            .enumerate()
            .filter(|(_, exchange)| exchange.succeeded())
        {
            collect(number, &exchange.got.json(), &mut observed);
            deployed(number, exchange, &mut observed);
        }
        Self {
            observed,
            touched: BTreeSet::new(),
        }
    }

    /// Makes what an exchange needs.
    pub(super) fn prepare(&self, setup: &mut Setup<'_>, exchange: &Exchange) {
        let code = exchange.got.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let path = setup.names.our_path(exchange.path());
        let method = exchange.method.parse().unwrap_or(Method::GET);
        let target = route(&method, &path);
        // The inventory shows resources of every provider.
        let inventory = matches!(
            target,
            Ok(Target::View {
                view: View::Resources,
                ..
            })
        );
        let target = match target {
            Ok(Target::Resource { id, .. } | Target::Action { id, .. }) => id,
            Ok(Target::List { scope, .. } | Target::View { scope, .. }) => scope,
            _ => return,
        };
        let group_is_gone = target.group_id().is_some_and(|group| setup.gone.contains(&group.key()));
        if code != "ResourceGroupNotFound" && (exchange.succeeded() || !group_is_gone) {
            self.ensure_target(setup, &target, exchange, &code);
        }
        if exchange.succeeded() && exchange.method != "GET" {
            self.services(setup, &target, &exchange.sent.json());
            self.references(setup, &target, &exchange.sent.json());
        }
        if exchange.succeeded() && exchange.method == "GET" {
            self.listed(setup, &exchange.got.json(), inventory);
        }
    }

    /// Makes the group, the parents and, where the answer shows that it existed, the resource itself.
    fn ensure_target(&self, setup: &mut Setup<'_>, target: &ResourceId, exchange: &Exchange, code: &str) {
        let existed = match exchange.method.as_str() {
            "GET" | "HEAD" | "PATCH" | "POST" => exchange.succeeded(),
            "PUT" => exchange.status == 200,
            "DELETE" => matches!(exchange.status, 200 | 202),
            _ => false,
        };
        if existed || code == "CannotDeleteResource" || exchange.status == 412 {
            self.ensure(setup, target);
        }
        let is_group = target.group_id().is_some_and(|group| target.is(group.as_str()));
        if let Some(group) = target.group_id().filter(|_| !is_group) {
            self.ensure(setup, &group);
        }
        let parent = target
            .parent()
            .filter(|_| exchange.succeeded() && exchange.status != 204);
        if let Some(parent) = parent {
            self.ensure(setup, &parent);
        }
    }

    /// The services that a new endpoint connects to and that nobody recorded: open to it, and approving if it was approved.
    fn services(&self, setup: &mut Setup<'_>, endpoint: &ResourceId, body: &Value) {
        let lists = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"];
        let connections = lists.iter().flat_map(|list| body["properties"][*list].as_array());
        for connection in connections.flatten() {
            let reference = connection["properties"]["privateLinkServiceId"]
                .as_str()
                .unwrap_or_default();
            let reference = setup.names.our_text(reference);
            let known = setup.azure.state.aliases.contains_key(&reference.to_ascii_lowercase());
            let Some(id) = self.service(setup.names, endpoint, &reference).filter(|_| !known) else {
                continue;
            };
            if setup.has(&id) || self.states(setup.names, &id).is_some() {
                self.ensure(setup, &id);
                continue;
            }
            if let Some(group) = id.group_id() {
                self.ensure(setup, &group);
            }
            let mut service = Self::least(setup, &id);
            service["properties"]["visibility"] = json!({ "subscriptions": ["*"] });
            if self.was_approved(setup.names, endpoint) {
                service["properties"]["autoApproval"] = json!({ "subscriptions": ["*"] });
            }
            if !reference.starts_with('/') {
                service["properties"]["alias"] = json!(reference);
            }
            setup.put(&id, service);
        }
    }

    /// The private link service of an id or alias. One that only has an alias was in a group of others.
    fn service(&self, names: &Names, endpoint: &ResourceId, reference: &str) -> Option<ResourceId> {
        if reference.starts_with('/') {
            let id = ResourceId::parse(reference).ok()?;
            return id.resource_type().eq_ignore_ascii_case(LINK_SERVICE).then_some(id);
        }
        let same = |(_, body): &(usize, Value)| {
            let alias = body["properties"]["alias"].as_str();
            alias.is_some_and(|alias| names.our_text(alias).eq_ignore_ascii_case(reference))
        };
        if let Some((id, _)) = self.observed.iter().find(|(_, states)| states.iter().any(same)) {
            return ResourceId::parse(&names.our_text(id)).ok();
        }
        let (name, subscription) = (reference.split('.').next()?, endpoint.subscription());
        ResourceId::parse(&format!(
            "/subscriptions/{subscription}/resourceGroups/elsewhere/providers/{LINK_SERVICE}/{name}"
        ))
        .ok()
    }

    /// Whether any recorded answer shows an endpoint's connection as approved.
    fn was_approved(&self, names: &Names, endpoint: &ResourceId) -> bool {
        let states = self.states(names, endpoint).into_iter().flatten();
        let approved = |(_, body): &(usize, Value)| {
            ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"]
                .iter()
                .any(|list| {
                    body["properties"][*list][0]["properties"]["privateLinkServiceConnectionState"]["status"]
                        == "Approved"
                })
        };
        states.into_iter().any(approved)
    }

    /// What the body of an accepted write refers to.
    fn references(&self, setup: &mut Setup<'_>, target: &ResourceId, body: &Value) {
        let mut found = Vec::new();
        ids(&setup.names.our_body(body), &mut found);
        for id in found {
            let is_own = id.key() == target.key() || id.key().starts_with(&format!("{}/", target.key()));
            if !is_own {
                self.ensure(setup, &id);
            }
        }
    }

    /// Makes resources that a list shows: those of simulated types, or `all`.
    fn listed(&self, setup: &mut Setup<'_>, body: &Value, all: bool) {
        for item in body["value"].as_array().into_iter().flatten() {
            let id = item["id"]
                .as_str()
                .and_then(|id| ResourceId::parse(&setup.names.our_text(id)).ok());
            if let Some(id) = id.filter(|id| all || registry::kind(&id.resource_type()).is_some()) {
                self.ensure(setup, &id);
            }
        }
    }

    fn ensure(&self, setup: &mut Setup<'_>, id: &ResourceId) {
        if setup.has(id) || setup.azure.state.subscription(id.subscription()).is_none() {
            return;
        }
        if id.resource_type() == "Microsoft.Resources/subscriptions" {
            return;
        }
        let is_group = id.group_id().is_some_and(|group| id.is(group.as_str()));
        if let Some(group) = id.group_id().filter(|_| !is_group) {
            self.ensure(setup, &group);
        }
        let simulated = registry::kind(&id.resource_type()).is_some();
        if let Some(parent) = id.parent() {
            self.ensure(setup, &parent);
            // What is nested in a simulated type and has no type of its own is part of the parent's body.
            let part = !simulated && registry::kind(&parent.resource_type()).is_some();
            if part || parent.resource_type().eq_ignore_ascii_case(LOAD_BALANCER) {
                return self.add_part(setup, &parent, id);
            }
        }
        if !setup.has(id) {
            let body = self.nearest(setup, id).unwrap_or_else(|| Self::least(setup, id));
            setup.put(id, body);
        }
    }

    /// Adds a frontend to a load balancer whose body nobody recorded; other parts are not missed.
    fn add_part(&self, setup: &mut Setup<'_>, parent: &ResourceId, part: &ResourceId) {
        let frontends = "frontendIPConfigurations";
        let is_frontend = part
            .resource_type()
            .to_ascii_lowercase()
            .ends_with(&frontends.to_ascii_lowercase());
        let Some(found) = setup.azure.state.store.get(parent).filter(|_| is_frontend) else {
            return;
        };
        let mut body = found.body.clone();
        let known = body["properties"][frontends].as_array().cloned().unwrap_or_default();
        let named = |item: &Value| {
            item["name"]
                .as_str()
                .is_some_and(|name| name.eq_ignore_ascii_case(part.name()))
        };
        if !known.iter().any(named) && self.states(setup.names, parent).is_none() {
            let new = json!({ "name": part.name(), "properties": { "privateIPAllocationMethod": "Dynamic" } });
            body["properties"][frontends] = known.into_iter().chain([new]).collect();
            setup.put(parent, body);
        }
    }

    /// The next recorded state of a resource, or the last one.
    fn nearest(&self, setup: &Setup<'_>, id: &ResourceId) -> Option<Value> {
        let states = self.states(setup.names, id)?;
        let next = states.iter().find(|(number, _)| *number >= setup.number);
        let (_, body) = next.or(states.last())?;
        Some(setup.names.our_body(body))
    }

    fn states(&self, names: &Names, id: &ResourceId) -> Option<&Vec<(usize, Value)>> {
        let key = id.key();
        let found = self.observed.get(&key);
        found.or_else(|| {
            let same = |(recorded, _): &(&String, _)| names.our_text(recorded).to_ascii_lowercase() == key;
            self.observed.iter().find(same).map(|(_, states)| states)
        })
    }

    fn least(setup: &Setup<'_>, id: &ResourceId) -> Value {
        let group = id.group_id().and_then(|group| setup.azure.state.store.get(&group));
        let of_group = group.and_then(|group| group.body["location"].as_str());
        let location = setup.location.as_deref().or(of_group).unwrap_or("eastus");
        let mut body = json!({ "location": location, "properties": {} });
        match id.resource_type().to_ascii_lowercase().as_str() {
            "microsoft.network/virtualnetworks" => {
                body["properties"]["addressSpace"] = json!({ "addressPrefixes": ["10.0.0.0/8"] });
            }
            "microsoft.network/virtualnetworks/subnets" => {
                // One range for each, and open to whatever is put there.
                let used = setup
                    .azure
                    .state
                    .store
                    .below(&id.parent().unwrap_or_else(|| id.clone()))
                    .count();
                body["properties"] = json!({
                    "addressPrefix": format!("10.255.{}.0/24", used % 256),
                    "privateEndpointNetworkPolicies": "Disabled",
                    "privateLinkServiceNetworkPolicies": "Disabled",
                });
            }
            "microsoft.network/loadbalancers" => body["sku"] = json!({ "name": "Standard" }),
            _ => {}
        }
        body
    }

    /// Remembers the resources that a write which is not played names: it may have changed them.
    pub(super) fn touch(&mut self, names: &Names, exchange: &Exchange) {
        if exchange.method == "GET" || !exchange.succeeded() {
            return;
        }
        let mut found = Vec::new();
        for body in [exchange.sent.json(), exchange.got.json()] {
            ids(&names.our_body(&body), &mut found);
        }
        let parents: Vec<ResourceId> = found.iter().filter_map(ResourceId::parent).collect();
        self.touched.extend(found.iter().chain(&parents).map(ResourceId::key));
    }

    /// Whether a call that was not played named the resource.
    pub(super) fn is_touched(&self, id: &ResourceId) -> bool {
        self.touched.contains(&id.key())
    }

    /// Puts a resource as the recording shows it now.
    pub(super) fn again(&self, setup: &mut Setup<'_>, id: &ResourceId) {
        if let Some(body) = self.nearest(setup, id) {
            setup.put(id, body);
        }
    }
}

fn collect(number: usize, value: &Value, all: &mut BTreeMap<String, Vec<(usize, Value)>>) {
    match value {
        Value::Object(fields) => {
            let id = fields.get("id").and_then(Value::as_str);
            let whole = fields.get("properties").is_some_and(Value::is_object);
            if let Some(id) = id.filter(|id| whole && ResourceId::parse(id).is_ok()) {
                all.entry(id.to_ascii_lowercase())
                    .or_default()
                    .push((number, value.clone()));
            }
            fields.values().for_each(|value| collect(number, value, all));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(number, item, all)),
        _ => {}
    }
}

/// The resources that a template names plainly.
fn deployed(number: usize, exchange: &Exchange, all: &mut BTreeMap<String, Vec<(usize, Value)>>) {
    let sent = exchange.sent.json();
    let Some(resources) = sent["properties"]["template"]["resources"].as_array() else {
        return;
    };
    let scope = exchange.path().split("/providers/").next().unwrap_or_default();
    for resource in resources {
        let (Some(kind), Some(name)) = (resource["type"].as_str(), resource["name"].as_str()) else {
            continue;
        };
        let (Some((namespace, kinds)), false) = (kind.split_once('/'), name.starts_with('[')) else {
            continue;
        };
        let pairs = kinds
            .split('/')
            .zip(name.split('/'))
            .map(|(kind, name)| format!("/{kind}/{name}"));
        let id = format!("{scope}/providers/{namespace}{}", pairs.collect::<String>());
        all.entry(id.to_ascii_lowercase())
            .or_default()
            .push((number, resource.clone()));
    }
}

/// All ids of resources in a body.
fn ids(value: &Value, found: &mut Vec<ResourceId>) {
    match value {
        Value::String(text) => found.extend(
            ResourceId::parse(text)
                .ok()
                .filter(|id| text.contains("/providers/") && !id.name().is_empty()),
        ),
        Value::Object(fields) => fields.values().for_each(|value| ids(value, found)),
        Value::Array(items) => items.iter().for_each(|item| ids(item, found)),
        _ => {}
    }
}
