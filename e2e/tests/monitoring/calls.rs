//! Alerts on what Azure answers, and on what is done there again and again: they fire while the cause lasts, and no longer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, ROUTER};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::runbook::quotes_samples_of;
use e2e::site::{SOON, Site, alone, control, patch};
use e2e::{Ground, eventually};
use futures::future::try_join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::processes::says;
use crate::rules::{all_rest, fire, rest};
use crate::watched::Watched;

const ALLOW_REPLACE: &str = "hyperlink.hypershift.openshift.io/allow-replace";

/// What a minute of the rules is here.
const MINUTE: Duration = Duration::from_millis(300);

/// Seven eighths of what a load balancer takes.
const NEARLY_ALL: usize = 7;

#[test]
fn alerts_on_calls_fire_while_azure_refuses_them_and_no_longer() {
    alone(async |ground| {
        let ho = start(&ground, Role::Ho, "2s").await?;
        let cpo = start(&ground, Role::Cpo, "4s").await?;
        let mut site = Site { ground, ho, cpo };
        let watched = Watched::start(site.ground.dir(), MINUTE).await?;
        scrape(&watched, &site)?;
        watched.sees(2).await?;
        let named = |n| HostedCluster::new(&site.ground, &format!("crowd-{n}"));
        let mut clusters: Vec<_> = (0..NEARLY_ALL).map(named).collect();
        try_join_all(clusters.iter().map(|cluster| cluster.create(&site.ground))).await?;
        try_join_all(clusters.iter().map(|cluster| site.heals(cluster))).await?;

        load_balancer_is_nearly_full(&site, &watched, &mut clusters).await?;
        let [undone, denied @ ..] = clusters.as_slice() else {
            anyhow::bail!("too few clusters")
        };
        azure_refuses(&site, &watched, denied).await?;
        somebody_undoes(&mut site, &watched, undone).await?;
        intervals_are_too_short(&mut site, &watched).await?;
        all_rest(&watched.prometheus).await?;
        site.ho.stop().await?;
        site.cpo.stop().await
    });
}

/// `resync` is how often settled resources are looked at; records and links are left alone.
async fn start(ground: &Ground, role: Role, resync: &str) -> Result<Hyperlink> {
    Hyperlink::start(ground, role, role.as_str(), &[("resync", resync)]).await
}

fn scrape(watched: &Watched, site: &Site) -> Result<()> {
    watched.scrapes("ho", &[("ho-0", &site.ho)])?;
    watched.scrapes("cpo", &[("cpo-0", &site.cpo)])
}

/// What both processes give to whoever scrapes them.
async fn pages(site: &Site) -> Result<Vec<String>> {
    Ok(vec![
        site.ho.page("/metrics").await?.1,
        site.cpo.page("/metrics").await?.1,
    ])
}

/// Azure's budgets are those of five minutes of a few clusters.
async fn five_minutes_later(site: &Site) -> Result<()> {
    control(&site.ground, Method::POST, "/clock", json!({"advance_s": 300})).await
}

async fn load_balancer_is_nearly_full(site: &Site, watched: &Watched, clusters: &mut Vec<HostedCluster>) -> Result<()> {
    let alert = "HyperlinkQuotaNear";
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(site).await?)?;
    let last = clusters.pop().context("no cluster")?;
    last.delete(&site.ground, SOON).await?;
    rest(&watched.prometheus, &[alert]).await
}

/// One endpoint after the other is lost, and their custom resources change all the time: what is refused is tried again only after
/// a real minute, and one is short here.
async fn things_happen(site: &Site, clusters: &[HostedCluster]) -> Result<()> {
    let client = site.ground.client()?;
    let mut lost = clusters.iter();
    for number in 0_u64.. {
        if number.is_multiple_of(6)
            && let Some(cluster) = lost.next()
        {
            site.ground.oracle().drift_delete(&cluster.endpoint()).await?;
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
async fn azure_refuses(site: &Site, watched: &Watched, denied: &[HostedCluster]) -> Result<()> {
    five_minutes_later(site).await?;
    let alerts = ["HyperlinkDenied", "HyperlinkReconcileErrors"];
    site.faults(
        json!([{"match": {"method": "PUT", "path": "/privateEndpoints/", "times": 1_000_000},
        "do": {"status": 403, "code": "AuthorizationFailed", "message": "No."}}]),
    )
    .await?;
    tokio::select! {
        fired = fire(&watched.prometheus, &alerts) => fired?,
        ended = things_happen(site, denied) => ended?,
    }
    let pages = pages(site).await?;
    alerts.iter().try_for_each(|alert| quotes_samples_of(alert, &pages))?;
    says(&site.cpo, &["step failed"])?;
    site.faults(json!([])).await?;
    try_join_all(denied.iter().map(|cluster| site.heals(cluster))).await?;
    rest(&watched.prometheus, &alerts).await
}

/// A pipeline writes a Private Link Service as it thinks right, each time after it was set right.
async fn somebody_undoes(site: &mut Site, watched: &Watched, undone: &HostedCluster) -> Result<()> {
    five_minutes_later(site).await?;
    let alert = "HyperlinkDriftRepeats";
    let service = undone.link_service(&site.ground);
    let service_now = async || -> Result<Value> {
        let found = site.ground.oracle().resources(&service).await?;
        Ok(found.first().context("no service")?.clone())
    };
    // That it was made counts too.
    for changes in 2..=5 {
        let mut wrong = service_now().await?;
        wrong["properties"]["visibility"]["subscriptions"] = json!([]);
        site.ground.oracle().drift_put(&service, &wrong).await?;
        let sample = format!("hyperlink_changes_of_one_resource{{kind=\"private_link_service\"}} {changes}");
        eventually(&sample, SOON, || async {
            let (_, page) = site.ho.page("/metrics").await?;
            ensure!(page.lines().any(|line| line == sample), "{page}");
            Ok(())
        })
        .await?;
    }
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(site).await?)?;
    // The hour for which a change counts goes by for a new process too: it knows of none.
    let ho = start(&site.ground, Role::Ho, "5m").await?;
    std::mem::replace(&mut site.ho, ho).stop().await?;
    scrape(watched, site)?;
    rest(&watched.prometheus, &[alert]).await
}

async fn intervals_are_too_short(site: &mut Site, watched: &Watched) -> Result<()> {
    let alert = "HyperlinkThrottled";
    let hasty = [("resync", "1s"), ("record-resync", "1s")];
    let cpo = Hyperlink::start(&site.ground, Role::Cpo, "cpo-hasty", &hasty).await?;
    std::mem::replace(&mut site.cpo, cpo).stop().await?;
    scrape(watched, site)?;
    fire(&watched.prometheus, &[alert]).await?;
    quotes_samples_of(alert, &pages(site).await?)?;
    let cpo = Hyperlink::start(&site.ground, Role::Cpo, "cpo-patient", &[]).await?;
    std::mem::replace(&mut site.cpo, cpo).stop().await?;
    scrape(watched, site)?;
    five_minutes_later(site).await?;
    rest(&watched.prometheus, &[alert]).await
}
