//! Links of private DNS zones to virtual networks.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::etag::{self, Unmet};
use super::write::{self, Wanted, Write, refused};
use super::{link_rules, names, zone};
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, LinkedScope, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::page::page;
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
const DELETE: Pace = Pace::new(25.0, 30);
/// The unseen operation that ends the time in which a deleted link is still shown.
const FORGET: &str = "ForgetVirtualNetworkLink";

/// The zone's links; one that is only still shown is none.
pub(crate) fn of<'a>(store: &'a Store, zone: &ResourceId) -> impl Iterator<Item = &'a Resource> {
    store.of_type(zone, TYPE).filter(|link| is_live(link))
}

/// Whether machines of the VNet are registered in the zone.
pub(super) fn registers(link: &Resource) -> bool {
    link.property("registrationEnabled") == true
}

/// Whether names of the zone can be looked up from the VNet.
pub(crate) fn is_complete(link: &Resource, now: Timestamp, lag_s: f64) -> bool {
    is_live(link) && link_state(link, now, lag_s) == "Completed"
}

pub(super) fn is_live(link: &Resource) -> bool {
    link.hidden["gone"] != true
}

fn link_state(link: &Resource, now: Timestamp, lag_s: f64) -> &'static str {
    let lag = SignedDuration::from_millis((lag_s * 1000.0) as i64);
    let fresh = now.duration_since(link.settled) < lag;
    if link.state == ProvisioningState::Updating || fresh {
        "InProgress"
    } else {
        "Completed"
    }
}

pub(super) fn vnet(link: &Resource) -> &str {
    link.property("virtualNetwork")["id"].as_str().unwrap_or_default()
}

impl Kind for Links {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        zone::FIRST_VERSION
    }

    fn stack(&self) -> Stack {
        Stack::PrivateDns
    }

    fn tracked(&self) -> bool {
        true
    }

    fn links(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        // What is no VNet's id is refused for that, not for a missing permission.
        let sent = call.body["properties"]["virtualNetwork"]["id"].as_str();
        let id = sent.filter(|id| link_rules::check_vnet_id(id).is_ok());
        let scope = |id: &str| LinkedScope {
            id: id.to_owned(),
            action: "Microsoft.Network/virtualNetworks/join/action",
        };
        id.map(scope).into_iter().collect()
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.state.store.of_type(&call.id, TYPE);
        page(
            call,
            found.map(|link| (link.id.key(), self.render(cx, link))).collect(),
            zone::PAGE,
        )
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        parent(cx, &call.id)?;
        names::link(call.id.name()).map_err(|message| ArmError::service(400, "BadRequest", message))?;
        write::check_envelope(&call.body, TYPE)?;
        let id = call.body["properties"]["virtualNetwork"]["id"]
            .as_str()
            .unwrap_or_default();
        link_rules::check_vnet_id(id)?;
        link_rules::check_properties(&call.body["properties"], &call.id)?;
        upsert(cx, call, false)
    }

    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if !is_live(cx.find(&call.id)?) {
            return Err(ArmError::resource_not_found(&call.id));
        }
        link_rules::check_properties(&call.body["properties"], &call.id)?;
        upsert(cx, call, true)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if !cx.state.store.get(&call.id).is_some_and(is_live) {
            return Ok(Reply::new(204));
        }
        let target = write::stored(&call.id, TYPE);
        let (name, pace, wanted) = ("DeleteVirtualNetworkLink", &DELETE, Wanted::of(call, false));
        write::accept(
            cx,
            call,
            Write {
                name,
                verb: Verb::Delete,
                target: &target,
                target_type: TYPE,
                pace,
                wanted,
            },
        )
    }

    fn render(&self, cx: &Context<'_>, link: &Resource) -> Value {
        let mut shown = link.body.clone();
        shown["id"] = json!(link.id);
        shown["name"] = json!(link.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(link.etag);
        let state = link_state(link, cx.now, cx.state.switches.link_complete_lag_s);
        shown["properties"]["virtualNetworkLinkState"] = json!(state);
        shown["properties"]["provisioningState"] = json!(link.state.as_str());
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let wanted = Wanted {
            body,
            condition: Default::default(),
            partial: false,
        };
        store(cx, &write::stored(id, TYPE), &wanted);
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        if operation.name == FORGET {
            if cx.state.store.get(&operation.target).is_some_and(|link| !is_live(link)) {
                cx.remove(&operation.target);
            }
            return;
        }
        write::finish(cx, operation, |cx, operation| match operation.verb {
            Verb::Put => put_at_end(cx, operation),
            Verb::Delete => delete_at_end(cx, operation),
        });
    }
}

fn parent(cx: &Context<'_>, id: &ResourceId) -> Result<(), ArmError> {
    match id.parent() {
        Some(zone) if cx.state.store.get(&zone).is_none() => Err(ArmError::parent_not_found(&zone)),
        _ => Ok(()),
    }
}

fn upsert(cx: &mut Context<'_>, call: &Call<'_>, partial: bool) -> Result<Reply, ArmError> {
    let target = write::stored(&call.id, TYPE);
    let (name, pace, wanted) = ("UpsertVirtualNetworkLink", &UPSERT, Wanted::of(call, partial));
    write::accept(
        cx,
        call,
        Write {
            name,
            verb: Verb::Put,
            target: &target,
            target_type: TYPE,
            pace,
            wanted,
        },
    )
}

fn put_at_end(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let (id, wanted) = (&operation.target, Wanted::read(operation));
    parent(cx, id).map_err(|refused| refused.error)?;
    let known = cx.state.store.get(id).filter(|link| is_live(link));
    check_condition(&wanted, id, known)?;
    if known.is_none() && wanted.partial {
        return Err(ArmError::resource_not_found(id).error);
    }
    let sent = &wanted.body["properties"];
    let to = sent["virtualNetwork"]["id"]
        .as_str()
        .or(known.map(vnet))
        .unwrap_or_default()
        .to_owned();
    if known.is_some_and(|link| !vnet(link).eq_ignore_ascii_case(&to)) {
        return refused(
            "BadRequest",
            format!("The virtual network of the link '{}' cannot be changed.", id.name()),
        );
    }
    if cx.state.store.find(&to).is_none() {
        return refused("BadRequest", format!("The virtual network '{to}' does not exist."));
    }
    let registers = sent["registrationEnabled"]
        .as_bool()
        .or(known.map(registers))
        .unwrap_or_default();
    link_rules::check_others(&cx.state.store, id, &to, registers)?;
    if known.is_none() {
        link_rules::check_quotas(cx, id, registers)?;
    }
    store(cx, id, &wanted);
    Ok(())
}

fn delete_at_end(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let id = &operation.target;
    let Some(known) = cx.state.store.get(id).filter(|link| is_live(link)) else {
        return Ok(());
    };
    check_condition(&Wanted::read(operation), id, Some(known))?;
    let lag_s = cx.state.switches.link_delete_lag_s;
    if lag_s <= 0.0 {
        cx.remove(id);
        return Ok(());
    }
    if let Some(link) = cx.state.store.get_mut(id) {
        link.hidden = json!({ "gone": true });
    }
    let forget = Operation {
        id: cx.guid(),
        name: FORGET.to_owned(),
        started: cx.now,
        ends: Some(cx.now + SignedDuration::from_millis((lag_s * 1000.0) as i64)),
        outcome: Outcome::Succeed,
        status: OperationStatus::InProgress,
        // Nobody is told of it.
        lost: true,
        ..operation.clone()
    };
    cx.state.operations.begin(forget);
    Ok(())
}

fn check_condition(wanted: &Wanted, id: &ResourceId, known: Option<&Resource>) -> Result<(), ErrorDetail> {
    let (name, zone) = (id.name(), id.parent());
    let zone = zone.as_ref().map_or("", |zone| zone.name());
    let message = match wanted.condition.check(known.map(|known| known.etag.as_str())) {
        Ok(()) => return Ok(()),
        Err(Unmet::Exists) => format!(
            "The Virtual Network link {name} for the Private DNS zone {zone} exists already and hence cannot be created again."
        ),
        Err(Unmet::Modified) => {
            format!(
                "The Virtual Network link '{name}' for the Private DNS zone '{zone}' has been modified (etag mismatch)."
            )
        }
    };
    refused("PreconditionFailed", message)
}

/// Puts the link under a new etag.
fn store(cx: &mut Context<'_>, id: &ResourceId, wanted: &Wanted) {
    let known = cx
        .state
        .store
        .get(id)
        .filter(|link| is_live(link))
        .map(|known| known.body.clone());
    let mut body = wanted.envelope(known.as_ref());
    let kept = known.filter(|_| wanted.partial).unwrap_or_default();
    let sent = &wanted.body["properties"];
    let value = |name: &str, default: Value| {
        let written = [&sent[name], &kept["properties"][name]]
            .into_iter()
            .find(|value| !value.is_null());
        written.cloned().unwrap_or(default)
    };
    body["properties"]["virtualNetwork"] = json!({ "id": value("virtualNetwork", Value::Null)["id"] });
    body["properties"]["registrationEnabled"] = value("registrationEnabled", json!(false));
    if link_rules::is_private_link(id) {
        body["properties"]["resolutionPolicy"] = value("resolutionPolicy", json!("Default"));
    }
    let guid = cx.guid();
    let etag = etag::of_link(&guid, cx.now.as_second());
    cx.store_with_etag(TYPE, id, body, etag);
    if let Some(link) = cx.state.store.get_mut(id) {
        link.hidden = Value::Null;
    }
}
