//! Who may do what: role assignments with Azure's wildcards and inherited scopes.

use super::error::ArmError;
use super::id::ResourceId;
use super::kind::LinkedScope;
use super::seed::Role;
use super::state::State;
use crate::Caller;

/// Whether a role of `object_id` grants `action` on `scope`.
pub(crate) fn allowed(roles: &[Role], object_id: &str, action: &str, scope: &str) -> bool {
    roles_on(roles, object_id, scope).any(|role| role.actions.iter().any(|granted| wildcard(granted, action)))
}

/// The roles that `object_id` has on `scope`, inherited ones included.
pub(crate) fn roles_on<'a>(roles: &'a [Role], object_id: &str, scope: &str) -> impl Iterator<Item = &'a Role> {
    let own = move |role: &&Role| role.object_id.eq_ignore_ascii_case(object_id);
    roles.iter().filter(own).filter(move |role| covers(&role.scope, scope))
}

/// Whether `object_id` has any role on `scope` or on something in it.
pub(crate) fn knows(roles: &[Role], object_id: &str, scope: &str) -> bool {
    roles.iter().any(|role| {
        role.object_id.eq_ignore_ascii_case(object_id) && (covers(&role.scope, scope) || covers(scope, &role.scope))
    })
}

fn covers(granted: &str, scope: &str) -> bool {
    let granted = granted.trim_end_matches('/');
    scope
        .get(..granted.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(granted))
        && (scope.len() == granted.len() || scope[granted.len()..].starts_with('/'))
}

/// `*` stands for any text, slashes included.
fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
    let mut pieces = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// ARM's 403 unless the caller may.
pub(crate) fn authorize(state: &State, caller: &Caller, action: &str, scope: &str) -> Result<(), ArmError> {
    if allowed(&state.roles, &caller.object_id, action, scope) {
        return Ok(());
    }
    let scope = if scope.is_empty() { "/" } else { scope };
    let message = format!(
        "The client '{}' with object id '{}' does not have authorization to perform action '{action}' over scope \
         '{scope}' or the scope is invalid. If access was recently granted, please refresh your credentials.",
        caller.client_id, caller.object_id
    );
    Err(ArmError::gateway(403, "AuthorizationFailed", message))
}

/// The same for the resources that a body refers to.
pub(crate) fn authorize_links(
    state: &State,
    caller: &Caller,
    (action, scope): (&str, &str),
    links: &[LinkedScope],
) -> Result<(), ArmError> {
    for link in links {
        let has = format!(
            "The client '{}' with object id '{}' has permission to perform action '{action}' on scope '{scope}'; however, ",
            caller.client_id, caller.object_id
        );
        let subscription = ResourceId::parse(&link.id)
            .ok()
            .map(|id| id.subscription().to_owned())
            .unwrap_or_default();
        let foreign = state
            .subscription(&subscription)
            .filter(|known| !known.tenant.eq_ignore_ascii_case(&caller.tenant_id));
        if foreign.is_some() {
            let message = format!(
                "{has}the current tenant '{}' is not authorized to access linked subscription '{subscription}'.",
                caller.tenant_id
            );
            return Err(ArmError::gateway(403, "LinkedAuthorizationFailed", message));
        }
        if !allowed(&state.roles, &caller.object_id, link.action, &link.id) {
            let message = format!(
                "{has}it does not have permission to perform action '{}' on the linked scope(s) '{}' or the linked \
                 scope(s) are invalid.",
                link.action, link.id
            );
            return Err(ArmError::gateway(403, "LinkedAuthorizationFailed", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_azures() {
        for (pattern, text, matches) in [
            ("*", "Microsoft.Network/privateEndpoints/read", true),
            ("*/read", "Microsoft.Network/privateEndpoints/read", true),
            ("*/read", "Microsoft.Network/privateEndpoints/write", false),
            ("microsoft.network/*", "Microsoft.Network/privateDnsZones/A/write", true),
            (
                "Microsoft.Network/privateDnsZones/*/write",
                "Microsoft.Network/privateDnsZones/A/write",
                true,
            ),
            (
                "Microsoft.Network/privateDnsZones/*/write",
                "Microsoft.Network/privateDnsZones/write",
                false,
            ),
            (
                "Microsoft.Network/privateEndpoints/read",
                "Microsoft.Network/privateEndpoints/read",
                true,
            ),
            (
                "Microsoft.Network/privateEndpoints",
                "Microsoft.Network/privateEndpoints/read",
                false,
            ),
        ] {
            assert_eq!(wildcard(pattern, text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn scopes_inherit_by_whole_segments() {
        assert!(covers("/", "/subscriptions/s"));
        assert!(covers("/subscriptions/S", "/subscriptions/s/resourceGroups/g"));
        assert!(covers(
            "/subscriptions/s/resourceGroups/g",
            "/subscriptions/s/resourcegroups/G"
        ));
        assert!(!covers(
            "/subscriptions/s/resourceGroups/g",
            "/subscriptions/s/resourceGroups/g2"
        ));
        assert!(!covers("/subscriptions/s/resourceGroups/g", "/subscriptions/s"));
    }
}
