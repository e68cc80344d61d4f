//! Lives of clusters of other shapes: with a load balancer for the API server, in a shared VPC, with Karpenter's nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::{AwsHostedCluster, KUBE_API_SERVER};
use e2e::aws_sim::{AwsCall, CPO_ROLE, HO, HO_ROLE, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE, VPC_OWNER, share_vpcs};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::ROUTER;
use e2e::hyperlink::Role;
use e2e::{AwsEnv, eventually, scenario};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::SOON;
use crate::both::{Both, is_of};

/// The action that gives a session for a token.
const ISSUING: &str = "AssumeRoleWithWebIdentity";
/// A session that is younger is kept when AWS refuses it.
const OLD_ENOUGH: SignedDuration = SignedDuration::from_secs(11);
/// A call that AWS denies is made again a minute later.
const LONG: Duration = Duration::from_secs(180);
/// How long the deletion of an endpoint is not answered.
const HELD_MS: u64 = 5_000;

/// A cluster that is up, with both roles.
async fn up(cluster: AwsHostedCluster) -> Result<Both> {
    up_in(AwsEnv::local(Preset::Fast).await?, cluster).await
}

async fn up_in(env: AwsEnv, cluster: AwsHostedCluster) -> Result<Both> {
    let mut both = Both::in_env(env, cluster, "3s").await?;
    both.start_role(Role::Ho).await?;
    both.start_role(Role::Cpo).await?;
    both.cluster.create_objects(&both.env).await?;
    both.becomes_available().await?;
    Ok(both)
}

/// The guest's API server is gone before its path, so nobody mints tokens any more, and AWS refuses the session once by
/// mistake; then HyperShift takes the finalizer.
#[rstest]
#[case::finalizer_stays("tokenless", false, "^/ec2/")]
#[case::finalizer_is_taken("stripped", true, "^/ec2/")]
#[case::finalizer_is_taken_meanwhile("stripped-late", true, "^/ec2/Delete")]
fn path_is_deleted_by_the_session_that_is_left(#[case] name: &str, #[case] is_stripped: bool, #[case] refused: &str) {
    scenario(async {
        let both = up(AwsHostedCluster::new(name)).await?;
        both.session_can_be_refused().await?;
        both.env.remove_cpo_token()?;
        let since = both.env.oracle().last_call().await?;
        let principal = both.principal_of_cpo().await?;
        let refused = json!({"match": {"path": refused, "principal": principal},
            "do": {"status": 400, "code": "RequestExpired"}});
        let held = json!({"match": {"path": "/DeleteVpcEndpoints$"}, "do": {"delay_ms": HELD_MS}});
        both.env.oracle().faults(&json!([refused, held])).await?;
        let (client, cluster) = (both.env.client()?, both.cluster.clone());
        let stripped = async {
            if is_stripped {
                ensure!(cluster.strip_cpo_finalizer(&client, SOON).await?, "the role was sooner");
            }
            Ok(())
        };
        tokio::try_join!(cluster.delete(&both.env, LONG), stripped)?;
        both.nothing_is_left().await?;
        both.ensure_session_of_before(since).await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

impl Both {
    /// The name that AWS has for the session of the guest's side.
    async fn principal_of_cpo(&self) -> Result<String> {
        let calls = self.calls(0).await?;
        let mut own = calls.into_iter().filter(|call| is_of(Role::Cpo, call));
        own.next().map(|call| call.principal).context("no call of cpo")
    }

    /// Waits until a session is so old that the guest's side asks for another one when AWS refuses it.
    async fn session_can_be_refused(&self) -> Result<()> {
        eventually("the session is old enough", SOON, async || {
            let journal = self.env.oracle().journal(0).await?;
            let issued = journal.iter().rfind(|call| call.action() == ISSUING);
            let issued = issued.context("no session")?.time;
            let last = journal.last().context("no call")?.time;
            ensure!(last.duration_since(issued) > OLD_ENOUGH, "{issued} to {last}");
            Ok(())
        })
        .await
    }

    /// Fails unless AWS has refused the session since, and it was used all the same, as no other one could be had.
    async fn ensure_session_of_before(&self, since: u64) -> Result<()> {
        let journal = self.env.oracle().journal(since).await?;
        let refused = journal
            .iter()
            .find(|call| call.code.as_deref() == Some("RequestExpired"));
        let refused = refused.context("no session was refused")?;
        let is_use =
            |call: &&AwsCall| call.seq > refused.seq && call.principal == refused.principal && call.status == 200;
        let used: Vec<_> = journal.iter().filter(is_use).map(AwsCall::action).collect();
        for action in ["DeleteVpcEndpoints", "DeleteSecurityGroup"] {
            ensure!(used.contains(&action), "{action} is not among {used:?}");
        }
        let issued = journal
            .iter()
            .find(|call| call.action() == ISSUING && call.status == 200);
        ensure!(issued.is_none(), "{issued:?}");
        Ok(())
    }
}

/// Deletes the cluster, which has to leave nothing.
async fn ends(both: Both) -> Result<()> {
    both.cluster.delete(&both.env, SOON).await?;
    both.nothing_is_left().await?;
    both.ensure_no_denied_call().await?;
    both.stop().await
}

/// Names of security groups, names of their endpoints' custom resources, and names of records, all in order.
async fn names(both: &Both) -> Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let oracle = both.env.oracle();
    let all = |found: Vec<Value>, pointer: &str| {
        let mut all: Vec<_> = found
            .iter()
            .filter_map(|one| one.pointer(pointer)?.as_str().map(str::to_owned))
            .collect();
        all.sort_unstable();
        all
    };
    let groups = all(oracle.resources_of("security-group").await?, "/name");
    let endpoints = all(oracle.resources_of("vpc-endpoint").await?, "/tags/AWSEndpointService");
    let zone = oracle
        .resources_of("hostedzone")
        .await?
        .into_iter()
        .next()
        .context("no zone")?;
    let mut records = zone["records"].as_array().cloned().unwrap_or_default();
    records.retain(|record| record["type"] == "CNAME");
    Ok((groups, endpoints, all(records, "/name")))
}

/// The names that the status of a custom resource has.
async fn dns_names(both: &Both, name: &str) -> Result<Value> {
    let api = both.cluster.custom_resources(&both.env.client()?);
    Ok(api.get(name).await?.data["status"]["dnsNames"].take())
}

/// Fails unless there are a group and an endpoint for each Service, and these records.
async fn ensure_names(both: &Both, records: &[&str]) -> Result<()> {
    let (groups, endpoints, found) = names(both).await?;
    let mut services = both.cluster.services().to_vec();
    services.sort_unstable();
    let infra_id = both.cluster.infra_id();
    let expected = services.iter().map(|name| format!("{infra_id}-vpce-{name}"));
    let (vpc, default) = (both.cluster.vpc(), "default".to_owned());
    let groups: Vec<_> = groups.into_iter().filter(|name| *name != default).collect();
    ensure!(groups.iter().cloned().eq(expected), "{groups:?} in {vpc}");
    ensure!(endpoints == services, "{endpoints:?}");
    let zone = both.cluster.zone_name();
    let expected: Vec<_> = records.iter().map(|label| format!("{label}.{zone}.")).collect();
    ensure!(found == expected, "{found:?}");
    Ok(())
}

#[test]
fn api_server_with_a_load_balancer_of_its_own_has_a_path() {
    scenario(async {
        let both = up(AwsHostedCluster::new("two").with_own_api_server()).await?;
        ensure_names(&both, &["*.apps", "api"]).await?;
        let zone = both.cluster.zone_name();
        ensure!(dns_names(&both, KUBE_API_SERVER).await? == json!([format!("api.{zone}")]));
        ensure!(dns_names(&both, ROUTER).await? == json!([format!("*.apps.{zone}")]));
        ends(both).await
    });
}

#[test]
fn service_beside_a_routed_api_server_gets_no_name() {
    scenario(async {
        let both = up(AwsHostedCluster::new("stale").with_stale_api_server()).await?;
        ensure_names(&both, &["*.apps", "api"]).await?;
        let (zone, own) = (both.cluster.zone_name(), dns_names(&both, KUBE_API_SERVER).await?);
        ensure!(own.as_array().is_none_or(Vec::is_empty), "{own}");
        let names = json!([format!("*.apps.{zone}"), format!("api.{zone}")]);
        ensure!(dns_names(&both, ROUTER).await? == names);
        ends(both).await
    });
}

#[test]
fn api_server_without_a_router_has_a_path() {
    scenario(async {
        let cluster = AwsHostedCluster::new("alone").with_own_api_server().without_router();
        let both = up(cluster).await?;
        ensure_names(&both, &["api"]).await?;
        ends(both).await
    });
}

#[test]
fn cluster_in_a_shared_vpc_lives_by_the_owners_roles() {
    scenario(async {
        let mut shared = Ok(());
        let env = AwsEnv::local_with(Preset::Fast, |seed| shared = share_vpcs(seed)).await?;
        shared?;
        let both = up_in(env, AwsHostedCluster::new("shared").with_shared_vpc()).await?;
        for kind in ["vpc-endpoint", "security-group"] {
            let made = both.only(kind).await?;
            let id = made["id"].as_str().context("no id")?;
            ensure!(id.contains(&format!(":{VPC_OWNER}:")), "{id}");
        }
        let service = both.only("vpc-endpoint-service").await?;
        let principals = service["principals"].as_array().context("no principals")?;
        let principals: BTreeSet<_> = principals.iter().filter_map(|one| one["arn"].as_str()).collect();
        let role = CPO_ROLE.replace("/hosted/", "/");
        ensure!(
            principals == BTreeSet::from([role.as_str(), SHARED_ENDPOINTS_ROLE]),
            "{principals:?}"
        );
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        ensure_roles(&both).await?;
        both.stop().await
    });
}

/// The machine's role may assume the role and nothing else; only the role itself calls EC2.
#[test]
fn management_side_lives_by_the_role_of_its_machine() {
    scenario(async {
        let mut both = Both::without_roles("machine", "3s").await?;
        both.ho_credentials = Some(both.env.credentials().ho_machine.clone());
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        let (mut of_machine, mut services) = (BTreeSet::new(), BTreeSet::new());
        for call in both.env.oracle().journal(0).await? {
            ensure!(call.principal != HO.arn(), "{call:?}");
            if call.principal.contains(":assumed-role/worker/") {
                of_machine.insert(call.action().to_owned());
            } else if call.is_of(&HO, HO_ROLE) {
                services.insert(call.path.split('/').nth(1).unwrap_or_default().to_owned());
            }
        }
        ensure!(
            of_machine == BTreeSet::from(["AssumeRole".to_owned()]),
            "{of_machine:?}"
        );
        ensure!(services.contains("ec2"), "{services:?}");
        ends(both).await
    });
}

/// Fails unless each role was used for its service alone, and the own one for sessions alone; or if a call was denied.
async fn ensure_roles(both: &Both) -> Result<()> {
    let mut used: BTreeSet<(&str, String)> = BTreeSet::new();
    let journal = both.env.oracle().journal(0).await?;
    for call in &journal {
        ensure!(!call.is_denied(), "{call:?}");
        let service = call.path.split('/').nth(1).unwrap_or_default().to_owned();
        for arn in [CPO_ROLE, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE] {
            let name = arn.rsplit('/').next().unwrap_or(arn);
            if call.principal.contains(&format!(":assumed-role/{name}/")) {
                used.insert((arn, service.clone()));
            }
        }
    }
    let expected = [
        (CPO_ROLE, "sts"),
        (SHARED_ENDPOINTS_ROLE, "ec2"),
        (SHARED_RECORDS_ROLE, "route53"),
    ];
    let expected = expected.map(|(arn, service)| (arn, service.to_owned()));
    ensure!(used == BTreeSet::from(expected), "{used:?}");
    Ok(())
}

#[test]
fn endpoint_is_in_karpenters_subnets_too() {
    scenario(async {
        let cluster = AwsHostedCluster::new("karpenter");
        let [first, second, _] = cluster.subnets();
        let both = up(cluster.with_node_pools(&[&first])).await?;
        is_in(&both, &[&first]).await?;
        let api = Api::namespaced(both.env.client()?, &both.cluster.control_plane_namespace());
        list_subnets(&api, &json!([second]).to_string()).await?;
        is_in(&both, &[&first, &second]).await?;

        let since = both.env.oracle().last_call().await?;
        list_subnets(&api, "no list").await?;
        has_event(&both, "no JSON list").await?;
        let writes = both.writes(since).await?;
        ensure!(writes.is_empty(), "{writes:?}");
        is_in(&both, &[&first, &second]).await?;

        api.delete("karpenter-subnets", &DeleteParams::default()).await?;
        is_in(&both, &[&first]).await?;
        ends(both).await
    });
}

/// Has Karpenter's operator write this into its ConfigMap.
async fn list_subnets(api: &Api<ConfigMap>, list: &str) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "karpenter-subnets", "labels": {"hypershift.openshift.io/managed-by": "karpenter"}},
        "data": {"subnetIDs": list}});
    let params = PatchParams::apply("karpenter").force();
    api.patch("karpenter-subnets", &params, &Patch::Apply(map)).await?;
    Ok(())
}

/// Waits until an Event about the custom resource has this text.
async fn has_event(both: &Both, text: &str) -> Result<()> {
    let api: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(both.env.client()?, &both.cluster.control_plane_namespace());
    eventually(&format!("an Event says {text}"), SOON, async || {
        let notes: Vec<_> = api
            .list(&Default::default())
            .await?
            .into_iter()
            .filter_map(|event| event.note)
            .collect();
        ensure!(notes.iter().any(|note| note.contains(text)), "{notes:?}");
        Ok(())
    })
    .await
}

/// Waits until the custom resource names these subnets, and the endpoint is in them.
async fn is_in(both: &Both, subnets: &[&str]) -> Result<()> {
    let mut subnets = subnets.to_vec();
    subnets.sort_unstable();
    eventually(&format!("the endpoint is in {subnets:?}"), SOON, async || {
        let found = both
            .cluster
            .get_custom_resource(&both.env.client()?)
            .await?
            .context("none")?;
        ensure!(
            found.data["spec"]["subnetIDs"] == json!(subnets),
            "{}: {}",
            found.name_any(),
            found.data["spec"]
        );
        let endpoint = both.only("vpc-endpoint").await?;
        ensure!(endpoint["subnets"] == json!(subnets), "{endpoint}");
        Ok(())
    })
    .await?;
    both.becomes_available().await.map(drop)
}
