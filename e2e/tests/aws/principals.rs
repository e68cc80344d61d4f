//! Who may connect to an endpoint service.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_env::{SharedAwsEnv, situation};
use e2e::aws_sim::ADMINISTRATOR;
use e2e::eventually;
use kube::api::DynamicObject;
use serde_json::json;

use crate::SOON;

const CPO: &str = "arn:aws:iam::444455556666:role/control-plane-operator";
const ADDITIONAL: &str = "arn:aws:iam::111122223333:root";
const FOREIGN: &str = "arn:aws:iam::111122223333:user/administrator";

/// Id of the endpoint service that a custom resource reports.
fn endpoint_service(found: &DynamicObject) -> Result<String> {
    let name = found.data["status"]["endpointServiceName"].as_str();
    let (_, id) = name.and_then(|name| name.rsplit_once('.')).context("no name")?;
    Ok(id.to_owned())
}

/// Waits until exactly these principals may connect.
async fn may_connect(shared: &SharedAwsEnv, id: &str, expected: &[&str]) -> Result<()> {
    let arn = format!("arn:aws:ec2:us-east-1:111122223333:vpc-endpoint-service/{id}");
    eventually(&format!("{expected:?} may connect"), SOON, || async {
        let found = shared.env.oracle().resources(&arn).await?;
        let service = found.first().context("no endpoint service")?;
        let principals = service["principals"].as_array().context("no principals")?;
        let principals: BTreeSet<_> = principals.iter().filter_map(|one| one["arn"].as_str()).collect();
        ensure!(principals == expected.iter().copied().collect(), "{principals:?}");
        Ok(())
    })
    .await
}

#[test]
fn additional_principals_may_connect() {
    situation(|shared| async {
        let platform = json!({"additionalAllowedPrincipals": [ADDITIONAL]});
        let cluster = AwsHostedCluster::new("additional").with_platform(platform);
        cluster.create(&shared.env).await?;
        let found = cluster.gets_endpoint_service(&shared.env, SOON).await?;
        may_connect(shared, &endpoint_service(&found)?, &[CPO, ADDITIONAL]).await?;
        cluster.delete(&shared.env, SOON).await
    });
}

#[test]
fn principal_added_by_hand_is_removed() {
    situation(|shared| async {
        let cluster = shared.lives("added").await?;
        let client = shared.env.client()?;
        let found = cluster.get_custom_resource(&client).await?;
        let id = endpoint_service(&found.context("no custom resource")?)?;
        let parameters = [("ServiceId", id.as_str()), ("AddAllowedPrincipals.1", FOREIGN)];
        let person = shared.env.caller(ADMINISTRATOR)?;
        let added = person
            .ec2("ModifyVpcEndpointServicePermissions", &parameters)
            .await?
            .ok()?;
        ensure!(added.body.contains(FOREIGN), "{}", added.body);
        may_connect(shared, &id, &[CPO]).await?;
        cluster.delete(&shared.env, SOON).await
    });
}
