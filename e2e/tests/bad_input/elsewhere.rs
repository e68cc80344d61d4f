//! Azure's answers that lead to another host: refused, and the token stays here.

use anyhow::ensure;
use e2e::hosted_cluster::HostedCluster;
use serde_json::json;

use crate::wire::Listener;
use e2e::shared_env::{SharedEnv, no_secret_in, run};

/// A page that goes on there, a resource that has moved there, operations to be asked about there. What was refused comes up
/// once the answers are as they should be; what was accepted comes about without anybody asking. Nobody ever called.
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
        shared_env.heals_and_goes(&cluster).await?;
        ensure!(elsewhere.calls() == 0, "somebody called the other host");
        no_secret_in(&shared_env.ho)?;
        no_secret_in(&shared_env.cpo)
    });
}
