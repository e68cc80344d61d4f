//! Installs the CRDs of Cluster API (CAPI), of its provider for Azure (CAPZ) and of what is used beside them: the
//! projects' own where they are on this machine, else partial CRDs with only the fields that Hyperlink uses.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::{find, fixtures, install_one, read};
use crate::eventually;

/// Timeout for a version to be served, or served no more.
const SOON: Duration = Duration::from_secs(30);

/// The directory of the providers' CRDs in the reference data.
const REFERENCE: &str = "capi-crds";

/// CAPZ's CRDs with the field `privateLinks`, which upstream lacks.
const FORK: &str = "capz-giantswarm-v1.20.2-gs-c8fd00c00";
const UPSTREAM: &str = "capz-v1.23.0";
const CROSSPLANE: &str = "crossplane";
/// The CRDs of CAPZ that HyperShift installs.
const HYPERSHIFT: &str = "hypershift-cluster-api-provider-azure";

/// The CRDs of the providers: folder in the reference data, beginning of the file name.
const OF_PROVIDERS: [(&str, &str); 6] = [
    (FORK, "infrastructure.cluster.x-k8s.io_azureclusters."),
    (UPSTREAM, "infrastructure.cluster.x-k8s.io_azureclusteridentities."),
    (
        UPSTREAM,
        "infrastructure.cluster.x-k8s.io_azureasomanagedcontrolplanes.",
    ),
    (UPSTREAM, "infrastructure.cluster.x-k8s.io_azuremanagedcontrolplanes."),
    (CROSSPLANE, "azure.upbound.io_providerconfigs."),
    (HYPERSHIFT, "infrastructure.cluster.x-k8s.io_azuremachinetemplates."),
];

/// The CRDs of Cluster API's own module that its kubeadm control planes take, as file names without ending.
const OF_MODULE: [&str; 8] = [
    "cluster.x-k8s.io_clusters",
    "cluster.x-k8s.io_machines",
    "cluster.x-k8s.io_machinepools",
    "bootstrap.cluster.x-k8s.io_kubeadmconfigs",
    "bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates",
    "controlplane.cluster.x-k8s.io_kubeadmcontrolplanes",
    "controlplane.cluster.x-k8s.io_kubeadmcontrolplanetemplates",
    "runtime.cluster.x-k8s.io_extensionconfigs",
];

/// The partial CRDs, as beginnings of file names.
const PARTIAL: [&str; 7] = [
    "azureclusters",
    "azureclusteridentities",
    "azureasomanagedcontrolplanes",
    "azuremanagedcontrolplanes",
    "clusters",
    "kubeadmcontrolplanes",
    "providerconfigs",
];

/// The Azure Service Operator's kind by which CAPZ makes private endpoints, and one in the version that its group
/// prefers. Only partial CRDs of them are used.
const SERVICE_OPERATOR: [&str; 2] = ["privateendpoints", "virtualnetworks"];

/// Whether the projects' own CRDs are on this machine.
pub fn are_real() -> bool {
    crate::reference::directory(REFERENCE).is_some()
}

/// Installs all CRDs and waits until they are served.
///
/// # Errors
///
/// A CRD is missing or refused, or the Go module of Cluster API cannot be fetched.
pub(super) async fn install(client: &kube::Client) -> Result<()> {
    let files = match crate::reference::directory(REFERENCE) {
        Some(directory) => real_files(&directory)?,
        None => {
            let variable = crate::reference::VARIABLE;
            eprintln!("Cluster API's CRDs are not at hand (see {variable} in CONTRIBUTING.md): partial ones are used");
            let partial = PARTIAL.iter().map(|kind| find(&fixtures(), kind));
            partial.collect::<Result<_>>()?
        }
    };
    let more = SERVICE_OPERATOR.into_iter().map(|plural| find(&fixtures(), plural));
    let more = more.collect::<Result<Vec<_>>>()?;
    let files = files.into_iter().chain(more);
    try_join_all(files.map(|file| install_contract(client, file))).await?;
    Ok(())
}

/// Replaces the CRD of AzureClusters by that of the fork, or by upstream's, whose API server prunes `privateLinks`.
/// Returns whether that CRD is on this machine.
///
/// # Errors
///
/// The CRD is refused.
pub async fn serve_links(client: &kube::Client, are_served: bool) -> Result<bool> {
    let Some(directory) = crate::reference::directory(REFERENCE) else {
        return Ok(false);
    };
    let [(fork, name), ..] = OF_PROVIDERS;
    let folder = if are_served { fork } else { UPSTREAM };
    install_contract(client, find(&directory.join(folder), name)?).await?;
    Ok(true)
}

/// Serves and stores Clusters and KubeadmControlPlanes in this version alone.
///
/// # Errors
///
/// The API server refuses a CRD, or goes on serving another version.
pub async fn serve_version(client: &kube::Client, version: &str) -> Result<()> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    for (plural, group) in [
        ("clusters", "cluster.x-k8s.io"),
        ("kubeadmcontrolplanes", "controlplane.cluster.x-k8s.io"),
    ] {
        let name = format!("{plural}.{group}");
        let mut versions = crds.get(&name).await?.data["spec"]["versions"].take();
        for one in versions.as_array_mut().into_iter().flatten() {
            // What a version does not have is not stored in it.
            let is_it = one["name"] == version;
            one["served"] = json!(is_it);
            one["storage"] = json!(is_it);
        }
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        crds.patch(&name, &PatchParams::default(), &patch).await?;
        eventually(&format!("{name} is {version}"), SOON, || async {
            for version in ["v1beta1", "v1beta2"].map(|one| (one, one == version)) {
                let found = client.list_api_group_resources(&format!("{group}/{}", version.0)).await;
                let found = found.map(|list| list.resources).unwrap_or_default();
                let is_served = found.iter().any(|resource| resource.name == plural);
                ensure!(is_served == version.1, "{version:?}");
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

fn real_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (folder, name) in OF_PROVIDERS {
        files.push(find(&directory.join(folder), name)?);
    }
    let folders = module_folders()?;
    for name in OF_MODULE {
        let file = format!("{name}.yaml");
        let found = folders
            .iter()
            .map(|folder| folder.join(&file))
            .find(|path| path.is_file());
        files.push(found.with_context(|| format!("no {file} in {folders:?}"))?);
    }
    Ok(files)
}

/// The folders of CRDs in the Go module of Cluster API.
fn module_folders() -> Result<Vec<PathBuf>> {
    let script = crate::repository().join("hack/capi/build");
    let output = Command::new(&script).arg("crds").stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("run {}", script.display()))?;
    ensure!(output.status.success(), "{}: {}", script.display(), output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(PathBuf::from).collect())
}

/// Installs a CRD as Cluster API's installation has it, but without its conversion webhook: an object has the same
/// fields in all versions.
async fn install_contract(client: &kube::Client, file: PathBuf) -> Result<()> {
    let mut crd: DynamicObject = read(&file)?;
    crd.data["spec"]["conversion"] = json!({"strategy": "None"});
    // Cluster API's contract: which version of a kind is for which version of its own.
    let versions = crd.data["spec"]["versions"].as_array().into_iter().flatten();
    let versions = versions.filter_map(|one| one["name"].as_str()).map(str::to_owned);
    let labels: Vec<_> = versions
        .map(|name| (format!("cluster.x-k8s.io/{name}"), name))
        .collect();
    crd.metadata.labels.get_or_insert_default().extend(labels);
    let installed = install_one(client, crd).await;
    installed.with_context(|| format!("install {}", file.display()))
}
