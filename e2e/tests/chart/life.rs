//! The program, run as the rendered Deployments say, does its job: both roles from their releases bring a cluster about, hand over, repair
//! it and take it away, with the rights and files that the chart gives them and nothing else.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, Preset};
use e2e::ground::Credential;
use e2e::helm::{Helm, chart};
use e2e::hosted_cluster::{ADDITIONAL_SUBSCRIPTION, HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pod::Pod;
use e2e::site::{SOON, nothing_is_left_of};
use e2e::{Ground, eventually, scenario};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;
use serde_json::{Value, json};

/// Where the releases are.
pub(crate) const HOME: &str = "hyperlink-system";
const TOKENS: &str = "/var/run/secrets/openshift/serviceaccount";

/// A ground with what the releases refer to.
pub(crate) struct Installed {
    pub(crate) ground: Ground,
    helm: Helm,
}

impl Installed {
    pub(crate) async fn start() -> Result<Self> {
        let ground = Ground::local(Preset::Fast).await?;
        let Credential::SecretFile { path } = &ground.azure().ho else {
            anyhow::bail!("the management side has no file");
        };
        let credentials = std::fs::read_to_string(path)?;
        let authorities = ground.azure().ca_file.as_ref().context("no authorities")?;
        let authorities = std::fs::read_to_string(authorities)?;
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": HOME, "name": "azure"},
                "stringData": {"credentials": credentials}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": HOME, "name": "authorities"},
                "data": {"ca.pem": authorities}}),
        ];
        let objects = objects.map(|object| object.to_string()).join("\n---\n");
        ground.control_plane().apply_yaml(&objects).await?;
        let helm = Helm::new(Some(ground.control_plane().kubeconfig_path()))?;
        Ok(Self { ground, helm })
    }

    /// Settings of every release on this ground.
    fn settings(&self) -> Value {
        let azure = self.ground.azure();
        json!({
            "armEndpoint": azure.arm, "authority": azure.authority, "audience": azure.audience,
            "caFile": "/etc/authorities/ca.pem", "resync": "2s", "recordResync": "2s",
        })
    }

    pub(crate) fn ho(&self) -> Value {
        let mut settings = self.settings();
        settings["resourceGroup"] = self.ground.azure().management_group.clone().into();
        json!({
            "role": "ho", "image": {"repository": "registry.example.com/hyperlink"}, "settings": settings,
            "azure": {"credential": "secret-file", "secret": {"name": "azure"}},
            "extraVolumes": [{"name": "authorities", "configMap": {"name": "authorities"}}],
            "extraVolumeMounts": [{"name": "authorities", "mountPath": "/etc/authorities"}],
        })
    }

    /// With the token that a sidecar writes, as HyperShift's does.
    fn cpo(&self) -> Value {
        let azure = self.ground.azure();
        json!({
            "role": "cpo", "image": {"repository": "registry.example.com/hyperlink"}, "settings": self.settings(),
            "azure": {"clientId": CPO_CLIENT, "tenantId": azure.tenant, "tokenFile": format!("{TOKENS}/token")},
            "allowScopes": {"hostedClusters": [{
                "namespace": NAMESPACE, "scopes": [format!("/subscriptions/{}", azure.guest_subscription)],
                "additionalAllowedSubscriptions": [ADDITIONAL_SUBSCRIPTION]}]},
            "extraVolumes": [
                {"name": "authorities", "configMap": {"name": "authorities"}},
                {"name": "cloud-token", "emptyDir": {"medium": "Memory"}}],
            "extraVolumeMounts": [
                {"name": "authorities", "mountPath": "/etc/authorities"},
                {"name": "cloud-token", "mountPath": TOKENS}],
        })
    }

    pub(crate) fn install(&self, release: &str, values: &Value) -> Result<()> {
        let file: PathBuf = self.ground.dir().join(format!("{release}.values.json"));
        std::fs::write(&file, values.to_string())?;
        let (chart, file) = (chart(), file.to_string_lossy().into_owned());
        let chart = chart.to_string_lossy();
        self.helm
            .run(&["install", release, &chart, "--namespace", HOME, "--values", &file])
            .map(drop)
    }

    pub(crate) async fn pod(&self, release: &str, name: &str) -> Result<Pod> {
        let deployment = format!("{release}-hyperlink");
        let control_plane = self.ground.control_plane();
        Pod::of(control_plane, HOME, &deployment, name, self.ground.dir()).await
    }

    pub(crate) async fn run(&self, release: &str, name: &str, role: Role) -> Result<Hyperlink> {
        self.pod(release, name).await?.start(role, self.ground.dir()).await
    }

    /// The guest side, whose token somebody writes after its start.
    async fn run_cpo(&self) -> Result<Hyperlink> {
        let Credential::WorkloadIdentity { token_file, .. } = &self.ground.azure().cpo else {
            anyhow::bail!("the guest side has no token");
        };
        let pod = self.pod("cpo", "cpo-0").await?;
        let cpo = pod.start(Role::Cpo, self.ground.dir()).await?;
        std::fs::copy(token_file, pod.mounted(TOKENS)?.join("token"))?;
        Ok(cpo)
    }
}

/// Waits until a process says that it stands by for another.
async fn stands_by(process: &Hyperlink, leader: &str) -> Result<()> {
    let line = format!("[+] lease (ho): standing by, {leader}_");
    eventually(&line, SOON, || async {
        let (status, text) = process.page("/readyz").await?;
        ensure!(status == 200 && text.contains(&line), "{status}: {text}");
        Ok(())
    })
    .await
}

/// What a ServiceAccount of [`HOME`] is told when it scrapes: status and text.
async fn scraped(installed: &Installed, account: &str, process: &Hyperlink) -> Result<(u16, String)> {
    let control_plane = installed.ground.control_plane();
    control_plane.service_account(HOME, account).await?;
    let token = control_plane.token(HOME, account, None).await?;
    // The certificate is the program's own: nobody could trust it.
    let http = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let url = format!("https://{}/metrics", process.metrics_address());
    let answer = http.get(url).bearer_auth(token).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

#[test]
fn one_control_plane_is_served_and_its_metrics_are_read_by_those_who_may() {
    scenario(async {
        let installed = Installed::start().await?;
        let ground = &installed.ground;
        let cluster = HostedCluster::new(ground, "alone");
        cluster.create_namespaces(ground).await?;
        let mut values = installed.cpo();
        values["namespace"] = cluster.control_plane_namespace().into();
        values["allowScopes"] = json!({});
        values["metrics"] = json!({"enabled": true, "readers": [{"namespace": HOME, "name": "prometheus"}]});
        installed.install("cpo", &values)?;
        installed.install("ho", &installed.ho())?;
        let cluster_roles: Api<ClusterRole> = Api::all(ground.client()?);
        ensure!(
            cluster_roles.get_opt(&format!("cpo-hyperlink.{HOME}")).await?.is_none(),
            "it has rights everywhere"
        );

        let cpo = installed.run_cpo().await?;
        let ho = installed.run("ho", "ho-0", Role::Ho).await?;
        cluster.create(ground).await?;
        cluster.becomes_available(ground, SOON).await?;
        cluster.becomes_reachable(ground, SOON).await?;
        cpo.ready(SOON).await?;

        let (status, text) = scraped(&installed, "prometheus", &cpo).await?;
        ensure!(status == 200 && text.contains("hyperlink_leader"), "{status}: {text}");
        let (status, text) = scraped(&installed, "somebody", &cpo).await?;
        ensure!(status == 403, "{status}: {text}");

        cluster.delete(ground, SOON).await?;
        nothing_is_left_of(ground, &cluster, &[]).await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

#[test]
fn cluster_lives_on_the_rendered_deployments() {
    scenario(async {
        let installed = Installed::start().await?;
        let ground = &installed.ground;
        installed.install("ho", &installed.ho())?;
        installed.install("cpo", &installed.cpo())?;
        let first = installed.run("ho", "ho-0", Role::Ho).await?;
        first.leading(SOON).await?;
        let replica = installed.run("ho", "ho-1", Role::Ho).await?;
        let cpo = installed.run_cpo().await?;
        // Another installation of the role in the namespace: nothing of it is refused, and it waits as the replica does.
        installed.install("again", &installed.ho())?;
        let again = installed.run("again", "again-0", Role::Ho).await?;
        stands_by(&replica, "ho-0").await?;
        stands_by(&again, "ho-0").await?;
        again.stop().await?;

        let cluster = HostedCluster::new(ground, "rendered").with_base_domain("apps.example.com");
        cluster.create(ground).await?;
        cluster.becomes_available(ground, SOON).await?;
        cluster.becomes_reachable(ground, SOON).await?;

        first.stop().await?;
        replica.leading(SOON).await?;
        ground.oracle().drift_delete(&cluster.link_service(ground)).await?;
        let service = cluster.link_service(ground);
        eventually("the service is back", SOON, || async {
            let found = ground.oracle().resources(&service).await?;
            found.first().map(drop).context("it is not there")
        })
        .await?;
        cluster.becomes_reachable(ground, SOON).await?;
        for process in [&replica, &cpo] {
            process.ready(SOON).await?;
        }

        cluster.delete(ground, SOON).await?;
        nothing_is_left_of(ground, &cluster, &[]).await?;
        replica.stop().await?;
        cpo.stop().await
    });
}
