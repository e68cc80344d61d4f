//! Answers of Azure that lead to another host: Hyperlink does not follow them, and its token goes nowhere else.

use anyhow::ensure;
use e2e::hosted_cluster::HostedCluster;
use serde_json::json;

use crate::wire::Listener;
use e2e::shared_env::{SharedEnv, no_secret_in, run};

/// The next page of a list, a redirect and the polling URLs of operations lead to the other host. What was refused
/// succeeds once Azure's answers are right; what was accepted succeeds without a poll. Nobody ever calls the other
/// host.
#[test]
fn page_redirect_and_polling_urls_on_another_host() {
    run(async {
        let shared_env = SharedEnv::start().await?;
        let elsewhere = Listener::bind().await?;
        let url = format!("https://{}/elsewhere", elsewhere.address());
        let fault = |method: &str, path: &str, answer: serde_json::Value| json!({"match": {"method": method, "path": path, "times": 1_000_000}, "do": answer});
        let page = json!({"status": 200, "body": {"value": [], "nextLink": url}});
        let redirect = json!({"status": 307, "headers": {"Location": url}, "body": {}});
        let polled = ["PUT", "DELETE"].map(|method| fault(method, "", json!({"poll_url": url})));
        let refused = [
            fault("GET", "/loadBalancers$", page),
            fault("GET", "/privateDnsZones/[^/]+$", redirect),
        ];
        shared_env.faults(json!([&refused[..], &polled[..]].concat())).await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "misled");
        cluster.create(&shared_env.test_env).await?;
        let balancer = shared_env.refuses(&cluster, "AzureInternalLoadBalancerAvailable", "ILBLookupFailed");
        let zone = shared_env.refuses(&cluster, "AzurePrivateDNSAvailable", "DNSZoneCreationFailed");
        futures::try_join!(balancer, zone)?;
        shared_env.faults(json!(polled)).await?;
        shared_env.heals_and_is_deleted(&cluster).await?;
        ensure!(elsewhere.calls() == 0, "somebody called the other host");
        no_secret_in(&shared_env.ho)?;
        no_secret_in(&shared_env.cpo)
    });
}
