//! Which objects an event concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};

use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{ClusterRef, HostedCluster, HostedControlPlane};
use crate::controllers::custom_resource::store::CustomResourceStore;
use crate::controllers::reconciler::ServedResource;
use crate::hypershift::claims::{Claim, Holder};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::names;

/// The custom resources that are served and that depend on a HostedCluster: its own, those of clusters that name what
/// it names, and those that were refused because another cluster had what they name.
pub fn concerned<R: ServedResource>(
    known: &CustomResourceStore<R>,
    cluster_index: &ClusterIndex,
    cluster: &HostedCluster,
) -> Vec<Arc<R>> {
    let mut named = BTreeSet::from([Holder::of(cluster).object]);
    {
        let clusters = cluster_index.clusters();
        let claims = Claim::of_cluster(cluster);
        // Thousands may share one domain; only those in one network matter to each other.
        let claims = claims.iter().filter(|claim| !matches!(claim, Claim::BaseDomain(_)));
        let rivals = claims.flat_map(|claim| clusters.holders(claim));
        named.extend(rivals.map(|holder| holder.object.clone()));
    }
    let namespaces: BTreeSet<String> = named.iter().map(names::control_plane_namespace).collect();
    let own = namespaces.iter().flat_map(|namespace| known.of_namespace(namespace));
    let refused = known.contested().into_iter();
    let elsewhere = refused.filter(|cr| !namespaces.contains(&cr.namespace().unwrap_or_default()));
    own.chain(elsewhere).collect()
}

/// The HostedCluster that a custom resource names, if its control plane is in the namespace of the custom resource.
/// Whoever may write in another namespace must not cause reconciles of it.
pub fn hosted_cluster_of(cr: &impl ResourceExt) -> Option<ObjectRef<HostedCluster>> {
    let cluster: ClusterRef = cr.annotations().get(CLUSTER_ANNOTATION)?.parse().ok()?;
    let is_own = cr.namespace()? == names::control_plane_namespace(&cluster);
    is_own.then(|| ObjectRef::new(&cluster.name).within(&cluster.namespace))
}

/// The custom resources in the namespace of a control plane that are served: there may be thousands of others, and
/// whoever may write in the namespace can change its control plane as often as he likes.
pub fn in_its_namespace<R: ServedResource>(
    known: &CustomResourceStore<R>,
    control_plane: &impl ResourceExt,
) -> Vec<Arc<R>> {
    known.of_namespace(&control_plane.namespace().unwrap_or_default())
}

/// The custom resource that a Service has in its namespace.
pub fn of_its_name<R: ServedResource>(known: &CustomResourceStore<R>, service: &impl ResourceExt) -> Vec<Arc<R>> {
    let object = ClusterRef {
        namespace: service.namespace().unwrap_or_default(),
        name: service.name_any(),
    };
    known.get(&object).into_iter().collect()
}

/// The custom resources that use the same resources in the cloud as this one.
pub fn siblings<R: ServedResource>(known: &Store<R>, cr: &R) -> Vec<Arc<R>> {
    let namespace = cr.namespace().unwrap_or_default();
    let others = R::EXPECTED_NAMES.iter().filter(|name| **name != cr.name_any());
    others
        .filter_map(|name| known.get(&ObjectRef::new(name).within(&namespace)))
        .collect()
}

/// The control plane that owns an object, or all of its namespace: an object without an owner may be in their way.
pub fn control_planes_of<K: ResourceExt>(
    known: &Store<HostedControlPlane>,
    object: &K,
) -> Vec<ObjectRef<HostedControlPlane>> {
    let namespace = object.namespace();
    let mut owners = object.owner_references().iter();
    match (owners.find(|owner| owner.kind == "HostedControlPlane"), &namespace) {
        (Some(owner), Some(namespace)) => vec![ObjectRef::new(&owner.name).within(namespace)],
        _ => {
            let all = known_as(known, |control_plane| control_plane.namespace() == namespace);
            all.iter().map(|one| ObjectRef::from_obj(one.as_ref())).collect()
        }
    }
}

fn known_as<K>(known: &Store<K>, fits: impl Fn(&K) -> bool) -> Vec<Arc<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let mut all = known.state();
    all.retain(|object| fits(object));
    all
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::controllers::samples;

    #[rstest]
    #[case("clusters/c", "clusters-c", Some("c"))]
    #[case("clusters/c", "clusters-d", None)]
    #[case("c", "c", None)]
    fn other_namespace_reconciles_no_hosted_cluster(
        #[case] named: &str,
        #[case] namespace: &str,
        #[case] cluster: Option<&str>,
    ) {
        let mut cr = samples::cr(json!({}), json!({CLUSTER_ANNOTATION: named}));
        cr.metadata.namespace = Some(namespace.to_owned());
        let found = hosted_cluster_of(&cr).map(|found| found.name);
        assert_eq!(found.as_deref(), cluster);
    }
}
