//! What the caller may do on a scope: one entry for each role it has there, inherited ones included.

use serde_json::{Value, json};

use crate::Caller;
use crate::engine::access;
use crate::engine::context::Context;
use crate::engine::kind::{Call, Reply};

/// `Microsoft.Authorization/permissions` of the scope `call.id`.
pub(super) fn list(cx: &Context<'_>, caller: &Caller, call: &Call<'_>) -> Reply {
    let roles = access::roles_on(&cx.state.roles, &caller.object_id, call.id.as_str());
    let shown =
        roles.map(|role| json!({ "actions": role.actions, "notActions": [], "dataActions": [], "notDataActions": [] }));
    let shown: Vec<Value> = shown.collect();
    Reply::new(200).body(json!({ "value": shown }))
}
