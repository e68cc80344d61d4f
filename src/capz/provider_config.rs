//! The ProviderConfig of Crossplane that a cluster should have, whose the one of its name is, and what follows. Pure.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::ledger::Holder;
use super::reason::{Problem, Reason};
use crate::api::ClusterRef;
use crate::api::capi::{AzureASOManagedControlPlane, Cluster, ObjectRef, ProviderConfig};
use crate::api::markers::capz::{ASO_CREDENTIAL, PROVIDER_CONFIG_HOLDER};
use crate::hypershift::names::is_object_name;

/// Where credentials are that a Pod gets as a federated token or a managed identity.
const SOURCE: &str = "UserAssignedManagedIdentity";

/// As whom, and where, Crossplane is to work for a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderIds {
    /// The client id.
    pub client: String,
    /// The subscription.
    pub subscription: String,
    /// The tenant.
    pub tenant: String,
}

/// The object that tells as whom a cluster is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdsSource {
    /// The AzureCluster of this name.
    AzureCluster(String),
    /// The AzureManagedControlPlane of this name.
    ManagedControlPlane(String),
    /// The AzureASOManagedControlPlane of this name.
    AsoControlPlane(String),
    /// The cluster is none of Azure's, or has nothing yet.
    Nothing,
}

/// Whose the ProviderConfig of a cluster's name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderConfigOwner {
    /// This cluster's.
    Own,
    /// Another one's, by its record; whether that exists has to be read.
    Another(Holder),
    /// Nothing records whose it is.
    Unrecorded,
}

/// The object that tells as whom a cluster is made.
pub fn source(cluster: &Cluster) -> IdsSource {
    let named = |found: &Option<ObjectRef>, kind: &str| {
        let found = found.as_ref().filter(|found| found.kind == kind);
        found
            .map(|found| found.name.clone())
            .filter(|name| is_object_name(name))
    };
    let (made_of, run_by) = (&cluster.spec.infrastructure_ref, &cluster.spec.control_plane_ref);
    let kind = made_of.as_ref().map_or("", |found| found.kind.as_str());
    let found = match kind {
        "AzureCluster" => named(made_of, kind).map(IdsSource::AzureCluster),
        "AzureManagedCluster" => named(run_by, "AzureManagedControlPlane").map(IdsSource::ManagedControlPlane),
        "AzureASOManagedCluster" => named(run_by, "AzureASOManagedControlPlane").map(IdsSource::AsoControlPlane),
        _ => None,
    };
    found.unwrap_or(IdsSource::Nothing)
}

/// The name of the Secret with the credentials of a control plane's first object.
///
/// # Errors
/// It has no object, or that names none.
pub fn aso_secret(control_plane: &AzureASOManagedControlPlane) -> Result<String, Problem> {
    let first = control_plane.spec.resources.first();
    let named = first.and_then(|first| first.metadata.annotations.get(ASO_CREDENTIAL));
    named.filter(|name| is_object_name(name)).cloned().ok_or_else(|| {
        let name = control_plane.name_any();
        let message = format!("the first resource of AzureASOManagedControlPlane {name} has no {ASO_CREDENTIAL}");
        Problem::new(Reason::IdentityRefUnset, message)
    })
}

/// The ids that are not empty, and short enough for an id.
///
/// # Errors
/// One is not.
pub fn ids(of: &str, [client, subscription, tenant]: [Option<&str>; 3]) -> Result<ProviderIds, Problem> {
    let text = |found: Option<&str>| {
        let text = found.unwrap_or_default().trim();
        ((1..=253).contains(&text.len())).then(|| text.to_owned())
    };
    match (text(client), text(subscription), text(tenant)) {
        (Some(client), Some(subscription), Some(tenant)) => Ok(ProviderIds {
            client,
            subscription,
            tenant,
        }),
        _ => {
            let message = format!("{of} lacks a client id, subscription or tenant id");
            Err(Problem::new(Reason::IdentityMissing, message))
        }
    }
}

/// Whose a ProviderConfig is, seen from a cluster.
pub fn owner(found: &ProviderConfig, cluster: &Cluster) -> ProviderConfigOwner {
    let record = found.annotations().get(PROVIDER_CONFIG_HOLDER);
    match record.and_then(|text| Holder::parse(text)) {
        Some(holder) if Some(&holder.uid) == cluster.metadata.uid.as_ref() => ProviderConfigOwner::Own,
        Some(holder) => ProviderConfigOwner::Another(holder),
        None => ProviderConfigOwner::Unrecorded,
    }
}

/// Whether it names these ids.
pub fn has_ids(found: &ProviderConfig, ids: &ProviderIds) -> bool {
    let spec = &found.spec;
    (&spec.client_id, &spec.subscription_id, &spec.tenant_id) == (&ids.client, &ids.subscription, &ids.tenant)
}

/// Whether it is as the cluster should have it.
pub fn is_as_desired(found: &ProviderConfig, cluster: &Cluster, ids: &ProviderIds) -> bool {
    owner(found, cluster) == ProviderConfigOwner::Own && has_ids(found, ids) && found.spec.credentials.source == SOURCE
}

/// The problem that the ProviderConfig of this name is another live cluster's.
pub fn taken(name: &str, by: &ClusterRef) -> Problem {
    Problem::new(
        Reason::NameConflict,
        format!("ProviderConfig {name} is that of Cluster {by}"),
    )
}

/// The ProviderConfig that Crossplane uses for all that names none.
pub const DEFAULT: &str = "default";

/// The problem that a Cluster has the name of that.
pub fn everybodys() -> Problem {
    let message = format!("ProviderConfig {DEFAULT} is everybody's: a Cluster of this name gets none");
    Problem::new(Reason::NotOurs, message)
}

/// The problem that somebody else has a ProviderConfig of this name.
pub fn not_owned(name: &str) -> Problem {
    let message = format!("ProviderConfig {name} is there already and is not this cluster's");
    Problem::new(Reason::NotOurs, message)
}

/// The ProviderConfig of a cluster; over one that is there only as long as that is as it was read.
pub fn manifest(cluster: &Cluster, ids: &ProviderIds, over: Option<&ProviderConfig>) -> Value {
    let named = ClusterRef {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    };
    let holder = format!("{named}/{}", cluster.metadata.uid.as_deref().unwrap_or_default());
    let mut metadata = json!({"name": cluster.name_any(), "annotations": {PROVIDER_CONFIG_HOLDER: holder}});
    if let Some(found) = over {
        metadata["uid"] = json!(found.metadata.uid);
        metadata["resourceVersion"] = json!(found.metadata.resource_version);
    }
    json!({
        "apiVersion": "azure.upbound.io/v1beta1", "kind": "ProviderConfig", "metadata": metadata,
        "spec": {"credentials": {"source": SOURCE}, "clientID": ids.client, "subscriptionID": ids.subscription,
            "tenantID": ids.tenant},
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cluster(spec: Value) -> Cluster {
        let metadata = json!({"name": "wc", "namespace": "org", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn own_ids() -> ProviderIds {
        ids("x", [Some("456"), Some("s"), Some("123")]).unwrap()
    }

    fn found(holder: Option<&str>, ids: &ProviderIds) -> ProviderConfig {
        let mut object = manifest(&cluster(json!({})), ids, None);
        object["metadata"]["annotations"] = json!(holder.map(|holder| json!({PROVIDER_CONFIG_HOLDER: holder})));
        serde_json::from_value(object).unwrap()
    }

    #[rstest]
    #[case::own_infrastructure("AzureCluster", "wc", IdsSource::AzureCluster("wc".into()))]
    #[case::managed("AzureManagedCluster", "wc", IdsSource::ManagedControlPlane("cp".into()))]
    #[case::of_the_service_operator("AzureASOManagedCluster", "wc", IdsSource::Nothing)]
    #[case::of_another_cloud("AWSCluster", "wc", IdsSource::Nothing)]
    #[case::junk("AzureCluster", "../x", IdsSource::Nothing)]
    fn kind_of_the_infrastructure_decides(#[case] kind: &str, #[case] name: &str, #[case] expected: IdsSource) {
        let spec = json!({"infrastructureRef": {"kind": kind, "name": name},
            "controlPlaneRef": {"kind": "AzureManagedControlPlane", "name": "cp"}});
        assert_eq!(source(&cluster(spec)), expected);
    }

    #[test]
    fn control_plane_of_the_service_operator_names_a_secret() {
        let spec = json!({"infrastructureRef": {"kind": "AzureASOManagedCluster", "name": "wc"},
            "controlPlaneRef": {"kind": "AzureASOManagedControlPlane", "name": "cp"}});
        assert_eq!(source(&cluster(spec)), IdsSource::AsoControlPlane("cp".to_owned()));
        let with = |resources: Value| -> AzureASOManagedControlPlane {
            serde_json::from_value(json!({"metadata": {"name": "cp"}, "spec": {"resources": resources}})).unwrap()
        };
        let good = json!([{"metadata": {"annotations": {ASO_CREDENTIAL: "aso"}}}]);
        assert_eq!(aso_secret(&with(good)), Ok("aso".to_owned()));
        for bad in [
            json!([]),
            json!(["garbage"]),
            json!(7),
            json!([{"metadata": []}]),
            json!([{"metadata": {"annotations": {ASO_CREDENTIAL: "../x"}}}]),
        ] {
            assert_eq!(
                aso_secret(&with(bad.clone())).unwrap_err().reason,
                Reason::IdentityRefUnset,
                "{bad}"
            );
        }
    }

    #[test]
    fn record_decides_whose_a_provider_config_is() {
        let own = cluster(json!({}));
        let other = Holder::parse("other/wc/v").unwrap();
        for (record, expected) in [
            (Some("org/wc/u"), ProviderConfigOwner::Own),
            (Some("other/wc/v"), ProviderConfigOwner::Another(other)),
            (Some("junk"), ProviderConfigOwner::Unrecorded),
            (None, ProviderConfigOwner::Unrecorded),
        ] {
            assert_eq!(owner(&found(record, &own_ids()), &own), expected, "{record:?}");
        }
    }

    #[test]
    fn one_that_differs_in_an_id_is_not_as_desired() {
        let own = cluster(json!({}));
        assert!(is_as_desired(&found(Some("org/wc/u"), &own_ids()), &own, &own_ids()));
        let mut other = own_ids();
        other.tenant = "t".to_owned();
        assert!(!is_as_desired(&found(Some("org/wc/u"), &other), &own, &own_ids()));
        assert!(!is_as_desired(&found(None, &own_ids()), &own, &own_ids()));
    }

    #[test]
    fn empty_id_is_missing() {
        for index in 0..3 {
            let mut all = [Some("a"); 3];
            all[index] = Some(" ");
            assert_eq!(ids("Secret org/aso", all).unwrap_err().reason, Reason::IdentityMissing);
        }
    }
}
