//! Who may connect to an endpoint service.

use super::endpoint_service::Principal;
use super::endpoint_service_calls::NOT_FOUND;
use super::next_token;
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::state::State;
use crate::engine::tags::Tags;
use crate::iam::caller::{find_role, role_arn, unique_id};
use crate::wire::error::AwsError;
use crate::wire::xml::{list, text};

use super::endpoint_service::without_path;

fn principal_type(arn: &str) -> &'static str {
    match arn {
        "*" => "All",
        _ if arn.contains(":role/") => "Role",
        _ if arn.contains(":user/") => "User",
        _ => "Account",
    }
}

fn check(arn: &str, partition: &str) -> Result<(), AwsError> {
    let rest = arn.strip_prefix(&format!("arn:{partition}:iam::"));
    let parts = rest.and_then(|rest| rest.split_once(':'));
    let good = parts.is_some_and(|(account, name)| {
        let digits = account.len() == 12 && account.bytes().all(|digit| digit.is_ascii_digit());
        let named = name
            .strip_prefix("role/")
            .or(name.strip_prefix("user/"))
            .is_some_and(|name| !name.is_empty());
        digits && (name == "root" || named)
    });
    match good || arn == "*" {
        true => Ok(()),
        false => Err(AwsError::bad("InvalidPrincipal", format!("Invalid Principal: '{arn}'"))),
    }
}

/// A principal as it is shown: the id of a role that is gone, where the switch has it so.
fn shown_as(state: &State, arn: &str) -> String {
    let is_role = arn.contains(":role/");
    let exists = state.accounts.iter().any(|account| {
        let mut roles = account.roles.iter();
        roles.any(|role| without_path(&role_arn(account, role)) == without_path(arn))
    });
    let account = arn.split(':').nth(4).unwrap_or_default();
    let known_account = state.account(account).is_some();
    match is_role
        && known_account
        && !exists
        && state.switches.gone_principal_shows_id
        && find_role(state, arn).is_none()
    {
        true => unique_id("AROA", arn),
        false => arn.to_owned(),
    }
}

pub(super) fn describe(call: &mut Call<'_>) -> Answered {
    call.params.only(&["ServiceId", "Filter", "MaxResults", "NextToken"])?;
    let id = call.params.required("ServiceId")?;
    call.authorize(&[call.arn(&format!("vpc-endpoint-service/{id}"))])?;
    let filters = Filters::read(&call.params, &["principal", "principal-type"])?;
    let service = call.endpoint_service(id, NOT_FOUND)?;
    let mut shown = Vec::new();
    for principal in &service.principals {
        let arn = shown_as(call.state, &principal.arn);
        let values = |name: &str| match name {
            "principal" => vec![arn.clone()],
            _ => vec![principal_type(&principal.arn).to_owned()],
        };
        if filters.hit(&Tags::new(), values) {
            let members = vec![
                text("principalType", principal_type(&principal.arn)),
                text("principal", &arn),
                text("servicePermissionId", &principal.id),
                text("serviceId", id),
            ];
            shown.push((principal.arn.clone(), members));
        }
    }
    shown.sort_by(|(left, _), (right, _)| left.cmp(right));
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("allowedPrincipals", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

pub(super) fn modify(call: &mut Call<'_>) -> Answered {
    call.params
        .only(&["ServiceId", "AddAllowedPrincipals", "RemoveAllowedPrincipals"])?;
    let id = call.params.required("ServiceId")?.to_owned();
    call.authorize(&[call.arn(&format!("vpc-endpoint-service/{id}"))])?;
    let mut principals = call.endpoint_service(&id, NOT_FOUND)?.principals.clone();
    let (added, removed) = (
        call.params.list("AddAllowedPrincipals"),
        call.params.list("RemoveAllowedPrincipals"),
    );
    if added.is_empty() && removed.is_empty() {
        let message = "Add or remove at least one principal";
        return Err(AwsError::bad("MissingParameter", message));
    }
    for arn in &added {
        check(arn, &call.caller.partition)?;
    }
    let added: Vec<String> = added.into_iter().map(str::to_owned).collect();
    let is_removed = |known: &Principal| {
        removed
            .iter()
            .any(|arn| *arn == known.arn || *arn == shown_as(call.state, &known.arn))
    };
    principals.retain(|known| !is_removed(known));
    let mut shown = Vec::new();
    for arn in added {
        if principals.iter().any(|known| known.arn == arn) {
            continue;
        }
        let permission = call.state.new_id("vpce-svc-perm");
        shown.push(vec![
            text("principalType", principal_type(&arn)),
            text("principal", &arn),
            text("servicePermissionId", &permission),
            text("serviceId", &id),
        ]);
        principals.push(Principal { arn, id: permission });
    }
    if let Some(service) = call.state.endpoint_services.get_mut(&id) {
        call.changed = service.principals != principals;
        service.principals = principals;
    }
    Ok(vec![list("addedPrincipalSet", "item", shown), text("return", true)])
}
