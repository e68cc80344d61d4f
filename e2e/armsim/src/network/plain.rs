//! Resources that subnets and frontends refer to and whose own rules nobody needs yet: kept and shown as given.

use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply};
use crate::engine::preset::Pace;

use super::write::{self, Write};

/// A type without rules of its own.
pub(crate) struct Plain(pub(crate) &'static str);

const DELETE: Pace = Pace::new(10.0, 10);

impl Kind for Plain {
    fn resource_type(&self) -> &'static str {
        self.0
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let region = write::location(cx, call)?;
        write::not_being_deleted(cx, call)?;
        let body = normalise(&region, &call.body);
        let name = "PutResourceOperation";
        let (create, update) = (&Pace::AT_ONCE, &Pace::AT_ONCE);
        Ok(write::put(
            cx,
            call,
            Write {
                kind: self,
                id: &call.id,
                body,
                name,
                region,
                create,
                update,
            },
        ))
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        let region = found.body["location"].as_str().unwrap_or_default().to_owned();
        Ok(write::delete(
            cx,
            call,
            self,
            "DeleteResourceOperation",
            &region,
            &DELETE,
        ))
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let location = write::region(body["location"].as_str().unwrap_or_default());
        let body = normalise(&location, &body);
        cx.store(self.0, id, body);
        Ok(())
    }
}

fn normalise(location: &str, given: &Value) -> Value {
    let mut body = write::tracked(location, given);
    for name in ["sku", "properties"] {
        if let Some(value) = given.get(name) {
            body[name] = value.clone();
        }
    }
    if !body["properties"].is_object() {
        body["properties"] = serde_json::json!({});
    }
    if let Some(properties) = body["properties"].as_object_mut() {
        properties.remove("provisioningState");
    }
    body
}
