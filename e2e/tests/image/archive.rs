//! Reads an OCI archive: each blob by its digest, the layers laid over each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::run_dir::RunDir;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// An image, unpacked.
#[derive(Debug)]
pub(crate) struct Image {
    /// What a runtime that imports the archive calls it.
    pub(crate) name: String,
    /// Digest of the manifest.
    pub(crate) digest: String,
    /// The image's configuration: architecture, user, entry point, labels.
    pub(crate) config: Value,
    /// What a container finds at `/`.
    pub(crate) root: PathBuf,
    _dir: RunDir,
}

impl Image {
    /// Unpacks an archive that has one image in it.
    pub(crate) fn unpack(archive: &Path) -> Result<Self> {
        let dir = RunDir::new("image")?;
        let blobs = dir.path().join("archive");
        extract(archive, &blobs)?;
        let (entry, manifest) = only_entry(&blobs)?;
        let config = json(&blobs, &manifest["config"])?;
        let root = dir.path().join("root");
        for layer in manifest["layers"].as_array().context("no layers")? {
            extract(&blob(&blobs, layer)?, &root)?;
        }
        Ok(Self {
            name: text(&entry["annotations"]["org.opencontainers.image.ref.name"])?,
            digest: text(&entry["digest"])?,
            config,
            root,
            _dir: dir,
        })
    }

    /// A label, which has to be there.
    pub(crate) fn label(&self, name: &str) -> Result<&str> {
        let label = &self.config["config"]["Labels"][format!("org.opencontainers.image.{name}")];
        label.as_str().with_context(|| format!("no label {name}"))
    }
}

/// Digest of the index that is an archive's only entry, and the digest of each image in it by architecture. Fails
/// unless all of each image is in the archive.
pub(crate) fn index(archive: &Path) -> Result<(String, BTreeMap<String, String>)> {
    let dir = RunDir::new("index")?;
    extract(archive, dir.path())?;
    let (entry, index) = only_entry(dir.path())?;
    let mut images = BTreeMap::new();
    for descriptor in index["manifests"].as_array().context("no manifests")? {
        let manifest = json(dir.path(), descriptor)?;
        let architecture = json(dir.path(), &manifest["config"])?["architecture"].take();
        let platform = &descriptor["platform"];
        ensure!(
            platform["os"] == "linux" && platform["architecture"] == architecture,
            "{descriptor}"
        );
        for layer in manifest["layers"].as_array().context("no layers")? {
            blob(dir.path(), layer)?;
        }
        images.insert(text(&architecture)?, text(&descriptor["digest"])?);
    }
    Ok((text(&entry["digest"])?, images))
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("no text")
}

/// The only entry of an archive, and what it points to.
fn only_entry(blobs: &Path) -> Result<(Value, Value)> {
    let index: Value = serde_json::from_slice(&std::fs::read(blobs.join("index.json"))?)?;
    let [entry] = index["manifests"].as_array().context("no manifests")?.as_slice() else {
        anyhow::bail!("not one entry: {index}")
    };
    Ok((entry.clone(), json(blobs, entry)?))
}

fn json(blobs: &Path, descriptor: &Value) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(blob(blobs, descriptor)?)?)?)
}

/// The file that a descriptor points to, if it is what the descriptor says.
fn blob(blobs: &Path, descriptor: &Value) -> Result<PathBuf> {
    let digest = descriptor["digest"].as_str().context("no digest")?;
    let hash = digest.strip_prefix("sha256:").context("an unknown kind of digest")?;
    let path = blobs.join("blobs/sha256").join(hash);
    let bytes = std::fs::read(&path).with_context(|| digest.to_owned())?;
    let found: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    ensure!(found == hash, "{digest} is {found}");
    ensure!(descriptor["size"] == bytes.len(), "{digest} has {} bytes", bytes.len());
    Ok(path)
}

fn extract(archive: &Path, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--same-permissions", "--file"]).arg(archive);
    let status = tar.arg("--directory").arg(into).status()?;
    ensure!(status.success(), "unpack {}: {status}", archive.display());
    Ok(())
}
