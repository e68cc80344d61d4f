//! The test environment without Hyperlink: the cloud provider gives Services load balancers, and HyperShift's part
//! creates and deletes clusters.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::{AwsHostedCluster, load_balancer_name};
use e2e::aws_sim::{HO, HO_TWIN, REGION};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::ROUTER;
use e2e::{AwsEnv, eventually, scenario};
use serde_json::Value;

use crate::SOON;

const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The load balancer of this name.
async fn load_balancer(env: &AwsEnv, name: &str) -> Result<Value> {
    let found = env.oracle().resources_of("loadbalancer").await?;
    let mut found = found.into_iter().filter(|one| one["name"] == name);
    found.next().with_context(|| format!("no load balancer {name}"))
}

#[test]
fn service_shows_its_load_balancer_while_it_is_provisioning() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.oracle().freeze(true).await?;
        let cluster = AwsHostedCluster::new("balanced");
        cluster.create(&env).await?;

        let client = env.client()?;
        let service = cluster.get_service(&client, ROUTER).await?.context("no Service")?;
        let host_name = cluster.gets_host_name(&client, ROUTER, SOON).await?;
        let uid = service.metadata.uid.context("no uid")?.replace('-', "");
        let name = load_balancer_name(&host_name);
        ensure!(
            Some(name) == format!("a{uid}").get(..32),
            "{name} of {host_name}, uid {uid}"
        );
        let (_, rest) = host_name.split_once('-').context("no hash")?;
        let (hash, domain) = rest.split_once('.').context("no domain")?;
        ensure!(
            hash.len() == 16 && domain == "elb.us-east-1.amazonaws.com",
            "{host_name}"
        );

        let found = load_balancer(&env, name).await?;
        ensure!(found["state"] == "provisioning", "{found}");
        ensure!(found["dns_name"] == host_name.as_str(), "{found}");
        env.oracle().advance(1.0).await?;
        let found = load_balancer(&env, name).await?;
        ensure!(found["state"] == "active", "{found}");

        let custom_resource = cluster.get_custom_resource(&client).await?.context("none")?;
        let spec = &custom_resource.data["spec"];
        ensure!(spec["networkLoadBalancerName"] == name, "{spec}");
        Ok(())
    });
}

#[test]
fn service_in_deletion_waits_for_the_endpoint_service() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let (client, cluster) = (env.client()?, AwsHostedCluster::new("held"));
        cluster.create(&env).await?;
        let (name, id) = create_endpoint_service(&env, &cluster).await?;

        cluster.delete_node_pools(&client, SOON).await?;
        cluster.delete_control_plane(&client, SOON).await?;
        cluster.delete_custom_resources(&client, SOON).await?;
        refused_deletions(&env, 2).await?;
        let service = cluster.get_service(&client, ROUTER).await?.context("no Service")?;
        ensure!(service.metadata.deletion_timestamp.is_some(), "{:?}", service.metadata);
        let finalizers = service.metadata.finalizers.unwrap_or_default();
        ensure!(finalizers.contains(&CLEANUP.to_owned()), "{finalizers:?}");
        load_balancer(&env, &name).await?;

        let parameters = [("ServiceId.1", id.as_str())];
        let deleted = env
            .caller(HO)?
            .ec2("DeleteVpcEndpointServiceConfigurations", &parameters)
            .await?;
        ensure!(!deleted.ok()?.body.contains("<code>"), "{id} is not deleted");
        eventually("the Service is gone", SOON, || async {
            let left = cluster.get_service(&client, ROUTER).await?;
            ensure!(left.is_none(), "{:?}", left.map(|left| left.metadata.finalizers));
            Ok(())
        })
        .await?;
        ensure!(load_balancer(&env, &name).await.is_err(), "{name} is left");
        Ok(())
    });
}

/// Creates an endpoint service by hand as the HO role's identity; returns the load balancer's name and the service's id.
async fn create_endpoint_service(env: &AwsEnv, cluster: &AwsHostedCluster) -> Result<(String, String)> {
    let host_name = cluster.gets_host_name(&env.client()?, ROUTER, SOON).await?;
    let name = load_balancer_name(&host_name).to_owned();
    let arn = load_balancer(env, &name).await?["id"].clone();
    let arn = arn.as_str().context("no ARN")?;
    let ho = env.caller(HO)?;
    let created = eventually("the load balancer takes an endpoint service", SOON, || async {
        let parameters = [("NetworkLoadBalancerArn.1", arn), ("AcceptanceRequired", "false")];
        let created = ho.ec2("CreateVpcEndpointServiceConfiguration", &parameters).await?;
        created.ok()
    })
    .await?;
    Ok((name, created.text("serviceId").context("no id")?.to_owned()))
}

/// Waits until the cloud controller has been refused so often.
async fn refused_deletions(env: &AwsEnv, times: usize) -> Result<()> {
    let log = env.dir().join("cloud-controller.log");
    eventually("deleting the load balancer is refused", SOON, || async {
        let count = std::fs::read_to_string(&log)?.matches("ResourceInUse").count();
        ensure!(count >= times, "refused {count} times");
        Ok(())
    })
    .await
}

#[test]
fn path_made_by_hand_carries_traffic() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let cluster = AwsHostedCluster::new("path");
        cluster.create(&env).await?;
        let (_, id) = create_endpoint_service(&env, &cluster).await?;
        let principal = "arn:aws:iam::444455556666:role/control-plane-operator";
        let parameters = [("ServiceId", id.as_str()), ("AddAllowedPrincipals.1", principal)];
        let ho = env.caller(HO)?;
        ho.ec2("ModifyVpcEndpointServicePermissions", &parameters).await?.ok()?;

        let service_name = format!("com.amazonaws.vpce.{REGION}.{id}");
        let connection = cluster.connect(&env, &service_name).await?;
        cluster.becomes_reachable(&env, SOON).await?;
        cluster.disconnect(&env, &connection).await?;
        let reachable = env.oracle().reachable(&cluster.vpc(), &cluster.host_names()[0]).await?;
        let why = reachable.why.context("it is reachable")?;
        ensure!(why.starts_with("endpoint: "), "{why}");
        Ok(())
    });
}

#[test]
fn cluster_is_deleted_with_all_that_hypershift_made() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let cluster = AwsHostedCluster::new("whole");
        cluster.create(&env).await?;
        let twin = env.caller(HO_TWIN)?;
        let found = twin.load_balancing("DescribeLoadBalancers", &[]).await?.ok()?;
        let reachable = env.oracle().reachable(&cluster.vpc(), &cluster.host_names()[0]).await?;
        ensure!(!reachable.ok && reachable.why.is_some(), "{reachable:?}");
        cluster.delete(&env, SOON).await?;
        let left = env.oracle().resources_of("loadbalancer").await?;
        ensure!(left.is_empty(), "{left:?}, before: {}", found.body);
        cluster.delete_guest_network(&env).await?;
        let client = env.client()?;
        ensure!(
            cluster.get_service(&client, ROUTER).await?.is_none(),
            "{ROUTER} is left"
        );
        Ok(())
    });
}
