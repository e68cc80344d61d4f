//! Both roles of Hyperlink on one hosted cluster, and what there is of it in AWS.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{AwsCall, CPO, CPO_ROLE, HO, HO_ROLE, HO_TWIN, SESSION, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::NAMESPACE;
use e2e::hyperlink::aws::lease;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{AwsEnv, eventually};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::SOON;

/// An environment with a hosted cluster and both roles.
pub(crate) struct Both {
    pub(crate) cluster: AwsHostedCluster,
    ho: Option<Hyperlink>,
    cpo: Option<Hyperlink>,
    resync: &'static str,
    pub(crate) record_resync: &'static str,
    /// The credentials file of the HO role, where it is not that of a user with keys.
    pub(crate) ho_credentials: Option<PathBuf>,
    before: BTreeSet<String>,
    pub(crate) env: Arc<AwsEnv>,
}

impl Both {
    /// Starts an environment, creates the network of a cluster's guest, and starts both roles.
    pub(crate) async fn start(name: &str, resync: &'static str) -> Result<Self> {
        let mut both = Self::without_roles(name, resync).await?;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        Ok(both)
    }

    /// Starts an environment, and creates the network of a cluster's guest.
    pub(crate) async fn without_roles(name: &str, resync: &'static str) -> Result<Self> {
        Self::in_env(AwsEnv::local(Preset::Fast).await?, AwsHostedCluster::new(name), resync).await
    }

    /// Creates the network of this cluster's guest in an environment.
    pub(crate) async fn in_env(env: AwsEnv, cluster: AwsHostedCluster, resync: &'static str) -> Result<Self> {
        for role in [Role::Ho, Role::Cpo] {
            env.create_lease(&lease_of(role, &cluster)).await?;
        }
        cluster.create_guest_network(&env).await?;
        let before = present(&env).await?;
        Ok(Self {
            env: Arc::new(env),
            cluster,
            ho: None,
            cpo: None,
            resync,
            record_resync: resync,
            ho_credentials: None,
            before,
        })
    }

    /// Starts a role.
    pub(crate) async fn start_role(&mut self, role: Role) -> Result<()> {
        let namespace = self.cluster.control_plane_namespace();
        let mut flags = vec![("resync", self.resync), ("record-resync", self.record_resync)];
        let credentials = self.ho_credentials.as_ref().map(|path| path.to_string_lossy());
        match (role, &credentials) {
            (Role::Cpo, _) => flags.push(("namespace", &namespace)),
            (Role::Ho, Some(path)) => flags.push(("aws-credentials-file", path)),
            (Role::Ho, None) => {}
        }
        let started = Hyperlink::start_on_aws(&self.env, role, role.as_str(), &flags).await?;
        *self.process(role) = Some(started);
        Ok(())
    }

    /// The process of a role, if it runs.
    pub(crate) fn process(&mut self, role: Role) -> &mut Option<Hyperlink> {
        match role {
            Role::Ho => &mut self.ho,
            Role::Cpo => &mut self.cpo,
        }
    }

    /// Waits until both conditions hold and workers reach the control plane; returns the custom resource.
    pub(crate) async fn becomes_available(&self) -> Result<DynamicObject> {
        self.cluster.gets_endpoint_service(&self.env, SOON).await?;
        let success = ("True", "AWSSuccess");
        let kind = "AWSEndpointAvailable";
        let found = self.cluster.has_condition(&self.env, kind, success, SOON).await?;
        self.cluster.becomes_reachable(&self.env, SOON).await?;
        Ok(found)
    }

    /// The only resource of a kind that there was not before.
    pub(crate) async fn only(&self, kind: &str) -> Result<Value> {
        let mut found = self.env.oracle().resources_of(kind).await?;
        found.retain(|one| one["id"].as_str().is_some_and(|id| !self.before.contains(id)));
        match <[Value; 1]>::try_from(found) {
            Ok([one]) => Ok(one),
            Err(found) => Err(anyhow!("{} of {kind}: {found:?}", found.len())),
        }
    }

    /// Waits until AWS has what it had before the cluster, and nothing else.
    pub(crate) async fn nothing_is_left(&self) -> Result<()> {
        eventually("nothing is left in AWS", SOON, || async {
            let left = present(&self.env).await?;
            let differs: Vec<_> = left.symmetric_difference(&self.before).collect();
            ensure!(differs.is_empty(), "{differs:?}");
            Ok(())
        })
        .await
    }

    /// The calls of both roles after the one numbered `since`.
    pub(crate) async fn calls(&self, since: u64) -> Result<Vec<AwsCall>> {
        let mut calls = self.env.oracle().journal(since).await?;
        calls.retain(|call| is_of(Role::Ho, call) || is_of(Role::Cpo, call));
        Ok(calls)
    }

    /// The actions by which both roles have asked for changes after the call numbered `since`.
    pub(crate) async fn writes(&self, since: u64) -> Result<Vec<String>> {
        let calls = self.calls(since).await?;
        let writes = calls.iter().filter(|call| call.is_write());
        Ok(writes.map(|call| call.action().to_owned()).collect())
    }

    /// Fails if the policies of HyperShift have denied a call of either role.
    pub(crate) async fn ensure_no_denied_call(&self) -> Result<()> {
        let calls = self.calls(0).await?;
        let denied: Vec<_> = calls.iter().filter(|call| call.is_denied()).collect();
        ensure!(denied.is_empty(), "{denied:?}");
        Ok(())
    }

    /// Changes the HostedCluster's `spec.platform.aws`.
    pub(crate) async fn patch_hosted_cluster(&self, patch: &Value) -> Result<()> {
        let patch = json!({"platform": {"aws": patch}});
        self.patch_spec("HostedCluster", NAMESPACE, &patch).await
    }

    /// Changes the HostedControlPlane's `spec.platform.aws`, as HyperShift does after the HostedCluster's.
    pub(crate) async fn patch_control_plane(&self, patch: &Value) -> Result<()> {
        self.patch_control_plane_spec(&json!({"platform": {"aws": patch}}))
            .await
    }

    /// Changes the HostedControlPlane's `spec`.
    pub(crate) async fn patch_control_plane_spec(&self, patch: &Value) -> Result<()> {
        let namespace = self.cluster.control_plane_namespace();
        self.patch_spec("HostedControlPlane", &namespace, patch).await
    }

    async fn patch_spec(&self, kind: &str, namespace: &str, patch: &Value) -> Result<()> {
        let api = self.cluster.api(&self.env.client()?, kind, namespace);
        let patch = Patch::Merge(json!({"spec": patch}));
        api.patch(self.cluster.name(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The HostedControlPlane.
    pub(crate) async fn control_plane(&self) -> Result<DynamicObject> {
        let namespace = self.cluster.control_plane_namespace();
        let api = self.cluster.api(&self.env.client()?, "HostedControlPlane", &namespace);
        Ok(api.get(self.cluster.name()).await?)
    }

    /// The version of each custom resource.
    pub(crate) async fn versions(&self) -> Result<Vec<Option<String>>> {
        let api = self.cluster.custom_resources(&self.env.client()?);
        let found = api.list(&ListParams::default()).await?;
        Ok(found.into_iter().map(|one| one.metadata.resource_version).collect())
    }

    /// Stops both roles.
    pub(crate) async fn stop(self) -> Result<()> {
        for process in [self.ho, self.cpo].into_iter().flatten() {
            process.stop().await?;
        }
        Ok(())
    }
}

/// The name of the lease of a role: CPO serves one control plane.
pub(crate) fn lease_of(role: Role, cluster: &AwsHostedCluster) -> String {
    let namespace = cluster.control_plane_namespace();
    lease(role, (role == Role::Cpo).then_some(namespace.as_str()))
}

/// Whether a role of Hyperlink has made a call.
pub(crate) fn is_of(role: Role, call: &AwsCall) -> bool {
    match role {
        Role::Ho => call.is_of(&HO, HO_ROLE),
        Role::Cpo => is_of_guest(call) && !is_of_theirs(role, call),
    }
}

/// Whether HyperShift's controller of a role has made a call, or a test as one.
pub(crate) fn is_of_theirs(role: Role, call: &AwsCall) -> bool {
    match role {
        Role::Ho => call.principal == HO_TWIN.arn(),
        Role::Cpo => is_of_guest(call) && call.principal.ends_with(&format!("/{SESSION}")),
    }
}

/// Whether anybody has made a call as the guest's side, also in a shared VPC.
fn is_of_guest(call: &AwsCall) -> bool {
    let roles = [CPO_ROLE, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE];
    roles.iter().any(|role| call.is_of(&CPO, role))
}

/// Ids of all resources, and names of the records in zones. A connection that was rejected keeps a deleted endpoint in
/// lists for long.
async fn present(env: &AwsEnv) -> Result<BTreeSet<String>> {
    let mut present = BTreeSet::new();
    for resource in env.oracle().resources("arn:").await? {
        if resource["state"] == "deleted" {
            continue;
        }
        let id = resource["id"].as_str().context("a resource without an id")?;
        let records = resource["records"].as_array().into_iter().flatten();
        present.extend(records.map(|record| format!("{id} {} {}", record["type"], record["name"])));
        present.insert(id.to_owned());
    }
    Ok(present)
}
