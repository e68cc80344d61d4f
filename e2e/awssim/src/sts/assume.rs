//! AssumeRole and AssumeRoleWithWebIdentity: trust of the role, right of the caller, length of the session.

use jiff::Timestamp;

use super::session::{Request, open};
use super::token::{self, Claims};
use crate::engine::call::{Answered, Call};
use crate::engine::seed::Role;
use crate::engine::state::State;
use crate::iam::caller::{Caller, find_role};
use crate::wire::error::AwsError;
use crate::wire::params::Params;
use crate::wire::xml::text;

/// Length of a session in seconds, unless it is asked for.
const USUAL_S: i64 = 3600;

pub(super) fn assume_role(call: &mut Call<'_>) -> Answered {
    let known = [
        "RoleArn",
        "RoleSessionName",
        "DurationSeconds",
        "ExternalId",
        "SourceIdentity",
    ];
    call.params.only(&known)?;
    let role = call.params.required("RoleArn")?.to_owned();
    let name = session_name(&call.params)?;
    let denied = || {
        let arn = &call.caller.arn;
        let message = format!("User: {arn} is not authorized to perform: sts:AssumeRole on resource: {role}");
        AwsError::new(403, "AccessDenied", message)
    };
    call.authorize(std::slice::from_ref(&role)).map_err(|_| denied())?;
    let (account, found) = find_role(call.state, &role).ok_or_else(denied)?;
    let trusts = found.trusted.iter().any(|trusted| is_trusted(trusted, &call.caller));
    if !trusts || account.partition != call.caller.partition {
        return Err(denied());
    }
    let longest = match call.caller.arn.contains(":assumed-role/") {
        // A chain of roles.
        true => found.max_session_s.min(USUAL_S),
        false => found.max_session_s,
    };
    let lasts_s = duration(&call.params, longest)?;
    let request = Request {
        role: &role,
        name: &name,
        lasts_s,
    };
    Ok(open(call.state, call.now, &request).show())
}

fn is_trusted(trusted: &str, caller: &Caller) -> bool {
    let root = format!("arn:{}:iam::{}:root", caller.partition, caller.account);
    trusted == caller.principal || trusted == root || trusted == caller.account
}

/// The one call that is not signed.
pub(crate) fn assume_with_web_identity(state: &mut State, now: Timestamp, params: &Params) -> Answered {
    params.only(&[
        "RoleArn",
        "RoleSessionName",
        "WebIdentityToken",
        "DurationSeconds",
        "ProviderId",
    ])?;
    let role = params.required("RoleArn")?;
    let name = session_name(params)?;
    let claims = Claims::read(params.required("WebIdentityToken")?)?;
    let message = "Not authorized to perform sts:AssumeRoleWithWebIdentity";
    let denied = || AwsError::new(403, "AccessDenied", message);
    let (account, found) = find_role(state, role).ok_or_else(denied)?;
    let provider = account
        .oidc_providers
        .iter()
        .find(|provider| provider.issuer == claims.issuer);
    let provider = provider.ok_or_else(|| token::invalid("No OpenIDConnect provider found in your account"))?;
    if provider.unreachable {
        let message = "The identity provider's keys could not be retrieved";
        return Err(AwsError::bad("IDPCommunicationError", message));
    }
    claims.verify(&provider.jwks, now)?;
    let audience = trusted_audience(found, &claims).ok_or_else(denied)?.to_owned();
    let lasts_s = duration(params, found.max_session_s)?;
    let mut shown = open(
        state,
        now,
        &Request {
            role,
            name: &name,
            lasts_s,
        },
    )
    .show();
    shown.push(text("SubjectFromWebIdentityToken", &claims.subject));
    shown.push(text("Audience", audience));
    shown.push(text("Provider", &claims.issuer));
    Ok(shown)
}

fn trusted_audience<'r>(role: &'r Role, claims: &Claims) -> Option<&'r str> {
    let trusted = role.web_identities.iter().find(|trusted| {
        trusted.issuer == claims.issuer
            && trusted.subject == claims.subject
            && claims.audiences.contains(&trusted.audience)
    });
    trusted.map(|trusted| trusted.audience.as_str())
}

fn session_name(params: &Params) -> Result<String, AwsError> {
    let name = params.required("RoleSessionName")?;
    let letters = name
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "_+=,.@-".contains(letter));
    if (2..=64).contains(&name.len()) && letters {
        return Ok(name.to_owned());
    }
    let message =
        format!("1 validation error detected: Value '{name}' at 'roleSessionName' failed to satisfy constraint");
    Err(AwsError::bad("ValidationError", message))
}

fn duration(params: &Params, longest: i64) -> Result<i64, AwsError> {
    let seconds: i64 = params.number("DurationSeconds")?.unwrap_or(USUAL_S.min(longest));
    if (900..=longest).contains(&seconds) {
        return Ok(seconds);
    }
    let message = "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
    Err(AwsError::bad("ValidationError", message))
}
