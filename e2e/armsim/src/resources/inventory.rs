//! The list of all resources of a subscription or group, whatever their types.

use serde_json::{Value, json};

use super::filter::Filter;
use crate::Caller;
use crate::engine::access;
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Reply};
use crate::engine::page::page;
use crate::engine::registry;
use crate::engine::resource::Resource;

const FIELDS: &[&str] = &[
    "resourcetype",
    "name",
    "location",
    "resourcegroup",
    "tagname",
    "tagvalue",
];

/// `GET SCOPE/resources`: what the caller may read there. Who may read nothing is refused.
pub(super) fn list(cx: &Context<'_>, caller: &Caller, call: &Call<'_>) -> Result<Reply, ArmError> {
    let filter = Filter::of(call, FIELDS)?;
    let expand = call.parameter("$expand").unwrap_or_default().to_ascii_lowercase();
    let expand: Vec<&str> = expand.split(',').map(str::trim).collect();
    let may_read = |found: &&Resource| {
        let action = format!("{}/read", found.resource_type);
        access::allowed(&cx.state.roles, &caller.object_id, &action, found.id.as_str())
    };
    let tracked = cx.state.store.below(&call.id).filter(|found| is_tracked(found));
    let readable: Vec<&Resource> = tracked.filter(may_read).collect();
    if readable.is_empty() {
        let action = "Microsoft.Resources/subscriptions/resources/read";
        access::authorize(cx.state, caller, action, call.id.as_str())?;
    }
    let selected = readable.into_iter().filter(|found| {
        let field = |name: &str| match name {
            "resourcetype" => found.resource_type.clone(),
            "name" => found.id.name().to_owned(),
            "location" => found.body["location"].as_str().unwrap_or_default().to_owned(),
            _ => found.id.resource_group().unwrap_or_default().to_owned(),
        };
        filter.selects(field, &found.body["tags"])
    });
    let found = selected.map(|found| (found.id.key(), found)).collect();
    page(call, found, 1000, |found| show(found, &expand))
}

/// Whether ARM itself knows the resource: nested ones without a location are the provider's.
pub(super) fn is_tracked(found: &Resource) -> bool {
    let group = || {
        ResourceId::parse(found.id.as_str()).is_ok_and(|id| id.group_id().is_some_and(|group| id.is(group.as_str())))
    };
    match registry::kind(&found.resource_type) {
        Some(kind) => kind.tracked() && !group(),
        None => found.id.parent().is_none(),
    }
}

fn show(found: &Resource, expand: &[&str]) -> Value {
    // A nested resource is named after everything above it: `zone/link`.
    let names: Vec<String> = found
        .id
        .typed_name()
        .split('/')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    let mut shown = json!({ "id": found.id, "name": names.join("/"), "type": found.resource_type });
    for name in [
        "location",
        "tags",
        "sku",
        "kind",
        "zones",
        "managedBy",
        "extendedLocation",
    ] {
        if let Some(value) = found.body.get(name) {
            shown[name] = value.clone();
        }
    }
    for field in expand {
        match *field {
            "provisioningstate" => shown["provisioningState"] = json!(found.state.as_str()),
            "createdtime" => shown["createdTime"] = json!(found.created),
            "changedtime" => shown["changedTime"] = json!(found.changed),
            _ => {}
        }
    }
    shown
}
