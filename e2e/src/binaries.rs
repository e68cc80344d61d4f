//! Builds the executables under test and returns their paths, so that a plain `cargo test` never runs outdated ones.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The executable of that name (`hyperlink`, `armsim`), built with the profile of this crate.
///
/// # Errors
///
/// The build fails; its messages go to standard error.
pub fn executable(name: &str) -> Result<PathBuf> {
    static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = match built.as_ref() {
        Some(known) => known,
        // The whole workspace: a build of one package alone would choose other features of the dependencies, and so
        // build all of them again.
        None if cfg!(debug_assertions) => built.insert(build(&["--workspace", "--bins"])?),
        None => built.insert(build(&["--workspace", "--bins", "--release"])?),
    };
    known
        .get(name)
        .cloned()
        .with_context(|| format!("no executable {name} in the workspace"))
}

/// The `hyperlink` that ships, built from its package alone and with the shipping profile.
///
/// # Errors
///
/// The build fails; its messages go to standard error.
pub fn shipped() -> Result<PathBuf> {
    build(&["--package", "hyperlink", "--bin", "hyperlink", "--profile", "dist"])?
        .remove("hyperlink")
        .context("no executable hyperlink")
}

fn build(what: &[&str]) -> Result<HashMap<String, PathBuf>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--message-format=json-render-diagnostics"])
        .args(what);
    let output = cargo
        .current_dir(crate::repository())
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo")?;
    if !output.status.success() {
        bail!("cargo build: {}", output.status);
    }
    let mut executables = HashMap::new();
    for line in output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let message: Value = serde_json::from_slice(line).context("cargo's messages")?;
        if let (Some(name), Some(path)) = (message["target"]["name"].as_str(), message["executable"].as_str()) {
            executables.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(executables)
}
