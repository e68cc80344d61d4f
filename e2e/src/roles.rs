//! Gives Hyperlink's ServiceAccounts exactly the rights that are shipped: the unchanged files under
//! `charts/hyperlink/files/`, and bindings.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::ControlPlane;
use crate::hyperlink::Role;
use crate::kubeconfig::Access;

/// The namespace of Hyperlink's ServiceAccounts and leases.
pub const NAMESPACE: &str = "hyperlink";

/// Creates the namespace, the roles and their bindings for the ServiceAccounts `ho` and `cpo`.
///
/// # Errors
///
/// A file is missing, or the API server refuses.
pub async fn install(control_plane: &ControlPlane) -> Result<()> {
    install_in(control_plane.admin(), control_plane.dir(), NAMESPACE, "").await
}

/// Like [`install`], in a given namespace, with roles whose names begin with `prefix`. Writes kubeconfigs into `dir`.
///
/// # Errors
///
/// As [`install`].
pub async fn install_in(access: &Access, dir: &Path, namespace: &str, prefix: &str) -> Result<()> {
    for role in ["ho", "cpo"] {
        access.service_account(dir, namespace, role).await?;
        let file = format!("role-{role}.yaml");
        apply(access, &file, "ClusterRole", role, namespace, prefix).await?;
        install_lease(access, role, &format!("hyperlink-{role}"), namespace, prefix).await?;
    }
    let file = "role-cpo-many.yaml";
    apply(access, file, "ClusterRole", "cpo", namespace, prefix).await?;
    Ok(())
}

/// Creates the ServiceAccount of one role for clusters on AWS, and gives it the rights that are shipped for it and for
/// the lease of this name.
///
/// # Errors
///
/// As [`install`].
pub async fn install_on_aws(control_plane: &ControlPlane, role: Role, lease: &str) -> Result<Access> {
    let account = format!("{}-aws", role.as_str());
    let access = control_plane.service_account(NAMESPACE, &account).await?;
    let admin = control_plane.admin();
    for file in files_on_aws(role) {
        apply(admin, file, "ClusterRole", &account, NAMESPACE, "").await?;
    }
    install_lease(admin, &account, lease, NAMESPACE, "").await?;
    Ok(access)
}

/// Gives the ServiceAccount of a role on Azure, which exists, the rights for clusters on AWS and for the lease of this
/// name too.
///
/// # Errors
///
/// As [`install`].
pub async fn add_aws(control_plane: &ControlPlane, role: Role, lease: &str) -> Result<()> {
    let (admin, account) = (control_plane.admin(), role.as_str());
    for file in files_on_aws(role) {
        apply(admin, file, "ClusterRole", account, NAMESPACE, "").await?;
    }
    install_lease(admin, account, lease, NAMESPACE, "").await
}

/// The shipped files of a role for clusters on AWS, one process for many of them included.
fn files_on_aws(role: Role) -> &'static [&'static str] {
    match role {
        Role::Ho => &["role-ho-aws.yaml"],
        Role::Cpo => &["role-cpo-aws.yaml", "role-cpo-many-aws.yaml"],
    }
}

/// Creates a lease without a holder, and its namespace. A candidate takes such a lease at once, a missing one only after
/// its whole duration.
///
/// # Errors
///
/// The API server refuses.
pub async fn create_lease(access: &Access, namespace: &str, name: &str) -> Result<()> {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name}, "spec": {}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    access.apply_yaml(&format!("{namespace}\n---\n{lease}")).await.map(drop)
}

/// The name of the lease of role `capz`.
pub const CAPZ_LEASE: &str = "hyperlink-capz";

/// Creates the ServiceAccount of role `capz`, and gives it the rights that are shipped: for the lease of this name, for
/// the Secrets of identities in these namespaces, and, with gates, those to pause control planes.
///
/// # Errors
///
/// As [`install`].
pub async fn install_capz(
    control_plane: &ControlPlane,
    lease: &str,
    identity_namespaces: &[&str],
    has_gates: bool,
) -> Result<Access> {
    let access = control_plane.service_account(NAMESPACE, "capz").await?;
    let admin = control_plane.admin();
    let of_gates = has_gates.then_some("role-capz-gates.yaml");
    for file in ["role-capz.yaml"].into_iter().chain(of_gates) {
        apply(admin, file, "ClusterRole", "capz", NAMESPACE, "").await?;
    }
    for namespace in identity_namespaces {
        install_capz_in(admin, "role-capz-secrets.yaml", namespace).await?;
    }
    install_lease(admin, "capz", lease, NAMESPACE, "").await?;
    Ok(access)
}

/// Gives role `capz` the rights of a file in one namespace.
///
/// # Errors
///
/// As [`install`].
pub async fn install_capz_in(access: &Access, file: &str, namespace: &str) -> Result<()> {
    let mut role = shipped(file)?;
    role["metadata"]["namespace"] = namespace.into();
    let name = role["metadata"]["name"].clone();
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "capz"}]});
    access.apply_yaml(&format!("{role}\n---\n{binding}\n")).await.map(drop)
}

/// Gives a role the rights for the lease of this name.
///
/// # Errors
///
/// As [`install`].
pub async fn install_lease(access: &Access, account: &str, lease: &str, namespace: &str, prefix: &str) -> Result<()> {
    let mut role = shipped("role-lease.yaml")?;
    role["metadata"]["name"] = format!("{lease}-lease").into();
    let rules = role["rules"].as_array_mut().context("a role without rules")?;
    for rule in rules.iter_mut().filter(|rule| rule.get("resourceNames").is_some()) {
        rule["resourceNames"] = json!([lease]);
    }
    bind(access, role, "Role", account, namespace, prefix).await
}

/// Gives `account`, of the HO role, the additional rights for `--aggregate-conditions true`.
///
/// # Errors
///
/// As [`install`].
pub async fn install_aggregation(control_plane: &ControlPlane, account: &str) -> Result<()> {
    let file = "role-ho-aggregate.yaml";
    apply(control_plane.admin(), file, "ClusterRole", account, NAMESPACE, "").await
}

/// Gives a role the additional rights for `--metrics-secure true`.
///
/// # Errors
///
/// As [`install`].
pub async fn install_metrics(control_plane: &ControlPlane, role: &str) -> Result<()> {
    let file = "role-metrics.yaml";
    apply(control_plane.admin(), file, "ClusterRole", role, NAMESPACE, "").await
}

/// A token of a new ServiceAccount `name` that may read metrics.
///
/// # Errors
///
/// As [`install`].
pub async fn metrics_reader(control_plane: &ControlPlane, name: &str) -> Result<String> {
    control_plane.service_account(NAMESPACE, name).await?;
    let file = "role-metrics-reader.yaml";
    apply(control_plane.admin(), file, "ClusterRole", name, NAMESPACE, "").await?;
    control_plane.token(NAMESPACE, name, None).await
}

async fn apply(access: &Access, file: &str, kind: &str, account: &str, namespace: &str, prefix: &str) -> Result<()> {
    bind(access, shipped(file)?, kind, account, namespace, prefix).await
}

/// Reads one of the shipped files.
fn shipped(file: &str) -> Result<Value> {
    let path = crate::repository().join("charts/hyperlink/files").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(serde_saphyr::from_str(&text)?)
}

async fn bind(
    access: &Access,
    mut role: Value,
    kind: &str,
    account: &str,
    namespace: &str,
    prefix: &str,
) -> Result<()> {
    let namespaced = kind == "Role";
    if namespaced {
        role["metadata"]["namespace"] = namespace.into();
    }
    let name = role["metadata"]["name"].as_str().context("a role without a name")?;
    let name = format!("{prefix}{name}");
    role["metadata"]["name"] = name.as_str().into();
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": {"name": format!("{name}-{account}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    });
    if namespaced {
        binding["metadata"]["namespace"] = namespace.into();
    }
    access.apply_yaml(&format!("{role}\n---\n{binding}\n")).await?;
    Ok(())
}
