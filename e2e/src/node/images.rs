//! The images that nodes run, built once for all tests of a process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

/// The source URL with which the images have to be labelled.
pub const SOURCE: &str = "https://git.example.com/hyperlink";

/// The image for amd64, which most tests run.
pub const HYPERLINK: &str = "hyperlink-amd64";
/// The image for arm64.
pub const HYPERLINK_ARM64: &str = "hyperlink-arm64";
/// The index of both images, under one digest.
pub const HYPERLINK_INDEX: &str = "hyperlink";
/// The image of the simulated Azure.
pub const ARMSIM: &str = "armsim-amd64";
/// The image of the simulated AWS.
pub const AWSSIM: &str = "awssim-amd64";

/// A built image, or a built index of images.
#[derive(Clone, Debug)]
pub struct Built {
    /// Path of the OCI archive.
    pub archive: PathBuf,
    /// Digest of its manifest or index, as the build prints it.
    pub digest: String,
}

impl Built {
    /// Path of the SBOM, which is beside the archive.
    pub fn bill(&self) -> PathBuf {
        self.archive.with_extension("cdx.json")
    }
}

/// The image of that name. Where images cannot be built, or `IMAGES` leaves this one out, it reports the test as skipped
/// and returns none.
///
/// # Errors
///
/// The build fails.
pub fn built(name: &str) -> Result<Option<Built>> {
    static BUILT: OnceLock<Result<HashMap<String, Built>, String>> = OnceLock::new();
    let tested = tested(std::env::var("IMAGES").ok());
    let needed = if name == HYPERLINK_INDEX { HYPERLINK_ARM64 } else { name };
    if !tested.contains(&needed) {
        crate::scenario::skipped(&format!("IMAGES leaves {name} out"));
        return Ok(None);
    }
    if let Some(why) = cannot_be_built()? {
        crate::scenario::skipped(&why);
        return Ok(None);
    }
    let built = BUILT.get_or_init(|| build(&crate::repository(), &tested, &[]).map_err(|error| error.to_string()));
    let built = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok(Some(built.get(name).context("no such image was built")?.clone()))
}

/// The images that are tested: all, or those that are given.
fn tested(given: Option<String>) -> Vec<&'static str> {
    let given = given.unwrap_or_default();
    let given: Vec<&str> = given.split_whitespace().collect();
    let mut all = vec![HYPERLINK, HYPERLINK_ARM64, ARMSIM, AWSSIM];
    all.retain(|name| given.is_empty() || given.contains(name));
    all
}

fn cannot_be_built() -> Result<Option<String>> {
    let output = script(&crate::repository(), "builder").output()?;
    let printed = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Ok((!output.status.success()).then_some(printed))
}

/// Builds images from the sources in `repository`; returns them by name.
///
/// # Errors
///
/// The build fails, or prints a line of another form.
pub fn build(repository: &Path, names: &[&str], environment: &[(&str, &str)]) -> Result<HashMap<String, Built>> {
    let output = script(repository, "build")
        .args(names)
        .env("SOURCE", SOURCE)
        .envs(environment.iter().copied())
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "hack/image/build: {}", output.status);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (name, archive, digest) = (words.next()?, words.next()?, words.next()?);
        Some((
            name.to_owned(),
            Built {
                archive: archive.into(),
                digest: digest.to_owned(),
            },
        ))
    };
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|text| line(text).with_context(|| text.to_owned()))
        .collect()
}

fn script(repository: &Path, name: &str) -> Command {
    let mut command = Command::new(repository.join("hack/image").join(name));
    command.current_dir(repository).stdin(Stdio::null());
    command
}

/// The directory in which cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::repository().join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_tested_unless_some_are_named() {
        for nothing in [None, Some(String::new())] {
            assert_eq!(tested(nothing), [HYPERLINK, HYPERLINK_ARM64, ARMSIM, AWSSIM]);
        }
        assert_eq!(
            tested(Some("awssim-amd64 hyperlink-amd64 armsim-arm64".to_owned())),
            [HYPERLINK, AWSSIM]
        );
    }
}
