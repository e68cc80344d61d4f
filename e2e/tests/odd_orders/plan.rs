//! `hyperlink plan` beside running processes: it only reads, and reports what they would do.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Planned, Role, plan};
use e2e::kubeconfig::Access;
use e2e::shared_env::{SOON, SharedEnv, situation};
use serde_json::{Value, json};

/// A ServiceAccount that may only read what plans are made of. What is denied fails the plan.
async fn reader(shared_env: &SharedEnv, name: &str) -> Result<Access> {
    let rules = json!([
        {"apiGroups": ["hypershift.openshift.io"], "verbs": ["get", "list"],
         "resources": ["azureprivatelinkservices", "hostedclusters", "hostedcontrolplanes"]},
        {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["get"]}]);
    shared_env.test_env.control_plane().account_with(name, &rules).await
}

/// Runs `hyperlink plan` with identities that nobody else has in Azure's journal and in the API server's audit log.
async fn planned(shared_env: &SharedEnv, access: &Access, role: Role, arguments: &[&str]) -> Result<Planned> {
    let azure = shared_env.test_env.azure();
    let credential = match role {
        Role::Ho => &azure.ho_twin,
        Role::Cpo => &azure.cpo_twin,
    };
    plan(&shared_env.test_env, role, access.path(), credential, arguments).await
}

fn json_of(planned: &Planned) -> Result<Value> {
    serde_json::from_str(&planned.out).with_context(|| format!("{planned:?}"))
}

async fn nothing_was_written(shared_env: &SharedEnv, account: &str) -> Result<()> {
    let twins = [e2e::azure_sim::HO_TWIN, e2e::azure_sim::CPO_TWIN];
    let calls = shared_env.test_env.oracle().journal(0).await?;
    let own = |principal: &Option<String>| principal.as_deref().is_some_and(|name| twins.contains(&name));
    let own: Vec<_> = calls.iter().filter(|call| own(&call.principal)).collect();
    ensure!(!own.is_empty(), "the journal knows nothing of the plans");
    ensure!(own.iter().all(|call| call.method == "GET" && !call.changed), "{own:?}");
    let log = std::fs::read_to_string(shared_env.test_env.control_plane().audit_log())?;
    let account = format!("system:serviceaccount:default:{account}");
    // The last line may be half written.
    let lines = log.rsplit_once('\n').context("an audit log")?.0.lines();
    let events: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut verbs: Vec<_> = events
        .iter()
        .filter(|event| event["user"]["username"] == account.as_str())
        .filter_map(|event| event["verb"].as_str())
        .collect();
    verbs.sort_unstable();
    verbs.dedup();
    ensure!(!verbs.is_empty(), "the audit log knows nothing of {account}");
    ensure!(verbs.iter().all(|verb| ["get", "list"].contains(verb)), "{verbs:?}");
    Ok(())
}

#[test]
fn plan_is_empty_without_drift_and_names_a_drifted_field() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "planned").with_base_domain("planned.example.com");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let access = reader(shared_env, "planner").await?;
        let object = format!("{}/private-router", cluster.control_plane_namespace());
        for role in [Role::Ho, Role::Cpo] {
            let undrifted = planned(shared_env, &access, role, &[&object, "--role", role.as_str()]).await?;
            ensure!(undrifted.code == Some(0), "{undrifted:?}");
            ensure!(undrifted.out.contains("nothing to do"), "{undrifted:?}");
        }
        let record = format!("{}/A/api", cluster.zones().remove(0));
        let drift = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
        // The running process may be about to read the record, and then repairs it before the plan has read it.
        let drifted = eventually("the plan has read the drift", SOON, async || {
            shared_env.test_env.oracle().drift_put(&record, &drift).await?;
            let arguments = [&object, "--role", "cpo", "-o", "json"];
            let drifted = planned(shared_env, &access, Role::Cpo, &arguments).await?;
            ensure!(drifted.code == Some(2), "{drifted:?}");
            Ok(drifted)
        })
        .await?;
        let steps = json_of(&drifted)?["roles"][0]["steps"].take();
        let all = steps.as_array().context("no steps")?;
        let put: Vec<_> = all.iter().filter(|step| step["verb"] != "keep").collect();
        ensure!(put.len() == 1, "{drifted:?}");
        let id = put[0]["id"].as_str().context("no id")?;
        ensure!(id.eq_ignore_ascii_case(&record) && put[0]["verb"] == "put", "{put:?}");
        ensure!(put[0]["fields"] == json!(["aRecords"]), "{put:?}");
        nothing_was_written(shared_env, "planner").await?;
        shared_env.test_env.oracle().drift_delete(&record).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn plan_reports_why_a_cluster_makes_no_progress() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "unplanned").without_hosted_cluster();
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .refuses(&cluster, "AzurePLSCreated", "HostedClusterNotFound")
            .await?;
        let access = reader(shared_env, "wonderer").await?;
        let object = format!("{}/private-router", cluster.control_plane_namespace());
        let stuck = planned(shared_env, &access, Role::Ho, &[&object, "--role", "ho", "-o", "json"]).await?;
        ensure!(stuck.code == Some(2), "{stuck:?}");
        let output = json_of(&stuck)?;
        ensure!(
            output["roles"][0]["problem"]["reason"] == "HostedClusterNotFound",
            "{output}"
        );
        cluster.create_hosted_cluster(&shared_env.test_env).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn plan_that_cannot_see_everything_fails() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "veiled");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let access = reader(shared_env, "stranger").await?;
        let object = format!("{}/private-router", cluster.control_plane_namespace());

        let none = planned(shared_env, &access, Role::Cpo, &["clusters/none", "--role", "cpo"]).await?;
        ensure!(none.code == Some(1) && none.log.contains("there is no"), "{none:?}");

        // Both roles by default; the management side's identity sees nothing of the guest's.
        let half = planned(shared_env, &access, Role::Ho, &[&object]).await?;
        ensure!(half.code == Some(1), "{half:?}");
        ensure!(half.out.contains("role ho: nothing to do"), "{half:?}");
        ensure!(half.out.contains("role cpo: something could not be read"), "{half:?}");
        ensure!(half.log.contains("role cpo"), "{half:?}");

        let nobody = shared_env
            .test_env
            .control_plane()
            .service_account("default", "nobody")
            .await?;
        let denied = planned(shared_env, &nobody, Role::Cpo, &[&object, "--role", "cpo"]).await?;
        ensure!(denied.code == Some(1) && denied.out.is_empty(), "{denied:?}");
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
