//! The program, run as the rendered Deployments of the examples say, does its job: both roles from their releases bring a cluster about, hand
//! over, repair it and take it away, with the rights, identities and files that the chart gives them and nothing else.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset};
use e2e::ground::Credential;
use e2e::helm::{Helm, chart};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pod::{Pod, WEBHOOK_AUDIENCE};
use e2e::site::{SOON, control, nothing_is_left_of};
use e2e::{ControlPlane, Ground, eventually, scenario};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;
use serde_json::{Value, json};

/// Where the releases are.
pub(crate) const HOME: &str = "hyperlink-system";
/// The Secret that an example names.
pub(crate) const SECRET: &str = "hyperlink-azure";
const TOKENS: &str = "/var/run/secrets/openshift/serviceaccount";

/// A ground with what the releases refer to.
pub(crate) struct Installed {
    pub(crate) ground: Ground,
    helm: Helm,
}

impl Installed {
    pub(crate) async fn start() -> Result<Self> {
        let ground = Ground::local(Preset::Fast).await?;
        trust_the_releases(&ground).await?;
        let Credential::SecretFile { path } = &ground.azure().ho else {
            anyhow::bail!("the management side has no file");
        };
        let credentials = std::fs::read_to_string(path)?;
        let authorities = ground.azure().ca_file.as_ref().context("no authorities")?;
        let authorities = std::fs::read_to_string(authorities)?;
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": HOME, "name": SECRET},
                "stringData": {"credentials": credentials}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": HOME, "name": "authorities"},
                "data": {"ca.pem": authorities}}),
        ];
        let objects = objects.map(|object| object.to_string()).join("\n---\n");
        ground.control_plane().apply_yaml(&objects).await?;
        let helm = Helm::new(Some(ground.control_plane().kubeconfig_path()))?;
        Ok(Self { ground, helm })
    }

    /// The values of an example, with this ground's addresses, and looking often.
    fn example(&self, name: &str) -> Result<Value> {
        let text = std::fs::read_to_string(chart().join(format!("examples/{name}.yaml")))?;
        let mut values: Value = serde_saphyr::from_str(&text)?;
        let azure = self.ground.azure();
        values["image"] = json!({"repository": "registry.example.com/hyperlink"});
        for (setting, value) in [
            ("armEndpoint", azure.arm.as_str()),
            ("authority", &azure.authority),
            ("audience", &azure.audience),
            ("caFile", "/etc/authorities/ca.pem"),
            ("resync", "2s"),
            ("recordResync", "2s"),
        ] {
            values["settings"][setting] = value.into();
        }
        for (list, item) in [
            (
                "extraVolumes",
                json!({"name": "authorities", "configMap": {"name": "authorities"}}),
            ),
            (
                "extraVolumeMounts",
                json!({"name": "authorities", "mountPath": "/etc/authorities"}),
            ),
        ] {
            let mut items = values[list].as_array().cloned().unwrap_or_default();
            items.push(item);
            values[list] = items.into();
        }
        Ok(values)
    }

    fn example_of_ho(&self, name: &str) -> Result<Value> {
        let mut values = self.example(name)?;
        values["settings"]["resourceGroup"] = self.ground.azure().management_group.clone().into();
        Ok(values)
    }

    pub(crate) fn ho(&self) -> Result<Value> {
        self.example_of_ho("ho-credentials-secret")
    }

    /// With the identity of its ServiceAccount.
    fn ho_with_managed_identity(&self) -> Result<Value> {
        let mut values = self.example_of_ho("ho-managed-identity")?;
        values["azure"]["clientId"] = HO_CLIENT.into();
        Ok(values)
    }

    /// The same for the guest side, which may use all that the ground has.
    fn cpo_of_many(&self) -> Result<Value> {
        let mut values = self.example("cpo-many")?;
        let allowed = e2e::hyperlink::allow_guest_subscription(&self.ground);
        values["allowScopes"]["hostedClusters"] = allowed["hostedClusters"].clone();
        values["azure"]["clientId"] = CPO_CLIENT.into();
        Ok(values)
    }

    /// With the token that a sidecar writes, as HyperShift's does.
    fn cpo_of_one(&self, namespace: &str) -> Result<Value> {
        let mut values = self.example("cpo-one-control-plane")?;
        values["namespace"] = namespace.into();
        values["azure"]["clientId"] = CPO_CLIENT.into();
        values["azure"]["tenantId"] = self.ground.azure().tenant.clone().into();
        Ok(values)
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
        let tenant = &self.ground.azure().tenant;
        Pod::of(control_plane, HOME, &deployment, name, self.ground.dir(), tenant).await
    }

    pub(crate) async fn run(&self, release: &str, name: &str, role: Role) -> Result<Hyperlink> {
        self.pod(release, name).await?.start(role, self.ground.dir()).await
    }

    /// The guest side whose token somebody writes after its start.
    async fn run_cpo_of_one(&self) -> Result<Hyperlink> {
        let Credential::WorkloadIdentity { token_file, .. } = &self.ground.azure().cpo else {
            anyhow::bail!("the guest side has no token");
        };
        let pod = self.pod("cpo", "cpo-0").await?;
        let cpo = pod.start(Role::Cpo, self.ground.dir()).await?;
        std::fs::copy(token_file, pod.mounted(TOKENS)?.join("token"))?;
        Ok(cpo)
    }
}

/// The identities trust the ServiceAccounts of the releases `ho` and `cpo`, as a federated credential has it.
async fn trust_the_releases(ground: &Ground) -> Result<()> {
    let keys = ground.control_plane().token_keys().await?;
    let mut world = e2e::azure_sim::world(&keys, None, &json!({}), &json!({}))?;
    let principals = world.pointer_mut("/tenants/0/principals").and_then(Value::as_array_mut);
    for principal in principals.context("no principals")? {
        let release = match principal["client_id"].as_str() {
            Some(HO_CLIENT) => "ho",
            Some(CPO_CLIENT) => "cpo",
            _ => continue,
        };
        let mut trusted = principal["federated"].as_array().cloned().unwrap_or_default();
        trusted.push(
            json!({"issuer": ControlPlane::TOKEN_ISSUER, "audience": WEBHOOK_AUDIENCE, "jwks": keys,
            "subject": format!("system:serviceaccount:{HOME}:{release}-hyperlink")}),
        );
        principal["federated"] = trusted.into();
    }
    control(ground, reqwest::Method::PUT, "/seed", world).await
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
        let namespace = cluster.control_plane_namespace();
        let mut values = installed.cpo_of_one(&namespace)?;
        values["metrics"] = json!({"enabled": true, "readers": [{"namespace": HOME, "name": "prometheus"}]});
        installed.install("cpo", &values)?;
        let mut values = installed.ho_with_managed_identity()?;
        values["namespace"] = namespace.into();
        installed.install("ho", &values)?;
        let cluster_roles: Api<ClusterRole> = Api::all(ground.client()?);
        ensure!(
            cluster_roles.get_opt(&format!("cpo-hyperlink.{HOME}")).await?.is_none(),
            "it has rights everywhere"
        );

        let cpo = installed.run_cpo_of_one().await?;
        let ho = installed.run("ho", "ho-0", Role::Ho).await?;
        cluster.create(ground).await?;
        cluster.becomes_available(ground, SOON).await?;
        cluster.becomes_reachable(ground, SOON).await?;
        // Nothing that they ask for is missing among their rights.
        for process in [&ho, &cpo] {
            process.ready(SOON).await?;
        }

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
        installed.install("ho", &installed.ho()?)?;
        installed.install("cpo", &installed.cpo_of_many()?)?;
        let first = installed.run("ho", "ho-0", Role::Ho).await?;
        first.leading(SOON).await?;
        let replica = installed.run("ho", "ho-1", Role::Ho).await?;
        let cpo = installed.run("cpo", "cpo-0", Role::Cpo).await?;
        // Another installation of the role in the namespace: nothing of it is refused, and it waits as the replica does.
        installed.install("again", &installed.ho()?)?;
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
