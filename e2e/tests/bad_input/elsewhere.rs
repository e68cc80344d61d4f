//! Azure's answers that lead to another host: refused, and the token stays here.

use anyhow::{Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use crate::wire::Listener;
use e2e::site::{Site, no_secret_in, run};

/// A cluster that comes up once the fault is over. Nobody ever called the other host.
async fn refused_and_healed(name: &str, condition: &str, reason: &str, fault: impl Fn(&str) -> Value) -> Result<()> {
    let site = Site::start().await?;
    let elsewhere = Listener::bind().await?;
    site.faults(fault(&format!("https://{}/elsewhere", elsewhere.address())))
        .await?;
    let cluster = HostedCluster::new(&site.ground, name);
    cluster.create(&site.ground).await?;
    site.refuses(&cluster, condition, reason).await?;
    site.faults(json!([])).await?;
    site.heals(&cluster).await?;
    ensure!(elsewhere.calls() == 0, "somebody called the other host");
    no_secret_in(&site.ho)?;
    no_secret_in(&site.cpo)
}

#[test]
fn next_link_on_another_host() {
    run(refused_and_healed(
        "paged",
        "AzureInternalLoadBalancerAvailable",
        "ILBLookupFailed",
        |url| {
            json!([{"match": {"method": "GET", "path": "/loadBalancers$", "times": 1000},
            "do": {"status": 200, "body": {"value": [], "nextLink": url}}}])
        },
    ));
}

/// What was accepted comes about; only the place to ask about it is not used.
#[test]
fn polling_url_on_another_host() {
    run(async {
        let site = Site::start().await?;
        let elsewhere = Listener::bind().await?;
        let url = format!("https://{}/elsewhere", elsewhere.address());
        let fault = |method| json!({"match": {"method": method, "times": 1000}, "do": {"poll_url": url}});
        site.faults(json!([fault("PUT"), fault("DELETE")])).await?;
        let cluster = HostedCluster::new(&site.ground, "polled");
        cluster.create(&site.ground).await?;
        site.heals_and_goes(&cluster).await?;
        ensure!(elsewhere.calls() == 0, "somebody called the other host");
        no_secret_in(&site.ho)?;
        no_secret_in(&site.cpo)
    });
}

#[test]
fn redirect_to_another_host() {
    run(refused_and_healed(
        "redirected",
        "AzureInternalLoadBalancerAvailable",
        "ILBLookupFailed",
        |url| {
            json!([{"match": {"method": "GET", "path": "/loadBalancers$", "times": 1000},
            "do": {"status": 307, "headers": {"Location": url}, "body": {}}}])
        },
    ));
}
