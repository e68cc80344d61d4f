//! STS: sessions of roles, for callers that a role trusts and for web identities.

mod assume;
pub(crate) mod session;
mod token;

use crate::engine::call::{Answered, Call};
use crate::wire::error::AwsError;
use crate::wire::xml::text;

/// Carries out a signed call.
pub(crate) fn answer(call: &mut Call<'_>) -> Answered {
    match call.action.as_str() {
        "AssumeRole" => assume::assume_role(call),
        "GetCallerIdentity" => {
            let caller = &call.caller;
            Ok(vec![
                text("Arn", &caller.arn),
                text("UserId", &caller.user_id),
                text("Account", &caller.account),
            ])
        }
        other => Err(unknown(other)),
    }
}

pub(crate) use assume::assume_with_web_identity;

/// No such action.
pub(crate) fn unknown(action: &str) -> AwsError {
    let message = format!("Could not find operation {action} for version 2011-06-15");
    AwsError::bad("InvalidAction", message)
}
