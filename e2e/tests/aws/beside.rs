//! One side is Hyperlink's, the other HyperShift's, for a whole life; then the way from HyperShift's to Hyperlink's,
//! and back.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{AwsCall, share_vpcs};
use e2e::azure_sim::Preset;
use e2e::bench::audit::Audit;
use e2e::go_controllers::GoOperator;
use e2e::hyperlink::Role;
use e2e::{AwsEnv, eventually, scenario};
use hyperlink::api::markers::CPO_INTENT;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::json;

use crate::SOON;
use crate::both::{Both, is_of, is_of_theirs};

/// The intervals of HyperShift's controllers are this many times shorter: five minutes are six seconds.
const SPEED: u32 = 50;
/// AWS's request budgets: so many calls at once, and per second. They grow as the intervals shrink.
const BUDGETS: [(&str, u32, u32); 2] = [("route53", 5, 5), ("ec2_write", 50, 5)];
/// How many calls a side makes while it is watched at rest.
const CALLS: usize = 4;
/// Simulated seconds after which AWS's request budgets suffice for the next part of a life.
const REFILL: f64 = 60.0;

/// An environment with the network of this cluster's guest. What was created shows at once by its id, and later by its
/// tags: HyperShift's guest side makes a second endpoint if its write of the first one's id is refused meanwhile.
async fn environment(cluster: AwsHostedCluster) -> Result<Both> {
    let mut shared = Ok(());
    let env = AwsEnv::local_with(Preset::Fast, |seed| {
        if cluster.is_in_shared_vpc() {
            shared = share_vpcs(seed);
        }
        for (budget, at_once, per_second) in BUDGETS {
            seed["throttle"][budget] = json!({"bucket": at_once * SPEED, "per_s": per_second * SPEED});
        }
        seed["switches"] = json!({"describe_lag_s": 0.0});
    });
    let env = env.await?;
    shared?;
    Both::in_env(env, cluster, "3s").await
}

/// HyperShift's controller of a role.
async fn theirs(both: &Both, role: Role) -> Result<GoOperator> {
    match role {
        Role::Ho => GoOperator::ho_on_aws(&both.env, &both.cluster, SPEED),
        Role::Cpo => GoOperator::cpo_on_aws(&both.env, &both.cluster, SPEED).await,
    }
}

/// Waits until both sides have called AWS often while nobody wrote a custom resource, and Hyperlink nothing at all.
pub(crate) async fn is_at_rest(both: &Both, own: &[Role], theirs: &[Role]) -> Result<()> {
    eventually("nobody writes any more", SOON, async || {
        let (since, before) = (both.env.oracle().last_call().await?, both.versions().await?);
        let audit = Audit::begin(both.env.control_plane().audit_log())?;
        eventually("each side has called often", SOON, async || {
            let calls = both.env.oracle().journal(since).await?;
            let enough = |is: fn(Role, &AwsCall) -> bool, role: Role| {
                calls.iter().filter(|call| is(role, call)).count() >= CALLS
            };
            ensure!(own.iter().all(|role| enough(is_of, *role)), "ours have not: {calls:?}");
            ensure!(
                theirs.iter().all(|role| enough(is_of_theirs, *role)),
                "theirs have not: {calls:?}"
            );
            Ok(())
        })
        .await?;
        let (in_aws, in_kubernetes) = (both.writes(since).await?, audit.writes()?);
        ensure!(
            in_aws.is_empty() && in_kubernetes.is_empty(),
            "{in_aws:?}, {in_kubernetes:?}"
        );
        ensure!(both.versions().await? == before, "a custom resource was written");
        Ok(())
    })
    .await
}

/// Deletes each endpoint service by hand: that side makes another one, and the other side follows.
async fn heals(both: &Both) -> Result<()> {
    let before = both.service_names().await?;
    for service in both.env.oracle().resources_of("vpc-endpoint-service").await? {
        let arn = service["id"].as_str().context("no ARN")?;
        both.env.oracle().drift_delete(arn).await?;
    }
    eventually("each service is another one", SOON, async || {
        let now = both.service_names().await?;
        ensure!(now.len() == before.len(), "{now:?}");
        ensure!(!now.iter().any(|name| before.contains(name)), "{now:?}, as before");
        Ok(())
    })
    .await?;
    both.becomes_available().await.map(drop)
}

impl Both {
    /// The names of the endpoint services that the custom resources report.
    async fn service_names(&self) -> Result<Vec<String>> {
        let api = self.cluster.custom_resources(&self.env.client()?);
        let found = api.list(&Default::default()).await?;
        let names = found
            .iter()
            .filter_map(|one| one.data["status"]["endpointServiceName"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Stops a role, which gives its lease back.
    async fn stop_role(&mut self, role: Role) -> Result<()> {
        self.process(role).take().context("no process")?.stop().await
    }

    /// Removes what the guest's side has recorded, as an operator does who gives it back.
    async fn remove_cpo_intent(&self) -> Result<()> {
        let api = self.cluster.custom_resources(&self.env.client()?);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {CPO_INTENT: null}}}));
        for name in self.cluster.services() {
            let before = api.get(name).await?;
            ensure!(before.annotations().contains_key(CPO_INTENT), "{before:?}");
            api.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Makes more requests to AWS possible.
    async fn refill(&self) -> Result<()> {
        self.env.oracle().advance(REFILL).await
    }
}

/// A life in which a role is own and the other one theirs.
async fn life(cluster: AwsHostedCluster, own: Role, other: Role) -> Result<()> {
    let mut both = environment(cluster).await?;
    both.cluster.create_objects(&both.env).await?;
    let go = theirs(&both, other).await?;
    both.start_role(own).await?;
    both.becomes_available().await?;
    both.refill().await?;
    is_at_rest(&both, &[own], &[other]).await?;
    heals(&both).await?;
    both.refill().await?;
    is_at_rest(&both, &[own], &[other]).await?;
    both.cluster.delete(&both.env, SOON).await?;
    both.nothing_is_left().await?;
    both.ensure_no_denied_call().await?;
    go.stop().await?;
    both.stop().await
}

#[test]
fn their_controllers_alone_write_records_for_ever() {
    scenario(async {
        let both = environment(AwsHostedCluster::new("theirs")).await?;
        both.cluster.create_objects(&both.env).await?;
        let (ho, cpo) = (theirs(&both, Role::Ho).await?, theirs(&both, Role::Cpo).await?);
        both.becomes_available().await?;
        eventually("they write for ever", SOON, async || {
            let calls = both.env.oracle().journal(0).await?;
            let upserts = calls
                .iter()
                .filter(|call| call.action() == "ChangeResourceRecordSets")
                .count();
            ensure!(upserts > 8, "{upserts} changes of records");
            Ok(())
        })
        .await?;
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

#[rstest]
#[case::one(AwsHostedCluster::new("our-cpo"))]
#[case::two(AwsHostedCluster::new("our-cpo-two").with_own_api_server())]
#[case::in_a_shared_vpc(AwsHostedCluster::new("our-cpo-shared").with_shared_vpc())]
fn their_management_side_with_our_guest_side(#[case] cluster: AwsHostedCluster) {
    scenario(life(cluster, Role::Cpo, Role::Ho));
}

#[rstest]
#[case::one(AwsHostedCluster::new("our-ho"))]
#[case::two(AwsHostedCluster::new("our-ho-two").with_own_api_server())]
#[case::in_a_shared_vpc(AwsHostedCluster::new("our-ho-shared").with_shared_vpc())]
fn our_management_side_with_their_guest_side(#[case] cluster: AwsHostedCluster) {
    scenario(life(cluster, Role::Ho, Role::Cpo));
}

/// A cluster that both of HyperShift's controllers serve, still running.
pub(crate) async fn served_by_theirs(cluster: AwsHostedCluster) -> Result<(Both, GoOperator, GoOperator)> {
    let both = environment(cluster).await?;
    both.cluster.create_objects(&both.env).await?;
    let (ho, cpo) = (theirs(&both, Role::Ho).await?, theirs(&both, Role::Cpo).await?);
    both.becomes_available().await?;
    both.refill().await?;
    Ok((both, ho, cpo))
}

#[test]
fn sides_are_taken_over_one_after_the_other_without_a_write() {
    scenario(async {
        let cluster = AwsHostedCluster::new("taken-two").with_own_api_server();
        let (mut both, go_ho, go_cpo) = served_by_theirs(cluster).await?;
        let (since, before) = (both.env.oracle().last_call().await?, both.service_names().await?);
        go_ho.stop().await?;
        both.start_role(Role::Ho).await?;
        is_at_rest(&both, &[Role::Ho], &[Role::Cpo]).await?;
        go_cpo.stop().await?;
        both.start_role(Role::Cpo).await?;
        is_at_rest(&both, &[Role::Ho, Role::Cpo], &[]).await?;
        let writes = both.writes(since).await?;
        ensure!(writes.is_empty(), "{writes:?}");
        ensure!(both.service_names().await? == before, "another service");
        both.becomes_available().await?;
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

#[test]
fn way_back_leaves_a_path_that_theirs_keep_and_delete() {
    scenario(async {
        let mut both = environment(AwsHostedCluster::new("back").with_own_api_server()).await?;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        both.refill().await?;
        let before = both.service_names().await?;
        for role in [Role::Ho, Role::Cpo] {
            both.stop_role(role).await?;
        }
        let (ho, cpo) = (theirs(&both, Role::Ho).await?, theirs(&both, Role::Cpo).await?);
        is_at_rest(&both, &[], &[Role::Ho, Role::Cpo]).await?;
        both.becomes_available().await?;
        ensure!(both.service_names().await? == before, "another service");
        heals(&both).await?;
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

/// As `docs/aws/install.md` has the way back, one side at a time.
#[rstest]
#[case::cluster_is_deleted("half-back", false)]
#[case::other_side_follows("whole-back", true)]
fn guest_side_is_given_back_first(#[case] name: &str, #[case] is_followed: bool) {
    scenario(async {
        let mut both = environment(AwsHostedCluster::new(name).with_own_api_server()).await?;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        both.refill().await?;
        let before = both.service_names().await?;
        both.stop_role(Role::Cpo).await?;
        both.remove_cpo_intent().await?;
        let cpo = theirs(&both, Role::Cpo).await?;
        is_at_rest(&both, &[Role::Ho], &[Role::Cpo]).await?;
        both.becomes_available().await?;
        let mut ho = None;
        if is_followed {
            both.stop_role(Role::Ho).await?;
            ho = Some(theirs(&both, Role::Ho).await?);
            is_at_rest(&both, &[], &[Role::Ho, Role::Cpo]).await?;
            both.becomes_available().await?;
        }
        ensure!(both.service_names().await? == before, "another service");
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.ensure_no_denied_call().await?;
        cpo.stop().await?;
        if let Some(ho) = ho {
            ho.stop().await?;
        }
        both.stop().await
    });
}
