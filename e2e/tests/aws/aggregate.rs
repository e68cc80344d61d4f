//! The conditions of custom resources, summed up on their HostedCluster.

use anyhow::{Result, anyhow, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::{Condition, NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{AwsEnv, eventually, roles, scenario};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::SOON;

const SERVICE: &str = "AWSEndpointServiceAvailable";
const ENDPOINT: &str = "AWSEndpointAvailable";
const MISSING: (&str, &str, &str) = ("Unknown", "StatusUnknown", "AWSEndpointService conditions not found");
const WELL: (&str, &str, &str) = ("True", "AWSSuccess", "All is well");

/// Starts the HO role, which sums up. Nothing but events makes it reconcile.
async fn start_ho(env: &AwsEnv, name: &str) -> Result<Hyperlink> {
    let flags = [("resync", "1h"), ("aggregate-conditions", "true")];
    Hyperlink::start_on_aws(env, Role::Ho, name, &flags).await
}

/// Waits until the HostedCluster shows exactly this of a condition; returns the HostedCluster.
async fn shows(
    env: &AwsEnv,
    cluster: &AwsHostedCluster,
    kind: &str,
    expected: (&str, &str, &str),
) -> Result<DynamicObject> {
    let hosted = cluster.api(&env.client()?, "HostedCluster", NAMESPACE);
    eventually(&format!("{kind} is {expected:?}"), SOON, || async {
        let found = hosted.get(cluster.name()).await?;
        let all = conditions(&found);
        let (status, reason, message) = expected;
        let fits = |one: &&Condition| one.kind == kind && one.status == status && one.reason == reason;
        let one = all.iter().find(fits).ok_or_else(|| anyhow!("{all:?}"))?;
        ensure!(one.message == message, "{one:?}");
        Ok(found)
    })
    .await
}

#[test]
fn conditions_of_each_cluster_are_summed_up_on_it() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.create_leases().await?;
        let public = AwsHostedCluster::new("open").with_platform(json!({"endpointAccess": "Public"}));
        public.create_namespaces(&env).await?;
        public.create_hosted_cluster(&env).await?;
        let hosted = public.api(&env.client()?, "HostedCluster", NAMESPACE);
        let theirs = json!({"type": "Available", "status": "False", "reason": "Theirs", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = Patch::Merge(json!({"status": {"conditions": [theirs]}}));
        hosted
            .patch_status(public.name(), &PatchParams::default(), &status)
            .await?;
        roles::install_aggregation(env.control_plane(), "ho-aws").await?;
        let ho = start_ho(&env, "ho").await?;
        for kind in [SERVICE, ENDPOINT] {
            let found = shows(&env, &public, kind, MISSING).await?;
            let of_others = conditions(&found);
            let of_others: Vec<_> = of_others.iter().filter(|one| one.reason == "Theirs").collect();
            ensure!(of_others.len() == 1, "{of_others:?}");
        }

        let cluster = AwsHostedCluster::new("summed");
        cluster.create(&env).await?;
        shows(&env, &cluster, SERVICE, WELL).await?;
        shows(&env, &cluster, ENDPOINT, MISSING).await?;
        let failing = json!({"type": ENDPOINT, "status": "False", "reason": "AWSError", "message": "InvalidParameter",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let found = cluster.get_custom_resource(&env.client()?).await?;
        let mut all = found
            .map(|found| found.data["status"]["conditions"].clone())
            .unwrap_or_default();
        all.as_array_mut().into_iter().for_each(|all| all.push(failing.clone()));
        let status = Patch::Merge(json!({"status": {"conditions": all}}));
        let custom_resources = cluster.custom_resources(&env.client()?);
        custom_resources
            .patch_status("private-router", &PatchParams::default(), &status)
            .await?;
        shows(&env, &cluster, ENDPOINT, ("False", "AWSError", "InvalidParameter")).await?;
        shows(&env, &cluster, SERVICE, WELL).await?;
        cluster.delete(&env, SOON).await?;
        ho.stop().await
    });
}

/// Changes what the HO role may do with custom resources.
async fn allow(env: &AwsEnv, verbs: &[&str]) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(env.client()?);
    let mut rules = roles.get("hyperlink-ho-aws").await?.rules.unwrap_or_default();
    for rule in &mut rules {
        if rule
            .resources
            .iter()
            .flatten()
            .any(|resource| resource == "awsendpointservices")
        {
            rule.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        }
    }
    let patch = Patch::Merge(json!({"rules": rules}));
    roles.patch("hyperlink-ho-aws", &PatchParams::default(), &patch).await?;
    Ok(())
}

#[test]
fn list_that_fails_touches_the_condition_of_the_endpoint_alone() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.create_leases().await?;
        roles::install_aggregation(env.control_plane(), "ho-aws").await?;
        let ho = start_ho(&env, "ho").await?;
        let cluster = AwsHostedCluster::new("unlisted");
        cluster.create(&env).await?;
        shows(&env, &cluster, SERVICE, WELL).await?;

        let next = start_ho(&env, "ho-next").await?;
        // It leads only if it could list once.
        eventually("the next one may lead", SOON, || async {
            let (_, page) = next.page("/readyz").await?;
            let prepared = ["kubernetes", "custom resource definition", "rights"];
            let lacks = |item: &&str| !page.contains(&format!("[+] {item} (ho-aws)"));
            ensure!(!prepared.iter().any(lacks), "{page}");
            Ok(())
        })
        .await?;
        allow(&env, &["get", "watch", "patch", "delete"]).await?;
        ho.stop().await?;
        let refused = "error listing awsendpointservices in namespace clusters-unlisted: refused: Forbidden";
        shows(&env, &cluster, ENDPOINT, ("Unknown", "NotFound", refused)).await?;
        shows(&env, &cluster, SERVICE, WELL).await?;
        allow(&env, &["get", "list", "watch", "patch", "delete"]).await?;
        shows(&env, &cluster, ENDPOINT, MISSING).await?;
        next.stop().await
    });
}
