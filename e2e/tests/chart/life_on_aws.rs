//! The program runs as the Deployments say that the examples for AWS are rendered to: with only the rights, identities
//! and files that the chart gives it.

use anyhow::{Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::hyperlink::Role;
use e2e::installed::{BLUE_ROLE, InstalledOnAws};
use e2e::shared_env::SOON;
use e2e::{AwsEnv, scenario};
use serde_json::json;

async fn is_up(env: &AwsEnv, cluster: &AwsHostedCluster) -> Result<()> {
    cluster.gets_endpoint_service(env, SOON).await?;
    let success = ("True", "AWSSuccess");
    let kind = "AWSEndpointAvailable";
    cluster.has_condition(env, kind, success, SOON).await?;
    cluster.becomes_reachable(env, SOON).await
}

/// Fails if a deleted cluster has left something in AWS, or if a call was denied.
async fn nothing_is_left(env: &AwsEnv) -> Result<()> {
    for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
        let mut left = env.oracle().resources_of(kind).await?;
        // Every VPC has a group that nobody made.
        left.retain(|one| one["name"] != "default" && one["state"] != "deleted");
        ensure!(left.is_empty(), "{left:?}");
    }
    let mut denied = env.oracle().journal(0).await?;
    denied.retain(e2e::aws_sim::AwsCall::is_denied);
    ensure!(denied.is_empty(), "{denied:?}");
    Ok(())
}

/// Fails unless the role of the machine has asked for a session after the call numbered `since`.
async fn ensure_assumed_by_the_machine(env: &AwsEnv, since: u64) -> Result<()> {
    let calls = env.oracle().journal(since).await?;
    let assumed = calls.iter().filter(|call| call.action() == "AssumeRole");
    let machine = assumed.filter(|call| call.principal.contains(":assumed-role/worker/"));
    ensure!(machine.count() > 0, "{calls:#?}");
    Ok(())
}

#[test]
fn clusters_on_aws_live_on_the_rendered_deployments() {
    scenario(async {
        let installed = InstalledOnAws::start().await?;
        let env = &installed.env;
        let alone = AwsHostedCluster::new("alone");
        let blue = AwsHostedCluster::new("blue").with_platform(json!({"additionalAllowedPrincipals": [BLUE_ROLE]}));
        alone.create_namespaces(env).await?;
        installed.install_ho()?;
        installed.install_cpo_of(&alone)?;
        installed.install_cpo_of_many(&blue, &alone.control_plane_namespace())?;
        let ho = installed.run("ho", Role::Ho, None).await?;
        let minted = env.minted_token().await?;
        let cpo = installed.run("cpo", Role::Cpo, Some(&minted)).await?;
        let many = installed.run("many", Role::Cpo, None).await?;

        for cluster in [&alone, &blue] {
            cluster.create_objects(env).await?;
        }
        for cluster in [&alone, &blue] {
            is_up(env, cluster).await?;
        }
        // They have all rights that they ask for.
        for process in [&ho, &cpo, &many] {
            process.ready(SOON).await?;
        }
        ho.stop().await?;
        installed.give_ho_the_machines_role()?;
        let since = env.oracle().last_call().await?;
        let ho = installed.run("ho", Role::Ho, None).await?;
        for cluster in [&alone, &blue] {
            cluster.delete(env, SOON).await?;
        }
        ensure_assumed_by_the_machine(env, since).await?;
        nothing_is_left(env).await?;
        for process in [ho, cpo, many] {
            process.stop().await?;
        }
        Ok(())
    });
}
