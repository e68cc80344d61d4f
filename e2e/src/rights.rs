//! Rights in Kubernetes, as `group/resource verb`: those that the shipped files grant, and those that a role has used by
//! the audit log of the API server.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;
use serde_json::Value;

use crate::{ControlPlane, repository, roles};

/// `group/resource verb`, and the name where the right is for one object alone.
pub type Right = String;

fn right(group: &str, resource: &str, subresource: &str, verb: &str, name: &str) -> Right {
    let slash = if subresource.is_empty() { "" } else { "/" };
    let right = format!("{group}/{resource}{slash}{subresource} {verb} {name}");
    right.trim_end().to_owned()
}

/// The rights of the file of this name, of that for leases, and of `more`.
///
/// # Errors
///
/// As [`rules`].
pub fn granted_by(name: &str, more: &[&str]) -> Result<BTreeSet<Right>> {
    let mut granted = BTreeSet::new();
    let own = format!("role-{name}.yaml");
    for file in [&own, "role-lease.yaml"].iter().chain(more) {
        for rule in rules(file)? {
            let mut names = rule.resource_names.clone().unwrap_or_else(|| vec![String::new()]);
            if *file == "role-lease.yaml" && rule.resource_names.is_some() {
                // Each role keeps the name of its own.
                names.retain(|lease| *lease == format!("hyperlink-{name}"));
                ensure!(names.len() == 1, "{names:?}");
            }
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let verbs = rule.verbs.iter();
                    let of_each =
                        verbs.flat_map(|verb| names.iter().map(|name| right(group, resource, "", verb, name)));
                    granted.extend(of_each);
                }
            }
        }
    }
    Ok(granted)
}

/// The rules of a shipped file.
///
/// # Errors
///
/// There is no such file, or it holds no role.
pub fn rules(file: &str) -> Result<Vec<PolicyRule>> {
    let text = std::fs::read_to_string(repository().join("charts/hyperlink/files").join(file))?;
    let mut role: Value = serde_saphyr::from_str(&text)?;
    Ok(serde_json::from_value(role["rules"].take())?)
}

/// One request in the API server's audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Audited {
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

impl Audited {
    /// The status with which a role's ServiceAccount was answered, if it asked for this path.
    pub fn answer(&self, account: &str, path: &str) -> Option<u16> {
        let asked = self.uri.split('?').next() == Some(path);
        let own = self.user.username == service_account(account);
        self.response_status
            .as_ref()
            .filter(|_| asked && own)
            .and_then(|status| status.code)
    }
}

/// The name of a role's ServiceAccount in the audit log.
fn service_account(account: &str) -> String {
    format!("system:serviceaccount:{}:{account}", roles::NAMESPACE)
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

/// What is in the API server's audit log so far.
///
/// # Errors
///
/// The log cannot be read, or has a line in another form.
pub fn audit(control_plane: &ControlPlane) -> Result<Vec<Audited>> {
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

/// The rights that a role's ServiceAccount used.
///
/// # Errors
///
/// A request was refused.
pub fn used_rights(audited: &[Audited], account: &str) -> Result<BTreeSet<Right>> {
    let account = service_account(account);
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
