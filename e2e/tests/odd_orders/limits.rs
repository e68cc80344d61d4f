//! The largest that is allowed, and one more.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::site::{MANAGEMENT_SIDE, SOON, Site, situation};
use rstest::rstest;
use serde_json::{Value, json};

fn ids(count: usize) -> Vec<String> {
    let id = |n| format!("{n:08x}-aaaa-4aaa-8aaa-aaaaaaaaaaaa");
    (1..=count).map(id).collect()
}

fn subscriptions(count: usize) -> Value {
    let list = ids(count);
    json!({"spec": {"platform": {"azure": {"private": {"privateLink": {"additionalAllowedSubscriptions": list}}}}}})
}

/// The operator lets this cluster connect that many.
fn allow(site: &Site, name: &str, count: usize) -> Result<()> {
    let file = site.ground.dir().join("allow-scopes.json");
    let mut allowed: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let entry = json!({"namespace": NAMESPACE, "names": [name], "additionalAllowedSubscriptions": ids(count),
        "scopes": [format!("/subscriptions/{}", site.ground.azure().guest_subscription)]});
    let entries = allowed["hostedClusters"].as_array_mut().context("no entries")?;
    entries.push(entry);
    // Nobody reads half of it.
    let whole = file.with_extension("new");
    std::fs::write(&whole, allowed.to_string())?;
    Ok(std::fs::rename(whole, file)?)
}

#[test]
fn as_many_subscriptions_as_the_definition_allows() {
    situation(async |site| {
        allow(site, "many-allowed", 50)?;
        let cluster = HostedCluster::new(&site.ground, "many-allowed")
            .with_hosted_cluster(subscriptions(50))
            .with_control_plane(subscriptions(50));
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        let service = site
            .ground
            .oracle()
            .resources(&cluster.link_service(&site.ground))
            .await?;
        for list in ["visibility", "autoApproval"] {
            let allowed = &service.first().context("none")?["properties"][list]["subscriptions"];
            // And the guest's own.
            ensure!(allowed.as_array().map(Vec::len) == Some(51), "{list} {allowed}");
        }
        site.heals_and_goes(&cluster).await
    });
}

#[rstest]
#[case::one_more("one-more-allowed", 51)]
#[case::as_many_as_azure_takes("hundred-allowed", 100)]
#[case::more_than_azure_takes("hundred-one-allowed", 101)]
fn more_subscriptions_than_the_definition_allows(#[case] name: &str, #[case] count: usize) {
    if e2e::reference::directory("hypershift-crds").is_none() {
        return e2e::scenario::skipped("the real definition of HostedControlPlane is not at hand");
    }
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, name).with_control_plane(subscriptions(count));
        cluster.create_namespaces(&site.ground).await?;
        let refused = cluster.create_control_plane(&site.ground).await;
        let said = format!("{:#}", refused.err().context("it was accepted")?);
        ensure!(said.contains("additionalAllowedSubscriptions"), "{said}");
        site.nobody_asked_about(&cluster).await
    });
}

/// The NAT subnet is `<infraID>-pls-nat`, and Azure takes 80 characters.
#[rstest]
#[case::longest("long-enough", 72, true)]
#[case::one_more("too-long", 73, false)]
fn name_of_the_nat_subnet(#[case] name: &str, #[case] length: usize, #[case] fits: bool) {
    situation(async |site| {
        let infra: String = name.chars().chain(std::iter::repeat('x')).take(length).collect();
        let long = json!({"spec": {"infraID": infra}});
        let cluster = HostedCluster::new(&site.ground, name)
            .with_hosted_cluster(long.clone())
            .with_control_plane(long);
        cluster.create(&site.ground).await?;
        let subnet = format!("{}/subnets/{infra}-pls-nat", site.ground.azure().management_vnet);
        if fits {
            site.heals(&cluster).await?;
            ensure!(site.ground.resource_ids().await?.contains(&subnet.to_lowercase()));
        } else {
            site.refuses_all(&cluster, &MANAGEMENT_SIDE, "InvalidSpec").await?;
            let calls = site.ground.oracle().journal(0).await?;
            ensure!(!calls.iter().any(|call| call.path.contains(&infra)), "{infra}");
        }
        // The id can never change: what can be mended is that the cluster goes, and it does.
        cluster.delete(&site.ground, SOON).await?;
        ensure!(
            !site.ground.resource_ids().await?.contains(&subnet.to_lowercase()),
            "{subnet}"
        );
        site.nothing_is_left_of(&cluster, &[]).await
    });
}
