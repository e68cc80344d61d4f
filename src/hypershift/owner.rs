//! The HostedControlPlane that owns a custom resource, and its HostedCluster. Reads only.

use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{ClusterRef, HostedCluster, HostedControlPlane, Reason};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::identity::{self, IDENTITY_RETRY};
use crate::hypershift::names;
use crate::hypershift::problem::Problem;
use crate::runtime::call::{ReconcileError, within};

/// The owner, if it is still the object that the owner reference names by UID.
pub async fn control_plane(
    kube: &kube::Client,
    cr: &impl ResourceExt,
) -> Result<Option<HostedControlPlane>, ReconcileError> {
    let owners = cr.owner_references().iter();
    let mut owners = owners.filter(|owner| owner.kind == "HostedControlPlane" && names::is_object_name(&owner.name));
    let Some(owner) = owners.next() else {
        return Ok(None);
    };
    let api: Api<HostedControlPlane> = Api::namespaced(kube.clone(), &cr.namespace().unwrap_or_default());
    Ok(within(api.get_opt(&owner.name))
        .await?
        .filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid)))
}

/// The only HostedControlPlane of the namespace. A custom resource on AWS names none, and has no owner.
pub async fn only_control_plane(
    kube: &kube::Client,
    namespace: &str,
) -> Result<Result<HostedControlPlane, Problem>, ReconcileError> {
    let api: Api<HostedControlPlane> = Api::namespaced(kube.clone(), namespace);
    let mut found = within(api.list(&ListParams::default().limit(2))).await?.items;
    let text = match found.len() {
        0 => "the namespace has no HostedControlPlane",
        1 => return Ok(Ok(found.remove(0))),
        _ => "the namespace has several HostedControlPlanes",
    };
    let problem = Problem::new(Reason::HostedControlPlaneNotFound, text);
    Ok(Err(problem.requeue_after(IDENTITY_RETRY)))
}

/// The HostedCluster whose control plane is in the custom resource's namespace: the first of several. One that only the
/// annotation names may not be in the cluster index yet.
pub async fn hosted_cluster(
    kube: &kube::Client,
    cr: &impl ResourceExt,
    cluster_index: &ClusterIndex,
) -> Result<Option<HostedCluster>, ReconcileError> {
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let namespace = cr.namespace().unwrap_or_default();
    let candidates = identity::candidates(annotation, &namespace, &cluster_index.clusters());
    for cluster in candidates {
        if let Some(found) = hosted_cluster_named(kube, &cluster).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The HostedCluster with this name.
pub async fn hosted_cluster_named(
    kube: &kube::Client,
    cluster: &ClusterRef,
) -> Result<Option<HostedCluster>, ReconcileError> {
    let api: Api<HostedCluster> = Api::namespaced(kube.clone(), &cluster.namespace);
    within(api.get_opt(&cluster.name)).await
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tower::BoxError;

    use super::*;
    use crate::controllers::samples;

    #[tokio::test]
    async fn owner_that_no_object_can_be_is_none() {
        let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let recorded = std::sync::Arc::clone(&asked);
        let server = tower::service_fn(move |request: Request<Body>| {
            recorded.lock().unwrap().push(request.uri().to_string());
            async { Ok::<_, BoxError>(Response::builder().status(404).body(Body::from(b"{}".to_vec()))?) }
        });
        let kube = kube::Client::new(server, "default");
        let mut cr = samples::cr(json!({}), json!({}));
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "HostedControlPlane", "name": name, "uid": "x"});
        cr.metadata.owner_references = serde_json::from_value(json!([owner("a b"), owner("..?watch=true")])).unwrap();
        assert!(control_plane(&kube, &cr).await.unwrap().is_none());
        assert_eq!(*asked.lock().unwrap(), [""; 0]);
    }
}
