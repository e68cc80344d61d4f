//! Resource groups, and how one is deleted with everything in it.

use std::cmp::Reverse;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::filter::Filter;
use super::inventory::is_tracked;
use crate::Caller;
use crate::engine::access;
use crate::engine::context::{Begin, Context};
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::page::page;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};
use crate::engine::{names, registry};

/// Microsoft.Resources/resourceGroups.
pub(super) struct ResourceGroups;

const TYPE: &str = "Microsoft.Resources/resourceGroups";
const DELETE: Pace = Pace::new(30.0, 15);
const READ: &str = "Microsoft.Resources/subscriptions/resourceGroups/read";

impl Kind for ResourceGroups {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2014-04-01"
    }

    fn stack(&self) -> Stack {
        Stack::Resources
    }

    fn etag(&self, _cx: &Context<'_>, _resource: &Resource) -> String {
        String::new()
    }

    fn check_name(&self, name: &str) -> Result<(), ArmError> {
        names::group(name)
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.state.store.get(&call.id);
        let found = found.ok_or_else(|| ArmError::group_not_found(call.id.name()))?;
        Ok(Reply::new(200).body(self.render(cx, found)))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let location = call.body["location"].as_str().filter(|location| !location.is_empty());
        let location = location.ok_or_else(|| {
            let message = "The location property is required for this definition.";
            ArmError::gateway(400, "LocationRequired", message)
        })?;
        let known = cx.state.store.get(&call.id);
        let old = known.and_then(|known| known.body["location"].as_str());
        if let Some(old) = old.filter(|old| plain_region(old) != plain_region(location)) {
            let message = format!(
                "Invalid resource group location '{location}'. The Resource group already exists in location '{old}'."
            );
            return Err(ArmError::gateway(409, "InvalidResourceGroupLocation", message));
        }
        let status = if known.is_some() { 200 } else { 201 };
        let mut body = json!({ "location": plain_region(location), "properties": {} });
        for name in ["tags", "managedBy"] {
            if let Some(value) = call.body.get(name).filter(|value| !value.is_null()) {
                body[name] = value.clone();
            }
        }
        let changed = known.is_none_or(|known| known.body != body);
        if changed {
            cx.store(TYPE, &call.id, body);
        }
        let mut reply = Reply::new(status).body(self.render(cx, cx.find(&call.id)?));
        reply.changed = changed;
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Err(ArmError::group_not_found(call.id.name()));
        };
        if let Some(running) = cx.running_on(found) {
            return Ok(Reply::new(202).operation(&running.id.clone()));
        }
        let region = found.body["location"].as_str().unwrap_or_default().to_owned();
        let operation = cx.begin(Begin {
            name: "DeleteResourceGroup",
            stack: Stack::Resources,
            verb: Verb::Delete,
            target: &call.id,
            target_type: TYPE,
            region: &region,
            api_version: &call.api_version,
            pace: &DELETE,
            outcome: Outcome::Succeed,
            payload: Value::Null,
        });
        if let Some(found) = cx.state.store.get_mut(&call.id) {
            found.state = ProvisioningState::Deleting;
            found.operation = Some(operation.clone());
        }
        Ok(Reply::new(202).operation(&operation).changed())
    }

    /// A deletion that fails, or meets something that may not go, leaves the group as usable as before.
    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        let mut left = vec![];
        if operation.status == OperationStatus::Succeeded {
            left = clear(cx, operation);
            if left.is_empty() {
                cx.remove(&operation.target);
                return;
            }
        }
        if !left.is_empty() {
            cx.state
                .operations
                .fail(&operation.id, blocked(&operation.target, &left, &operation.id));
        }
        cx.settle(operation, ProvisioningState::Succeeded);
    }
}

/// The groups of a subscription that the caller may read. Who may read none is refused, unless it could read any.
pub(super) fn list(cx: &Context<'_>, caller: &Caller, call: &Call<'_>) -> Result<Reply, ArmError> {
    let filter = Filter::of(call, &["name", "location", "tagname", "tagvalue"])?;
    let may_read = |found: &&Resource| access::allowed(&cx.state.roles, &caller.object_id, READ, found.id.as_str());
    let readable: Vec<&Resource> = cx.state.store.of_type(&call.id, TYPE).filter(may_read).collect();
    if readable.is_empty() {
        access::authorize(cx.state, caller, READ, call.id.as_str())?;
    }
    let selected = readable.into_iter().filter(|found| {
        let field = |name: &str| match name {
            "name" => found.id.name().to_owned(),
            _ => found.body["location"].as_str().unwrap_or_default().to_owned(),
        };
        filter.selects(field, &found.body["tags"])
    });
    let found = selected.map(|group| (group.id.key(), group)).collect();
    page(call, found, 1000, |group| ResourceGroups.render(cx, group))
}

/// `West US 2` is `westus2`.
fn plain_region(text: &str) -> String {
    text.replace(' ', "").to_ascii_lowercase()
}

/// Deletes what ARM knows in a group, dependants first, again and again until nothing more can be deleted; returns what
/// is left.
fn clear(cx: &mut Context<'_>, operation: &Operation) -> Vec<ResourceId> {
    let group = &operation.target;
    loop {
        let tracked = cx.state.store.below(group).filter(|found| is_tracked(found));
        let place = |found: &Resource| {
            (
                registry::rank(&found.resource_type),
                found.id.as_str().split('/').count(),
            )
        };
        let mut left: Vec<_> = tracked.map(|found| (Reverse(place(found)), found.id.clone())).collect();
        left.sort_by_key(|(place, _)| *place);
        let mut gone = false;
        for (_, id) in &left {
            if cx.state.store.get(id).is_some() && may_go(cx, id, &operation.api_version) {
                cx.remove(id);
                gone = true;
            }
        }
        if !gone {
            return left.into_iter().map(|(_, id)| id).collect();
        }
    }
}

/// Asks the type, by the same call that a client would make.
fn may_go(cx: &mut Context<'_>, id: &ResourceId, api_version: &str) -> bool {
    let resource_type = cx.state.store.get(id).map(|found| found.resource_type.clone());
    let Some(kind) = resource_type.and_then(|found| registry::kind(&found)) else {
        return true;
    };
    let call = Call {
        method: &Method::DELETE,
        id: id.clone(),
        query: vec![],
        headers: &HeaderMap::new(),
        body: Value::Null,
        api_version: api_version.to_owned(),
        url: String::new(),
    };
    kind.delete(cx, &call).is_ok()
}

fn blocked(group: &ResourceId, left: &[ResourceId], tracking: &str) -> ErrorDetail {
    let ids: Vec<String> = left
        .iter()
        .map(|id| {
            format!(
                "{}/{}",
                id.resource_type().split('/').next().unwrap_or_default(),
                id.typed_name()
            )
        })
        .collect();
    let message = format!(
        "Deletion of resource group '{}' failed as resources with identifiers '{}' could not be deleted. The provisioning \
         state of the resource group will be rolled back. The tracking Id is '{tracking}'. Please check audit logs for more \
         details.",
        group.name(),
        ids.join(",")
    );
    ErrorDetail::new("ResourceGroupDeletionBlocked", message)
}
