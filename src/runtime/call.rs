//! One call to the Kubernetes API: its timeout, and its errors.

use std::fmt::Debug;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use kube::core::Status;
use serde::de::DeserializeOwned;

/// The timeout of each Kubernetes call of a controller; a watch has none.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a reconcile could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The API server refused or did not answer.
    #[error("Kubernetes: {0}")]
    Kube(#[from] kube::Error),
    /// The object to change had just been read, and somebody has removed it since.
    #[error("Kubernetes: somebody removed the object first")]
    Gone,
    /// What a guarded patch tests has changed since it was read.
    #[error("Kubernetes: somebody changed the object first")]
    Outdated,
    /// The API server did not answer in time.
    #[error("Kubernetes: no answer in time")]
    Timeout,
    /// The first list of a kind is not complete yet, and no decision is made from a part of it.
    #[error("not all {0} are known yet; /readyz says why")]
    Unlisted(&'static str),
}

impl ReconcileError {
    /// Whether somebody else changed or removed the object first: nothing is wrong, the object is reconciled again.
    pub fn conflict(&self) -> bool {
        matches!(self, Self::Gone | Self::Outdated) || self.refused_with(409)
    }

    /// Whether the API server rejects the object as invalid.
    pub fn invalid(&self) -> bool {
        self.refused_with(422)
    }

    /// The error of a JSON patch that tests what was read: the API server calls a test that fails an invalid request.
    #[must_use]
    pub fn guarded(self) -> Self {
        let has_causes = |status: &Status| {
            status
                .details
                .as_ref()
                .is_some_and(|details| !details.causes.is_empty())
        };
        match self {
            Self::Kube(kube::Error::Api(status)) if status.code == 422 && !has_causes(&status) => Self::Outdated,
            other => other,
        }
    }

    /// The status fields for which the API server rejects the object.
    pub fn invalid_fields(&self) -> Vec<&str> {
        let status = match self {
            Self::Kube(kube::Error::Api(status)) if self.invalid() => status,
            _ => return Vec::new(),
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.filter_map(|cause| cause.field.strip_prefix("status.")).collect()
    }

    fn refused_with(&self, code: u16) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(status)) if status.code == code)
    }
}

/// Bounds the time of one Kubernetes call.
pub async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, ReconcileError> {
    tokio::time::timeout(TIMEOUT, call)
        .await
        .map_err(|_| ReconcileError::Timeout)?
        .map_err(ReconcileError::Kube)
}

/// Reads a list in pages of this many objects, one after another, so that no answer is long.
pub async fn list<K: Clone + Debug + DeserializeOwned>(
    api: &Api<K>,
    page: u32,
    mut each: impl FnMut(K),
) -> Result<(), ReconcileError> {
    let mut params = ListParams::default().limit(page);
    loop {
        let found = within(api.list(&params)).await?;
        found.items.into_iter().for_each(&mut each);
        params.continue_token = found.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(());
        }
    }
}

/// Like [`within`], for a change or the deletion of an object that was just read: not found means that it is gone.
pub async fn changing<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, ReconcileError> {
    within(call).await.map_err(|error| {
        if error.refused_with(404) {
            ReconcileError::Gone
        } else {
            error
        }
    })
}
