//! The program runs as the rendered Deployments of the examples say: both roles from their releases build a cluster's
//! path, hand over, repair it and delete it, with only the rights, identities and files that the chart gives them.

use anyhow::{Context, Result, bail, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::installed::{HOME, Installed};
use e2e::shared_env::{SOON, nothing_is_left_of};
use e2e::test_env::Credential;
use e2e::{TestEnv, eventually, scenario};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;
use serde_json::json;

const TOKENS: &str = "/var/run/secrets/openshift/serviceaccount";

/// A test environment of its own with what the releases refer to.
pub(crate) async fn installed() -> Result<Installed> {
    Installed::on(TestEnv::local(Preset::Fast).await?).await
}

/// Starts the guest side, whose token is written only after its start.
async fn run_cpo_of_one(installed: &Installed) -> Result<Hyperlink> {
    let Credential::WorkloadIdentity { token_file, .. } = &installed.test_env.azure().cpo else {
        bail!("the guest side has no token");
    };
    let pod = installed.pod("cpo", "cpo-0").await?;
    let cpo = pod.start(Role::Cpo, installed.test_env.dir()).await?;
    std::fs::copy(token_file, pod.mounted(TOKENS)?.join("token"))?;
    Ok(cpo)
}

/// Waits until a process reports that it stands by for another.
async fn stands_by(process: &Hyperlink, leader: &str) -> Result<()> {
    let line = format!("[+] lease (ho): standing by, {leader}_");
    eventually(&line, SOON, || async {
        let (status, text) = process.page("/readyz").await?;
        ensure!(status == 200 && text.contains(&line), "{status}: {text}");
        Ok(())
    })
    .await
}

/// The answer to a scrape by a ServiceAccount of [`HOME`]: status and text.
async fn scraped(installed: &Installed, account: &str, process: &Hyperlink) -> Result<(u16, String)> {
    let control_plane = installed.test_env.control_plane();
    control_plane.service_account(HOME, account).await?;
    let token = control_plane.token(HOME, account, None).await?;
    // The program made the certificate itself: no client could trust it.
    let http = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let url = format!("https://{}/metrics", process.metrics_address());
    let answer = http.get(url).bearer_auth(token).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

#[test]
fn one_control_plane_is_served_and_its_metrics_are_protected() {
    scenario(async {
        let installed = installed().await?;
        let test_env = &installed.test_env;
        let cluster = HostedCluster::new(test_env, "alone");
        cluster.create_namespaces(test_env).await?;
        let namespace = cluster.control_plane_namespace();
        let mut values = installed.cpo_of_one(&namespace)?;
        values["metrics"] = json!({"enabled": true, "readers": [{"namespace": HOME, "name": "prometheus"}]});
        installed.install("cpo", &values)?;
        let mut values = installed.ho_with_managed_identity()?;
        values["namespace"] = namespace.into();
        installed.install("ho", &values)?;
        let cluster_roles: Api<ClusterRole> = Api::all(test_env.client()?);
        ensure!(
            cluster_roles.get_opt(&format!("cpo-hyperlink.{HOME}")).await?.is_none(),
            "it has rights everywhere"
        );

        let cpo = run_cpo_of_one(&installed).await?;
        let ho = installed.run("ho", "ho-0", Role::Ho).await?;
        cluster.create(test_env).await?;
        cluster.becomes_available(test_env, SOON).await?;
        cluster.becomes_reachable(test_env, SOON).await?;
        // They have all rights that they ask for.
        for process in [&ho, &cpo] {
            process.ready(SOON).await?;
        }

        let (status, text) = scraped(&installed, "prometheus", &cpo).await?;
        ensure!(status == 200 && text.contains("hyperlink_leader"), "{status}: {text}");
        let (status, text) = scraped(&installed, "somebody", &cpo).await?;
        ensure!(status == 403, "{status}: {text}");

        cluster.delete(test_env, SOON).await?;
        nothing_is_left_of(test_env, &cluster, &[]).await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

#[test]
fn cluster_lives_on_the_rendered_deployments() {
    scenario(async {
        let installed = installed().await?;
        let test_env = &installed.test_env;
        installed.install("ho", &installed.ho()?)?;
        installed.install("cpo", &installed.cpo_of_many()?)?;
        let first = installed.run("ho", "ho-0", Role::Ho).await?;
        first.leading(SOON).await?;
        let replica = installed.run("ho", "ho-1", Role::Ho).await?;
        let cpo = installed.run("cpo", "cpo-0", Role::Cpo).await?;
        // Another installation of the role in the namespace is not refused, and stands by as the replica does.
        installed.install("again", &installed.ho()?)?;
        let again = installed.run("again", "again-0", Role::Ho).await?;
        stands_by(&replica, "ho-0").await?;
        stands_by(&again, "ho-0").await?;
        again.stop().await?;

        let cluster = HostedCluster::new(test_env, "rendered").with_base_domain("apps.example.com");
        cluster.create(test_env).await?;
        cluster.becomes_available(test_env, SOON).await?;
        cluster.becomes_reachable(test_env, SOON).await?;

        first.stop().await?;
        replica.leading(SOON).await?;
        test_env.oracle().drift_delete(&cluster.link_service(test_env)).await?;
        let service = cluster.link_service(test_env);
        eventually("the service is back", SOON, || async {
            let found = test_env.oracle().resources(&service).await?;
            found.first().map(drop).context("it is not there")
        })
        .await?;
        cluster.becomes_reachable(test_env, SOON).await?;
        for process in [&replica, &cpo] {
            process.ready(SOON).await?;
        }

        cluster.delete(test_env, SOON).await?;
        nothing_is_left_of(test_env, &cluster, &[]).await?;
        replica.stop().await?;
        cpo.stop().await
    });
}
