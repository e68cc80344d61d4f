//! Leaders that change while as many clusters come up as a load balancer takes: killed first, then replaced one after
//! another as in a rolling update. The API server stops for a while in between, and is slow for a minute then.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::process::Process;
use e2e::shared_env::{control, nothing_is_left_of};
use e2e::test_env::Call;
use e2e::{TestEnv, scenario};
use futures::future::try_join_all;
use serde_json::json;

use crate::candidate::{Candidate, Identity, LIFE, RENEW_DEADLINE};
use crate::evidence::{built_once, writes};

const CROWD: usize = 8;
/// For how long the API server works, and then does not, in turns for a minute. The stops differ, because a leader's
/// renewals fall into step with stops of one length.
const WORKS: Duration = Duration::from_millis(300);
const STOPS_MS: [u64; 5] = [500, 800, 1_100, 600, 900];
const STOPS: usize = 55;
const ROLES: [Role; 2] = [Role::Ho, Role::Cpo];

#[test]
fn crowd_is_built_once_while_leaders_are_killed_and_replaced() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        // Nobody is done before the last leader begins: each cluster has several writes one after another.
        let slow = json!([{"match": {"method": "PUT", "times": 1_000_000}, "do": {"delay_ms": 1_000}}]);
        control(&test_env, reqwest::Method::PUT, "/faults", slow).await?;
        let firsts = try_join_all(ROLES.map(|role| leader(&test_env, role, Identity::First))).await?;
        let twins = try_join_all(ROLES.map(|role| standby(&test_env, role, Identity::Twin))).await?;

        let name = |n| format!("crowd{n}");
        let cluster = |n| HostedCluster::new(&test_env, &name(n)).with_base_domain(&format!("{}.example.com", name(n)));
        let crowd: Vec<_> = (0..CROWD).map(cluster).collect();
        let (last, others) = crowd.split_last().context("a crowd")?;
        try_join_all(others.iter().map(|cluster| cluster.create(&test_env))).await?;
        for first in &firsts {
            writes(&test_env, first, 0).await?;
        }
        drop(firsts);
        for twin in &twins {
            twin.leads().await?;
            writes(&test_env, twin, 0).await?;
        }
        let since = test_env.oracle().last_call().await?;
        pause_api_server(&test_env).await?;
        let (slow, replaced) = tokio::join!(slow_api_server(&test_env), replaced_one_by_one(&test_env, twins));
        slow?;
        let leaders = replaced?;
        // However much was built meanwhile, the last leaders have this one to build.
        last.create(&test_env).await?;
        for leader in &leaders {
            leader.leads().await?;
            writes(&test_env, leader, since).await?;
        }

        for cluster in &crowd {
            cluster.becomes_available(&test_env, LIFE).await?;
        }
        built_once(&test_env).await?;
        let since = test_env.oracle().last_call().await?;
        try_join_all(crowd.iter().map(|cluster| cluster.becomes_reachable(&test_env, LIFE))).await?;
        let calls = test_env.oracle().journal(since).await?;
        ensure!(!calls.iter().any(Call::is_write), "written though all is as desired");
        try_join_all(crowd.iter().map(|cluster| cluster.delete(&test_env, LIFE))).await?;
        for cluster in &crowd {
            nothing_is_left_of(&test_env, cluster, &[]).await?;
        }
        Ok(())
    });
}

async fn leader(test_env: &TestEnv, role: Role, identity: Identity) -> Result<Candidate> {
    let candidate = Candidate::start(test_env, role, identity).await?;
    candidate.leads().await?;
    Ok(candidate)
}

async fn standby(test_env: &TestEnv, role: Role, identity: Identity) -> Result<Candidate> {
    let candidate = Candidate::start(test_env, role, identity).await?;
    candidate.stands_by().await?;
    Ok(candidate)
}

/// The leaders that follow these, each of which stops as soon as its successor stands by.
async fn replaced_one_by_one(test_env: &TestEnv, leaders: Vec<Candidate>) -> Result<Vec<Candidate>> {
    let mut successors = Vec::new();
    for (role, leader) in ROLES.into_iter().zip(leaders) {
        let next = standby(test_env, role, Identity::First).await?;
        leader.hyperlink.stop().await?;
        next.leads().await?;
        successors.push(next);
    }
    Ok(successors)
}

/// Lets the API server work for less than a third of the time, for a minute.
async fn slow_api_server(test_env: &TestEnv) -> Result<()> {
    let api_server = api_server(test_env)?;
    for stop in STOPS_MS.into_iter().cycle().take(STOPS) {
        tokio::time::sleep(WORKS).await;
        api_server.signal("STOP")?;
        tokio::time::sleep(Duration::from_millis(stop)).await;
        api_server.signal("CONT")?;
    }
    Ok(())
}

fn api_server(test_env: &TestEnv) -> Result<&Process> {
    test_env.control_plane().api_server().context("no API server")
}

/// Stops the API server for longer than a leader waits for one answer, which is half the deadline, and not for so long
/// that it has to give up.
/// Fails if it answers meanwhile.
async fn pause_api_server(test_env: &TestEnv) -> Result<()> {
    let (api_server, client) = (api_server(test_env)?, test_env.client()?);
    api_server.signal("STOP")?;
    let pause = RENEW_DEADLINE / 2 + Duration::from_millis(500);
    let answer = tokio::time::timeout(pause, client.apiserver_version()).await;
    api_server.signal("CONT")?;
    ensure!(answer.is_err(), "answered while it was stopped: {answer:?}");
    // The leaders renew before it is stopped once more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}
