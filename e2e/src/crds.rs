//! Installs the CRDs of HyperShift's kinds: HyperShift's own where they are on this machine. Elsewhere Hyperlink
//! provides the CRD of the kind that it serves, and the others are partial CRDs with only the fields that Hyperlink
//! reads. [`capi`] does the same for Cluster API's kinds.

pub mod capi;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;

use crate::wait::eventually;

/// HyperShift's HostedClusters, as the beginning of a CRD file name.
const HOSTED_CLUSTERS: &str = "hostedclusters";

/// HyperShift's kinds that Hyperlink serves, as the beginnings of CRD file names.
const SERVED_ON_AZURE: &str = "azureprivatelinkservices";
const SERVED_ON_AWS: &str = "awsendpointservices";

/// The cloud of a management cluster and its hosted clusters, or what else makes the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// HyperShift on Azure.
    Azure,
    /// HyperShift on AWS, with OpenShift as the management cluster.
    Aws,
    /// Cluster API on Azure, without HyperShift.
    Capz,
}

impl Platform {
    /// HyperShift's kinds that Hyperlink uses there, as the beginnings of CRD file names.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Azure => &[SERVED_ON_AZURE, HOSTED_CLUSTERS, "hostedcontrolplanes"],
            Self::Aws => &[SERVED_ON_AWS, HOSTED_CLUSTERS, "hostedcontrolplanes", "nodepools"],
            Self::Capz => &[],
        }
    }
}

/// The CRD of a kind that Hyperlink provides itself.
fn own_crd(kind: &str) -> Option<CustomResourceDefinition> {
    match kind {
        SERVED_ON_AZURE => Some(hyperlink::api::crd()),
        SERVED_ON_AWS => Some(hyperlink::api::aws_crd()),
        _ => None,
    }
}

/// Installs the CRDs and waits until they are served.
///
/// # Errors
///
/// A CRD is missing or refused, or does not become Established.
pub async fn install(client: &kube::Client, platform: Platform) -> Result<()> {
    match platform {
        Platform::Azure => install_all(client, platform.kinds()).await,
        Platform::Aws => {
            install_all(client, platform.kinds()).await?;
            install_file(client, &find(&fixtures(), "infrastructures")?).await
        }
        Platform::Capz => capi::install(client).await,
    }
}

/// Sets whether the API server serves HostedClusters in the version that Hyperlink reads. Existing objects stay.
///
/// # Errors
///
/// The CRD is missing, lacks that version, or is refused.
pub async fn serve_hosted_clusters(client: &kube::Client, served: bool) -> Result<()> {
    serve(client, &format!("{HOSTED_CLUSTERS}.hypershift.openshift.io"), served).await
}

/// Sets whether the API server serves Crossplane's ProviderConfigs. Existing objects stay.
///
/// # Errors
///
/// As [`serve_hosted_clusters`].
pub async fn serve_provider_configs(client: &kube::Client, served: bool) -> Result<()> {
    serve(client, "providerconfigs.azure.upbound.io", served).await
}

async fn serve(client: &kube::Client, name: &str, served: bool) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut crd = crds.get(name).await?;
    let versions = &mut crd.spec.versions;
    let version = versions.iter_mut().find(|version| version.name == "v1beta1");
    version.context("no v1beta1")?.served = served;
    crds.replace(&crd.name_any(), &Default::default(), &crd).await?;
    Ok(())
}

/// Installs the CRDs for clusters on Azure that are missing, and leaves the others as they are.
///
/// # Errors
///
/// As [`install`].
pub async fn install_missing(client: &kube::Client) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut missing = Vec::new();
    for kind in Platform::Azure.kinds() {
        let name = format!("{kind}.hypershift.openshift.io");
        if crds.get_opt(&name).await?.is_none() {
            missing.push(*kind);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    install_all(client, &missing).await
}

async fn install_all(client: &kube::Client, kinds: &[&str]) -> Result<()> {
    let reference = crate::reference::directory("hypershift-crds");
    if reference.is_none() {
        let variable = crate::reference::VARIABLE;
        eprintln!("HyperShift's CRDs are not at hand (see {variable} in CONTRIBUTING.md): partial ones are used");
    }
    let directory = reference.clone().unwrap_or_else(fixtures);
    for kind in kinds {
        match own_crd(kind).filter(|_| reference.is_none()) {
            Some(own) => install_one(client, serde_json::from_value(serde_json::to_value(own)?)?).await?,
            None => install_file(client, &find(&directory, kind)?).await?,
        }
    }
    Ok(())
}

/// The directory of the partial CRDs.
fn fixtures() -> PathBuf {
    crate::repository().join("e2e/fixtures/crds")
}

fn find(directory: &Path, kind: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))? {
        let path = entry?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(kind))
        {
            found.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => bail!("{} CRDs of {kind} in {}", found.len(), directory.display()),
    }
}

/// Installs the CRD of a file and waits until it is served.
///
/// # Errors
///
/// The file is no CRD, or it is refused.
pub async fn install_file(client: &kube::Client, path: &Path) -> Result<()> {
    install_one(client, read(path)?)
        .await
        .with_context(|| format!("install {}", path.display()))
}

fn read(path: &Path) -> Result<DynamicObject> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("parse {}", path.display()))
}

/// Installs one CRD and waits until it is served.
///
/// # Errors
///
/// It is refused or does not become Established.
pub async fn install_one(client: &kube::Client, crd: DynamicObject) -> Result<()> {
    let name = crd.metadata.name.clone().context("a CRD without a name")?;
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    crds.patch(&name, &PatchParams::apply("e2e").force(), &Patch::Apply(&crd))
        .await?;
    eventually(&format!("{name} is established"), Duration::from_secs(30), || async {
        let crd = crds.get(&name).await?;
        let conditions = crd
            .data
            .pointer("/status/conditions")
            .and_then(|list| list.as_array())
            .cloned();
        let conditions = conditions.unwrap_or_default();
        if conditions
            .iter()
            .any(|one| one["type"] == "Established" && one["status"] == "True")
        {
            return Ok(());
        }
        Err(anyhow!("conditions: {conditions:?}"))
    })
    .await
}
