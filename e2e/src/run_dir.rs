//! A private directory for the files and logs of what a test starts.
//!
//! It is removed when its owner is dropped or the process has ended, however it ended. After a panic or a call of
//! [`RunDir::keep`] it stays, and its path is printed.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};

use anyhow::{Context, Result};

/// The name of the file that marks a directory to stay.
pub const KEEP: &str = "keep";

/// Waits for the end of its input, which comes when the owner ends, then removes the directory. The second try is for
/// files that children wrote while they were killed.
const JANITOR: &str = r#"cat; [ -e "$0/$1" ] || rm -rf "$0" || { sleep 1; rm -rf "$0"; }"#;

static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that lives as long as this value, and longer after a failure.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    janitor: Child,
}

impl RunDir {
    /// Creates an empty directory, which only this user can read.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, or there is no shell.
    pub fn new(name: &str) -> Result<Self> {
        keep_all_after_a_panic();
        let path = tempfile::Builder::new()
            .prefix(&format!("hyperlink-{name}-"))
            .tempdir()?
            .keep();
        let janitor = Command::new("sh")
            .args(["-c", JANITOR])
            .arg(&path)
            .arg(KEEP)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C must not end it before this process.
            .process_group(0)
            .spawn()
            .context("start sh")?;
        live().push(path.clone());
        Ok(Self { path, janitor })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the directory to stay after the end.
    ///
    /// # Errors
    ///
    /// The mark cannot be written.
    pub fn keep(&self) -> Result<()> {
        Ok(mark(&self.path)?)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
        live().retain(|path| *path != self.path);
    }
}

fn live() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mark(path: &Path) -> std::io::Result<()> {
    std::fs::write(path.join(KEEP), "")
}

/// Marks all directories of this process to stay, and prints their paths to standard error.
pub fn keep_all() {
    for path in live().iter() {
        if mark(path).is_ok() {
            let _ = writeln!(std::io::stderr(), "logs are kept in {}", path.display());
        }
    }
}

fn keep_all_after_a_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            previous(info);
            keep_all();
        }));
    });
}
