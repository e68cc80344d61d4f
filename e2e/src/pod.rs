//! The Pod of a Deployment, run as a kubelet would: with the arguments, variables, mounted files and ServiceAccount
//! that the API server has.
//!
//! There is no kubelet in the test control plane. So a mounted directory is one on this machine, and its path replaces
//! the mount path in arguments, variables and mounted files. Servers listen on loopback at a free port, and the API
//! server is reached by a kubeconfig. This module plays the webhook of Azure workload identity too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, PodSpec, Secret, ServiceAccount, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;

use crate::ControlPlane;
use crate::hyperlink::{Hyperlink, Role};
use crate::process::Program;

/// The container that runs the program.
const CONTAINER: &str = "hyperlink";

/// The label and annotations that the webhook of Azure workload identity reads, and where it mounts the token.
const WEBHOOK_LABEL: &str = "azure.workload.identity/use";
const WEBHOOK_CLIENT: &str = "azure.workload.identity/client-id";
const WEBHOOK_TENANT: &str = "azure.workload.identity/tenant-id";
const WEBHOOK_DIRECTORY: &str = "/var/run/secrets/azure/tokens";
/// The audience of the webhook's tokens.
pub const WEBHOOK_AUDIENCE: &str = "api://AzureADTokenExchange";

/// A Pod that can run as a process.
#[derive(Debug)]
pub struct Pod {
    name: String,
    program: Program,
    mounts: BTreeMap<String, PathBuf>,
}

impl Pod {
    /// The Pod `name` of a Deployment; its files are below `dir`. `tenant` is the tenant that the webhook of Azure
    /// workload identity uses where the ServiceAccount names none.
    ///
    /// # Errors
    ///
    /// The Deployment or something that it mounts does not exist, or has a field that this module does not support.
    pub async fn of(
        control_plane: &ControlPlane,
        namespace: &str,
        deployment: &str,
        name: &str,
        dir: &Path,
        tenant: &str,
    ) -> Result<Self> {
        let client = control_plane.client()?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let found = deployments.get(deployment).await?;
        let template = found.spec.map(|spec| spec.template).context("no template")?;
        let spec = template.spec.context("no pod")?;
        let container = spec.containers.iter().find(|one| one.name == CONTAINER);
        let container = container.context("no container of ours")?;
        let dir = dir.join(name);
        let account = spec.service_account_name.as_deref().unwrap_or("default");
        let access = control_plane.service_account(namespace, account).await?;
        let volumes = Volumes {
            control_plane,
            namespace,
            account,
        };
        let mut mounts = volumes.mount(&spec, container, &dir).await?;

        let mut variables = container.env.clone().unwrap_or_default();
        let metadata = template.metadata.unwrap_or_default();
        if value_of(metadata.labels.as_ref(), WEBHOOK_LABEL) == Some("true") {
            let token = control_plane.token(namespace, account, Some(WEBHOOK_AUDIENCE)).await?;
            let directory = dir.join("azure-identity-token");
            std::fs::create_dir_all(&directory)?;
            std::fs::write(directory.join("azure-identity-token"), token)?;
            mounts.insert(WEBHOOK_DIRECTORY.into(), directory);
            let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
            variables.extend(webhook_variables(&accounts.get(account).await?.metadata, tenant));
        }

        let mut program = Program::new(crate::binaries::executable("hyperlink")?).without_our_environment();
        for argument in arguments(container) {
            program = program.arg(on_this_machine(&argument, &mounts));
        }
        program = program.env("KUBECONFIG", access.path());
        for variable in &variables {
            let value = value(variable, namespace, name)?;
            program = program.env(&variable.name, on_this_machine(&value, &mounts));
        }
        Ok(Self {
            name: name.to_owned(),
            program,
            mounts,
        })
    }

    /// The directory on this machine that the container has mounted at this path.
    ///
    /// # Errors
    ///
    /// Nothing is mounted there.
    pub fn mounted(&self, path: &str) -> Result<&Path> {
        let found = self.mounts.get(path).with_context(|| format!("nothing at {path}"))?;
        Ok(found)
    }

    /// Starts the Pod's container as a process.
    ///
    /// # Errors
    ///
    /// The process ends before it serves its probes.
    pub async fn start(&self, role: Role, logs: &Path) -> Result<Hyperlink> {
        Hyperlink::start_prepared(&self.program, role.as_str(), &self.name, logs).await
    }

    /// As [`Pod::start`], for role `capz`.
    ///
    /// # Errors
    ///
    /// As [`Pod::start`].
    pub async fn start_capz(&self, logs: &Path) -> Result<Hyperlink> {
        Hyperlink::start_prepared(&self.program, "capz", &self.name, logs).await
    }
}

/// The container's arguments, with other listen addresses: the ports of two Pods on one machine would be the same.
fn arguments(container: &Container) -> Vec<String> {
    let mut arguments = container.args.clone().unwrap_or_default();
    let free = |flag: &str| format!("{flag}=127.0.0.1:0");
    for flag in ["--probe-bind", "--metrics-bind"] {
        arguments.retain(|argument| !argument.starts_with(flag));
        arguments.push(free(flag));
    }
    arguments
}

/// The variables that the webhook adds. It always names the token issuer of the public cloud.
fn webhook_variables(account: &ObjectMeta, tenant: &str) -> [EnvVar; 4] {
    let annotated = |name: &str| value_of(account.annotations.as_ref(), name);
    [
        (
            "AZURE_CLIENT_ID",
            annotated(WEBHOOK_CLIENT).unwrap_or_default().to_owned(),
        ),
        (
            "AZURE_TENANT_ID",
            annotated(WEBHOOK_TENANT).unwrap_or(tenant).to_owned(),
        ),
        (
            "AZURE_FEDERATED_TOKEN_FILE",
            format!("{WEBHOOK_DIRECTORY}/azure-identity-token"),
        ),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/".to_owned()),
    ]
    .map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        value_from: None,
    })
}

fn value_of<'a>(map: Option<&'a BTreeMap<String, String>>, name: &str) -> Option<&'a str> {
    map?.get(name).map(String::as_str)
}

fn on_this_machine(text: &str, mounts: &BTreeMap<String, PathBuf>) -> String {
    let mut text = text.to_owned();
    for (path, directory) in mounts {
        text = text.replace(path, &directory.to_string_lossy());
    }
    text
}

fn value(variable: &EnvVar, namespace: &str, pod: &str) -> Result<String> {
    let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
    match (&variable.value, field.map(|field| field.field_path.as_str())) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some("metadata.name")) => Ok(pod.to_owned()),
        (None, Some("metadata.namespace")) => Ok(namespace.to_owned()),
        (None, Some("metadata.uid")) => Ok(uuid::Uuid::new_v4().to_string()),
        _ => bail!("{variable:?}"),
    }
}

/// Where the files of volumes come from.
struct Volumes<'a> {
    control_plane: &'a ControlPlane,
    namespace: &'a str,
    account: &'a str,
}

impl Volumes<'_> {
    /// Writes the files of all mounted volumes; returns the directory for each mount path.
    async fn mount(&self, pod: &PodSpec, container: &Container, dir: &Path) -> Result<BTreeMap<String, PathBuf>> {
        let mounted = || container.volume_mounts.iter().flatten();
        let mounts = mounted().map(|mount| (mount.mount_path.clone(), dir.join(&mount.name)));
        let mounts: BTreeMap<_, _> = mounts.collect();
        for mount in mounted() {
            let volume = pod.volumes.iter().flatten().find(|volume| volume.name == mount.name);
            let directory = dir.join(&mount.name);
            std::fs::create_dir_all(&directory)?;
            for (name, text) in self.files(volume.context("no such volume")?).await? {
                std::fs::write(directory.join(name), on_this_machine(&text, &mounts))?;
            }
        }
        Ok(mounts)
    }

    async fn files(&self, volume: &Volume) -> Result<BTreeMap<String, String>> {
        let (client, namespace) = (self.control_plane.client()?, self.namespace);
        if let Some(name) = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_ref()) {
            let secrets: Api<Secret> = Api::namespaced(client, namespace);
            let data = secrets.get(name).await?.data.unwrap_or_default();
            let texts = data
                .into_iter()
                .map(|(name, content)| Ok((name, String::from_utf8(content.0)?)));
            texts.collect()
        } else if let Some(map) = &volume.config_map {
            let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
            Ok(maps.get(&map.name).await?.data.unwrap_or_default())
        } else if let Some(projected) = &volume.projected {
            let mut tokens = BTreeMap::new();
            for source in projected.sources.iter().flatten() {
                let asked = source.service_account_token.as_ref();
                let asked = asked.with_context(|| format!("{source:?}"))?;
                let audience = asked.audience.as_deref();
                let token = self.control_plane.token(namespace, self.account, audience).await?;
                tokens.insert(asked.path.clone(), token);
            }
            Ok(tokens)
        } else if volume.empty_dir.is_some() {
            Ok(BTreeMap::new())
        } else {
            bail!("{volume:?}")
        }
    }
}
