//! Resource providers: what they offer, and their registration with a subscription.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::subscriptions::REGIONS;
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Reply, Stack};
use crate::engine::page::page;
use crate::engine::preset::Pace;
use crate::engine::registry;

/// Types that have no resources of their own: namespace, type, versions of which stack.
static PLAIN: &[(&str, &str, Stack)] = &[
    ("Microsoft.Authorization", "permissions", Stack::Resources),
    ("Microsoft.Network", "locations", Stack::Network),
    ("Microsoft.Network", "locations/operations", Stack::Network),
    ("Microsoft.Network", "locations/operationResults", Stack::Network),
    ("Microsoft.Network", "privateDnsOperationResults", Stack::PrivateDns),
    ("Microsoft.Network", "privateDnsOperationStatuses", Stack::PrivateDns),
    ("Microsoft.Resources", "providers", Stack::Resources),
    ("Microsoft.Resources", "resources", Stack::Resources),
    ("Microsoft.Resources", "subscriptions", Stack::Resources),
    ("Microsoft.Resources", "subscriptions/locations", Stack::Resources),
    (
        "Microsoft.Resources",
        "subscriptions/operationresults",
        Stack::Resources,
    ),
    ("Microsoft.Resources", "subscriptions/providers", Stack::Resources),
    ("Microsoft.Resources", "subscriptions/resourceGroups", Stack::Resources),
    ("Microsoft.Resources", "subscriptions/resources", Stack::Resources),
    ("Microsoft.Resources", "tenants", Stack::Resources),
];

/// How long a registration takes: up to minutes in Azure; nobody recorded it, and clients ask every 10 s.
const CHANGE: Pace = Pace::new(8.0, 0);

/// Published versions, the newest first. Others in between are accepted too.
fn versions(stack: Stack) -> &'static [&'static str] {
    match stack {
        Stack::Network => &[
            "2024-05-01",
            "2024-03-01",
            "2024-01-01",
            "2023-11-01",
            "2023-09-01",
            "2023-06-01",
            "2023-05-01",
            "2023-04-01",
            "2023-02-01",
            "2022-11-01",
            "2022-09-01",
            "2022-07-01",
            "2022-05-01",
            "2022-01-01",
            "2021-08-01",
            "2021-05-01",
            "2021-03-01",
            "2021-02-01",
            "2020-11-01",
            "2020-08-01",
            "2020-07-01",
            "2020-06-01",
            "2020-05-01",
            "2020-04-01",
            "2020-03-01",
            "2019-12-01",
            "2019-11-01",
            "2019-09-01",
            "2019-08-01",
            "2019-07-01",
            "2019-06-01",
            "2019-04-01",
        ],
        Stack::PrivateDns => &["2024-06-01", "2020-06-01", "2020-01-01", "2018-09-01"],
        Stack::Resources => &[
            "2024-07-01",
            "2024-03-01",
            "2023-07-01",
            "2022-12-01",
            "2022-09-01",
            "2022-04-01",
            "2021-04-01",
            "2021-01-01",
            "2020-10-01",
            "2020-06-01",
            "2020-01-01",
            "2019-10-01",
            "2019-05-01",
            "2018-05-01",
            "2016-06-01",
            "2014-04-01",
        ],
    }
}

/// All namespaces with their types as `resourceTypes` shows them.
fn namespaces() -> BTreeMap<&'static str, BTreeMap<&'static str, Value>> {
    let mut all: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    for (namespace, name, stack) in PLAIN {
        let shown = show_type(name, *stack, "");
        all.entry(namespace).or_default().insert(name, shown);
    }
    for kind in registry::kinds() {
        // Known as `subscriptions/resourceGroups`, above.
        let Some((namespace, name)) = kind
            .resource_type()
            .split_once('/')
            .filter(|(_, name)| *name != "resourceGroups")
        else {
            continue;
        };
        let shown = show_type(name, kind.stack(), kind.first_version());
        all.entry(namespace).or_default().insert(name, shown);
    }
    all
}

fn show_type(name: &str, stack: Stack, first: &str) -> Value {
    let versions: Vec<&str> = versions(stack)
        .iter()
        .copied()
        .filter(|version| *version >= first)
        .collect();
    let locations: Vec<&str> = match stack {
        Stack::PrivateDns => vec!["global"],
        Stack::Network => REGIONS.iter().map(|region| region.display).collect(),
        Stack::Resources => vec![],
    };
    json!({
        "resourceType": name,
        "locations": locations,
        "apiVersions": versions,
        "defaultApiVersion": versions.first(),
        "capabilities": "None",
    })
}

fn show(cx: &Context<'_>, scope: &ResourceId, namespace: &str, types: &BTreeMap<&'static str, Value>) -> Value {
    let types: Vec<&Value> = types.values().collect();
    let mut shown = json!({ "namespace": namespace, "resourceTypes": types });
    if !scope.as_str().is_empty() {
        let state = cx.state.registrations.state(scope.subscription(), namespace, cx.now);
        shown["id"] = json!(format!("{scope}/providers/{namespace}"));
        shown["registrationState"] = json!(state);
        shown["registrationPolicy"] = json!(policy(namespace));
    }
    shown
}

fn policy(namespace: &str) -> &'static str {
    match namespace {
        "Microsoft.Network" => "RegistrationRequired",
        _ => "RegistrationFree",
    }
}

/// The namespace in Azure's spelling, with its types.
fn find(namespace: &str) -> Result<(&'static str, BTreeMap<&'static str, Value>), ArmError> {
    let mut all = namespaces().into_iter();
    all.find(|(known, _)| known.eq_ignore_ascii_case(namespace))
        .ok_or_else(|| {
            let message = format!("The resource namespace '{namespace}' is invalid.");
            ArmError::gateway(404, "InvalidResourceNamespace", message)
        })
}

/// All providers, of a subscription or of the tenant.
pub(super) fn list(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let all = namespaces().into_iter();
    let found = all.map(|(namespace, types)| (namespace.to_owned(), (namespace, types)));
    page(call, found.collect(), 1000, |(namespace, types)| {
        show(cx, &call.id, namespace, &types)
    })
}

/// One provider.
pub(super) fn get(cx: &Context<'_>, call: &Call<'_>, namespace: &str) -> Result<Reply, ArmError> {
    let (namespace, types) = find(namespace)?;
    Ok(Reply::new(200).body(show(cx, &call.id, namespace, &types)))
}

/// The types of one provider.
pub(super) fn resource_types(namespace: &str) -> Result<Reply, ArmError> {
    let (_, types) = find(namespace)?;
    let types: Vec<Value> = types.into_values().collect();
    Ok(Reply::new(200).body(json!({ "value": types })))
}

/// Registers a provider. It stays `Registering` for a while.
pub(super) fn register(cx: &mut Context<'_>, call: &Call<'_>, namespace: &str) -> Result<Reply, ArmError> {
    change(cx, call, namespace, true)
}

/// Gives a provider up, unless it has resources.
pub(super) fn unregister(cx: &mut Context<'_>, call: &Call<'_>, namespace: &str) -> Result<Reply, ArmError> {
    let prefix = format!("{}/", find(namespace)?.0);
    if cx
        .state
        .store
        .below(&call.id)
        .any(|found| found.resource_type.starts_with(&prefix))
    {
        let message = format!("The subscription cannot unregister '{namespace}' while it has resources of it.");
        return Err(ArmError::gateway(409, "ResourceProviderHasResources", message));
    }
    change(cx, call, namespace, false)
}

fn change(cx: &mut Context<'_>, call: &Call<'_>, namespace: &str, on: bool) -> Result<Reply, ArmError> {
    let (namespace, types) = find(namespace)?;
    let subscription = call.id.subscription().to_owned();
    let registered = matches!(
        cx.state.registrations.state(&subscription, namespace, cx.now),
        "Registered" | "Registering"
    );
    let changes = registered != on && policy(namespace) == "RegistrationRequired";
    if changes {
        let duration = cx.state.preset.duration(&CHANGE, &mut cx.state.random);
        let from = cx.now.saturating_add(duration).unwrap_or(cx.now);
        cx.state.registrations.set(&subscription, namespace, on, from);
    }
    let mut reply = Reply::new(200).body(show(cx, &call.id, namespace, &types));
    reply.changed = changes;
    Ok(reply)
}
