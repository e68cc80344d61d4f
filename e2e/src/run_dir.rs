//! A private directory for the files and logs of what a test starts.
//!
//! It is removed when its owner is dropped, or its test has ended ([`OfTest`]), or the process, however it ended. After
//! a panic or a call of [`RunDir::keep`] it stays, and its path is printed.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::{Context, Result};

/// The name of the file that marks a directory to stay.
pub const KEEP: &str = "keep";

/// Waits for the end of its input, which comes when the owner ends, then removes the directory. The second try is for
/// files that children wrote while they were killed.
const JANITOR: &str = r#"cat; [ -e "$0/$1" ] || rm -rf "$0" || { sleep 1; rm -rf "$0"; }"#;

static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

thread_local! {
    /// The directories of the test that runs on this thread, if one does.
    static OF_TEST: RefCell<Option<Vec<RunDir>>> = const { RefCell::new(None) };
}

/// A directory that lives as long as this value and its clones, and longer after a failure.
#[derive(Clone, Debug)]
pub struct RunDir(Arc<Removed>);

#[derive(Debug)]
struct Removed {
    path: PathBuf,
    janitor: Child,
}

/// Holds the directories that this thread creates while the value lives. A test has dropped its environment before it
/// is known to have failed.
#[derive(Debug)]
pub struct OfTest(());

impl OfTest {
    /// From now on, until this value is dropped.
    pub fn begin() -> Self {
        OF_TEST.set(Some(Vec::new()));
        Self(())
    }
}

impl Drop for OfTest {
    fn drop(&mut self) {
        drop(OF_TEST.take());
    }
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
        let dir = Self(Arc::new(Removed { path, janitor }));
        OF_TEST.with_borrow_mut(|of_test| of_test.iter_mut().for_each(|all| all.push(dir.clone())));
        Ok(dir)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Marks the directory to stay after the end.
    ///
    /// # Errors
    ///
    /// The mark cannot be written.
    pub fn keep(&self) -> Result<()> {
        Ok(mark(self.path())?)
    }
}

impl Drop for Removed {
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Runs a test that drops its directory and then fails, or not; returns the path.
    fn dropped_by_a_test(fails: bool) -> PathBuf {
        let path = Mutex::new(PathBuf::new());
        let test = async {
            let dir = RunDir::new("of-a-test")?;
            *path.lock().unwrap() = dir.path().to_owned();
            anyhow::ensure!(!fails, "on purpose");
            Ok(())
        };
        let run = AssertUnwindSafe(|| crate::scenario(test));
        assert_eq!(catch_unwind(run).is_err(), fails);
        path.into_inner().unwrap()
    }

    #[test]
    fn directory_of_a_failed_test_alone_stays() {
        let kept = dropped_by_a_test(true);
        assert!(kept.join(KEEP).exists());
        assert!(!dropped_by_a_test(false).exists());
        std::fs::remove_dir_all(kept).unwrap();
    }
}
