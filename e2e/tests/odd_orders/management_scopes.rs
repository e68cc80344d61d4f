//! Clusters in several management scopes, and one that the operator moves to another scope.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::TestEnv;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, alone, ensure_condition, nothing_is_left_of};
use e2e::wait::eventually;
use serde_json::json;

/// The other management scope, in the subscription of the first one.
const GROUP: &str = "mgmt-other";

/// A file that puts these clusters into the other scope.
fn file(test_env: &TestEnv, name: &str, clusters: &[&HostedCluster]) -> Result<PathBuf> {
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name()).collect();
    let scopes = json!({"managementScopes": [{
        "subscription": test_env.azure().management_subscription, "resourceGroup": GROUP,
        "hostedClusters": [{"namespace": NAMESPACE, "names": names}]}]});
    let path = test_env.dir().join(name);
    std::fs::write(&path, scopes.to_string())?;
    Ok(path)
}

async fn ho(test_env: &TestEnv, name: &str, file: &Path) -> Result<Hyperlink> {
    let file = file.to_str().context("the path")?;
    let flags = [("resync", "3s"), ("management-scopes", file)];
    Hyperlink::start(test_env, Role::Ho, name, &flags).await
}

fn in_the_other_scope(test_env: &TestEnv, cluster: &HostedCluster) -> String {
    let usual = &test_env.azure().management_group;
    cluster
        .link_service(test_env)
        .replace(&format!("/{usual}/"), &format!("/{GROUP}/"))
}

async fn exists(test_env: &TestEnv, id: &str) -> Result<bool> {
    Ok(!test_env.oracle().resources(id).await?.is_empty())
}

#[test]
fn each_cluster_is_in_its_scope_and_none_is_moved() {
    alone(async |test_env| {
        let azure = test_env.azure();
        let group = format!(
            "/subscriptions/{}/resourceGroups/{GROUP}",
            azure.management_subscription
        );
        let location = json!({"location": azure.location});
        test_env.oracle().drift_put(&group, &location).await?;
        let [usual, other] = ["usual", "other"].map(|name| HostedCluster::new(&test_env, name));
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[("resync", "8s")]).await?;
        let first = ho(&test_env, "ho", &file(&test_env, "scopes.json", &[&other])?).await?;
        for cluster in [&usual, &other] {
            cluster.create(&test_env).await?;
        }
        for cluster in [&usual, &other] {
            cluster.becomes_available(&test_env, SOON).await?;
            cluster.becomes_reachable(&test_env, SOON).await?;
        }
        let there = in_the_other_scope(&test_env, &other);
        ensure!(exists(&test_env, &there).await?, "{there} does not exist");
        ensure!(
            exists(&test_env, &usual.link_service(&test_env)).await?,
            "none of {}",
            usual.name()
        );

        first.stop().await?;
        let moved = file(&test_env, "moved.json", &[&usual, &other])?;
        let second = ho(&test_env, "ho-moved", &moved).await?;
        let client = test_env.client()?;
        eventually("the moved cluster is refused", SOON, || async {
            let found = usual.get_link_service(&client).await?.context("no custom resource")?;
            ensure_condition(&found, "AzurePLSCreated", "ConfigurationChanged")
        })
        .await?;
        let twice = in_the_other_scope(&test_env, &usual);
        ensure!(!exists(&test_env, &twice).await?, "{twice} is a second service");
        usual.becomes_reachable(&test_env, SOON).await?;
        for cluster in [&usual, &other] {
            cluster.delete(&test_env, SOON).await?;
            nothing_is_left_of(&test_env, cluster, &[]).await?;
        }
        second.stop().await
    });
}
