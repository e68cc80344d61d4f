//! Which rights a role has used, by the audit log of the API server and the journal of the simulated Azure.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::test_env::Call;
use e2e::{ControlPlane, roles};
use serde::Deserialize;

use crate::granted::{Right, right};

/// One request in the API server's audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Audited {
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
    #[serde(default)]
    message: String,
}

impl ResponseStatus {
    /// Whether a right was missing. A namespace that is being deleted refuses new objects, whoever asks.
    fn refused(&self) -> bool {
        matches!(self.code, Some(401 | 403)) && !self.message.contains("because it is being terminated")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    api_group: String,
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    name: String,
}

/// The resources whose names are known in advance.
const NAMED: [&str; 5] = ["services", "leases", "namespaces", "configmaps", "infrastructures"];

impl ObjectRef {
    fn right(&self, verb: &str) -> Right {
        // What is created has no name yet when the right is looked for.
        let is_known = NAMED.contains(&self.resource.as_str()) && verb != "create";
        let name = if is_known { self.name.as_str() } else { "" };
        right(&self.api_group, &self.resource, &self.subresource, verb, name)
    }
}

pub(crate) fn audit(control_plane: &ControlPlane) -> Result<Vec<Audited>> {
    let text = std::fs::read_to_string(control_plane.audit_log())?;
    // The last line may be half written.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).context("an audit line"))
        .collect()
}

/// Whether a request asks for the groups, or for the kinds of a group.
fn is_discovery(uri: &str) -> bool {
    let path = uri.split('?').next().unwrap_or_default();
    path.strip_prefix("/apis")
        .is_some_and(|rest| rest.split('/').count() <= 3)
}

/// The rights that a role's ServiceAccount used. Fails if a request was refused.
pub(crate) fn used_rights(audited: &[Audited], account: &str) -> Result<BTreeSet<Right>> {
    let account = format!("system:serviceaccount:{}:{account}", roles::NAMESPACE);
    let mut used = BTreeSet::new();
    for request in audited.iter().filter(|request| request.user.username == account) {
        ensure!(
            !request.response_status.as_ref().is_some_and(ResponseStatus::refused),
            "refused: {} {}",
            request.verb,
            request.uri
        );
        // Everybody may ask what the API server serves.
        if request.object_ref.is_none() && is_discovery(&request.uri) {
            continue;
        }
        let object = request
            .object_ref
            .as_ref()
            .with_context(|| format!("no resource: {}", request.uri))?;
        // Everybody may ask for their own rights.
        if object.resource == "selfsubjectaccessreviews" {
            continue;
        }
        used.insert(object.right(&request.verb));
    }
    // A right on all objects includes the right on one of them.
    let all = used.clone();
    used.retain(|right| {
        right.split(' ').count() < 3 || !right.rsplit_once(' ').is_some_and(|(on_all, _)| all.contains(on_all))
    });
    Ok(used)
}

/// The actions that a caller needed: those of the calls themselves and of the resources that they join. Fails if a call
/// was refused.
pub(crate) fn used_actions(calls: &[Call], client: &str) -> Result<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for call in calls.iter().filter(|call| call.principal.as_deref() == Some(client)) {
        ensure!(
            !matches!(call.status, 401 | 403),
            "refused: {} {}",
            call.method,
            call.path
        );
        // The URL of a Microsoft.Network operation is signed, which is all that it takes.
        if call.resource_kind == "Microsoft.Network/locations/operations" {
            continue;
        }
        let verb = match call.method.as_str() {
            "GET" | "HEAD" => "read",
            "PUT" | "PATCH" => "write",
            "DELETE" => "delete",
            other => return Err(anyhow!("{other} {}", call.path)),
        };
        used.insert(format!("{}/{verb}", call.resource_kind));
        if call.query.contains("networkInterfaces") {
            // What an expanded read shows is the interface itself.
            used.insert("Microsoft.Network/networkInterfaces/read".to_owned());
        }
        if verb == "write" {
            used.extend(joins(&call.resource_kind).iter().map(|action| (*action).to_owned()));
        }
    }
    Ok(used)
}

pub(crate) const SUBNET_JOIN: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";

pub(crate) const NETWORK_JOIN: &str = "Microsoft.Network/virtualNetworks/join/action";

pub(crate) const FRONTEND_JOIN: &str = "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action";

/// What a write needs on the resources that its body refers to.
fn joins(kind: &str) -> &'static [&'static str] {
    match kind {
        "Microsoft.Network/privateLinkServices" => &[SUBNET_JOIN, FRONTEND_JOIN],
        "Microsoft.Network/privateEndpoints" => &[SUBNET_JOIN],
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks" => &[NETWORK_JOIN],
        _ => &[],
    }
}
