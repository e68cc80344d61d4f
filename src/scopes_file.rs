//! The operator's file of allowed scopes: read at the start, and again every few seconds. A file that cannot be read or
//! parsed changes nothing: its last good version stays in force, and `/readyz`, metrics and log report it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::http::ReadinessItem;
use crate::hypershift::scopes::{AllowedScopes, AllowedScopesError};
use crate::metrics::Metrics;

/// The time between two reads of the file of `--allow-scopes`. A ConfigMap's file is a link that is replaced, so its
/// times say nothing.
///
/// Rule: `docs/permissions.md`.
const SCOPES_INTERVAL: Duration = Duration::from_secs(2);

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScopesFileError {
    /// It is absent, or this process may not read it.
    #[error("it cannot be read: {}", .0.kind())]
    Read(io::Error),
    /// It is not a valid file of allowed scopes.
    #[error(transparent)]
    Parse(#[from] AllowedScopesError),
}

/// The file with its last good version.
#[derive(Debug, Clone)]
pub struct ScopesFile {
    path: PathBuf,
    text: String,
    allowed: watch::Sender<Arc<AllowedScopes>>,
}

impl ScopesFile {
    /// Reads the file for the first time.
    pub fn read(path: &Path) -> Result<Self, ScopesFileError> {
        let text = std::fs::read_to_string(path).map_err(ScopesFileError::Read)?;
        let allowed = AllowedScopes::parse(&text)?;
        Ok(Self {
            path: path.to_owned(),
            text,
            allowed: watch::Sender::new(Arc::new(allowed)),
        })
    }

    /// The allowed scopes, now and later.
    pub fn allowed(&self) -> watch::Receiver<Arc<AllowedScopes>> {
        self.allowed.subscribe()
    }

    /// Reads the file again and again, and reports its state. Never returns.
    pub async fn follow(mut self, item: ReadinessItem, metrics: Arc<Metrics>) {
        let mut failure = None;
        loop {
            let reloaded = self.reload().await.map_err(|error| error.to_string());
            metrics.allowed_scopes_stale(reloaded.is_err());
            let entries = content(&self.allowed.borrow());
            match &reloaded {
                Ok(_) => item.ready_as(&entries),
                // Hyperlink continues as before, so the process stays ready.
                Err(error) => item.ready_as(&format!(
                    "{entries} of the last good file, the new one is no use: {error}"
                )),
            }
            if reloaded.as_ref().err() != failure.as_ref() {
                failure = reloaded.err();
                if let Some(error) = &failure {
                    tracing::warn!(
                        error,
                        "the file of allowed scopes is no use, its last good version holds"
                    );
                }
            }
            tokio::time::sleep(SCOPES_INTERVAL).await;
        }
    }

    async fn reload(&mut self) -> Result<(), ScopesFileError> {
        let text = tokio::fs::read_to_string(&self.path)
            .await
            .map_err(ScopesFileError::Read)?;
        if text == self.text {
            return Ok(());
        }
        let new = Arc::new(AllowedScopes::parse(&text)?);
        self.text = text;
        self.allowed.send_if_modified(|old| {
            let differs = *old != new;
            *old = new;
            differs
        });
        Ok(())
    }
}

/// How much is in the file, for `/readyz`.
fn content(allowed: &AllowedScopes) -> String {
    match (allowed.entries(), allowed.excluded()) {
        (entries, 0) => format!("{entries} entries"),
        (entries, excluded) => format!("{entries} entries, {excluded} namespaces excluded"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::http::Readiness;

    const ONE: &str = "hostedClusters: [{namespace: a, scopes: []}]";
    const TWO: &str = "hostedClusters: [{namespace: a, scopes: []}, {namespace: b, scopes: []}]";

    #[test]
    fn missing_or_damaged_file_is_refused_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scopes.yaml");
        let why = |path: &Path| ScopesFile::read(path).unwrap_err().to_string();
        assert_eq!(why(&path), "it cannot be read: entity not found");
        fs::write(&path, "hostedClusters: [{namespace: a, scopes: [x]}]").unwrap();
        assert!(why(&path).starts_with("\"x\" is not a scope"), "{}", why(&path));
    }

    #[tokio::test(start_paused = true)]
    async fn new_version_is_loaded_and_a_damaged_one_leaves_the_last_good() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scopes.yaml");
        fs::write(&path, ONE).unwrap();
        let file = ScopesFile::read(&path).unwrap();
        let mut allowed = file.allowed();
        let readiness = Readiness::default();
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        tokio::spawn(file.follow(readiness.item("allowed scopes"), Arc::clone(&metrics)));

        fs::write(&path, TWO).unwrap();
        allowed.changed().await.unwrap();
        assert_eq!(allowed.borrow_and_update().entries(), 2);
        shows(&readiness, &metrics, "[+] allowed scopes: 2 entries\n", 0).await;

        // Cut off, then gone, as while it is being copied.
        fs::write(&path, &TWO[..TWO.len() - 4]).unwrap();
        let stale = "[+] allowed scopes: 2 entries of the last good file";
        shows(&readiness, &metrics, stale, 1).await;
        fs::write(
            &path,
            "hostedClusters: [{namespace: c, names: [c], aws: {roleARN: c, vpcIDs: [], hostedZoneIDs: []}}]",
        )
        .unwrap();
        tokio::time::sleep(3 * SCOPES_INTERVAL).await;
        assert!(readiness.report().1.contains(stale), "as long as it is no use");
        fs::write(&path, format!("{TWO} # The same.")).unwrap();
        shows(&readiness, &metrics, "[+] allowed scopes: 2 entries\n", 0).await;
        fs::remove_file(&path).unwrap();
        shows(
            &readiness,
            &metrics,
            "the new one is no use: it cannot be read: entity not found\n",
            1,
        )
        .await;
        assert!(!allowed.has_changed().unwrap());

        fs::write(&path, format!("{ONE}\nexcludeNamespaces: [a-b]")).unwrap();
        allowed.changed().await.unwrap();
        assert_eq!(allowed.borrow().entries(), 1);
        let shown = "[+] allowed scopes: 1 entries, 1 namespaces excluded\n";
        shows(&readiness, &metrics, shown, 0).await;
    }

    async fn shows(readiness: &Readiness, metrics: &Metrics, text: &str, stale: i64) {
        let sample = format!("hyperlink_allowed_scopes_stale {stale}");
        for _ in 0..100 {
            let (ready, report) = readiness.report();
            let rendered = metrics.render().unwrap();
            if ready && report.contains(text) && rendered.lines().any(|line| line == sample) {
                return;
            }
            tokio::time::sleep(SCOPES_INTERVAL).await;
        }
        panic!("{text} is not in {:?}", readiness.report());
    }
}
