//! A cluster's whole life, as the probes and metrics of its leaders report it, beside standbys that do nothing.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::{TestEnv, eventually, scenario};
use jiff::Timestamp;

use crate::candidate::{Candidate, Identity, LIFE, SOON};
use crate::evidence::{calls, kube_writes};
use crate::metrics::Metrics;

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
enum Is {
    Zero,
    One,
    Positive,
    Below(f64),
}

impl Is {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::Zero => value == 0.0,
            Self::One => value == 1.0,
            Self::Positive => value > 0.0,
            Self::Below(limit) => (0.0..limit).contains(&value),
        }
    }
}

use Is::{Below, One, Positive, Zero};

/// The metrics that both roles show once a cluster is there.
const BOTH: &[(&str, Is)] = &[
    ("hyperlink_build_info", One),
    ("process_start_time_seconds", Positive),
    ("process_resident_memory_bytes", Positive),
    ("hyperlink_token_age_seconds", Below(3_600.0)),
    ("hyperlink_token_expires_in_seconds", Positive),
    ("hyperlink_active_workers", Zero),
    ("hyperlink_workqueue_depth", Zero),
    ("hyperlink_arm_budget_remaining", Positive),
    ("hyperlink_arm_operations_in_flight", Zero),
    ("hyperlink_arm_operation_oldest_age_seconds", Zero),
    (
        "hyperlink_kube_writes_total{resource=azureprivatelinkservices,verb=patch}",
        Positive,
    ),
    (
        "hyperlink_kube_writes_total{resource=azureprivatelinkservices/status,verb=patch}",
        Positive,
    ),
    (
        "hyperlink_conditions{type=AzureInternalLoadBalancerAvailable,status=True}",
        One,
    ),
    ("hyperlink_conditions{type=AzurePLSCreated,status=True}", One),
    (
        "hyperlink_conditions{type=AzurePrivateEndpointAvailable,status=True}",
        One,
    ),
    ("hyperlink_conditions{type=AzurePrivateDNSAvailable,status=True}", One),
    (
        "hyperlink_conditions{type=AzurePrivateLinkServiceAvailable,status=True}",
        One,
    ),
    ("hyperlink_conditions{status=False}", Zero),
];

const HO: &[(&str, Is)] = &[
    ("hyperlink_leader{role=ho}", One),
    (
        "hyperlink_reconcile_total{controller=private_link_service,result=ready}",
        Positive,
    ),
    (
        "hyperlink_reconcile_total{controller=private_link_service,result=waiting}",
        Positive,
    ),
    (
        "hyperlink_reconcile_time_seconds_count{controller=private_link_service}",
        Positive,
    ),
    (
        "hyperlink_arm_calls_total{kind=subnet,verb=PUT,class=ok,status=201}",
        One,
    ),
    (
        "hyperlink_arm_calls_total{kind=private_link_service,verb=PUT,class=ok,status=201}",
        One,
    ),
    (
        "hyperlink_arm_calls_total{kind=private_link_service,verb=GET,class=gone,status=404}",
        Positive,
    ),
    (
        "hyperlink_arm_call_duration_seconds_count{kind=private_link_service,verb=PUT}",
        One,
    ),
];

const CPO: &[(&str, Is)] = &[
    ("hyperlink_leader{role=cpo}", One),
    ("hyperlink_reconcile_total{controller=observer,result=ready}", Positive),
    (
        "hyperlink_reconcile_total{controller=private_endpoint,result=ready}",
        Positive,
    ),
    ("hyperlink_reconcile_time_seconds_count{controller=observer}", Positive),
    (
        "hyperlink_reconcile_time_seconds_count{controller=private_endpoint}",
        Positive,
    ),
    (
        "hyperlink_arm_calls_total{kind=private_endpoint,verb=PUT,class=ok,status=201}",
        One,
    ),
    (
        "hyperlink_arm_calls_total{kind=record_set,verb=PUT,class=ok,status=201}",
        Positive,
    ),
    (
        "hyperlink_arm_call_duration_seconds_count{kind=private_endpoint,verb=PUT}",
        One,
    ),
    (
        "hyperlink_kube_writes_total{resource=azureprivatelinkservices,verb=create}",
        One,
    ),
    (
        "hyperlink_kube_writes_total{resource=hostedcontrolplanes,verb=patch}",
        Positive,
    ),
];

async fn shows(candidate: &Candidate, tables: &[&[(&str, Is)]]) -> Result<()> {
    eventually("all metrics are as they should be", SOON, async || {
        let metrics = Metrics::of(candidate).await?;
        let wrong: Vec<_> = tables
            .iter()
            .copied()
            .flatten()
            .map(|&(name, is)| (name, is, metrics.sum(name)))
            .filter(|(_, is, value)| !value.is_some_and(|value| is.is_met_by(value)))
            .collect();
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    })
    .await
}

/// Waits until an operation is under way and its age grows.
async fn operation_ages(candidate: &Candidate, kind: &str) -> Result<()> {
    let age = format!("hyperlink_arm_operation_oldest_age_seconds{{kind={kind}}}");
    let running = format!("hyperlink_arm_operations_in_flight{{kind={kind}}}");
    let first = eventually(&running, SOON, async || {
        let metrics = Metrics::of(candidate).await?;
        let (running, age) = (metrics.sum(&running), metrics.sum(&age));
        ensure!(running == Some(1.0), "{running:?} under way");
        age.filter(|&age| age > 0.0).context("no age")
    })
    .await?;
    let later = Metrics::of(candidate).await?.sum(&age).unwrap_or_default();
    ensure!(later > first, "it does not age: {first} {later}");
    Ok(())
}

/// Fails unless the standby is ready, has not called ARM, and has only read from the API server.
async fn silent(test_env: &TestEnv, standby: &Candidate) -> Result<()> {
    standby.stands_by().await?;
    let role = standby.hyperlink.role();
    let metrics = Metrics::of(standby).await?;
    ensure!(metrics.sum(&format!("hyperlink_leader{{role={role}}}")) == Some(0.0));
    ensure!(metrics.sum("hyperlink_arm_calls_total").is_none());
    let calls = calls(test_env, standby).await?;
    ensure!(calls.is_empty(), "{calls:?}");
    let writes = kube_writes(test_env, standby, Timestamp::UNIX_EPOCH)?;
    ensure!(writes.is_empty(), "{writes:?}");
    Ok(())
}

#[test]
fn leaders_report_a_whole_life_and_standbys_stay_silent() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let mut leaders = Vec::new();
        let mut standbys = Vec::new();
        for role in [Role::Ho, Role::Cpo] {
            let leader = Candidate::start(&test_env, role, Identity::First).await?;
            leader.leads().await?;
            leader.hyperlink.ready(SOON).await?;
            leaders.push(leader);
            standbys.push(Candidate::start(&test_env, role, Identity::Twin).await?);
        }
        for (leader, standby) in leaders.iter().zip(&standbys) {
            standby.stands_by().await?;
            let (_, page) = standby.hyperlink.page("/readyz").await?;
            let role = leader.hyperlink.role();
            ensure!(
                page.contains(&format!("[+] controllers ({role}): not leading\n")),
                "{page}"
            );
            let (_, page) = leader.hyperlink.page("/readyz").await?;
            ensure!(page.contains(&format!("[+] controllers ({role}): running\n")), "{page}");
        }
        let [ho, cpo] = leaders.as_slice() else {
            unreachable!("one per role")
        };

        let cluster = HostedCluster::new(&test_env, "told").with_base_domain("apps.example.com");
        cluster.create(&test_env).await?;
        operation_ages(cpo, "private_endpoint").await?;
        cluster.becomes_available(&test_env, LIFE).await?;
        shows(ho, &[BOTH, HO]).await?;
        shows(cpo, &[BOTH, CPO]).await?;

        cluster.delete(&test_env, LIFE).await?;
        for leader in &leaders {
            shows(
                leader,
                &[&[
                    ("hyperlink_conditions", Zero),
                    ("hyperlink_arm_operations_in_flight", Zero),
                ]],
            )
            .await?;
            // Every call that reached ARM is counted, and no other.
            let counted = Metrics::of(leader).await?.sum("hyperlink_arm_calls_total");
            let observed = calls(&test_env, leader).await?.len();
            ensure!(counted == Some(observed as f64), "{counted:?} counted, {observed} seen");
        }
        for standby in &standbys {
            silent(&test_env, standby).await?;
        }
        for candidate in leaders.into_iter().chain(standbys) {
            candidate.hyperlink.stop().await?;
        }
        Ok(())
    });
}
