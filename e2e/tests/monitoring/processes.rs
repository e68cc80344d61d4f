//! Alerts on the processes themselves: they fire while something is wrong with these, and no longer.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::azure_sim::{HO_SECRET, Preset};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::runbook::{quotes_line, quotes_samples_of};
use e2e::shared_env::{SOON, leases, run};
use e2e::test_env::Credential;
use e2e::{TestEnv, binaries, crds, eventually, roles};
use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::pods::{Pods, token_file};
use crate::rules::{all_resolve, fire, resolve};
use crate::watched::Watched;

/// Length of a minute of the rules in this test; tokens live for 60 of these.
const MINUTE: Duration = Duration::from_secs(1);

/// A lease that is shorter than the pause of its holder.
const SHORT_LEASE: [(&str, &str); 3] = [
    ("lease-duration", "4s"),
    ("lease-renew-deadline", "3s"),
    ("lease-retry", "500ms"),
];

/// Longer than the short lease, and shorter than the usual one.
const PAUSE: Duration = Duration::from_secs(5);

#[test]
fn alerts_on_processes_fire_while_these_fail_and_no_longer() {
    run(async {
        let hour = json!({"token_life_s": 60 * MINUTE.as_secs()});
        let test_env = TestEnv::local_with(Preset::Fast, &json!({}), &hour).await?;
        leases(&test_env).await?;
        let watched = Watched::start(test_env.dir(), MINUTE).await?;
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[]).await?;
        watched.scrapes("ho", &[("ho-0", &ho)])?;
        let unusual = one_panics(&test_env, &watched).await?;

        let token = std::fs::read(the_token_file(&test_env)?)?;
        std::fs::write(token_file(&test_env, 0), &token)?;
        std::fs::write(token_file(&test_env, 1), "")?;
        let mut pods = Pods::start(&test_env, &watched, &SHORT_LEASE).await?;
        watched.sees(3).await?;
        unusual.becomes_available(&test_env, SOON).await?;
        secret(&test_env, "expired")?;

        nobody_leads(&test_env, &watched, &mut pods).await?;
        leader_stands_still(&watched, &mut pods).await?;

        pods.during(tokens_end(&watched, &ho)).await?;
        secret(&test_env, HO_SECRET)?;
        std::fs::write(token_file(&test_env, 1), &token)?;
        all_resolve(&watched.prometheus).await?;
        hosted_clusters_are_served_no_more(&test_env, &watched, &ho).await?;
        pods.stop().await?;
        ho.stop().await
    });
}

fn the_token_file(test_env: &TestEnv) -> Result<&Path> {
    match &test_env.azure().cpo {
        Credential::WorkloadIdentity { token_file, .. } => Ok(token_file),
        Credential::SecretFile { .. } => bail!("the guest side has no federated token"),
    }
}

/// Sets the secret that the management side sends to Entra from now on.
fn secret(test_env: &TestEnv, secret: &str) -> Result<()> {
    let Credential::SecretFile { path } = &test_env.azure().ho else {
        bail!("the management side has no secret")
    };
    let mut file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    file["clientSecret"] = secret.into();
    let new = path.with_extension("new");
    std::fs::write(&new, file.to_string())?;
    Ok(std::fs::rename(new, path)?)
}

/// Starts a defective build of the guest side, which panics on one of two clusters and reads one zone in a loop.
/// Returns the cluster on which it panics.
async fn one_panics(test_env: &TestEnv, watched: &Watched) -> Result<HostedCluster> {
    let alerts = ["HyperlinkPanicked", "HyperlinkCallBudgetExhausted"];
    let program = binaries::executable("defective")?;
    let cpo = Hyperlink::start_program(&program, test_env, Role::Cpo, "cpo-defective", &[]).await?;
    watched.scrapes("cpo", &[("cpo-0", &cpo)])?;
    watched.sees(2).await?;
    let named = |name| HostedCluster::new(test_env, name);
    let (usual, unusual) = (named("usual"), named("unusual"));
    try_join_all([&usual, &unusual].map(|cluster| cluster.create(test_env))).await?;
    fire(&watched.prometheus, &alerts).await?;
    for alert in alerts {
        quotes_samples_of(alert, &[cpo.page("/metrics").await?.1])?;
    }
    has_logged(
        &cpo,
        &["panicked", "a reconcile panicked", "call budget exhausted: not sent"],
    )?;
    // The other cluster is served.
    usual.becomes_available(test_env, SOON).await?;
    Ok(unusual)
}

/// Removes the right to the lease, and restores it.
async fn nobody_leads(test_env: &TestEnv, watched: &Watched, pods: &mut Pods<'_>) -> Result<()> {
    let alert = "HyperlinkNoLeader";
    let bindings: Api<RoleBinding> = Api::namespaced(test_env.client()?, roles::NAMESPACE);
    let name = "hyperlink-cpo-lease-cpo";
    let mut binding = bindings.get(name).await?;
    bindings.delete(name, &Default::default()).await?;
    pods.during(fire(&watched.prometheus, &[alert])).await?;
    for one in pods.running() {
        shows(one, "[-] lease (cpo): the API server does not answer about the lease").await?;
        has_logged(one, &["cannot campaign for the lease"])?;
        quotes_samples_of(alert, &[one.page("/metrics").await?.1])?;
    }
    binding.metadata = kube::core::ObjectMeta {
        name: binding.metadata.name,
        ..Default::default()
    };
    bindings.create(&PostParams::default(), &binding).await?;
    pods.during(resolve(&watched.prometheus, &[alert])).await
}

/// A paused process loses a short lease; a longer lease outlasts the pause.
async fn leader_stands_still(watched: &Watched, pods: &mut Pods<'_>) -> Result<()> {
    let alert = "HyperlinkLeaderFlapping";
    pods.flap(fire(&watched.prometheus, &[alert])).await?;
    pods.take(&[]).await?;
    pods.outlasts(PAUSE).await?;
    pods.during(resolve(&watched.prometheus, &[alert])).await
}

/// One process has an invalid secret, and another one an empty token file.
async fn tokens_end(watched: &Watched, ho: &Hyperlink) -> Result<()> {
    let alert = "HyperlinkTokenExpiring";
    fire(&watched.prometheus, &[alert]).await?;
    has_logged(ho, &["no new token"])?;
    quotes_samples_of(alert, &[ho.page("/metrics").await?.1])
}

/// HyperShift's definition does not serve the version that is watched, and serves it again.
async fn hosted_clusters_are_served_no_more(test_env: &TestEnv, watched: &Watched, ho: &Hyperlink) -> Result<()> {
    let alert = "HyperlinkWatchFailing";
    let client = test_env.client()?;
    crds::serve_hosted_clusters(&client, false).await?;
    fire(&watched.prometheus, &[alert]).await?;
    let line = "[+] controllers (ho): running; no news of hostedclusters: not installed, or the answer cannot be read";
    shows(ho, line).await?;
    quotes_line(alert, line)?;
    quotes_samples_of(alert, &[ho.page("/metrics").await?.1])?;
    crds::serve_hosted_clusters(&client, true).await?;
    resolve(&watched.prometheus, &[alert]).await
}

/// Waits until `/readyz` has this line.
async fn shows(hyperlink: &Hyperlink, line: &str) -> Result<()> {
    eventually(line, SOON, || async {
        let (_, page) = hyperlink.page("/readyz").await?;
        ensure!(page.lines().any(|shown| shown == line), "{page}");
        Ok(())
    })
    .await
}

/// Fails unless the process has logged each of these.
pub(crate) fn has_logged(hyperlink: &Hyperlink, messages: &[&str]) -> Result<()> {
    let path = hyperlink.process().log();
    let log = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for message in messages {
        let line = format!("\"message\":\"{message}\"");
        ensure!(log.contains(&line), "{} has no {line}", path.display());
    }
    Ok(())
}
