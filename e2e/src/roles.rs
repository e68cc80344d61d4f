//! Gives the ServiceAccounts of Hyperlink exactly the rights that are shipped: the files under
//! `charts/hyperlink/files/`, as they are, and bindings.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::ControlPlane;

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

/// Gives `ho` what it needs beside with `--aggregate-conditions true`.
///
/// # Errors
///
/// As [`install`].
pub async fn install_aggregation(control_plane: &ControlPlane) -> Result<()> {
    apply(control_plane, "role-ho-aggregate.yaml", "ClusterRole", "ho").await
}

/// Gives a role what it needs beside with `--metrics-secure true`.
///
/// # Errors
///
/// As [`install`].
pub async fn install_metrics(control_plane: &ControlPlane, role: &str) -> Result<()> {
    apply(control_plane, "role-metrics.yaml", "ClusterRole", role).await
}

/// A token of a new ServiceAccount `name` that may read metrics.
///
/// # Errors
///
/// As [`install`].
pub async fn metrics_reader(control_plane: &ControlPlane, name: &str) -> Result<String> {
    control_plane.service_account(NAMESPACE, name).await?;
    apply(control_plane, "role-metrics-reader.yaml", "ClusterRole", name).await?;
    control_plane.token(NAMESPACE, name, None).await
}

async fn apply(control_plane: &ControlPlane, file: &str, kind: &str, account: &str) -> Result<()> {
    let path = crate::repository().join("charts/hyperlink/files").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut role: Value = serde_yaml_ng::from_str(&text)?;
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
