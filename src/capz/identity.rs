//! As whom Azure is called for a cluster: which AzureClusterIdentity it names, whether its namespace may use that, and
//! what proves it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::cluster::reference;
use super::reason::{Problem, Reason};
use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterIdentity, IdentityRef, IdentityType};
use crate::hypershift::names::{is_namespace, is_object_name};

const KIND: &str = "AzureClusterIdentity";

/// What proves an identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// The federated token of this process' Pod.
    FederatedToken,
    /// A managed identity of the machine.
    ManagedIdentity,
    /// A client secret in this Secret.
    ClientSecret(ClusterRef),
    /// A certificate in this Secret.
    Certificate(ClusterRef),
}

/// An identity that Azure can be asked to accept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UsableIdentity {
    /// The tenant, by its id or domain.
    pub tenant: String,
    /// The client id.
    pub client: String,
    /// What proves it.
    pub proof: Proof,
}

/// Whether a namespace may use an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It may.
    Allowed,
    /// It may not.
    Refused,
    /// Its labels decide.
    ByLabels,
}

/// The identity that a cluster names.
///
/// # Errors
/// It names none, or another kind of object.
pub fn named(cluster: &AzureCluster) -> Result<ClusterRef, Problem> {
    let namespace = cluster.namespace().unwrap_or_default();
    named_by(cluster.spec.identity_ref.as_ref(), &namespace, || {
        format!("AzureCluster {}", reference(cluster))
    })
}

/// The identity that an `identityRef` in this namespace names; `of` is the object that has it.
///
/// # Errors
/// It names none, or another kind of object.
pub fn named_by(given: Option<&IdentityRef>, namespace: &str, of: impl Fn() -> String) -> Result<ClusterRef, Problem> {
    let text = |field: fn(&IdentityRef) -> &Option<String>| {
        let text = given.and_then(|given| field(given).as_deref());
        text.filter(|text| !text.is_empty())
    };
    let Some(name) = text(|given| &given.name) else {
        let message = format!("{} has no identityRef", of());
        return Err(Problem::new(Reason::IdentityRefUnset, message));
    };
    let namespace = text(|given| &given.namespace).unwrap_or(namespace);
    if text(|given| &given.kind).is_some_and(|kind| kind != KIND) || !is_object_name(name) || !is_namespace(namespace) {
        let message = format!("identityRef of {} names no {KIND}", of());
        return Err(Problem::new(Reason::IdentityMissing, message));
    }
    Ok(ClusterRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// Whether a namespace may use an identity, as far as its name tells it.
pub fn permission(identity: &AzureClusterIdentity, namespace: &str) -> Permission {
    let Some(allowed) = &identity.spec.allowed_namespaces else {
        return Permission::Refused;
    };
    if allowed.names.iter().flatten().any(|name| name == namespace) {
        return Permission::Allowed;
    }
    match &allowed.selector {
        None if allowed.names.is_none() => Permission::Allowed,
        Some(selector) if !is_empty(selector) => Permission::ByLabels,
        _ => Permission::Refused,
    }
}

/// Whether a namespace with these labels may use an identity.
pub fn labels_permit(identity: &AzureClusterIdentity, labels: &BTreeMap<String, String>) -> bool {
    let allowed = identity.spec.allowed_namespaces.as_ref();
    let selector = allowed
        .and_then(|allowed| allowed.selector.clone())
        .filter(|selector| !is_empty(selector));
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    selector.is_some_and(|selector| selector.matches(labels))
}

fn is_empty(selector: &LabelSelector) -> bool {
    let labels = selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty);
    labels && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// The problem that there is no such identity.
pub fn missing(identity: &ClusterRef) -> Problem {
    Problem::new(Reason::IdentityMissing, format!("{KIND} {identity} does not exist"))
}

/// The problem that a namespace may not use an identity.
pub fn refused(identity: &ClusterRef, namespace: &str) -> Problem {
    let message = format!("allowedNamespaces of {KIND} {identity} does not allow namespace {namespace}");
    Problem::new(Reason::IdentityNotAllowed, message)
}

/// The problem of a Secret that does not have what it should.
pub fn no_secret(secret: &ClusterRef, why: &str) -> Problem {
    Problem::new(Reason::IdentityMissing, format!("Secret {secret} {why}"))
}

/// The identity as Azure takes it.
///
/// # Errors
/// It is of a type that this process cannot use, or not complete.
pub fn usable(identity: &AzureClusterIdentity) -> Result<UsableIdentity, Problem> {
    let own = ClusterRef {
        namespace: identity.namespace().unwrap_or_default(),
        name: identity.name_any(),
    };
    let spec = &identity.spec;
    let not_supported = || {
        let message = format!("{KIND} {own} is of a type that needs files of CAPZ's Pod, or is unknown");
        Problem::new(Reason::IdentityTypeNotSupported, message)
    };
    let has_path = spec.cert_path.as_ref().is_some_and(|path| !path.is_empty());
    let proof = match spec.kind {
        Some(IdentityType::WorkloadIdentity) => Proof::FederatedToken,
        Some(IdentityType::UserAssignedMsi) => Proof::ManagedIdentity,
        Some(IdentityType::ServicePrincipal | IdentityType::ManualServicePrincipal) => {
            Proof::ClientSecret(secret(identity, &own)?)
        }
        Some(IdentityType::ServicePrincipalCertificate) if !has_path => Proof::Certificate(secret(identity, &own)?),
        _ => return Err(not_supported()),
    };
    let (tenant, client) = (trimmed(spec.tenant_id.as_ref()), trimmed(spec.client_id.as_ref()));
    if !is_tenant(&tenant) || !is_client(&client) {
        let message = format!("{KIND} {own} has a tenantID or clientID that Azure does not have");
        return Err(Problem::new(Reason::IdentityMissing, message));
    }
    Ok(UsableIdentity { tenant, client, proof })
}

/// The problem of an identity that a federated token does not prove.
pub fn no_workload_identity(identity: &ClusterRef) -> Problem {
    let message = format!("{KIND} {identity} is of another type than WorkloadIdentity");
    Problem::new(Reason::IdentityTypeNotSupported, message)
}

fn trimmed(text: Option<&String>) -> String {
    text.map_or_else(String::new, |text| text.trim().to_owned())
}

/// Whether a text can be a tenant's id or domain: it becomes a part of the path to which a secret is sent.
fn is_tenant(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    (1..=253).contains(&text.len()) && text.chars().all(allowed) && !text.starts_with('.') && !text.contains("..")
}

fn is_client(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=64).contains(&text.len()) && text.chars().all(allowed)
}

fn secret(identity: &AzureClusterIdentity, own: &ClusterRef) -> Result<ClusterRef, Problem> {
    let given = &identity.spec.client_secret;
    let name = given.name.clone().unwrap_or_default();
    let namespace = given.namespace.as_ref().filter(|name| !name.is_empty());
    // Whoever may write an identity in one namespace could otherwise use the Secrets of another.
    if is_object_name(&name) && namespace.is_none_or(|given| *given == own.namespace) {
        return Ok(ClusterRef {
            namespace: own.namespace.clone(),
            name,
        });
    }
    let message = format!("clientSecret of {KIND} {own} names no Secret of its own namespace");
    Err(Problem::new(Reason::IdentityMissing, message))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::samples::workload;

    fn identity(spec: Value) -> AzureClusterIdentity {
        serde_json::from_value(json!({"metadata": {"name": "id", "namespace": "capz"}, "spec": spec})).unwrap()
    }

    #[rstest]
    #[case::absent(json!({}), Permission::Refused)]
    #[case::null(json!({"allowedNamespaces": null}), Permission::Refused)]
    #[case::all(json!({"allowedNamespaces": {}}), Permission::Allowed)]
    #[case::listed(json!({"allowedNamespaces": {"list": ["other", "org"]}}), Permission::Allowed)]
    #[case::empty_list(json!({"allowedNamespaces": {"list": []}}), Permission::Refused)]
    #[case::not_listed(json!({"allowedNamespaces": {"list": ["org-2"]}}), Permission::Refused)]
    #[case::empty_selector(json!({"allowedNamespaces": {"selector": {}}}), Permission::Refused)]
    #[case::selector(json!({"allowedNamespaces": {"list": [], "selector": {"matchLabels": {"a": "b"}}}}),
        Permission::ByLabels)]
    fn namespace_may_use_what_allows_it(#[case] spec: Value, #[case] expected: Permission) {
        assert_eq!(permission(&identity(spec), "org"), expected);
    }

    #[rstest]
    #[case::equal(json!({"matchLabels": {"a": "b"}}), true)]
    #[case::another(json!({"matchLabels": {"a": "c"}}), false)]
    #[case::expression(json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}), true)]
    #[case::exists(json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]}), false)]
    #[case::unknown_operator(json!({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}), false)]
    #[case::empty(json!({}), false)]
    fn selector_compares_the_labels_of_the_namespace(#[case] selector: Value, #[case] expected: bool) {
        let identity = identity(json!({"allowedNamespaces": {"selector": selector}}));
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        assert_eq!(labels_permit(&identity, &labels), expected);
    }

    #[rstest]
    #[case::workload_identity(json!({"type": "WorkloadIdentity"}), Some(Proof::FederatedToken))]
    #[case::managed_identity(json!({"type": "UserAssignedMSI"}), Some(Proof::ManagedIdentity))]
    #[case::file_of_capz(json!({"type": "ServicePrincipalCertificate", "certPath": "/c"}), None)]
    #[case::identity_file(json!({"type": "UserAssignedIdentityCredential"}), None)]
    #[case::no_type(json!({}), None)]
    fn type_tells_what_proves_an_identity(#[case] mut spec: Value, #[case] expected: Option<Proof>) {
        spec["tenantID"] = json!("123");
        spec["clientID"] = json!("456");
        let found = usable(&identity(spec));
        match expected {
            Some(proof) => assert_eq!(found.unwrap().proof, proof),
            None => assert_eq!(found.unwrap_err().reason, Reason::IdentityTypeNotSupported),
        }
    }

    #[rstest]
    #[case::own_namespace(json!({"name": "s"}), Some("capz/s"))]
    #[case::named_namespace(json!({"name": "s", "namespace": "capz"}), Some("capz/s"))]
    #[case::another_namespace(json!({"name": "s", "namespace": "n"}), None)]
    #[case::no_name(json!({"namespace": "n"}), None)]
    #[case::path(json!({"name": "../x"}), None)]
    fn secret_is_named(#[case] secret: Value, #[case] expected: Option<&str>) {
        for kind in [
            "ServicePrincipal",
            "ManualServicePrincipal",
            "ServicePrincipalCertificate",
        ] {
            let spec = json!({"type": kind, "tenantID": "t", "clientID": "c", "clientSecret": secret});
            match (usable(&identity(spec)), expected) {
                (Ok(found), Some(expected)) => {
                    let (Proof::ClientSecret(at) | Proof::Certificate(at)) = found.proof else {
                        panic!("{:?}", found.proof)
                    };
                    assert_eq!(at.to_string(), expected);
                }
                (found, None) => assert_eq!(found.unwrap_err().reason, Reason::IdentityMissing),
                (found, _) => panic!("{found:?}"),
            }
        }
    }

    #[rstest]
    #[case("t/../x", "c")]
    #[case("", "c")]
    #[case("..", "c")]
    #[case("t", "c d")]
    #[case("t", "")]
    fn strange_ids_are_refused(#[case] tenant: &str, #[case] client: &str) {
        let spec = json!({"type": "WorkloadIdentity", "tenantID": tenant, "clientID": client});
        assert_eq!(usable(&identity(spec)).unwrap_err().reason, Reason::IdentityMissing);
    }

    #[rstest]
    #[case::own_namespace(json!({"name": "id"}), Ok("org-giantswarm/id"))]
    #[case::empty_namespace(json!({"name": "id", "namespace": ""}), Ok("org-giantswarm/id"))]
    #[case::another(json!({"kind": "AzureClusterIdentity", "name": "id", "namespace": "n"}), Ok("n/id"))]
    #[case::null(json!(null), Err(Reason::IdentityRefUnset))]
    #[case::no_name(json!({"kind": "AzureClusterIdentity"}), Err(Reason::IdentityRefUnset))]
    #[case::secret(json!({"kind": "Secret", "name": "id"}), Err(Reason::IdentityMissing))]
    #[case::path(json!({"name": "../id"}), Err(Reason::IdentityMissing))]
    fn cluster_names_its_identity(#[case] given: Value, #[case] expected: Result<&str, Reason>) {
        let found = named(&workload("wc").with("/spec/identityRef", given).cluster());
        assert_eq!(
            found.map(|name| name.to_string()).map_err(|problem| problem.reason),
            expected.map(str::to_owned)
        );
    }
}
