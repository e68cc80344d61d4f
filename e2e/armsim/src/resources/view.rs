//! What ARM answers itself about a scope, where no resource is read or written: paths, permissions, hand-over.

use http::Method;

use super::{group, inventory, permissions, providers, subscriptions};
use crate::Caller;
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Reply};

/// A question to ARM; namespaces are as the caller spelled them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Subscriptions,
    Tenants,
    Subscription,
    Locations,
    Providers,
    Provider(String),
    ResourceTypes(String),
    Register(String),
    Unregister(String),
    ResourceGroups,
    /// The resources of a subscription or group.
    Resources,
    /// What the caller may do on a scope.
    Permissions,
}

impl View {
    /// Reads the segments of a path, decoded.
    pub(crate) fn parse(method: &Method, parts: &[String]) -> Option<(ResourceId, Self)> {
        let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let named = |at: usize| parts.get(at).cloned().unwrap_or_default();
        let (scope, view) = match lower.as_slice() {
            ["subscriptions"] => (0, Self::Subscriptions),
            ["tenants"] => (0, Self::Tenants),
            ["providers"] => (0, Self::Providers),
            ["providers", _] => (0, Self::Provider(named(1))),
            ["subscriptions", _] => (2, Self::Subscription),
            ["subscriptions", _, "locations"] => (2, Self::Locations),
            ["subscriptions", _, "providers"] => (2, Self::Providers),
            ["subscriptions", _, "providers", _] => (2, Self::Provider(named(3))),
            ["subscriptions", _, "providers", _, "resourcetypes"] => (2, Self::ResourceTypes(named(3))),
            ["subscriptions", _, "providers", _, "register"] if *method == Method::POST => {
                (2, Self::Register(named(3)))
            }
            ["subscriptions", _, "providers", _, "unregister"] if *method == Method::POST => {
                (2, Self::Unregister(named(3)))
            }
            ["subscriptions", _, "resourcegroups"] => (2, Self::ResourceGroups),
            ["subscriptions", _, "resources"] => (2, Self::Resources),
            ["subscriptions", _, "resourcegroups", _, "resources"] => (4, Self::Resources),
            [scope @ .., "providers", "microsoft.authorization", "permissions"] if !scope.is_empty() => {
                (scope.len(), Self::Permissions)
            }
            _ => return None,
        };
        if scope == 0 {
            return Some((ResourceId::root(), view));
        }
        let scope = ResourceId::parse(&format!("/{}", parts.get(..scope)?.join("/"))).ok()?;
        Some((scope, view))
    }

    /// The type that ARM knows it by.
    pub(crate) fn resource_type(&self) -> &'static str {
        match self {
            Self::Subscriptions | Self::Subscription => "Microsoft.Resources/subscriptions",
            Self::Tenants => "Microsoft.Resources/tenants",
            Self::Locations => "Microsoft.Resources/subscriptions/locations",
            Self::Providers | Self::Provider(_) | Self::ResourceTypes(_) | Self::Register(_) | Self::Unregister(_) => {
                "Microsoft.Resources/subscriptions/providers"
            }
            Self::ResourceGroups => "Microsoft.Resources/resourceGroups",
            Self::Resources => "Microsoft.Resources/subscriptions/resources",
            Self::Permissions => "Microsoft.Authorization/permissions",
        }
    }

    pub(crate) fn first_version(&self) -> &'static str {
        "2014-04-01"
    }

    /// The only method.
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Register(_) | Self::Unregister(_) => Method::POST,
            _ => Method::GET,
        }
    }

    /// The permission needed on the scope; lists that show only what the caller may read need none.
    pub(crate) fn action(&self, cx: &Context<'_>, scope: &ResourceId) -> Option<String> {
        match self {
            Self::Subscriptions | Self::Tenants | Self::ResourceGroups | Self::Resources => None,
            Self::Permissions if !cx.state.switches.permissions_need_role => None,
            // Providers of no subscription are public.
            Self::Providers | Self::Provider(_) if scope.as_str().is_empty() => None,
            Self::Register(namespace) => Some(format!("{namespace}/register/action")),
            Self::Unregister(namespace) => Some(format!("{namespace}/unregister/action")),
            _ => Some(format!("{}/read", self.resource_type())),
        }
    }

    /// Answers a call whose scope exists and that is allowed; `call.id` is the scope.
    pub(crate) fn answer(&self, cx: &mut Context<'_>, caller: &Caller, call: &Call<'_>) -> Result<Reply, ArmError> {
        match self {
            Self::Subscriptions => subscriptions::list(cx, caller, call),
            Self::Tenants => subscriptions::tenants(cx, caller, call),
            Self::Subscription => subscriptions::get(cx, call),
            Self::Locations => Ok(subscriptions::locations(call)),
            Self::Providers => providers::list(cx, call),
            Self::Provider(namespace) => providers::get(cx, call, namespace),
            Self::ResourceTypes(namespace) => providers::resource_types(namespace),
            Self::Register(namespace) => providers::register(cx, call, namespace),
            Self::Unregister(namespace) => providers::unregister(cx, call, namespace),
            Self::ResourceGroups => group::list(cx, caller, call),
            Self::Resources => inventory::list(cx, caller, call),
            Self::Permissions => Ok(permissions::list(cx, caller, call)),
        }
    }
}
