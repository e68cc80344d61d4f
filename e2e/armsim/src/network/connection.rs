//! Private endpoint connections as the provider's side sees them: decide, remove, and what the endpoint sees of it.

use serde_json::{Value, json};

use crate::engine::context::{Begin, Context};
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::endpoint;
use super::write;

/// Microsoft.Network/privateLinkServices/privateEndpointConnections.
pub(crate) struct Connections;

pub(crate) const TYPE: &str = "Microsoft.Network/privateLinkServices/privateEndpointConnections";

const CHANGE: Pace = Pace::new(10.0, 10);

impl Kind for Connections {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2019-04-01"
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = write::find_nested(cx, &call.id)?;
        Ok(Reply::new(200)
            .body(self.render(cx, found))
            .etag(&self.etag(cx, found)))
    }

    /// Approves or rejects. Asynchronous, though its spec says otherwise.
    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = write::find_nested(cx, &call.id)?;
        write::not_being_deleted(cx, call)?;
        write::precondition(cx, call, Some(&self.etag(cx, found)))?;
        let old = found.property("privateLinkServiceConnectionState").clone();
        let given = &call.body["properties"]["privateLinkServiceConnectionState"];
        let new = decide(cx, &call.id, &old, given)?;
        let same = new == old && found.state == ProvisioningState::Succeeded;
        let region = region(cx, &call.id);
        let name = "PutPrivateEndpointConnectionOperation";
        let operation = cx.begin(Begin {
            name,
            stack: Stack::Network,
            verb: Verb::Put,
            target: &call.id,
            target_type: TYPE,
            region: &region,
            api_version: &call.api_version,
            pace: if same { &Pace::AT_ONCE } else { &CHANGE },
            outcome: Outcome::Succeed,
            payload: Value::Null,
        });
        if !same {
            cx.supersede(&call.id, (name, &operation));
        }
        if let Some(found) = cx.state.store.get_mut(&call.id).filter(|_| !same) {
            found.set("privateLinkServiceConnectionState", new);
            found.state = ProvisioningState::Updating;
            found.operation = Some(operation.clone());
        }
        let shown = self.render(cx, cx.find(&call.id)?);
        let reply = Reply::new(200).body(shown).operation(&operation);
        Ok(if same { reply } else { reply.changed() })
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if let Some(parent) = call.id.parent() {
            cx.find(&parent)?;
        }
        if cx.state.store.get(&call.id).is_none() {
            return Ok(Reply::new(204));
        }
        let region = region(cx, &call.id);
        Ok(write::delete(
            cx,
            call,
            self,
            "DeletePrivateEndpointConnectionOperation",
            &region,
            &CHANGE,
        ))
    }

    /// A connection carries its service's etag.
    fn etag(&self, cx: &Context<'_>, resource: &Resource) -> String {
        let service = resource
            .id
            .parent()
            .and_then(|service| cx.state.store.get(&service));
        service
            .map(|service| service.etag.clone())
            .unwrap_or_default()
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        kind::finish(cx, operation);
        touch(cx, &operation.target);
        if operation.status == OperationStatus::Succeeded && operation.verb == Verb::Put {
            reflect(cx, &operation.target);
        }
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        cx.store(TYPE, id, body);
        touch(cx, id);
        reflect(cx, id);
        Ok(())
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        touch(cx, &gone.id);
        if let Some(endpoint) = endpoint_id(gone) {
            let state = state(
                "Disconnected",
                "The connection was removed by the service provider.",
            );
            endpoint::see(cx, &endpoint, state);
        }
    }
}

/// The connections of a service.
pub(crate) fn of<'a>(
    cx: &'a Context<'_>,
    service: &ResourceId,
) -> impl Iterator<Item = &'a Resource> {
    cx.state.store.of_type(service, TYPE)
}

/// `Approved`, `Pending`, `Rejected`.
pub(crate) fn status(connection: &Resource) -> &str {
    connection.property("privateLinkServiceConnectionState")["status"]
        .as_str()
        .unwrap_or_default()
}

/// A connection state as both sides show it.
pub(crate) fn state(status: &str, description: &str) -> Value {
    json!({ "status": status, "description": description, "actionsRequired": "None" })
}

/// The connection that an endpoint has made, if the provider has not removed it.
pub(crate) fn made_by<'a>(
    cx: &'a Context<'_>,
    service: &ResourceId,
    endpoint: &ResourceId,
) -> Option<&'a Resource> {
    of(cx, service).find(|found| endpoint_id(found).is_some_and(|made| made.is(endpoint.as_str())))
}

fn endpoint_id(connection: &Resource) -> Option<ResourceId> {
    ResourceId::parse(connection.property("privateEndpoint")["id"].as_str()?).ok()
}

/// Adds an endpoint's connection to the service's list.
pub(crate) fn make(
    cx: &mut Context<'_>,
    id: &ResourceId,
    endpoint: &ResourceId,
    location: &str,
    state: &Value,
) {
    let link = u32::try_from(cx.state.random.bits() >> 34).unwrap_or_default();
    let body = json!({
        "properties": {
            "privateEndpoint": { "id": endpoint },
            "privateLinkServiceConnectionState": state,
            "linkIdentifier": link.to_string(),
            "privateEndpointLocation": location,
        }
    });
    cx.store(TYPE, id, body);
    touch(cx, id);
}

/// Changes a connection's state on both sides at once.
pub(crate) fn settle(cx: &mut Context<'_>, id: &ResourceId, state: Value) {
    if let Some(found) = cx.state.store.get_mut(id) {
        found.set("privateLinkServiceConnectionState", state);
    }
    touch(cx, id);
    reflect(cx, id);
}

/// Shows the provider's decision to the endpoint.
fn reflect(cx: &mut Context<'_>, id: &ResourceId) {
    let Some(found) = cx.state.store.get(id) else {
        return;
    };
    let state = found.property("privateLinkServiceConnectionState").clone();
    if let Some(endpoint) = endpoint_id(found) {
        endpoint::see(cx, &endpoint, state);
    }
}

/// A change of a connection changes the service's etag.
fn touch(cx: &mut Context<'_>, id: &ResourceId) {
    let etag = cx.weak_etag();
    if let Some(service) = id
        .parent()
        .and_then(|service| cx.state.store.get_mut(&service))
    {
        service.etag = etag;
    }
}

fn region(cx: &Context<'_>, id: &ResourceId) -> String {
    let service = id.parent().and_then(|service| cx.state.store.get(&service));
    service
        .and_then(|service| service.body["location"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// The state that a decision leads to, if it may be made.
fn decide(
    cx: &Context<'_>,
    id: &ResourceId,
    old: &Value,
    given: &Value,
) -> Result<Value, ArmError> {
    let before = old["status"].as_str().unwrap_or_default();
    let status = given["status"].as_str().unwrap_or_default();
    let status = ["Approved", "Rejected"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(status));
    let Some(status) = status else {
        let message = format!("The connection state of {id} can be set to Approved or Rejected.");
        return Err(ArmError::service(
            400,
            "InvalidPrivateEndpointConnectionState",
            message,
        ));
    };
    if before == "Rejected" && status == "Approved" && !cx.state.switches.rejected_can_be_approved {
        let message = format!(
            "Could not update private endpoint connection {id} from 'Rejected' to 'Approved'."
        );
        return Err(ArmError::service(400, "OperationNotAllowed", message));
    }
    let description = given["description"]
        .as_str()
        .unwrap_or_else(|| old["description"].as_str().unwrap_or_default());
    let mut new = state(status, description);
    if let Some(actions) = given["actionsRequired"].as_str() {
        new["actionsRequired"] = json!(actions);
    }
    Ok(new)
}

/// The service and name of an endpoint's connection.
pub(crate) fn id_of(service: &ResourceId, endpoint: &ResourceId, guid: &str) -> ResourceId {
    service.child(
        "privateEndpointConnections",
        &format!("{}.{guid}", endpoint.name()),
    )
}
