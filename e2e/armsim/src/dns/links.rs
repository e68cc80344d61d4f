//! Links of private DNS zones to virtual networks.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::etag::{self, Unmet};
use super::write::{Tracked, WriteRequest, is_live, live, refused};
use super::{link_rules, names};
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::operation::{Operation, OperationStatus, Outcome};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource, Store};

/// Microsoft.Network/privateDnsZones/virtualNetworkLinks.
pub(crate) struct Links;

pub(crate) const TYPE: &str = "Microsoft.Network/privateDnsZones/virtualNetworkLinks";

const UPSERT: Pace = Pace {
    typical_s: 25.0,
    tails: &[(0.05, 45.0)],
    retry_after_s: 30,
};
/// The hidden operation that ends the time in which a deleted link is still shown.
const FORGET: &str = "ForgetVirtualNetworkLink";
/// The first version that shows `resolutionPolicy`.
const SHOWS_RESOLUTION_POLICY: &str = "2024-06-01";

/// The zone's links; one that is only still shown is none.
pub(crate) fn of<'a>(store: &'a Store, zone: &ResourceId) -> impl Iterator<Item = &'a Resource> {
    store.of_type(zone, TYPE).filter(|link| is_live(link))
}

/// The links of all zones to a VNet.
pub(crate) fn to<'a>(store: &'a Store, vnet: &'a ResourceId) -> impl Iterator<Item = &'a Resource> {
    let links = store.referring(vnet).filter(|found| found.resource_type == TYPE);
    links.filter(|link| is_live(link))
}

/// Takes the links to a VNet that is gone out of their zones.
pub(crate) fn unlink(cx: &mut Context<'_>, vnet: &ResourceId) {
    let links: Vec<ResourceId> = to(&cx.state.store, vnet).map(|link| link.id.clone()).collect();
    for link in links {
        cx.remove(&link);
    }
}

/// Whether machines of the VNet are registered in the zone.
pub(super) fn registers(link: &Resource) -> bool {
    link.property("registrationEnabled") == true
}

/// Whether a name that the zone lacks is resolved in public DNS.
pub(crate) fn falls_back(link: &Resource) -> bool {
    link.property("resolutionPolicy") == "NxDomainRedirect"
}

/// Whether names of the zone can be resolved from the VNet. Once they can, writing the link again does not interrupt
/// it: HyperShift's operator does so without end, and its clusters work.
pub(crate) fn resolves(link: &Resource, now: Timestamp, lag_s: f64) -> bool {
    is_live(link) && (link.hidden["resolved"] == true || !is_fresh(link, now, lag_s))
}

fn is_fresh(link: &Resource, now: Timestamp, lag_s: f64) -> bool {
    let lag = SignedDuration::from_millis((lag_s * 1000.0) as i64);
    now.duration_since(link.changed) < lag
}

fn link_state(link: &Resource, now: Timestamp, lag_s: f64) -> &'static str {
    if link.state == ProvisioningState::Updating || is_fresh(link, now, lag_s) {
        "InProgress"
    } else {
        "Completed"
    }
}

pub(super) fn vnet(link: &Resource) -> &str {
    link.property("virtualNetwork")["id"].as_str().unwrap_or_default()
}

impl Tracked for Links {
    const TYPE: &'static str = TYPE;
    const UPSERT: (&'static str, Pace) = ("UpsertVirtualNetworkLink", UPSERT);
    const DELETE: (&'static str, Pace) = ("DeleteVirtualNetworkLink", Pace::new(25.0, 30));

    fn links(call: &Call<'_>) -> Vec<LinkedScope> {
        // What is no VNet's id is refused for that, not for a missing permission.
        let sent = call.body["properties"]["virtualNetwork"]["id"].as_str();
        let id = sent.filter(|id| link_rules::check_vnet_id(id).is_ok());
        let scope = |id: &str| LinkedScope {
            id: id.to_owned(),
            action: "Microsoft.Network/virtualNetworks/join/action",
        };
        id.map(scope).into_iter().collect()
    }

    fn check_name(name: &str) -> Result<(), String> {
        names::link(name).map(|_| ())
    }

    fn check_body(id: &ResourceId, body: &Value, whole: bool) -> Result<(), ArmError> {
        let properties = &body["properties"];
        let vnet = &properties["virtualNetwork"]["id"];
        if whole || !vnet.is_null() {
            link_rules::check_vnet_id(vnet.as_str().unwrap_or_default())?;
        }
        link_rules::check_properties(properties, id)
    }

    fn check_parent(cx: &Context<'_>, id: &ResourceId) -> Result<(), ArmError> {
        match id.parent() {
            Some(zone) if cx.state.store.get(&zone).is_none() => Err(ArmError::parent_not_found(&zone)),
            _ => Ok(()),
        }
    }

    fn judge(
        cx: &Context<'_>,
        id: &ResourceId,
        request: &WriteRequest,
        known: Option<&Resource>,
    ) -> Result<(), ErrorDetail> {
        let sent = &request.body["properties"];
        let to = sent["virtualNetwork"]["id"].as_str().or(known.map(vnet));
        let to = to.unwrap_or_default();
        if known.is_some_and(|known| !vnet(known).eq_ignore_ascii_case(to)) {
            return refused(
                "BadRequest",
                format!("The virtual network of the link '{}' cannot be changed.", id.name()),
            );
        }
        let Some(vnet) = cx.state.store.find(to) else {
            return refused("BadRequest", format!("The virtual network '{to}' does not exist."));
        };
        let kept = known.filter(|_| request.partial).map(registers);
        let registering = sent["registrationEnabled"].as_bool().or(kept).unwrap_or_default();
        link_rules::check_others(cx, id, &vnet.id, registering)?;
        let newly_registering = registering && !known.is_some_and(registers);
        link_rules::check_quotas(cx, id, known.is_none(), newly_registering)
    }

    fn store(cx: &mut Context<'_>, id: &ResourceId, request: &WriteRequest) {
        let known = live(cx, id).cloned();
        let mut body = request.envelope(known.as_ref().map(|known| &known.body));
        let kept = known.as_ref().filter(|_| request.partial);
        let sent = &request.body["properties"];
        let value = |name: &str, default: Value| {
            let kept = kept.map_or(&Value::Null, |known| known.property(name));
            let written = [&sent[name], kept].into_iter().find(|value| !value.is_null());
            written.cloned().unwrap_or(default)
        };
        body["properties"]["virtualNetwork"] = json!({ "id": value("virtualNetwork", Value::Null)["id"] });
        body["properties"]["registrationEnabled"] = value("registrationEnabled", json!(false));
        if link_rules::is_private_link(id) {
            body["properties"]["resolutionPolicy"] = value("resolutionPolicy", json!("Default"));
        }
        let etag = etag::of_link(&cx.guid(), cx.now.as_second());
        cx.store_with_etag(TYPE, id, body, etag);
        let lag_s = cx.state.switches.link_complete_lag_s;
        let resolved = known.is_some_and(|known| resolves(&known, cx.now, lag_s));
        if let Some(link) = cx.state.store.get_mut(id) {
            link.hidden = json!({ "resolved": resolved });
        }
    }

    /// A lag shows the link for a while, though it is in nobody's way any more.
    fn take_away(cx: &mut Context<'_>, operation: &Operation) {
        let lag_s = cx.state.switches.link_delete_lag_s;
        let Some(link) = cx.state.store.get_mut(&operation.target).filter(|_| lag_s > 0.0) else {
            return cx.remove(&operation.target);
        };
        link.hidden = json!({ "gone": true });
        let forget = Operation {
            id: cx.guid(),
            name: FORGET.to_owned(),
            started: cx.now,
            ends: cx
                .now
                .saturating_add(SignedDuration::from_millis((lag_s * 1000.0) as i64))
                .ok(),
            outcome: Outcome::Succeed,
            status: OperationStatus::InProgress,
            // No URL shows it to a client.
            lost: true,
            ..operation.clone()
        };
        cx.state.operations.begin(forget);
    }

    fn forget(cx: &mut Context<'_>, operation: &Operation) -> bool {
        if operation.name != FORGET {
            return false;
        }
        if cx.state.store.get(&operation.target).is_some_and(|link| !is_live(link)) {
            cx.remove(&operation.target);
        }
        true
    }

    fn unmet(id: &ResourceId, unmet: Unmet) -> String {
        let (name, zone) = (id.name(), id.parent());
        let zone = zone.as_ref().map_or("", |zone| zone.name());
        match unmet {
            Unmet::Exists => format!(
                "The Virtual Network link {name} for the Private DNS zone {zone} exists already and hence cannot be created \
                 again."
            ),
            Unmet::Modified => format!(
                "The Virtual Network link '{name}' for the Private DNS zone '{zone}' has been modified (etag mismatch)."
            ),
        }
    }

    fn show(cx: &Context<'_>, link: &Resource, properties: &mut Value) {
        let state = link_state(link, cx.now, cx.state.switches.link_complete_lag_s);
        properties["virtualNetworkLinkState"] = json!(state);
        if !cx.shows_since(SHOWS_RESOLUTION_POLICY)
            && let Some(properties) = properties.as_object_mut()
        {
            properties.remove("resolutionPolicy");
        }
    }
}
