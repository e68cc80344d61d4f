//! Changes of a cluster that is up are acted on as they come: nothing else makes the roles reconcile within the hour.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::NAMESPACE;
use e2e::hyperlink::Role;
use e2e::shared_env::run;
use e2e::{AwsEnv, eventually, scenario};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::SOON;
use crate::both::Both;

/// Simulated seconds after which AWS's request budgets suffice for one more test.
const REFILL: f64 = 60.0;
const ADDITIONAL: &str = "arn:aws:iam::111122223333:root";

/// Runs one test on a cluster that is up; one after the other, as they all change the same cluster.
fn situation(test: impl AsyncFnOnce(&Both) -> Result<()>) {
    static BOTH: OnceCell<Mutex<Both>> = OnceCell::const_new();
    run(async {
        let both = BOTH.get_or_try_init(up).await?.lock().await;
        both.env.oracle().advance(REFILL).await?;
        both.becomes_available().await?;
        test(&both).await?;
        both.ensure_no_denied_call().await
    });
}

async fn up() -> Result<Mutex<Both>> {
    let cluster = AwsHostedCluster::new("changed");
    let [first, ..] = cluster.subnets();
    let cluster = cluster.with_node_pools(&[&first]);
    let mut both = Both::in_env(AwsEnv::local(Preset::Fast).await?, cluster, "1h").await?;
    both.start_role(Role::Ho).await?;
    both.start_role(Role::Cpo).await?;
    both.cluster.create_objects(&both.env).await?;
    both.becomes_available().await?;
    Ok(Mutex::new(both))
}

/// Waits until the only resource of a kind fits.
async fn becomes(both: &Both, kind: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Result<()> {
    eventually(&format!("{kind} has {what}"), SOON, || async {
        let found = both.only(kind).await?;
        ensure!(fits(&found), "{found}");
        Ok(())
    })
    .await
}

#[test]
fn tag_that_is_asked_for_later_is_on_everything() {
    situation(async |both| {
        let tags = json!([{"key": "team", "value": "changed"}, {"key": "stage", "value": "test"}]);
        both.patch_control_plane(&json!({"resourceTags": tags})).await?;
        for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
            becomes(both, kind, "the tag", |found| found["tags"]["stage"] == "test").await?;
        }
        Ok(())
    });
}

/// HyperShift's definition lets nobody change the networks once they are set.
#[test]
fn machine_network_that_is_named_later_is_let_in() {
    scenario(async {
        let mut both = Both::without_roles("networked", "1h").await?;
        let none = json!({"spec": {"networking": {"machineNetwork": null}}});
        both.cluster = both.cluster.clone().with_control_plane(none);
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        let well = ("True", "AWSSuccess");
        let kind = "AWSEndpointAvailable";
        both.cluster.has_condition(&both.env, kind, well, SOON).await?;
        let networks = json!([{"cidr": "10.0.0.0/16"}]);
        let patch = json!({"networking": {"machineNetwork": networks}});
        both.patch_control_plane_spec(&patch).await?;
        both.cluster.becomes_reachable(&both.env, SOON).await?;
        both.stop().await
    });
}

#[test]
fn api_server_with_a_load_balancer_of_its_own_has_no_record() {
    situation(async |both| {
        let api = format!("api.{}.", both.cluster.zone_name());
        let has_record = async || {
            let zones = both.env.oracle().resources_of("hostedzone").await?;
            let records = zones.first().context("no zone")?["records"].clone();
            anyhow::Ok(
                records
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|record| record["name"] == *api),
            )
        };
        ensure!(has_record().await?, "no record of before");
        let services = both.control_plane().await?.data["spec"]["services"].clone();
        let mut changed = services.clone();
        changed[0]["servicePublishingStrategy"] = json!({"type": "LoadBalancer"});
        both.patch_control_plane_spec(&json!({"services": changed})).await?;
        eventually("the record is gone", SOON, || async {
            ensure!(!has_record().await?, "{api} is there");
            Ok(())
        })
        .await?;
        both.patch_control_plane_spec(&json!({"services": services})).await?;
        eventually("the record is there again", SOON, || async {
            ensure!(has_record().await?, "{api} is not there");
            Ok(())
        })
        .await
    });
}

#[test]
fn vpc_that_is_another_accounts_later_is_reported() {
    situation(async |both| {
        let role = |name: &str| format!("arn:aws:iam::777788889999:role/{name}");
        let roles = json!({"controlPlaneARN": role("endpoint"), "ingressARN": role("records")});
        let shared = json!({"rolesRef": roles, "localZoneID": both.cluster.zone()});
        both.patch_control_plane(&json!({"sharedVPC": shared})).await?;
        let moved = ("False", "ConfigurationChanged");
        let kind = "AWSEndpointAvailable";
        both.cluster.has_condition(&both.env, kind, moved, SOON).await?;
        both.patch_control_plane(&json!({"sharedVPC": null})).await?;
        let well = ("True", "AWSSuccess");
        both.cluster.has_condition(&both.env, kind, well, SOON).await.map(drop)
    });
}

#[test]
fn principal_that_is_allowed_later_may_connect() {
    situation(async |both| {
        let principals = json!({"additionalAllowedPrincipals": [ADDITIONAL]});
        both.patch_hosted_cluster(&principals).await?;
        let is_allowed = |found: &Value| found["principals"].to_string().contains(ADDITIONAL);
        becomes(both, "vpc-endpoint-service", "the principal", is_allowed).await
    });
}

/// Waits until the endpoint is, or is no longer, in a subnet.
async fn is_in(both: &Both, subnet: &str, expected: bool) -> Result<()> {
    let what = format!("{} {subnet}", if expected { "the subnet" } else { "no subnet" });
    let fits = |found: &Value| found["subnets"].to_string().contains(subnet) == expected;
    becomes(both, "vpc-endpoint", &what, fits).await
}

#[test]
fn workers_that_come_and_go_are_followed() {
    situation(async |both| {
        let [first, second, _] = both.cluster.subnets();
        let pools = [first.as_str(), second.as_str()];
        let more = both.cluster.clone().with_node_pools(&pools);
        more.create_node_pools(&both.env).await?;
        is_in(both, &second, true).await?;
        let api = both.cluster.api(&both.env.client()?, "NodePool", NAMESPACE);
        let pool = format!("{}-2", both.cluster.name());
        let moved = json!({"spec": {"platform": {"aws": {"subnet": {"id": first}}}}});
        api.patch(&pool, &PatchParams::default(), &Patch::Merge(moved)).await?;
        is_in(both, &second, false).await?;
        let back = json!({"spec": {"platform": {"aws": {"subnet": {"id": second}}}}});
        api.patch(&pool, &PatchParams::default(), &Patch::Merge(back)).await?;
        is_in(both, &second, true).await?;
        api.delete(&pool, &DeleteParams::default()).await?;
        is_in(both, &second, false).await
    });
}

#[test]
fn karpenters_list_is_followed_when_it_comes_and_ends() {
    situation(async |both| {
        let [_, second, _] = both.cluster.subnets();
        let api: Api<ConfigMap> = Api::namespaced(both.env.client()?, &both.cluster.control_plane_namespace());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "karpenter-subnets", "labels": {"hypershift.openshift.io/managed-by": "karpenter"}},
            "data": {"subnetIDs": json!([second]).to_string()}});
        let params = PatchParams::apply("karpenter").force();
        api.patch("karpenter-subnets", &params, &Patch::Apply(map)).await?;
        is_in(both, &second, true).await?;
        api.delete("karpenter-subnets", &DeleteParams::default()).await?;
        is_in(both, &second, false).await
    });
}
