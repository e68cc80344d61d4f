//! What Hyperlink asked of Kubernetes, counted in the API server's own audit log.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::roles;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
const READS: [&str; 2] = ["get", "list"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    name: String,
}

/// An audit log, from one line on.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    from: usize,
}

impl Audit {
    /// The audit log from now on.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn begin(log: PathBuf) -> Result<Self> {
        let from = whole_lines(&log)?.lines().count();
        Ok(Self { log, from })
    }

    /// The writes of Hyperlink's ServiceAccounts since then, such as `patch azureprivatelinkservices/status`. Writes of
    /// leases and SelfSubjectAccessReviews do not count.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or has a line in another form.
    pub fn writes(&self) -> Result<Vec<String>> {
        self.requests(&WRITES, |_| true)
    }

    /// Those writes whose object has this name, which may be of any kind and in any namespace.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or has a line in another form.
    pub fn writes_of(&self, name: &str) -> Result<Vec<String>> {
        self.requests(&WRITES, |object| object.name == name)
    }

    /// Their reads since then, such as `get services`. Those of leases do not count, nor do watches.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or has a line in another form.
    pub fn reads(&self) -> Result<Vec<String>> {
        self.requests(&READS, |_| true)
    }

    fn requests(&self, verbs: &[&str], counts: impl Fn(&ObjectRef) -> bool) -> Result<Vec<String>> {
        let account_prefix = format!("system:serviceaccount:{}:", roles::NAMESPACE);
        let mut requests = Vec::new();
        for line in whole_lines(&self.log)?.lines().skip(self.from) {
            let line: Line = serde_json::from_str(line).context("an audit line")?;
            let Some(object) = line.object_ref else { continue };
            let is_counted = counts(&object)
                && line.user.username.starts_with(&account_prefix)
                && verbs.contains(&line.verb.as_str())
                && object.resource != "leases"
                // The API server answers such a review and never stores it.
                && object.resource != "selfsubjectaccessreviews";
            if is_counted {
                let part = if object.subresource.is_empty() { "" } else { "/" };
                requests.push(format!("{} {}{part}{}", line.verb, object.resource, object.subresource));
            }
        }
        Ok(requests)
    }
}

/// The text of the log without its last line if that is half written.
fn whole_lines(log: &Path) -> Result<String> {
    let text = std::fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    Ok(text
        .rsplit_once('\n')
        .map(|(whole, _)| whole.to_owned())
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    #[test]
    fn requests_of_hyperlink_count_but_for_leases_and_reviews() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = |verb: &str, user: &str, resource: &str| {
            let object = json!({"resource": resource, "subresource": "status", "name": verb});
            json!({"verb": verb, "user": {"username": user}, "objectRef": object})
        };
        let ho = "system:serviceaccount:hyperlink:ho";
        writeln!(file, "{}", line("patch", ho, "before")).unwrap();
        let audit = Audit::begin(file.path().to_owned()).unwrap();
        for line in [
            line("patch", ho, "leases"),
            line("create", ho, "selfsubjectaccessreviews"),
            line("get", ho, "services"),
            line("update", "admin", "services"),
            line("patch", ho, "azureprivatelinkservices"),
        ] {
            writeln!(file, "{line}").unwrap();
        }
        write!(file, "{{half").unwrap();
        assert_eq!(audit.writes().unwrap(), ["patch azureprivatelinkservices/status"]);
        assert_eq!(audit.writes_of("patch").unwrap().len(), 1);
        assert!(audit.writes_of("update").unwrap().is_empty());
        assert_eq!(audit.reads().unwrap(), ["get services/status"]);
    }
}
