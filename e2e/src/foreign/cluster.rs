//! The run's part of a given cluster: whether it may be used at all, which objects are the run's, and how to delete
//! them.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::settings::Prefix;
use crate::eventually;

/// Which objects of a cluster are the run's.
#[derive(Clone, Debug)]
pub struct Own<'a> {
    /// The prefix of their names.
    pub prefix: &'a Prefix,
    /// A namespace that bears the prefix although it is not the run's.
    pub except: Option<String>,
}

impl Own<'_> {
    fn has(&self, namespace: &str) -> bool {
        self.prefix.owns(namespace) && self.except.as_deref() != Some(namespace)
    }
}

/// The kinds in order of deletion. While its control plane exists, a custom resource would be recreated.
const KINDS: [&str; 3] = ["HostedCluster", "HostedControlPlane", "AzurePrivateLinkService"];

/// Fails if the cluster has hosted clusters of its own: its HyperShift operators and Hyperlink would manage the run's
/// clusters, and the run's Hyperlink would manage clusters that are not the run's.
///
/// # Errors
///
/// It has some, or does not answer.
pub async fn may_be_used(client: &kube::Client) -> Result<()> {
    for kind in KINDS {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
        let found = match all.list(&Default::default()).await {
            Ok(found) => found,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error).context("ask the cluster what it serves"),
        };
        let foreign = found.into_iter().filter_map(|one| one.metadata.namespace);
        let foreign = foreign.into_iter().find(|namespace| !Prefix::of_some_run(namespace));
        if let Some(namespace) = foreign {
            bail!(
                "refused, nothing was made: the namespace {namespace} has a {kind}; take a cluster without hosted clusters"
            );
        }
    }
    Ok(())
}

/// Deletes the run's objects and removes all their finalizers, because nobody may be running who would do that. Their
/// resources in Azure are deleted separately.
///
/// # Errors
///
/// The API server refuses or does not answer.
pub async fn delete_objects(client: &kube::Client, own: &Own<'_>) -> Result<()> {
    for kind in KINDS {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
        let found = match all.list(&Default::default()).await {
            Ok(found) => found.items,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error.into()),
        };
        for object in found {
            let metadata = object.metadata;
            let (Some(name), Some(namespace)) = (metadata.name, metadata.namespace) else {
                continue;
            };
            if !own.has(&namespace) {
                continue;
            }
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource(kind));
            let none = json!({"metadata": {"finalizers": null}});
            ignore_not_found(api.delete(&name, &DeleteParams::default()).await.map(drop))?;
            ignore_not_found(
                api.patch(&name, &PatchParams::default(), &Patch::Merge(none))
                    .await
                    .map(drop),
            )?;
        }
    }
    for name in namespaces(client, own).await? {
        let api: Api<Namespace> = Api::all(client.clone());
        ignore_not_found(api.delete(&name, &DeleteParams::default()).await.map(drop))?;
    }
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for role in roles.list(&Default::default()).await? {
        let name = role.metadata.name.unwrap_or_default();
        if own.prefix.owns(&name) {
            ignore_not_found(roles.delete(&name, &DeleteParams::default()).await.map(drop))?;
        }
    }
    for binding in bindings.list(&Default::default()).await? {
        let name = binding.metadata.name.unwrap_or_default();
        if own.prefix.owns(&name) {
            ignore_not_found(bindings.delete(&name, &DeleteParams::default()).await.map(drop))?;
        }
    }
    Ok(())
}

/// Waits until the run's namespaces are gone.
///
/// # Errors
///
/// A namespace still exists after `patience`.
pub async fn is_clean(client: &kube::Client, own: &Own<'_>, patience: Duration) -> Result<()> {
    eventually("the run's namespaces are gone", patience, || async {
        let left = namespaces(client, own).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
}

async fn namespaces(client: &kube::Client, own: &Own<'_>) -> Result<Vec<String>> {
    let all: Api<Namespace> = Api::all(client.clone());
    let names = all
        .list(&Default::default())
        .await?
        .into_iter()
        .filter_map(|one| one.metadata.name);
    Ok(names.filter(|name| own.has(name)).collect())
}

fn ignore_not_found(outcome: kube::Result<()>) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => Ok(outcome?),
    }
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", kind))
}
