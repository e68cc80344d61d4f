//! Identifies the management cluster by the UID of its namespace kube-system, which lives as long as the cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use crate::http::ReadinessItem;

const NAMESPACE: &str = "kube-system";

/// The time between two tries to read the UID of the management cluster, and how long an answer may take.
const RETRY: Duration = Duration::from_secs(5);

/// Why the UID is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// The API server refuses, or does not answer.
    #[error("namespace {NAMESPACE} cannot be read, which role ho needs to know its own cluster: {0}")]
    Unread(#[from] kube::Error),
    /// The namespace has no UID, or the answer did not come in time.
    #[error("the API server does not tell the UID of namespace {NAMESPACE}")]
    NoUid,
}

/// The UID of the namespace.
pub(super) async fn uid(kube: &kube::Client) -> Result<String, Unknown> {
    let api: Api<Namespace> = Api::all(kube.clone());
    let answer = tokio::time::timeout(RETRY, api.get_metadata(NAMESPACE)).await;
    let namespace = answer.map_err(|_| Unknown::NoUid)??;
    namespace
        .metadata
        .uid
        .filter(|uid| !uid.is_empty())
        .ok_or(Unknown::NoUid)
}

/// Waits until the API server gives the UID.
pub(super) async fn wait_for_uid(kube: &kube::Client, item: &ReadinessItem) -> String {
    loop {
        match uid(kube).await {
            Ok(uid) => {
                item.ready();
                return uid;
            }
            Err(error) => item.waiting(&error.to_string()),
        }
        tokio::time::sleep(RETRY).await;
    }
}
