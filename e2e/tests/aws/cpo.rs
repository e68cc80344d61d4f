//! Both roles on one cluster: a private path from the guest's VPC to the control plane, and nothing left after the
//! deletion.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::conditions;
use e2e::scenario;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::SOON;
use crate::both::Both;

const DNS_NAME: &str = "hyperlink.hypershift.openshift.io/endpoint-dns-name";
const FINALIZER: &str = "hypershift.openshift.io/control-plane-operator-finalizer";
/// What a cluster takes, in the order of the names.
const WRITES: [&str; 6] = [
    "AuthorizeSecurityGroupIngress",
    "ChangeResourceRecordSets",
    "CreateSecurityGroup",
    "CreateVpcEndpoint",
    "CreateVpcEndpointServiceConfiguration",
    "ModifyVpcEndpointServicePermissions",
];

#[test]
fn cluster_gets_a_private_path_that_is_deleted_with_it() {
    scenario(async {
        let both = Both::start("private", "3s").await?;
        both.cluster.create_objects(&both.env).await?;
        let found = both.becomes_available().await?;
        let endpoint = both.only("vpc-endpoint").await?;
        ensure_custom_resource(&both, &found, &endpoint)?;
        ensure_endpoint(&both, &endpoint)?;
        ensure_security_group(&both, &both.only("security-group").await?)?;
        let mut writes = both.writes(0).await?;
        writes.sort_unstable();
        ensure!(writes == WRITES, "{writes:?}");
        both.ensure_no_denied_call().await?;

        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        let left = both.cluster.get_custom_resource(&both.env.client()?).await?;
        ensure!(left.is_none(), "{left:?}");
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

/// The last part of an ARN.
fn id(resource: &Value) -> Result<&str> {
    let id = resource["id"].as_str().and_then(|arn| arn.rsplit('/').next());
    id.context("no id")
}

/// What CPO writes into the custom resource.
fn ensure_custom_resource(both: &Both, found: &DynamicObject, endpoint: &Value) -> Result<()> {
    let conditions = conditions(found);
    let available = conditions.iter().find(|one| one.kind == "AWSEndpointAvailable");
    let available = available.context("no condition")?;
    ensure!(available.message.is_empty(), "{available:?}");
    let zone = both.cluster.zone_name();
    let status = &found.data["status"];
    let names = json!([format!("*.apps.{zone}"), format!("api.{zone}")]);
    ensure!(status["dnsNames"] == names, "{status}");
    ensure!(status["dnsZoneID"] == both.cluster.zone(), "{status}");
    ensure!(status["endpointID"] == id(endpoint)?, "{status}, not {endpoint}");
    ensure!(
        status["securityGroupID"] == endpoint["groups"][0],
        "{status}, not {endpoint}"
    );
    let annotation = found.annotations().get(DNS_NAME).context("no annotation")?;
    ensure!(annotation.starts_with(id(endpoint)?), "{annotation}");
    ensure!(annotation.ends_with(".vpce.amazonaws.com"), "{annotation}");
    let finalizers = found.finalizers();
    ensure!(finalizers.contains(&FINALIZER.to_owned()), "{finalizers:?}");
    Ok(())
}

/// What CPO creates for a cluster with node pools in two zones.
fn ensure_endpoint(both: &Both, endpoint: &Value) -> Result<()> {
    ensure!(endpoint["vpc"] == both.cluster.vpc(), "{endpoint}");
    ensure!(
        endpoint["subnets"] == json!(both.cluster.node_pool_subnets()),
        "{endpoint}"
    );
    let mut tags = json!({
        "hypershift.openshift.io/cluster-id": both.cluster.cluster_id(),
        "AWSEndpointService": "private-router",
    });
    add_users(&mut tags, both);
    ensure!(endpoint["tags"] == tags, "{}, not {tags}", endpoint["tags"]);
    Ok(())
}

fn ensure_security_group(both: &Both, group: &Value) -> Result<()> {
    let name = format!("{}-vpce-private-router", both.cluster.infra_id());
    ensure!(group["name"] == name, "{group}");
    let mut tags = json!({
        "hypershift.openshift.io/cluster-id": both.cluster.cluster_id(),
        format!("kubernetes.io/cluster/{}", both.cluster.infra_id()): "owned",
        "Name": name,
    });
    add_users(&mut tags, both);
    ensure!(group["tags"] == tags, "{}, not {tags}", group["tags"]);
    Ok(())
}

fn add_users(tags: &mut Value, both: &Both) {
    for (key, value) in both.cluster.resource_tags() {
        tags[key] = json!(value);
    }
}
