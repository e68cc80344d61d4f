//! What somebody changes or deletes by hand heals by itself, and what is somebody else's stays as it is.

use anyhow::{Context, Result, ensure};
use e2e::aws_sim::{ADMINISTRATOR, GUEST, GUEST_ADMINISTRATOR, REGION};
use e2e::eventually;
use e2e::shared_env::run;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::SOON;
use crate::both::Both;

/// Simulated seconds after which AWS's request budgets suffice for one more test.
const REFILL: f64 = 60.0;
/// A record of somebody else in the cluster's zone.
const FOREIGN: &str = "other.healed.hypershift.local.";

/// Runs one test on a cluster that is up; one after the other, as they all change the same path.
fn situation(test: impl AsyncFnOnce(&Both) -> Result<()>) {
    static BOTH: OnceCell<Mutex<Both>> = OnceCell::const_new();
    run(async {
        let both = BOTH.get_or_try_init(up).await?.lock().await;
        both.env.oracle().advance(REFILL).await?;
        both.becomes_available().await?;
        test(&both).await?;
        both.becomes_available().await?;
        ensure_foreign(&both).await?;
        both.ensure_no_denied_call().await
    });
}

/// A cluster that is up, with a record and a rule of somebody else.
async fn up() -> Result<Mutex<Both>> {
    let both = Both::start("healed", "2s").await?;
    both.cluster.create_objects(&both.env).await?;
    both.becomes_available().await?;
    change_records(&both, |records| {
        records.push(json!({"name": FOREIGN, "type": "CNAME", "ttl": 60, "values": ["example.com."]}));
    })
    .await?;
    let group = security_group(&both).await?;
    let ssh = [
        &rule(&group, "22")[..],
        &[("IpPermissions.1.IpRanges.1.Description", "by hand")],
    ]
    .concat();
    let person = both.env.caller(GUEST_ADMINISTRATOR)?;
    person.ec2("AuthorizeSecurityGroupIngress", &ssh).await?.ok()?;
    Ok(Mutex::new(both))
}

async fn ensure_foreign(both: &Both) -> Result<()> {
    let zone = zone(both).await?;
    let records = zone["records"].as_array().context("no records")?;
    let foreign = records.iter().find(|record| record["name"] == FOREIGN);
    ensure!(foreign.is_some_and(|record| record["ttl"] == 60), "{records:?}");
    let ingress = both.only("security-group").await?["ingress"].to_string();
    ensure!(ingress.contains("by hand"), "{ingress}");
    Ok(())
}

/// The last part of an ARN.
fn id(resource: &Value) -> Result<String> {
    let id = resource["id"].as_str().and_then(|arn| arn.rsplit('/').next());
    id.map(str::to_owned).context("no id")
}

async fn security_group(both: &Both) -> Result<String> {
    id(&both.only("security-group").await?)
}

async fn endpoint(both: &Both) -> Result<String> {
    id(&both.only("vpc-endpoint").await?)
}

/// A rule that lets the machine network in, as a parameter.
fn rule<'a>(group: &'a str, port: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("GroupId", group),
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", port),
        ("IpPermissions.1.ToPort", port),
        ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/16"),
    ]
}

async fn zone(both: &Both) -> Result<Value> {
    let found = both.env.oracle().resources_of("hostedzone").await?;
    found.into_iter().next().context("no zone")
}

/// Changes the records of the cluster's zone behind everybody's back.
async fn change_records(both: &Both, change: impl FnOnce(&mut Vec<Value>)) -> Result<()> {
    let mut zone = zone(both).await?;
    change(zone["records"].as_array_mut().context("no records")?);
    let arn = zone["id"].as_str().context("no ARN")?.to_owned();
    both.env.oracle().drift_put(&arn, &zone).await
}

/// Fails if a worker reaches the control plane by its first name.
async fn ensure_broken(both: &Both) -> Result<()> {
    let (vpc, name) = (both.cluster.vpc(), both.cluster.host_names().swap_remove(0));
    let found = both.env.oracle().reachable(&vpc, &name).await?;
    ensure!(!found.ok, "the drift did no harm");
    Ok(())
}

/// Waits until the only resource of a kind is another one than before.
async fn is_replaced(both: &Both, kind: &str, before: &str) -> Result<()> {
    eventually(&format!("another {kind}"), SOON, || async {
        let now = id(&both.only(kind).await?)?;
        ensure!(now != before, "{now} is still there");
        Ok(())
    })
    .await
}

#[test]
fn record_changed_by_hand_leads_to_the_endpoint_again() {
    situation(async |both| {
        let api = format!("api.{}.", both.cluster.zone_name());
        change_records(both, |records| {
            for record in records.iter_mut().filter(|record| record["name"] == *api) {
                record["values"] = json!(["vpce-0123.vpce-svc-0123.us-east-1.vpce.amazonaws.com."]);
            }
        })
        .await?;
        ensure_broken(both).await?;
        both.cluster.becomes_reachable(&both.env, SOON).await
    });
}

#[test]
fn record_deleted_by_hand_is_there_again() {
    situation(async |both| {
        let api = format!("api.{}.", both.cluster.zone_name());
        change_records(both, |records| records.retain(|record| record["name"] != *api)).await?;
        ensure_broken(both).await?;
        both.cluster.becomes_reachable(&both.env, SOON).await
    });
}

#[test]
fn endpoint_deleted_by_hand_is_replaced() {
    situation(async |both| {
        let before = endpoint(both).await?;
        let person = both.env.caller(GUEST_ADMINISTRATOR)?;
        let parameters = [("VpcEndpointId.1", before.as_str())];
        person.ec2("DeleteVpcEndpoints", &parameters).await?.ok()?;
        ensure_broken(both).await?;
        is_replaced(both, "vpc-endpoint", &before).await
    });
}

#[test]
fn rule_revoked_by_hand_is_there_again() {
    situation(async |both| {
        let group = security_group(both).await?;
        let person = both.env.caller(GUEST_ADMINISTRATOR)?;
        let parameters = rule(&group, "443");
        person.ec2("RevokeSecurityGroupIngress", &parameters).await?.ok()?;
        ensure_broken(both).await?;
        both.cluster.becomes_reachable(&both.env, SOON).await
    });
}

#[test]
fn principal_removed_by_hand_may_connect_again() {
    situation(async |both| {
        let service = id(&both.only("vpc-endpoint-service").await?)?;
        let role = format!("arn:aws:iam::{GUEST}:role/control-plane-operator");
        let parameters = [("ServiceId", service.as_str()), ("RemoveAllowedPrincipals.1", &role)];
        let person = both.env.caller(ADMINISTRATOR)?;
        let action = "ModifyVpcEndpointServicePermissions";
        person.ec2(action, &parameters).await?.ok()?;
        eventually("the role may connect", SOON, || async {
            let found = both.only("vpc-endpoint-service").await?;
            let principals = found["principals"].to_string();
            ensure!(principals.contains(&role), "{principals}");
            Ok(())
        })
        .await
    });
}

#[test]
fn endpoint_service_deleted_by_hand_is_replaced() {
    situation(async |both| {
        let (service, endpoint) = (both.only("vpc-endpoint-service").await?, endpoint(both).await?);
        let arn = service["id"].as_str().context("no ARN")?;
        both.env.oracle().drift_delete(arn).await?;
        ensure_broken(both).await?;
        is_replaced(both, "vpc-endpoint-service", &id(&service)?).await?;
        is_replaced(both, "vpc-endpoint", &endpoint).await?;
        let found = both.becomes_available().await?;
        let now = id(&both.only("vpc-endpoint-service").await?)?;
        let shown = &found.data["status"]["endpointServiceName"];
        ensure!(
            *shown == format!("com.amazonaws.vpce.{REGION}.{now}"),
            "{shown}, not {now}"
        );
        Ok(())
    });
}
