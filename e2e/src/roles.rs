//! Gives the ServiceAccounts of Hyperlink exactly the rights that are shipped: the files under
//! `charts/hyperlink/files/`, as they are, and bindings.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::{ControlPlane, audit};

/// The namespace of Hyperlink's ServiceAccounts and leases.
pub const NAMESPACE: &str = "hyperlink";

/// Makes the namespace, the roles and their bindings for the ServiceAccounts `ho` and `cpo`.
///
/// # Errors
///
/// A file is missing, or the API server refuses.
pub async fn install(control_plane: &ControlPlane) -> Result<()> {
    for role in ["ho", "cpo"] {
        control_plane.service_account(NAMESPACE, role).await?;
        apply(control_plane, &format!("role-{role}.yaml"), "ClusterRole", role).await?;
        apply(control_plane, "role-lease.yaml", "Role", role).await?;
    }
    Ok(())
}

/// One right: API group, resource with its subresource, verb.
pub type Right = (String, String, String);

/// All rights that a role of Hyperlink is given, by the files that are shipped.
///
/// # Errors
///
/// A file is missing or is no role.
pub fn granted(role: &str) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for file in [format!("role-{role}.yaml"), "role-lease.yaml".into()] {
        let rules: Vec<PolicyRule> = serde_json::from_value(read(&file)?["rules"].take())?;
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    rights.extend(
                        rule.verbs
                            .iter()
                            .map(|verb| (group.clone(), resource.clone(), verb.clone())),
                    );
                }
            }
        }
    }
    Ok(rights)
}

/// All rights that a role of Hyperlink has used so far, and those it was refused.
///
/// # Errors
///
/// The audit log cannot be read.
pub fn used_and_refused(control_plane: &ControlPlane, role: &str) -> Result<(BTreeSet<Right>, BTreeSet<Right>)> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{role}");
    let (mut used, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for request in audit::read(&control_plane.audit_log(), 0, &user)? {
        let Some(object) = request.object_ref else { continue };
        let resource = match object.subresource.as_str() {
            "" => object.resource,
            subresource => format!("{}/{subresource}", object.resource),
        };
        let set = if request.response_status.code == 403 {
            &mut refused
        } else {
            &mut used
        };
        set.insert((object.api_group, resource, request.verb));
    }
    Ok((used, refused))
}

fn read(file: &str) -> Result<Value> {
    let path = crate::repository().join("charts/hyperlink/files").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(serde_yaml_ng::from_str(&text)?)
}

async fn apply(control_plane: &ControlPlane, file: &str, kind: &str, account: &str) -> Result<()> {
    let mut role = read(file)?;
    let namespaced = kind == "Role";
    if namespaced {
        role["metadata"]["namespace"] = NAMESPACE.into();
    }
    let name = role["metadata"]["name"]
        .as_str()
        .context("a role without a name")?
        .to_owned();
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": {"name": format!("{name}-{account}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
    });
    if namespaced {
        binding["metadata"]["namespace"] = NAMESPACE.into();
    }
    control_plane.apply_yaml(&format!("{role}\n---\n{binding}\n")).await?;
    Ok(())
}
