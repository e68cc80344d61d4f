//! The other custom resources of a namespace, from what is watched or from the API server.

use std::sync::Arc;

use futures::future::try_join_all;
use kube::{Api, ResourceExt};

use crate::controllers::context::Context;
use crate::controllers::reconciler::ServedResource;
use crate::runtime::call::{ReconcileError, within};

/// The other custom resources of a namespace that are served. With `again` they are read from the API server: a
/// decision on a deletion must not rely on what watches have shown.
pub async fn siblings<R: ServedResource>(cx: &Context<R>, cr: &R, again: bool) -> Result<Vec<Arc<R>>, ReconcileError> {
    let namespace = cr.namespace().unwrap_or_default();
    let mut all = cx.resources.of_namespace(&namespace);
    all.retain(|other| other.meta().uid != cr.meta().uid);
    if !again {
        return Ok(all);
    }
    read_again(&cx.runtime.kube, &namespace, all).await
}

/// These custom resources of a namespace as they are now.
pub async fn read_again<R: ServedResource>(
    kube: &kube::Client,
    namespace: &str,
    known: Vec<Arc<R>>,
) -> Result<Vec<Arc<R>>, ReconcileError> {
    let api: Api<R> = Api::namespaced(kube.clone(), namespace);
    let reads = known
        .into_iter()
        .map(async |cr| within(api.get_opt(&cr.name_any())).await);
    let found = try_join_all(reads).await?;
    Ok(found.into_iter().flatten().map(Arc::new).collect())
}
