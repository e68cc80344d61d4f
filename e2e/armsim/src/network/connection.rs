//! Private endpoint connections as the provider's side sees them: decide, remove, and what the endpoint sees of it.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::endpoint;
use super::reference::referring;
use super::write::touch_parent;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/privateLinkServices/privateEndpointConnections.
pub(crate) struct Connections;

pub(crate) const TYPE: &str = "Microsoft.Network/privateLinkServices/privateEndpointConnections";

const STATE: &str = "privateLinkServiceConnectionState";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2019-04-01",
    noun: "PrivateEndpointConnection",
    create: Pace::new(10.0, 10),
    update: Pace::new(10.0, 10),
    delete: Pace::new(10.0, 10),
};

impl Written for Connections {
    fn about(&self) -> &About {
        &ABOUT
    }

    /// Approves or rejects. Asynchronous, though its spec does not show it.
    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        if put.call.is_none() {
            let id = put.id.clone();
            return Ok(Plan::new(put.given.clone()).then(move |cx| reflect(cx, &id)));
        }
        let known = cx.state.store.get(put.id);
        let known = known.ok_or_else(|| ArmError::nested_not_found(put.id))?;
        let given = &put.given["properties"][STATE];
        let mut body = known.body.clone();
        body["properties"][STATE] = decide(cx, put.id, known.property(STATE), given)?;
        Ok(Plan::new(body))
    }

    fn show(&self, cx: &Context<'_>, _resource: &Resource, shown: &mut Value) {
        if !cx.shows_since("2022-11-01")
            && let Some(fields) = shown["properties"].as_object_mut()
        {
            fields.remove("privateEndpointLocation");
        }
    }

    fn ended(&self, cx: &mut Context<'_>, operation: &Operation) {
        if operation.status == OperationStatus::Succeeded && operation.verb == Verb::Put {
            reflect(cx, &operation.target);
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        if let Some(endpoint) = endpoint_id(gone) {
            let state = state("Disconnected", "The connection was removed by the service provider.");
            endpoint::see(cx, &endpoint, &state);
        }
    }
}

/// The connections of a service.
pub(crate) fn of<'a>(cx: &'a Context<'_>, service: &ResourceId) -> impl Iterator<Item = &'a Resource> {
    cx.state.store.of_type(service, TYPE)
}

/// `Approved`, `Pending`, `Rejected`.
pub(crate) fn status(connection: &Resource) -> &str {
    connection.property(STATE)["status"].as_str().unwrap_or_default()
}

/// A connection state as both sides show it.
pub(crate) fn state(status: &str, description: &str) -> Value {
    json!({ "status": status, "description": description, "actionsRequired": "None" })
}

/// The connection that an endpoint has made on the service, if the provider has not removed it.
pub(crate) fn made_by<'a>(cx: &'a Context<'_>, service: &ResourceId, endpoint: &ResourceId) -> Option<&'a Resource> {
    let mut made = referring(cx, endpoint, TYPE);
    made.find(|made| made.id.parent().is_some_and(|parent| parent.is(service.as_str())))
}

fn endpoint_id(connection: &Resource) -> Option<ResourceId> {
    ResourceId::parse(connection.property("privateEndpoint")["id"].as_str()?).ok()
}

/// Adds an endpoint's connection to the service's list.
pub(crate) fn make(cx: &mut Context<'_>, id: &ResourceId, endpoint: &ResourceId, location: &str, state: &Value) {
    let link = u32::try_from(cx.state.random.bits() >> 34).unwrap_or_default();
    let body = json!({
        "properties": {
            "privateEndpoint": { "id": endpoint },
            STATE: state,
            "linkIdentifier": link.to_string(),
            "privateEndpointLocation": location,
        }
    });
    cx.store(TYPE, id, body);
    touch_parent(cx, id);
}

/// Changes a connection's state on both sides at once.
pub(crate) fn settle(cx: &mut Context<'_>, id: &ResourceId, state: Value) {
    if let Some(found) = cx.state.store.get_mut(id) {
        found.set(STATE, state);
    }
    touch_parent(cx, id);
    reflect(cx, id);
}

/// Shows the provider's decision to the endpoint.
fn reflect(cx: &mut Context<'_>, id: &ResourceId) {
    let Some(found) = cx.state.store.get(id) else {
        return;
    };
    let state = found.property(STATE).clone();
    if let Some(endpoint) = endpoint_id(found) {
        endpoint::see(cx, &endpoint, &state);
    }
}

/// The state that a decision leads to, if it may be made.
fn decide(cx: &Context<'_>, id: &ResourceId, old: &Value, given: &Value) -> Result<Value, ArmError> {
    let before = old["status"].as_str().unwrap_or_default();
    let status = given["status"].as_str().unwrap_or_default();
    let status = ["Approved", "Rejected"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(status));
    let Some(status) = status else {
        let message = format!("The connection state of {id} can be set to Approved or Rejected.");
        return Err(ArmError::service(400, "InvalidPrivateEndpointConnectionState", message));
    };
    if before == "Rejected" && status == "Approved" && !cx.state.switches.rejected_can_be_approved {
        let message = format!("Could not update private endpoint connection {id} from 'Rejected' to 'Approved'.");
        return Err(ArmError::service(400, "OperationNotAllowed", message));
    }
    // What the decision leaves out is empty from then on.
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    Ok(json!({ "status": status, "description": text("description"), "actionsRequired": text("actionsRequired") }))
}

/// The service and name of an endpoint's connection.
pub(crate) fn id_of(service: &ResourceId, endpoint: &ResourceId, guid: &str) -> ResourceId {
    service.child("privateEndpointConnections", &format!("{}.{guid}", endpoint.name()))
}
