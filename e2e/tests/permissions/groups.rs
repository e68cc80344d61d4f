//! Rights on resource groups are enough; none on a subscription is needed.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::used::used_actions;
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset, shipped_actions};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::control;
use e2e::{TestEnv, scenario};
use serde_json::{Value, json};

use crate::SOON;

const GROUP: &str = "services-rg";

/// Gives the identities their rights on groups instead of subscriptions: to the guest side on the cluster's group, to
/// the management side on two, because the load balancer and its network are in another group than the services.
async fn with_rights_on_groups(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let azure = test_env.azure();
    let keys = test_env.control_plane().token_keys().await?;
    let mut world = e2e::azure_sim::world(&keys, None, &json!({}), &json!({}))?;
    let subscription = format!("/subscriptions/{}", azure.management_subscription);
    let group = |name: &str| format!("{subscription}/resourceGroups/{name}");
    let resources = world["resources"].as_array_mut().context("no resources")?;
    resources.push(json!({"id": group(GROUP), "location": azure.location}));
    let guest = format!("/subscriptions/{}", azure.guest_subscription);
    on_groups(&mut world, Role::Cpo, &guest, &[cluster.resource_group()])?;
    let groups = [GROUP, &azure.management_group].map(group);
    on_groups(&mut world, Role::Ho, &subscription, &groups)?;
    control(test_env, reqwest::Method::PUT, "/seed", world).await
}

/// Assigns a role on these groups instead of the subscription.
fn on_groups(world: &mut Value, role: Role, subscription: &str, groups: &[String]) -> Result<()> {
    let shipped = json!(shipped_actions(role.as_str())?);
    let roles = world["roles"].as_array_mut().context("no roles")?;
    let own = roles
        .iter()
        .position(|role| role["scope"] == subscription && role["actions"] == shipped);
    let own = roles.remove(own.context("no role of ours")?);
    for group in groups {
        let mut role = own.clone();
        role["scope"] = group.as_str().into();
        roles.push(role);
    }
    Ok(())
}

#[test]
fn rights_on_groups_suffice_if_the_load_balancers_is_named() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let cluster = HostedCluster::new(&test_env, "grouped");
        with_rights_on_groups(&test_env, &cluster).await?;
        let azure = test_env.azure();
        let nodes = format!(
            "/subscriptions/{}/resourceGroups/{}",
            azure.management_subscription, azure.management_group
        );
        let flags = [("resource-group", GROUP), ("also-manage", nodes.as_str())];
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &flags).await?;
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[]).await?;
        cluster.create(&test_env).await?;
        cluster.becomes_available(&test_env, SOON).await?;
        cluster.becomes_reachable(&test_env, SOON).await?;
        cluster.delete(&test_env, SOON).await?;
        // Nothing was refused.
        let calls = test_env.oracle().journal(0).await?;
        for client in [HO_CLIENT, CPO_CLIENT] {
            ensure!(!used_actions(&calls, client)?.is_empty(), "{client} asked for nothing");
        }
        Ok(())
    });
}
