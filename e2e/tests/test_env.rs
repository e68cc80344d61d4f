//! The test environment without Hyperlink: the simulated Azure, its cloud controller and HyperShift's part work
//! together.

use std::time::Duration;

use anyhow::{Context, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::{HostedCluster, ROUTER};
use e2e::{TestEnv, eventually, scenario};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn load_balancer_comes_and_is_deleted_with_its_cluster() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let client = test_env.client()?;
        let cluster = HostedCluster::new(&test_env, "alone").with_base_domain("apps.example.com");
        cluster.create(&test_env).await?;

        let address = eventually("the Service has an address", SOON, || async {
            let service = cluster.get_service(&client, ROUTER).await?.context("no Service")?;
            let ingress = service
                .status
                .and_then(|status| status.load_balancer)
                .and_then(|status| status.ingress);
            ingress
                .unwrap_or_default()
                .into_iter()
                .find_map(|one| one.ip)
                .context("no address")
        })
        .await?;
        ensure!(address.starts_with("10.224."), "{address}");

        let reachable = test_env
            .oracle()
            .reachable(&cluster.vnet(), &format!("api.{}.hypershift.local", cluster.name()))
            .await?;
        ensure!(!reachable.ok && reachable.why.is_some(), "{reachable:?}");

        let management = format!("/subscriptions/{}", test_env.azure().management_subscription);
        cluster.delete(&test_env, SOON).await?;
        eventually("the frontend is gone", SOON, || async {
            let found = test_env.oracle().resources(&management).await?;
            let text = serde_json::to_string(&found)?;
            ensure!(!text.contains(&address), "{address} is there");
            Ok(())
        })
        .await
    });
}
