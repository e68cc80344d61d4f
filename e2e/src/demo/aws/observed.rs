//! What exists of one hosted cluster on AWS: the Service's host name, the custom resource and its conditions, the
//! resources in AWS, and which names lead to the Service.

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::demo::observed::Observed;
use crate::hosted_cluster::{ROUTER, conditions};

/// Reads everything once.
pub(super) async fn read(env: &AwsEnv, client: &kube::Client, cluster: &AwsHostedCluster) -> Result<Observed> {
    let mut observed = Observed::default();
    if let Some(service) = cluster.get_service(client, ROUTER).await? {
        let status = service.status.and_then(|status| status.load_balancer);
        let ingress = status.and_then(|status| status.ingress).unwrap_or_default();
        if let Some(host_name) = ingress.into_iter().find_map(|one| one.hostname) {
            observed.add(format!("load balancer of {ROUTER}"), format!("gives it {host_name}"));
        }
    }
    let found = cluster.get_custom_resource(client).await?;
    if !found.is_some_and(|found| add_custom_resource(&mut observed, &found)) {
        observed.add_lack("both conditions");
    }
    for resource in env.oracle().resources("arn:").await? {
        add_resource(&mut observed, &resource, cluster);
    }
    for name in cluster.host_names() {
        let found = env.oracle().reachable(&cluster.vpc(), &name).await?;
        observed.add_name(&name, found, &cluster.service_behind(&name));
    }
    Ok(observed)
}

/// Adds the custom resource; returns whether both of its conditions are True.
fn add_custom_resource(observed: &mut Observed, found: &DynamicObject) -> bool {
    let is_deleting = found.metadata.deletion_timestamp.is_some();
    let state = if is_deleting { "deleting" } else { "there" };
    observed.add(format!("custom resource {ROUTER}"), state.into());
    if let Some(name) = found.data["status"]["endpointServiceName"].as_str() {
        observed.add("endpoint service's name".into(), name.to_owned());
    }
    let conditions = conditions(found);
    for one in &conditions {
        let state = format!("{} {}: {}", one.status, one.reason, one.message);
        observed.add(format!("condition {}", one.kind), state);
    }
    conditions.len() == 2 && conditions.iter().all(|one| one.status == "True")
}

fn add_resource(observed: &mut Observed, resource: &Value, cluster: &AwsHostedCluster) {
    let arn = resource["id"].as_str().unwrap_or_default();
    if arn == cluster.zone_arn() {
        for record in resource["records"].as_array().into_iter().flatten() {
            add_record(observed, record);
        }
    }
    let Some((head, id)) = arn.rsplit_once('/') else { return };
    let state = resource["state"].as_str().unwrap_or_default();
    let (label, detail) = match head.rsplit(':').next().unwrap_or_default() {
        "loadbalancer/net" => ("load balancer", String::new()),
        "vpc-endpoint-service" => ("endpoint service", allowed(resource)),
        "vpc-endpoint" => ("endpoint", in_subnets(resource)),
        "security-group" if resource["name"] != "default" => ("security group", lets_in(resource)),
        _ => return,
    };
    observed.add(format!("{label} {id}"), format!("{state} {detail}").trim().to_owned());
}

fn add_record(observed: &mut Observed, record: &Value) {
    if record["type"] == "CNAME" {
        let name = record["name"].as_str().unwrap_or_default();
        let target = record["values"][0].as_str().unwrap_or_default();
        observed.add(format!("record {name}"), target.to_owned());
    }
}

/// Who may connect to an endpoint service.
fn allowed(service: &Value) -> String {
    let principals = service["principals"].as_array().into_iter().flatten();
    let arns: Vec<_> = principals.filter_map(|one| one["arn"].as_str()).collect();
    format!("allows {}", arns.join(" "))
}

/// The subnets of an endpoint.
fn in_subnets(endpoint: &Value) -> String {
    let subnets = endpoint["subnets"].as_array().into_iter().flatten();
    let ids: Vec<_> = subnets.filter_map(Value::as_str).collect();
    format!("in {}", ids.join(" "))
}

/// Which networks a security group lets in.
fn lets_in(group: &Value) -> String {
    let rules = group["ingress"].as_array().into_iter().flatten();
    let networks: Vec<_> = rules.filter_map(|rule| rule["source"]["ipv4"].as_str()).collect();
    match networks.is_empty() {
        true => "lets nobody in".to_owned(),
        false => format!("lets {} in", networks.join(" ")),
    }
}
