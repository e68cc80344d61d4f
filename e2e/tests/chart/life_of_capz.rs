//! The program runs as the Deployment says that the example for Cluster API is rendered to: with only the rights and
//! the token that the chart gives it.

use anyhow::{Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{CONDITION, Capz, Settings};
use e2e::capz_env::WORKLOAD;
use e2e::installed::InstalledOnCapz;
use e2e::shared_env::SOON;
use e2e::{CapzEnv, eventually, scenario};
use kube::ResourceExt;

const NAMESPACE: &str = "org-example";
const PAUSED_HERE: &str = "hyperlink.hypershift.openshift.io/capz-paused";

/// Waits until a control plane waits for these gates, or for none.
async fn waits_for(env: &CapzEnv, cluster: &CapzCluster, gates: Option<&str>) -> Result<()> {
    let api = cluster.control_planes(&env.client()?);
    eventually(&format!("it waits for {gates:?}"), SOON, || async {
        let found = api.get(cluster.name()).await?;
        let shown = found.annotations().get(PAUSED_HERE).map(String::as_str);
        ensure!(shown == gates, "{shown:?}");
        Ok(())
    })
    .await
}

#[test]
fn cluster_of_cluster_api_lives_on_the_rendered_deployment() {
    scenario(async {
        let installed = InstalledOnCapz::start().await?;
        let env = &installed.env;
        // Read with the token of the pod; the other one with a client secret.
        let management = CapzCluster::management(NAMESPACE, "mc", LoadBalancer::Internal);
        let workload = CapzCluster::workload(NAMESPACE, "wc", LoadBalancer::Internal);
        let workload = workload.with_identity_type(IdentityType::ServicePrincipal);
        management.create(env).await?;
        management.create_gateway(env, &[WORKLOAD]).await?;
        let capz = Capz::start(env, &[NAMESPACE], Settings::FORK).await?;
        installed.install(&management, &[NAMESPACE])?;
        let hyperlink = installed.run("capz-0").await?;
        hyperlink.ready(SOON).await?;

        capz.pause();
        workload.create(env).await?;
        waits_for(env, &workload, Some("PrivateLinksReady,GSPrivateLinksReady")).await?;
        capz.resume();
        eventually("both ways are there", SOON, || workload.has_true(env, CONDITION)).await?;
        waits_for(env, &workload, None).await?;
        // It still has all rights that it asks for.
        hyperlink.ready(SOON).await?;

        workload.delete(env, SOON).await?;
        hyperlink.stop().await?;
        capz.stop().await
    });
}
