//! Reads the API server's audit log: who asked for what.

use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One answered request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// `get`, `list`, `patch`, …
    pub verb: String,
    /// Who.
    pub user: User,
    /// What; absent for requests that are not about resources.
    pub object_ref: Option<Object>,
    /// How it was answered.
    #[serde(default)]
    pub response_status: Status,
}

/// How a request was answered.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Status {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

/// Who asked.
#[derive(Clone, Debug, Deserialize)]
pub struct User {
    /// `system:serviceaccount:NAMESPACE:NAME` for a ServiceAccount.
    pub username: String,
}

/// What was asked about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Empty for the core group.
    #[serde(default)]
    pub api_group: String,
    /// Plural name.
    #[serde(default)]
    pub resource: String,
    /// `status`, `finalizers`, or nothing.
    #[serde(default)]
    pub subresource: String,
}

impl Request {
    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// The end of the log, for [`read`].
///
/// # Errors
///
/// There is no log.
pub fn end(log: &Path) -> Result<u64> {
    Ok(std::fs::metadata(log)?.len())
}

/// The requests of one user that were logged after `since`.
///
/// # Errors
///
/// The log cannot be read.
pub fn read(log: &Path, since: u64, username: &str) -> Result<Vec<Request>> {
    let mut file = std::fs::File::open(log).with_context(|| format!("read {}", log.display()))?;
    file.seek(SeekFrom::Start(since))?;
    let mut requests = Vec::new();
    for line in BufReader::new(file).lines() {
        // The last line may be in the middle of being written.
        if let Ok(request) = serde_json::from_str::<Request>(&line?)
            && request.user.username == username
        {
            requests.push(request);
        }
    }
    Ok(requests)
}
