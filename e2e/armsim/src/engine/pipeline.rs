//! One call through ARM: what it checks itself, in its order, and the hand-over to the type.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;

use super::access;
use super::context::Context;
use super::error::ArmError;
use super::id::ResourceId;
use super::kind::{Call, Kind, Reply, Stack};
use super::poll::{self, Poll};
use super::registry;
use super::resource::ProvisioningState;
use super::route::{Target, route};
use super::tags;
use super::throttle::{Counting, Remaining};
use crate::Caller;
use crate::network::location;

/// The newest api-version that is accepted.
const LAST_VERSION: &str = "2026-12-31";
/// ARM's limit of a request body.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// What is learned of a call on its way.
#[derive(Default)]
pub(crate) struct Passage {
    pub(crate) api_version: String,
    pub(crate) resource_type: String,
    pub(crate) stack: Stack,
    pub(crate) remaining: Remaining,
}

/// Carries out one call. What was learned of it is left in `passage`, also when it is refused.
pub(crate) fn carry_out(
    cx: &mut Context<'_>,
    caller: &Caller,
    request: &Request<Bytes>,
    url: String,
    passage: &mut Passage,
) -> Result<Reply, ArmError> {
    let query = query(request);
    let target = enter(cx, caller, request, &query, passage)?;
    let call = |body, id| Call {
        method: request.method(),
        id,
        query: query.clone(),
        headers: request.headers(),
        body,
        api_version: passage.api_version.clone(),
        url: url.clone(),
    };
    match &target {
        Target::Operation {
            scope,
            id,
            url,
            resource_type,
        } => {
            check_version(&passage.api_version, "2014-01-01", resource_type)?;
            let (token, url, query) = (id.as_str(), *url, &query);
            poll::poll(
                cx,
                &Poll {
                    caller,
                    scope,
                    token,
                    url,
                    resource_type,
                    query,
                },
            )
        }
        Target::View { scope, view } => {
            check_version(&passage.api_version, view.first_version(), view.resource_type())?;
            if *request.method() != view.method() {
                return Err(ArmError::method_not_allowed(request.method()));
            }
            if let Some(action) = view.action(cx, scope) {
                access::authorize(cx.state, caller, &action, scope.as_str())?;
            }
            group_exists(cx, request.method(), &target)?;
            view.answer(cx, caller, &call(Value::Null, scope.clone()))
        }
        _ => ask_type(cx, caller, request, &target, call),
    }
}

/// A call to a resource type.
fn ask_type<'a>(
    cx: &mut Context<'_>,
    caller: &Caller,
    request: &Request<Bytes>,
    target: &Target,
    call: impl FnOnce(Value, ResourceId) -> Call<'a>,
) -> Result<Reply, ArmError> {
    let version = cx.api_version.clone();
    let kind = registry::kind(target.resource_type()).ok_or_else(|| unknown_type(target, &version))?;
    check_version(&version, kind.first_version(), kind.resource_type())?;
    // Everything but lists is in a group.
    if matches!(target, Target::Resource { id, .. } if id.resource_group().is_none()) {
        return Err(unknown_type(target, &version));
    }
    let action = action(request.method(), target, kind)?;
    let scope = scope_text(target, kind);
    access::authorize(cx.state, caller, &action, &scope)?;
    group_exists(cx, request.method(), target)?;
    let call = call(body(request)?, spelled(cx, target, kind));
    if writes(call.method) {
        registered(cx, kind, &call.id)?;
    }
    if matches!(*call.method, Method::PUT | Method::PATCH) {
        check_write(cx, kind, &call)?;
        let links = kind.links(cx, &call);
        access::authorize_links(cx.state, caller, (&action, &scope), &links)?;
    }
    dispatch(cx, kind, target, &call)
}

/// What is the same for every write, before its type sees it.
fn check_write(cx: &Context<'_>, kind: &dyn Kind, call: &Call<'_>) -> Result<(), ArmError> {
    if *call.method == Method::PUT && cx.state.store.get(&call.id).is_none() {
        kind.check_name(call.id.name())?;
    }
    if kind.tracked() {
        tags::check(&call.body["tags"], kind.most_tags())?;
    }
    Ok(())
}

/// Providers take writes of subscriptions that have registered them.
fn registered(cx: &Context<'_>, kind: &dyn Kind, id: &ResourceId) -> Result<(), ArmError> {
    let namespace = kind.resource_type().split('/').next().unwrap_or_default();
    let state = cx.state.registrations.state(id.subscription(), namespace, cx.now);
    if state == "Registered" {
        return Ok(());
    }
    let message = format!(
        "The subscription is not registered to use namespace '{namespace}'. See https://aka.ms/rps-not-found for how to \
         register subscriptions."
    );
    Err(ArmError::gateway(409, "MissingSubscriptionRegistration", message))
}

fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::DELETE)
}

/// What is checked before the type is asked: path, api-version given, subscription, budgets.
fn enter(
    cx: &mut Context<'_>,
    caller: &Caller,
    request: &Request<Bytes>,
    query: &[(String, String)],
    passage: &mut Passage,
) -> Result<Target, ArmError> {
    let versions = query.iter().filter(|(key, _)| key.eq_ignore_ascii_case("api-version"));
    let versions: Vec<&String> = versions.map(|(_, value)| value).collect();
    passage.api_version = versions.first().map(|version| version.to_string()).unwrap_or_default();
    cx.api_version.clone_from(&passage.api_version);
    let target = route(request.method(), request.uri().path())?;
    let kind = registry::kind(target.resource_type());
    let known = kind.map_or(target.resource_type(), |kind| kind.resource_type());
    passage.resource_type = known.to_owned();
    passage.stack = stack(&target, kind);
    if versions.len() != 1 || passage.api_version.is_empty() {
        let message = "The api-version query parameter (?api-version=) is required for all requests.";
        return Err(ArmError::gateway(400, "MissingApiVersionParameter", message));
    }
    subscription(cx, caller, &target)?;
    let counting = Counting {
        now: cx.now,
        preset: cx.state.preset,
        caller,
        subscription: target.scope().subscription(),
        method: request.method(),
        stack: passage.stack,
    };
    let seed = &cx.state.throttle_seed;
    cx.state.throttle.count(seed, &counting, &mut passage.remaining)?;
    Ok(target)
}

fn dispatch(cx: &mut Context<'_>, kind: &dyn Kind, target: &Target, call: &Call<'_>) -> Result<Reply, ArmError> {
    match (target, call.method) {
        (Target::List { .. }, &Method::GET) => {
            let scope = call.id.resource_type();
            if !scope.starts_with("Microsoft.Resources/") && !scope.eq_ignore_ascii_case(location::TYPE) {
                cx.find(&call.id)?;
            }
            kind.list(cx, call)
        }
        (Target::Resource { .. }, &Method::GET) => kind.get(cx, call),
        (Target::Resource { .. }, &Method::HEAD) => kind.get(cx, call).map(|_| Reply::new(204)),
        (Target::Resource { .. }, &Method::PUT) => kind.put(cx, call),
        (Target::Resource { .. }, &Method::PATCH) => kind.patch(cx, call),
        (Target::Resource { .. }, &Method::DELETE) => kind.delete(cx, call),
        (Target::Action { action, .. }, &Method::POST) => kind.post(cx, call, action),
        _ => Err(ArmError::method_not_allowed(call.method)),
    }
}

/// The parameters of the query, decoded.
fn query(request: &Request<Bytes>) -> Vec<(String, String)> {
    let text = request.uri().query().unwrap_or_default();
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

fn stack(target: &Target, kind: Option<&dyn Kind>) -> Stack {
    match (kind, target.resource_type()) {
        (Some(kind), _) => kind.stack(),
        (None, "Microsoft.Network/privateDnsOperationStatuses" | "Microsoft.Network/privateDnsOperationResults") => {
            Stack::PrivateDns
        }
        (None, "Microsoft.Network/locations/operations") => Stack::Network,
        (None, _) => Stack::Resources,
    }
}

fn unknown_type(target: &Target, version: &str) -> ArmError {
    let full = target.resource_type();
    let (namespace, name) = full.split_once('/').unwrap_or((full, ""));
    let same = |kind: &dyn Kind| {
        kind.resource_type()
            .split('/')
            .next()
            .is_some_and(|known| known.eq_ignore_ascii_case(namespace))
    };
    if !registry::kinds().any(same) {
        let message = format!("The resource namespace '{namespace}' is invalid.");
        return ArmError::gateway(404, "InvalidResourceNamespace", message);
    }
    let message = format!(
        "The resource type '{name}' could not be found in the namespace '{namespace}' for api version '{version}'."
    );
    ArmError::gateway(404, "InvalidResourceType", message)
}

/// `YYYY-MM-DD`, perhaps with a word after it, between a type's first version and the last known date.
fn check_version(version: &str, first: &str, resource_type: &str) -> Result<(), ArmError> {
    let date = version
        .get(..10)
        .filter(|date| date.parse::<jiff::civil::Date>().is_ok());
    let well_formed = version.len() == 10 || version.get(10..).is_some_and(|rest| rest.starts_with('-'));
    let Some(date) = date.filter(|_| well_formed) else {
        let message =
            format!("The api-version '{version}' is invalid. The supported versions are dates of the form YYYY-MM-DD.");
        return Err(ArmError::gateway(400, "InvalidApiVersionParameter", message));
    };
    if date < first || date > LAST_VERSION {
        let name = resource_type.split_once('/').map_or(resource_type, |(_, name)| name);
        let message = format!(
            "No registered resource provider found for API version '{version}' for type '{name}'. The supported \
             api-versions are '{first}' to '{LAST_VERSION}'."
        );
        return Err(ArmError::gateway(400, "NoRegisteredProviderFound", message));
    }
    Ok(())
}

fn subscription(cx: &Context<'_>, caller: &Caller, target: &Target) -> Result<(), ArmError> {
    let id = target.scope().subscription();
    if target.scope().as_str().is_empty() {
        return Ok(());
    }
    let Some(known) = cx.state.subscription(id) else {
        if uuid::Uuid::parse_str(id).is_err() {
            let message = format!("The provided subscription identifier '{id}' is malformed or invalid.");
            return Err(ArmError::gateway(400, "InvalidSubscriptionId", message));
        }
        return Err(ArmError::gateway(
            404,
            "SubscriptionNotFound",
            format!("The subscription '{id}' could not be found."),
        ));
    };
    if known.tenant.eq_ignore_ascii_case(&caller.tenant_id) {
        return Ok(());
    }
    let message = format!(
        "The access token is from the wrong issuer. It must match the tenant '{}' associated with this subscription. \
         Please use a token of that tenant.",
        known.tenant
    );
    Err(ArmError::gateway(401, "InvalidAuthenticationTokenTenant", message))
}

/// The permission that the call needs.
fn action(method: &Method, target: &Target, kind: &dyn Kind) -> Result<String, ArmError> {
    // Roles know resource groups under the subscription's type.
    let resource_type = match kind.resource_type() {
        "Microsoft.Resources/resourceGroups" => "Microsoft.Resources/subscriptions/resourceGroups",
        other => other,
    };
    let verb = match (target, method) {
        (Target::Action { action, .. }, _) => {
            return Ok(format!("{resource_type}/{action}/action"));
        }
        (_, &Method::GET | &Method::HEAD) => "read",
        (_, &Method::PUT | &Method::PATCH) => "write",
        (_, &Method::DELETE) => "delete",
        _ => return Err(ArmError::method_not_allowed(method)),
    };
    Ok(format!("{resource_type}/{verb}"))
}

fn scope_text(target: &Target, kind: &dyn Kind) -> String {
    match target {
        Target::Resource { id, .. } => id.spelled(kind.resource_type()).to_string(),
        other => other.scope().to_string(),
    }
}

fn group_exists(cx: &Context<'_>, method: &Method, target: &Target) -> Result<(), ArmError> {
    let Some(group) = target.scope().group_id() else {
        return Ok(());
    };
    let itself = matches!(target, Target::Resource { id, .. } if id.is(group.as_str()));
    let name = group.name();
    match cx.state.store.get(&group) {
        None if itself => Ok(()),
        None => Err(ArmError::group_not_found(name)),
        Some(found) if found.state == ProvisioningState::Deleting && writes(method) => {
            let message =
                format!("The resource group '{name}' is in deprovisioning state and cannot perform this operation.");
            Err(ArmError::gateway(409, "ResourceGroupBeingDeleted", message))
        }
        Some(_) => Ok(()),
    }
}

/// The id as the simulated Azure shows it: known resources keep their spelling.
fn spelled(cx: &Context<'_>, target: &Target, kind: &dyn Kind) -> ResourceId {
    let id = target.scope();
    if let Some(found) = cx.state.store.get(id) {
        return found.id.clone();
    }
    match target {
        Target::Resource { .. } => id.spelled(kind.resource_type()),
        _ => id.clone(),
    }
}

/// The JSON body of a write; null where there is none.
fn body(request: &Request<Bytes>) -> Result<Value, ArmError> {
    let bytes = request.body();
    if !matches!(*request.method(), Method::PUT | Method::PATCH | Method::POST)
        || (bytes.is_empty() && *request.method() == Method::POST)
    {
        return Ok(Value::Null);
    }
    if bytes.len() > MOST_BYTES {
        let message = format!("The request content size exceeds the maximum size of {MOST_BYTES} bytes.");
        return Err(ArmError::gateway(413, "RequestContentTooLarge", message));
    }
    let content_type = request
        .headers()
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|value| value.to_ascii_lowercase().starts_with("application/json")) {
        let given = content_type.unwrap_or_default();
        let message =
            format!("The content media type '{given}' is not supported. Only 'application/json' is supported.");
        return Err(ArmError::gateway(415, "UnsupportedMediaType", message));
    }
    let parsed: Value = serde_json::from_slice(bytes).map_err(|error| {
        ArmError::invalid_content(format!(
            "The request content was invalid and could not be deserialized: '{error}'."
        ))
    })?;
    if !parsed.is_object() {
        return Err(ArmError::invalid_content(
            "The request content was invalid and could not be deserialized: expected an object.",
        ));
    }
    Ok(parsed)
}
