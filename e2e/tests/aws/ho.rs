//! The HO role: an endpoint service from the custom resource, and nothing left after the deletion.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_env::INFRASTRUCTURE;
use e2e::aws_sim::HO;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::conditions;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{AwsEnv, eventually, scenario};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::SOON;

const CLUSTER: &str = "hypershift.openshift.io/cluster";
const FINALIZER: &str = "hypershift.openshift.io/hypershift-operator-finalizer";
/// ARN of the CPO role without its IAM path.
const PRINCIPAL: &str = "arn:aws:iam::444455556666:role/control-plane-operator";

#[test]
fn cluster_gets_an_endpoint_service_that_is_deleted_with_it() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.create_leases().await?;
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &[("resync", "3s")]).await?;
        let cluster = AwsHostedCluster::new("first");
        cluster.create(&env).await?;

        let found = cluster.gets_endpoint_service(&env, SOON).await?;
        ensure_custom_resource(&cluster, &found)?;
        let service = only_endpoint_service(&env).await?;
        ensure_endpoint_service(&cluster, &found, &service)?;

        cluster.delete(&env, SOON).await?;
        eventually("the endpoint service is gone", SOON, || async {
            let left = env.oracle().resources_of("vpc-endpoint-service").await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
        let left = cluster.get_custom_resource(&env.client()?).await?;
        ensure!(left.is_none(), "{left:?}");
        ensure_no_denied_call(&env).await?;
        ho.stop().await
    });
}

/// What HO writes into the custom resource.
fn ensure_custom_resource(cluster: &AwsHostedCluster, found: &DynamicObject) -> Result<()> {
    let conditions = conditions(found);
    let available = conditions.iter().find(|one| one.kind == "AWSEndpointServiceAvailable");
    let available = available.context("no condition")?;
    ensure!(available.message.is_empty(), "{available:?}");
    let subnets = &found.data["spec"]["subnetIDs"];
    ensure!(*subnets == json!(cluster.node_pool_subnets()), "{subnets}");
    let annotation = found.annotations().get(CLUSTER);
    ensure!(annotation == Some(&cluster.full_name()), "{annotation:?}");
    ensure!(
        found.finalizers().contains(&FINALIZER.to_owned()),
        "{:?}",
        found.finalizers()
    );
    Ok(())
}

async fn only_endpoint_service(env: &AwsEnv) -> Result<Value> {
    let found = env.oracle().resources_of("vpc-endpoint-service").await?;
    match <[Value; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(found) => Err(anyhow::anyhow!("{} endpoint services: {found:?}", found.len())),
    }
}

/// What HO creates in AWS.
fn ensure_endpoint_service(cluster: &AwsHostedCluster, found: &DynamicObject, service: &Value) -> Result<()> {
    let id = service["id"].as_str().and_then(|arn| arn.rsplit('/').next());
    let name = format!("com.amazonaws.vpce.us-east-1.{}", id.context("no id")?);
    let recorded = &found.data["status"]["endpointServiceName"];
    ensure!(*recorded == json!(name), "{recorded}, not {name}");
    let principals = service["principals"].as_array().context("no principals")?;
    let principals: Vec<_> = principals.iter().map(|one| &one["arn"]).collect();
    ensure!(principals == [PRINCIPAL], "{principals:?}");
    ensure!(service["acceptance_required"] == json!(false), "{service}");
    let mut tags = json!({
        "hypershift.openshift.io/cluster-id": cluster.cluster_id(),
        format!("kubernetes.io/cluster/{INFRASTRUCTURE}"): "owned",
    });
    for (key, value) in cluster.resource_tags() {
        tags[key] = json!(value);
    }
    ensure!(service["tags"] == tags, "{}, not {tags}", service["tags"]);
    Ok(())
}

async fn ensure_no_denied_call(env: &AwsEnv) -> Result<()> {
    let journal = env.oracle().journal(0).await?;
    let of_ho: Vec<_> = journal.iter().filter(|call| call.principal == HO.arn()).collect();
    ensure!(of_ho.iter().any(|call| call.changed), "HO has changed nothing");
    let denied: Vec<_> = of_ho.iter().filter(|call| call.is_denied()).collect();
    ensure!(denied.is_empty(), "{denied:?}");
    Ok(())
}
