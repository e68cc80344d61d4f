//! Alerts on Azure's answers, and on changes that are repeated: they fire while the cause lasts, and no longer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, ROUTER};
use e2e::hyperlink::{Hyperlink, Role, plan};
use e2e::runbook::quotes_samples_of;
use e2e::shared_env::{SOON, SharedEnv, alone, control, patch};
use e2e::{TestEnv, eventually};
use futures::future::try_join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::processes::has_logged;
use crate::rules::{all_resolve, fire, resolve};
use crate::watched::Watched;

const ALLOW_REPLACE: &str = "hyperlink.hypershift.openshift.io/allow-replace";

/// Length of a minute of the rules in this test.
const MINUTE: Duration = Duration::from_millis(300);

/// Seven eighths of what a load balancer takes.
const NEARLY_ALL: usize = 7;
/// What it takes.
const ALL: usize = 8;

#[test]
fn alerts_on_calls_fire_while_azure_refuses_them_and_no_longer() {
    alone(async |test_env| {
        let ho = start(&test_env, Role::Ho, "2s").await?;
        let cpo = start(&test_env, Role::Cpo, "4s").await?;
        let mut shared_env = SharedEnv { test_env, ho, cpo };
        let watched = Watched::start(shared_env.test_env.dir(), MINUTE).await?;
        scrape(&watched, &shared_env)?;
        watched.sees(2).await?;
        let named = |n| HostedCluster::new(&shared_env.test_env, &format!("crowd-{n}"));
        let mut clusters: Vec<_> = (0..NEARLY_ALL).map(named).collect();
        try_join_all(clusters.iter().map(|cluster| cluster.create(&shared_env.test_env))).await?;
        try_join_all(clusters.iter().map(|cluster| shared_env.heals(cluster))).await?;

        load_balancer_is_nearly_full(&shared_env, &watched, &mut clusters).await?;
        five_minutes_later(&shared_env).await?;
        let [undone, denied @ ..] = clusters.as_slice() else {
            anyhow::bail!("too few clusters")
        };
        azure_refuses(&shared_env, &watched, denied).await?;
        somebody_undoes(&mut shared_env, &watched, undone).await?;
        another_uses_up_a_budget(&shared_env, &watched, denied).await?;
        all_resolve(&watched.prometheus).await?;
        shared_env.ho.stop().await?;
        shared_env.cpo.stop().await
    });
}

/// Starts a process that reads ready resources at the interval `resync`, and records and links at the usual one.
async fn start(test_env: &TestEnv, role: Role, resync: &str) -> Result<Hyperlink> {
    Hyperlink::start(test_env, role, role.as_str(), &[("resync", resync)]).await
}

fn scrape(watched: &Watched, shared_env: &SharedEnv) -> Result<()> {
    watched.scrapes("ho", &[("ho-0", &shared_env.ho)])?;
    watched.scrapes("cpo", &[("cpo-0", &shared_env.cpo)])
}

/// The metrics of both processes.
async fn pages(shared_env: &SharedEnv) -> Result<Vec<String>> {
    Ok(vec![
        shared_env.ho.page("/metrics").await?.1,
        shared_env.cpo.page("/metrics").await?.1,
    ])
}

/// Advances Azure's clock: its request budgets for five minutes are enough for a few clusters.
async fn five_minutes_later(shared_env: &SharedEnv) -> Result<()> {
    control(&shared_env.test_env, Method::POST, "/clock", json!({"advance_s": 300})).await
}

async fn load_balancer_is_nearly_full(
    shared_env: &SharedEnv,
    watched: &Watched,
    clusters: &mut Vec<HostedCluster>,
) -> Result<()> {
    let alert = "HyperlinkQuotaNear";
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(shared_env).await?)?;
    one_too_many(shared_env, watched).await?;
    let last = clusters.pop().context("no cluster")?;
    last.delete(&shared_env.test_env, SOON).await?;
    resolve(&watched.prometheus, &[alert]).await
}

/// The eighth cluster fits, and the ninth does not.
async fn one_too_many(shared_env: &SharedEnv, watched: &Watched) -> Result<()> {
    let alert = "HyperlinkWithoutQuota";
    let [eighth, ninth] = [NEARLY_ALL, ALL].map(|n| HostedCluster::new(&shared_env.test_env, &format!("crowd-{n}")));
    eighth.create(&shared_env.test_env).await?;
    shared_env.heals(&eighth).await?;
    ninth.create(&shared_env.test_env).await?;
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(shared_env).await?)?;
    is_planned_without_quota(shared_env, &ninth).await?;
    ninth.delete(&shared_env.test_env, SOON).await?;
    resolve(&watched.prometheus, &[alert]).await?;
    eighth.delete(&shared_env.test_env, SOON).await
}

async fn is_planned_without_quota(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<()> {
    let test_env = &shared_env.test_env;
    let (access, credential) = (test_env.control_plane().admin(), &test_env.azure().ho_twin);
    let object = format!("{}/{ROUTER}", cluster.control_plane_namespace());
    let planned = plan(
        test_env,
        Role::Ho,
        access.path(),
        credential,
        &[&object, "--role", "ho"],
    )
    .await?;
    ensure!(
        planned.out.contains("quota") && planned.out.contains("8 Private Link Services"),
        "{planned:?}"
    );
    Ok(())
}

/// Deletes one endpoint after the other, and changes their custom resources all the time: what is refused is tried
/// again only after a real minute, and a minute of the rules is shorter.
async fn things_happen(shared_env: &SharedEnv, clusters: &[HostedCluster]) -> Result<()> {
    let client = shared_env.test_env.client()?;
    let mut lost = clusters.iter();
    for number in 0_u64.. {
        if number.is_multiple_of(6)
            && let Some(cluster) = lost.next()
        {
            shared_env.test_env.oracle().drift_delete(&cluster.endpoint()).await?;
        }
        for cluster in clusters {
            let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
            let note = json!({"metadata": {"annotations": {ALLOW_REPLACE: number.to_string()}}});
            patch(&api, ROUTER, note).await?;
        }
        tokio::time::sleep(MINUTE).await;
    }
    Ok(())
}

/// The guest side may not write endpoints.
async fn azure_refuses(shared_env: &SharedEnv, watched: &Watched, denied: &[HostedCluster]) -> Result<()> {
    five_minutes_later(shared_env).await?;
    let alerts = ["HyperlinkDenied", "HyperlinkReconcileErrors"];
    shared_env
        .faults(
            json!([{"match": {"method": "PUT", "path": "/privateEndpoints/", "times": 1_000_000},
        "do": {"status": 403, "code": "AuthorizationFailed", "message": "No."}}]),
        )
        .await?;
    tokio::select! {
        fired = fire(&watched.prometheus, &alerts) => fired?,
        ended = things_happen(shared_env, denied) => ended?,
    }
    let pages = pages(shared_env).await?;
    alerts.iter().try_for_each(|alert| quotes_samples_of(alert, &pages))?;
    has_logged(&shared_env.cpo, &["step failed"])?;
    shared_env.faults(json!([])).await?;
    try_join_all(denied.iter().map(|cluster| shared_env.heals(cluster))).await?;
    resolve(&watched.prometheus, &alerts).await
}

/// A pipeline overwrites a Private Link Service each time after it was repaired.
async fn somebody_undoes(shared_env: &mut SharedEnv, watched: &Watched, undone: &HostedCluster) -> Result<()> {
    five_minutes_later(shared_env).await?;
    let alert = "HyperlinkDriftRepeats";
    let service = undone.link_service(&shared_env.test_env);
    let service_now = async || -> Result<Value> {
        let found = shared_env.test_env.oracle().resources(&service).await?;
        Ok(found.first().context("no service")?.clone())
    };
    // Its creation counts too.
    for changes in 2..=5 {
        let mut wrong = service_now().await?;
        wrong["properties"]["visibility"]["subscriptions"] = json!([]);
        shared_env.test_env.oracle().drift_put(&service, &wrong).await?;
        let sample = format!("hyperlink_changes_of_one_resource{{kind=\"private_link_service\"}} {changes}");
        eventually(&sample, SOON, || async {
            let (_, page) = shared_env.ho.page("/metrics").await?;
            ensure!(page.lines().any(|line| line == sample), "{page}");
            Ok(())
        })
        .await?;
    }
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(shared_env).await?)?;
    // A change counts for an hour. A new process, which knows of no change, saves the wait.
    let ho = start(&shared_env.test_env, Role::Ho, "5m").await?;
    std::mem::replace(&mut shared_env.ho, ho).stop().await?;
    scrape(watched, shared_env)?;
    resolve(&watched.prometheus, &[alert]).await
}

/// Somebody with the same identity uses up the budget of writes: Azure refuses each write of an endpoint.
async fn another_uses_up_a_budget(shared_env: &SharedEnv, watched: &Watched, clusters: &[HostedCluster]) -> Result<()> {
    five_minutes_later(shared_env).await?;
    let alerts = ["HyperlinkThrottled"];
    let headers = json!({"Retry-After": "1", "x-ms-ratelimit-remaining-subscription-writes": "0"});
    shared_env
        .faults(
            json!([{"match": {"method": "PUT", "path": "/privateEndpoints/", "times": 1_000_000},
        "do": {"status": 429, "code": "TooManyRequests", "message": "No.", "headers": headers}}]),
        )
        .await?;
    tokio::select! {
        fired = fire(&watched.prometheus, &alerts) => fired?,
        ended = things_happen(shared_env, clusters) => ended?,
    }
    quotes_samples_of(alerts[0], &pages(shared_env).await?)?;
    shared_env.faults(json!([])).await?;
    try_join_all(clusters.iter().map(|cluster| shared_env.heals(cluster))).await?;
    resolve(&watched.prometheus, &alerts).await
}
