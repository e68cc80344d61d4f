//! AWS throttles one account while a process serves clusters in two.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{AwsCall, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE, VPC_OWNER, share_vpcs, shipped_policy};
use e2e::hosted_cluster::{NAMESPACE, conditions};
use e2e::{eventually, scenario};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::SOON;
use crate::many::{BASE, Many, add_identities, cluster, entry, environment_with};

/// The shortest time between two calls that draw on what AWS has refused.
const HOLD: SignedDuration = SignedDuration::from_secs(30);

/// The entry of a cluster in a shared VPC.
fn shared_entry(cluster: &AwsHostedCluster) -> Value {
    json!({"namespace": NAMESPACE, "names": [cluster.name()], "aws": {
        "roleARN": SHARED_ENDPOINTS_ROLE, "recordsRoleARN": SHARED_RECORDS_ROLE,
        "vpcIDs": [cluster.vpc()], "hostedZoneIDs": [cluster.zone()]}})
}

/// Adds the account that shares VPCs, whose roles trust the process.
fn share_with_process(seed: &mut Value) -> Result<()> {
    share_vpcs(seed)?;
    let accounts = seed["accounts"].as_array_mut().context("no accounts")?;
    let owner = accounts.iter_mut().find(|account| account["id"] == VPC_OWNER);
    let roles = owner.context("no owner")?["roles"].as_array_mut().context("no roles")?;
    for role in roles {
        role["trusted"] = json!([BASE.arn()]);
    }
    Ok(())
}

/// The sessions of the roles of the account that shares VPCs have the name of this one.
fn principals(other: &str) -> Result<[String; 2]> {
    let session = other.rsplit('/').next().context("no session")?;
    Ok([SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE].map(|role| {
        let name = role.rsplit('/').next().unwrap_or(role);
        format!("arn:aws:sts::{VPC_OWNER}:assumed-role/{name}/{session}")
    }))
}

/// Fault rules that throttle these sessions.
fn throttling([endpoints, records]: &[String; 2]) -> Value {
    let rule = |principal: &str, status: u16, code: &str| {
        let matching = json!({"principal": principal, "times": 1_000_000});
        json!({"match": matching, "do": {"status": status, "code": code}})
    };
    json!([
        rule(endpoints, 503, "RequestLimitExceeded"),
        rule(records, 400, "Throttling")
    ])
}

/// When AWS has refused calls of the account that shares VPCs, by what they draw on.
fn refusals(journal: &[AwsCall]) -> BTreeMap<&str, Vec<Timestamp>> {
    let mut refusals: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    let owner = format!("arn:aws:sts::{VPC_OWNER}:");
    let calls = journal.iter().filter(|call| call.principal.starts_with(&owner));
    for call in calls.filter(|call| call.status != 200) {
        // All of Route 53 is one bucket.
        let bucket = if call.path.starts_with("/route53/") {
            "/route53"
        } else {
            &call.path
        };
        refusals.entry(bucket).or_default().push(call.time);
    }
    refusals
}

/// Waits until AWS has refused an action twice, and fails if that was too early.
async fn is_asked_again_late(many: &Many) -> Result<()> {
    let journal = eventually("an action is refused twice", SOON, async || {
        let journal = many.env.oracle().journal(0).await?;
        let refusals = refusals(&journal);
        ensure!(refusals.values().any(|times| times.len() > 1), "{refusals:?}");
        Ok(journal)
    })
    .await?;
    for (bucket, times) in refusals(&journal) {
        let is_early = |pair: &[Timestamp]| pair[1].duration_since(pair[0]) < HOLD;
        ensure!(!times.windows(2).any(is_early), "{bucket}: {times:?}");
    }
    Ok(())
}

#[test]
fn throttled_account_holds_up_no_cluster_of_another() {
    scenario(async {
        let (first, next) = (cluster("first"), cluster("next"));
        let shared = AwsHostedCluster::new("shared").with_shared_vpc();
        let entries = [entry(&first), entry(&next), shared_entry(&shared)];
        let policy = shipped_policy("cpo")?;
        let mut is_shared = Ok(());
        let env = environment_with(&entries, |seed| {
            add_identities(seed, &["first", "next"], &policy);
            is_shared = share_with_process(seed);
        });
        let many = Many::in_env(env.await?).await?;
        is_shared?;
        first.create_objects(&many.env).await?;
        many.becomes_available(&first).await?;

        let calls = many.calls_as(&first).await?;
        let session = &calls.first().context("no call")?.principal;
        many.env.oracle().faults(&throttling(&principals(session)?)).await?;
        shared.create_objects(&many.env).await?;
        let kind = "AWSEndpointAvailable";
        eventually("the shared one is throttled", SOON, async || {
            let found = shared.get_custom_resource(&many.env.client()?).await?;
            let all = conditions(&found.context("no custom resource")?);
            let is_throttled =
                |message: &str| message.contains("RequestLimitExceeded") || message.contains("Throttling");
            let mut of_kind = all.iter().filter(|one| one.kind == kind && one.status == "False");
            ensure!(of_kind.any(|one| is_throttled(&one.message)), "{all:?}");
            Ok(())
        })
        .await?;
        next.create_objects(&many.env).await?;
        many.becomes_available(&next).await?;
        is_asked_again_late(&many).await?;

        many.env.oracle().faults(&json!([])).await?;
        shared.becomes_available(&many.env, SOON * 3).await?;
        many.ensure_base_only_assumes().await?;
        many.stop().await
    });
}
