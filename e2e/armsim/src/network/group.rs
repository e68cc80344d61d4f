//! Resource groups.

use http::Method;
use serde_json::{Value, json};

use crate::engine::context::{Begin, Context};
use crate::engine::error::ArmError;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::operation::{Outcome, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

/// Microsoft.Resources/resourceGroups.
pub(crate) struct ResourceGroups;

const DELETE: Pace = Pace::new(30.0, 15);

impl Kind for ResourceGroups {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Resources/resourceGroups"
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

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Err(ArmError::group_not_found(call.id.name()));
        };
        if *call.method == Method::HEAD {
            return Ok(Reply::new(204));
        }
        Ok(Reply::new(200).body(self.render(cx, found)))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(location) = call.body["location"]
            .as_str()
            .filter(|location| !location.is_empty())
        else {
            return Err(ArmError::gateway(
                400,
                "LocationRequired",
                "The location property is required for this definition.",
            ));
        };
        let known = cx.state.store.get(&call.id);
        if let Some(known) = known
            && !known.body["location"]
                .as_str()
                .is_some_and(|old| old.eq_ignore_ascii_case(location))
        {
            let message = format!(
                "Invalid resource group location '{location}'. The Resource group already exists in location '{}'.",
                known.body["location"].as_str().unwrap_or_default()
            );
            return Err(ArmError::gateway(
                409,
                "InvalidResourceGroupLocation",
                message,
            ));
        }
        let status = if known.is_some() { 200 } else { 201 };
        let mut body = json!({ "location": location });
        for name in ["tags", "managedBy"] {
            if let Some(value) = call.body.get(name) {
                body[name] = value.clone();
            }
        }
        cx.store(self.resource_type(), &call.id, body);
        Ok(Reply::new(status)
            .body(self.render(cx, cx.find(&call.id)?))
            .changed())
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Err(ArmError::group_not_found(call.id.name()));
        };
        if let Some(running) = cx.running_on(found) {
            return Ok(Reply::new(202).operation(&running.id.clone()));
        }
        let operation = cx.begin(Begin {
            name: "DeleteResourceGroup",
            stack: Stack::Resources,
            verb: Verb::Delete,
            target: &call.id,
            target_type: self.resource_type(),
            region: "",
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
}
