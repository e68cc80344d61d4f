//! `make e2e` against the test control plane and the simulator. It gets them as it gets any cluster and cloud: by a
//! kubeconfig, AZURE_ variables and a CA.

mod kind;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{ADMINISTRATOR, ADMINISTRATOR_SECRET, Preset};
use e2e::hosted_cluster::HostedCluster;
use e2e::process::{Process, Program};
use e2e::test_env::Call;
use e2e::{TestEnv, scenario};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;

/// Seconds that a run may wait for anything.
const PATIENCE: &str = "120";
/// How long a run may take.
const LONG: Duration = Duration::from_secs(300);

/// How a run has ended.
struct RunResult {
    well: bool,
    out: String,
    log: String,
}

fn on_cluster(test_env: &TestEnv, prefix: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Program> {
    let azure = test_env.azure();
    let program = Program::new(env!("CARGO_BIN_EXE_on-cluster"))
        .env("E2E_AZURE", "env")
        .env("E2E_KUBECONFIG", test_env.admin().path())
        .env("E2E_CONTEXT", "test")
        .env("E2E_SUBSCRIPTION", &azure.management_subscription)
        .env("E2E_LOCATION", &azure.location)
        .env("E2E_PREFIX", prefix)
        .env("E2E_PATIENCE", PATIENCE)
        .env("AZURE_SUBSCRIPTION_ID", &azure.management_subscription)
        .env("AZURE_TENANT_ID", &azure.tenant)
        .env("AZURE_CLIENT_ID", ADMINISTRATOR)
        .env("AZURE_CLIENT_SECRET", ADMINISTRATOR_SECRET)
        .env("AZURE_FEDERATED_TOKEN_FILE", "")
        .env("HYPERLINK_ARM_ENDPOINT", &azure.arm)
        .env("AZURE_AUTHORITY_HOST", &azure.authority)
        .env("HYPERLINK_AUDIENCE", &azure.audience)
        .env("HYPERLINK_CA_FILE", azure.ca_file.as_ref().context("a CA")?);
    let program = variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    Ok(arguments.iter().fold(program, Program::arg))
}

async fn end(test_env: &TestEnv, process: &Process) -> Result<RunResult> {
    let status = process.wait(LONG).await?;
    test_env.control_plane().check()?;
    Ok(RunResult {
        well: status.success(),
        out: std::fs::read_to_string(process.out())?,
        log: std::fs::read_to_string(process.log())?,
    })
}

/// Fails if anything in the cluster or in Azure bears the prefix.
async fn nothing_bears(test_env: &TestEnv, prefix: &str) -> Result<()> {
    let client = test_env.client()?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let roles: Api<ClusterRole> = Api::all(client);
    let namespaces = namespaces
        .list(&Default::default())
        .await?
        .into_iter()
        .map(|one| one.metadata);
    let roles = roles
        .list(&Default::default())
        .await?
        .into_iter()
        .map(|one| one.metadata);
    let names = namespaces.chain(roles).filter_map(|metadata| metadata.name);
    let left: Vec<_> = names
        .chain(test_env.resource_ids().await?)
        .filter(|name| name.contains(prefix))
        .collect();
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// Whether a call is about something that is on the list of what would be made, or inside of it.
fn is_listed(call: &Call, list: &[String]) -> bool {
    let path = call.path.to_lowercase();
    let is_it = |rest: &str| rest.is_empty() || rest.starts_with('/');
    list.iter()
        .any(|line| path.strip_prefix(&line.to_lowercase()).is_some_and(is_it))
}

#[test]
fn run_beside_a_cloud_provider_touches_nothing_else() {
    scenario(async {
        let (test_env, prefix) = (TestEnv::local(Preset::Fast).await?, "hle2e-beside");
        let before = test_env.resource_ids().await?;
        let vnet = test_env.azure().management_vnet.clone();
        let here = [("E2E_CLUSTER_VNET", vnet.as_str()), ("E2E_ONLY", "plain")];

        let unsaid = [("E2E_SUBSCRIPTION", "")];
        let process = on_cluster(&test_env, prefix, &[], &unsaid)?.spawn("unsaid", test_env.dir())?;
        let refused = end(&test_env, &process).await?;
        ensure!(
            !refused.well && refused.log.contains("E2E_SUBSCRIPTION is not set"),
            "{}",
            refused.log
        );

        let process = on_cluster(&test_env, prefix, &["--dry-run"], &here)?.spawn("dry-run", test_env.dir())?;
        let dry = end(&test_env, &process).await?;
        ensure!(dry.well, "{}", dry.log);
        ensure!(test_env.oracle().last_call().await? == 0, "neither asks Azure anything");
        nothing_bears(&test_env, prefix).await?;

        let process = on_cluster(&test_env, prefix, &[], &here)?.spawn("run", test_env.dir())?;
        let ran = end(&test_env, &process).await?;
        ensure!(ran.well && ran.out.contains("plain: passed"), "{}{}", ran.out, ran.log);
        nothing_bears(&test_env, prefix).await?;
        ensure!(
            test_env.resource_ids().await? == before,
            "{:?}",
            test_env.resource_ids().await?
        );

        let list: Vec<_> = dry.out.lines().map(str::to_owned).collect();
        let mut calls = test_env.oracle().journal(0).await?;
        calls.retain(|call| call.principal.as_deref() == Some(ADMINISTRATOR) && call.is_write());
        ensure!(calls.len() > 10, "{calls:?}");
        let unlisted: Vec<_> = calls.iter().filter(|call| !is_listed(call, &list)).collect();
        ensure!(unlisted.is_empty(), "{unlisted:?} of {list:?}");
        // Each resource on the list was made in Azure.
        let made = |line: &&String| {
            calls
                .iter()
                .any(|call| call.method == "PUT" && call.path.eq_ignore_ascii_case(line))
        };
        let unmade: Vec<_> = list
            .iter()
            .filter(|line| line.starts_with('/') && !made(line))
            .collect();
        ensure!(unmade.is_empty(), "{unmade:?}");
        Ok(())
    });
}

#[test]
fn bare_cluster_gets_its_network_and_addresses_from_the_run() {
    scenario(async {
        let (test_env, prefix) = (TestEnv::local(Preset::Fast).await?, "hle2e-bare");
        test_env.end_cloud_controller();
        let process = on_cluster(&test_env, prefix, &[], &[("E2E_ONLY", "given,hand-over")])?;
        let ran = end(&test_env, &process.spawn("run", test_env.dir())?).await?;
        ensure!(ran.well, "{}{}", ran.out, ran.log);
        ensure!(
            ran.out.contains("given: passed") && ran.out.contains("hand-over: passed"),
            "{}",
            ran.out
        );
        nothing_bears(&test_env, prefix).await
    });
}

#[test]
fn run_that_is_cut_short_leaves_nothing_after_all() {
    scenario(async {
        let (test_env, prefix) = (TestEnv::local(Preset::Fast).await?, "hle2e-short");
        let before = test_env.resource_ids().await?;
        let vnet = test_env.azure().management_vnet.clone();
        let here = [("E2E_CLUSTER_VNET", vnet.as_str()), ("E2E_ONLY", "plain")];

        let killed = on_cluster(&test_env, prefix, &[], &here)?.spawn("killed", test_env.dir())?;
        has_made(&test_env, &killed, prefix, "/privateendpoints/").await?;
        killed.kill();
        let left = test_env.resource_ids().await?;
        ensure!(left.iter().any(|id| id.contains("-pls-nat")), "{left:?}");
        let cleaning = on_cluster(&test_env, prefix, &["--clean", prefix], &here)?.spawn("clean", test_env.dir())?;
        let cleaned = end(&test_env, &cleaning).await?;
        ensure!(cleaned.well, "{}", cleaned.log);
        nothing_bears(&test_env, prefix).await?;
        ensure!(
            test_env.resource_ids().await? == before,
            "{:?}",
            test_env.resource_ids().await?
        );

        let stopped = on_cluster(&test_env, prefix, &[], &here)?.spawn("stopped", test_env.dir())?;
        has_made(&test_env, &stopped, prefix, "/privatelinkservices/").await?;
        stopped.signal("TERM")?;
        let ended = end(&test_env, &stopped).await?;
        ensure!(!ended.well && ended.log.contains("terminated"), "{}", ended.log);
        nothing_bears(&test_env, prefix).await
    });
}

async fn has_made(test_env: &TestEnv, run: &Process, prefix: &str, kind: &str) -> Result<()> {
    run.until("the run has got that far", LONG, async || {
        let ids = test_env.resource_ids().await?;
        ensure!(ids.iter().any(|id| id.contains(prefix) && id.contains(kind)), "{ids:?}");
        Ok(())
    })
    .await
}

#[test]
fn cluster_with_hosted_clusters_of_its_own_is_refused() {
    scenario(async {
        let (test_env, prefix) = (TestEnv::local(Preset::Fast).await?, "hle2e-refused");
        let others = HostedCluster::new(&test_env, "production");
        others.create_namespaces(&test_env).await?;
        others.create_hosted_cluster(&test_env).await?;
        for arguments in [&[][..], &["--dry-run"]] {
            let process = on_cluster(&test_env, prefix, arguments, &[])?.spawn("refused", test_env.dir())?;
            let refused = end(&test_env, &process).await?;
            ensure!(
                !refused.well && refused.log.contains("has a HostedCluster"),
                "{}",
                refused.log
            );
        }
        let elsewhere = [("E2E_CONTEXT", "production")];
        let process = on_cluster(&test_env, prefix, &[], &elsewhere)?.spawn("elsewhere", test_env.dir())?;
        let refused = end(&test_env, &process).await?;
        ensure!(!refused.well && refused.log.contains("no context"), "{}", refused.log);
        ensure!(test_env.oracle().last_call().await? == 0, "Azure is not asked");
        nothing_bears(&test_env, prefix).await
    });
}
