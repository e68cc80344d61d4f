//! ARM ids in other letter case: ARM treats them as the same ids, and so does Hyperlink.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::situation;
use serde_json::{Value, json};

/// An id in upper case, as somebody else might write it.
fn shouted(id: &str) -> String {
    id.to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/")
}

/// An id in lower case, as an old API might return it.
fn whispered(id: &str) -> String {
    id.to_lowercase()
}

async fn put_again(shared_env: &e2e::shared_env::SharedEnv, id: &str, spelt: &str) -> Result<()> {
    let oracle = shared_env.test_env.oracle();
    let mut found = oracle.resources(id).await?;
    found.retain(|one| one["id"].as_str().is_some_and(|other| other.eq_ignore_ascii_case(id)));
    let mut body = found.pop().context("it is not there")?;
    for server_made in ["id", "name", "type", "etag"] {
        body.as_object_mut().map(|body| body.remove(server_made));
    }
    oracle.drift_put(spelt, &body).await
}

#[test]
fn ids_in_other_letters_are_the_same_ids() {
    situation(async |shared_env| {
        let test_env = &shared_env.test_env;
        let plain = HostedCluster::new(test_env, "letters");
        // HyperShift itself accepts the ids of subnets in one letter case only.
        let azure = json!({"vnetID": shouted(&plain.vnet()), "resourceGroup": plain.infra_id().to_uppercase(),
            "location": "East US"});
        let cluster = plain
            .with_base_domain("letters.example.com")
            .with_control_plane(json!({"spec": {"platform": {"azure": azure}}}));
        cluster.create(test_env).await?;
        put_again(shared_env, &cluster.vnet(), &whispered(&cluster.vnet())).await?;
        shared_env.heals(&cluster).await?;

        let made = cluster.get_link_service(&test_env.client()?).await?.context("none")?;
        let status = made.data["status"].as_object().context("no status")?;
        let ids = status.iter().filter(|(field, _)| field.ends_with("ID"));
        for (field, id) in ids.map(|(field, id)| (field, id.as_str().unwrap_or_default())) {
            let fixed = id.contains("/resourceGroups/") && id.contains("/providers/Microsoft.Network/");
            ensure!(fixed, "{field} {id}");
        }
        ensure!(made.data["spec"]["location"] == "eastus", "{:?}", made.data);

        // Ids that Azure returns in other letter case from now on are no drift.
        let since = test_env.oracle().last_call().await?;
        for id in [cluster.endpoint(), cluster.link_service(test_env)] {
            put_again(shared_env, &id, &shouted(&id)).await?;
        }
        shared_env.reconciles_again(&cluster).await?;
        let calls = shared_env.calls_about(&cluster).await?;
        let late: Vec<_> = calls
            .iter()
            .filter(|call| call.seq > since && call.is_write())
            .collect();
        ensure!(late.is_empty(), "{late:?}");
        let spec_before: Value = made.data["spec"].clone();
        let now = cluster.get_link_service(&test_env.client()?).await?.context("none")?;
        ensure!(now.data["spec"] == spec_before, "{:?}", now.data);
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
