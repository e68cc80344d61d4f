//! The images that nodes run, built once for all tests of a process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

/// What the images have to say of their source.
pub const SOURCE: &str = "https://git.example.com/hyperlink";

/// The image for this kind of machine, of which most is tested.
pub const HYPERLINK: &str = "hyperlink-amd64";
/// The image for the other kind of machine.
pub const HYPERLINK_ARM64: &str = "hyperlink-arm64";
/// Both of them under one digest.
pub const HYPERLINK_INDEX: &str = "hyperlink";
/// The simulated Azure.
pub const ARMSIM: &str = "armsim-amd64";

/// One image that was built, or an index of images.
#[derive(Clone, Debug)]
pub struct Built {
    /// OCI archive.
    pub archive: PathBuf,
    /// Digest of its manifest or index, as the build says.
    pub digest: String,
}

impl Built {
    /// The SBOM beside it.
    pub fn bill(&self) -> PathBuf {
        self.archive.with_extension("cdx.json")
    }
}

/// The image of that name; nothing, and a word about it, where images cannot be built.
///
/// # Errors
///
/// The build fails.
pub fn built(name: &str) -> Result<Option<Built>> {
    static BUILT: OnceLock<Result<HashMap<String, Built>, String>> = OnceLock::new();
    if let Some(why) = cannot_be_built()? {
        crate::scenario::skipped(&why);
        return Ok(None);
    }
    let all = [HYPERLINK, HYPERLINK_ARM64, ARMSIM];
    let built = BUILT.get_or_init(|| build(&crate::repository(), &all, &[]).map_err(|error| error.to_string()));
    let built = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok(Some(built.get(name).context("no such image was built")?.clone()))
}

fn cannot_be_built() -> Result<Option<String>> {
    let output = script(&crate::repository(), "builder").output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Ok((!output.status.success()).then_some(said))
}

/// Builds images from the sources in `repository`.
///
/// # Errors
///
/// The build fails, or prints what is not known here.
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

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::repository().join("target"), PathBuf::from)
}
