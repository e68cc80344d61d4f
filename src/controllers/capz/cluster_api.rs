//! In which version the API server serves Cluster API's own kinds.

use std::time::Duration;

use kube::{Client, Resource};
use tokio::time::sleep;

use crate::api::capi::Cluster;
use crate::api::capi::version::{self, VERSIONS, version};
use crate::runtime::call::{ReconcileError, within};

/// The version that this process reads is served no more, but another one is.
#[derive(Debug, thiserror::Error)]
#[error("Cluster API is served as {0} now; the next process reads that")]
pub struct VersionChanged(&'static str);

/// Chooses the newest version that is served, before anything is read. If none is, the newest stays.
///
/// # Errors
/// The API server does not answer.
pub async fn choose(kube: &Client) -> Result<(), ReconcileError> {
    for version in VERSIONS {
        if is_served(kube, version).await? {
            version::choose(version);
            break;
        }
    }
    Ok(())
}

/// Waits until another version is served in place of the one that is read.
pub(super) async fn change(kube: &Client, every: Duration) -> VersionChanged {
    loop {
        sleep(every).await;
        if !matches!(is_served(kube, version()).await, Ok(false)) {
            continue;
        }
        for other in VERSIONS.into_iter().filter(|other| *other != version()) {
            if matches!(is_served(kube, other).await, Ok(true)) {
                return VersionChanged(other);
            }
        }
    }
}

async fn is_served(kube: &Client, version: &str) -> Result<bool, ReconcileError> {
    let (group, plural) = (Cluster::group(&()), Cluster::plural(&()));
    match within(kube.list_api_group_resources(&format!("{group}/{version}"))).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == plural)),
        Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}
