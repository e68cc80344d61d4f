//! `hyperlink plan` for AzureClusters: it only reads, and reports what the role would do.

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::CapzCluster;
use e2e::capz_controllers::{API_SERVER_IP, CONDITION};
use e2e::hyperlink::Planned;
use e2e::hyperlink::capz::plan_capz;
use e2e::kubeconfig::Access;
use e2e::scenario;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, entry};

/// A ServiceAccount that may only read what plans are made of. What is denied fails the plan.
async fn reader(fleet: &Fleet) -> Result<Access> {
    let rule =
        |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list"]});
    let rules = [
        rule(
            "infrastructure.cluster.x-k8s.io",
            &["azureclusters", "azureclusteridentities"],
        ),
        rule("coordination.k8s.io", &["leases"]),
    ];
    fleet.env.control_plane().account_with("planner", &json!(rules)).await
}

struct Planner<'a> {
    fleet: &'a Fleet,
    access: Access,
}

impl Planner<'_> {
    async fn plan(&self, name: &str, more: &[&str]) -> Result<Planned> {
        let object = format!("{NAMESPACE}/{name}");
        let arguments = [&[object.as_str()][..], more].concat();
        plan_capz(&self.fleet.env, &self.fleet.management, self.access.path(), &arguments).await
    }

    async fn finds_nothing(&self, name: &str) -> Result<()> {
        let planned = self.plan(name, &[]).await?;
        ensure!(planned.code == Some(0), "{planned:?}");
        ensure!(planned.out.contains("role capz: nothing to do"), "{planned:?}");
        Ok(())
    }

    /// What is to be done, as JSON.
    async fn finds(&self, name: &str) -> Result<Value> {
        let planned = self.plan(name, &["-o", "json"]).await?;
        ensure!(planned.code == Some(2), "{planned:?}");
        let mut output: Value = serde_json::from_str(&planned.out)?;
        Ok(output["roles"][0].take())
    }
}

/// The only change of an entry.
fn only_change(plan: &Value) -> Result<(&str, &str)> {
    let [change] = plan["entries"].as_array().context("no entries")?.as_slice() else {
        anyhow::bail!("{plan}");
    };
    Ok((
        change["verb"].as_str().unwrap_or_default(),
        change["name"].as_str().unwrap_or_default(),
    ))
}

/// Removes an unclaimed entry as its plan tells a person to.
async fn remove(fleet: &Fleet, unclaimed: &Value) -> Result<()> {
    let patch: json_patch::Patch = serde_json::from_value(unclaimed["removal"].clone())?;
    let api = fleet.management.azure_clusters(&fleet.env.client()?);
    let (name, params) = (fleet.management.name(), PatchParams::default());
    api.patch(name, &params, &Patch::<()>::Json(patch)).await?;
    Ok(())
}

#[test]
fn plan_of_a_cluster_names_what_others_have_undone() {
    scenario(async {
        let (fleet, [lost, kept], hyperlink) = Fleet::serving(["lost", "kept"]).await?;
        hyperlink.stop().await?;
        let access = reader(&fleet).await?;
        let planner = Planner { fleet: &fleet, access };
        for name in ["lost", "kept", "mc"] {
            planner.finds_nothing(name).await?;
        }

        fleet.capz.pause();
        fleet.management.remove_entry(&fleet.env, &entry(&lost)).await?;
        lost.annotate(&fleet.env, API_SERVER_IP, None).await?;
        let strangers = "strangers-privateendpoint";
        let service = fleet.management.link_service(&fleet.management.gateway_link());
        let theirs = fleet.management.entry(strangers, "strangers-connection", &service);
        fleet.management.add_entry(&fleet.env, &theirs).await?;
        let versions = versions(&fleet, [&lost, &kept, &fleet.management]).await?;

        planner.finds_nothing("kept").await?;
        let plan = planner.finds("lost").await?;
        ensure!(only_change(&plan)? == ("add", entry(&lost).as_str()), "{plan}");
        ensure!(plan["annotations"][0]["field"] == API_SERVER_IP, "{plan}");
        ensure!(plan["conditions"][0]["type"] == CONDITION, "{plan}");
        let plan = planner.finds("mc").await?;
        ensure!(only_change(&plan)? == ("add", entry(&lost).as_str()), "{plan}");
        ensure!(plan["unclaimed"][0]["name"] == strangers, "{plan}");
        let absent = planner.plan("absent", &[]).await?;
        ensure!(
            absent.code == Some(1) && absent.log.contains("there is no AzureCluster"),
            "{absent:?}"
        );
        ensure!(self::versions(&fleet, [&lost, &kept, &fleet.management]).await? == versions);

        remove(&fleet, &plan["unclaimed"][0]).await?;
        let names = fleet.management.entry_names(&fleet.env).await?;
        ensure!(names == [entry(&kept)], "{names:?}");
        fleet.only_reads().await?;
        fleet.stop().await
    });
}

async fn versions(fleet: &Fleet, clusters: [&CapzCluster; 3]) -> Result<Vec<Option<String>>> {
    let mut found = Vec::new();
    for cluster in clusters {
        found.push(cluster.get(&fleet.env).await?.metadata.resource_version);
    }
    Ok(found)
}

#[test]
fn plan_shows_all_that_comes_after_the_finalizer() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let cluster = crate::fleet::workload("wc", e2e::capz_cluster::IdentityType::WorkloadIdentity);
        cluster.create(&fleet.env).await?;
        crate::becomes_true(&fleet.env, &cluster, "PrivateLinksReady").await?;
        let access = reader(&fleet).await?;
        let plan = Planner { fleet: &fleet, access }.finds("wc").await?;
        ensure!(plan["finalizers"][0]["verb"] == "set", "{plan}");
        let entries = plan["entries"].as_array().context("no entries")?;
        let clusters: Vec<&Value> = entries.iter().map(|change| &change["azureCluster"]).collect();
        ensure!(
            clusters == [&json!("org-giantswarm/mc"), &json!("org-giantswarm/wc")],
            "{plan}"
        );
        ensure!(
            plan["conditions"][0]["wouldBe"]["reason"] == "WaitingForEndpoint",
            "{plan}"
        );
        fleet.stop().await
    });
}
