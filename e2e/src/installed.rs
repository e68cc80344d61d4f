//! The releases of the chart and the objects that they refer to: values for the simulated Azure, and helm.

mod aws;
mod capz;

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub use self::aws::{BLUE_ROLE, InstalledOnAws};
pub use self::capz::InstalledOnCapz;
use crate::azure_sim::{CPO_CLIENT, HO_CLIENT};
use crate::helm::{Helm, chart};
use crate::hyperlink::{Hyperlink, Role};
use crate::pod::{Pod, WEBHOOK_AUDIENCE};
use crate::shared_env::control;
use crate::test_env::Credential;
use crate::{ControlPlane, TestEnv};

/// The namespace of the releases.
pub const HOME: &str = "hyperlink-system";
/// The Secret that an example names.
pub const SECRET: &str = "hyperlink-azure";

/// A test environment with the objects that the releases refer to.
#[derive(Debug)]
pub struct Installed {
    /// The cluster and the simulated Azure.
    pub test_env: TestEnv,
    /// helm, as the administrator.
    pub helm: Helm,
}

impl Installed {
    /// Creates the objects that the examples of the chart refer to.
    ///
    /// # Errors
    ///
    /// The API server or the simulator refuses.
    pub async fn on(test_env: TestEnv) -> Result<Self> {
        trust_the_releases(&test_env).await?;
        let Credential::SecretFile { path } = &test_env.azure().ho else {
            bail!("the management side has no file");
        };
        let credentials = std::fs::read_to_string(path)?;
        let authorities = test_env.azure().ca_file.as_ref().context("no authorities")?;
        create_home(test_env.control_plane(), authorities, &[(SECRET, &credentials)]).await?;
        let helm = Helm::new(Some(test_env.control_plane().kubeconfig_path()))?;
        Ok(Self { test_env, helm })
    }

    /// The values of an example, with this test environment's addresses and short resync intervals.
    ///
    /// # Errors
    ///
    /// There is no such example.
    pub fn example(&self, name: &str) -> Result<Value> {
        let azure = self.test_env.azure();
        let settings = [
            ("armEndpoint", azure.arm.as_str()),
            ("authority", &azure.authority),
            ("audience", &azure.audience),
            ("resync", "2s"),
            ("recordResync", "2s"),
        ];
        example(name, &settings)
    }

    fn example_of_ho(&self, name: &str) -> Result<Value> {
        let mut values = self.example(name)?;
        values["settings"]["resourceGroup"] = self.test_env.azure().management_group.clone().into();
        Ok(values)
    }

    /// The values of the HO role, with a client secret.
    ///
    /// # Errors
    ///
    /// The example cannot be read.
    pub fn ho(&self) -> Result<Value> {
        self.example_of_ho("ho-credentials-secret")
    }

    /// The values of the HO role, with the identity of its ServiceAccount.
    ///
    /// # Errors
    ///
    /// As [`Installed::ho`].
    pub fn ho_with_managed_identity(&self) -> Result<Value> {
        let mut values = self.example_of_ho("ho-managed-identity")?;
        values["azure"]["clientId"] = HO_CLIENT.into();
        Ok(values)
    }

    /// The values of the CPO role for all control planes, which may use the whole guest subscription.
    ///
    /// # Errors
    ///
    /// As [`Installed::ho`].
    pub fn cpo_of_many(&self) -> Result<Value> {
        let mut values = self.example("cpo-many")?;
        let allowed = crate::hyperlink::allow_guest_subscription(&self.test_env);
        values["allowScopes"]["hostedClusters"] = allowed["hostedClusters"].clone();
        values["azure"]["clientId"] = CPO_CLIENT.into();
        Ok(values)
    }

    /// The values of the CPO role for one control plane, with a token that a sidecar writes, as HyperShift's does.
    ///
    /// # Errors
    ///
    /// As [`Installed::ho`].
    pub fn cpo_of_one(&self, namespace: &str) -> Result<Value> {
        let mut values = self.example("cpo-one-control-plane")?;
        values["namespace"] = namespace.into();
        values["azure"]["clientId"] = CPO_CLIENT.into();
        values["azure"]["tenantId"] = self.test_env.azure().tenant.clone().into();
        Ok(values)
    }

    /// Installs the chart with these values, or upgrades the release to them. helm does not wait for Pods.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn install(&self, release: &str, values: &Value) -> Result<()> {
        install(&self.helm, self.test_env.dir(), release, values)
    }

    /// A Pod of a release, to run as a process.
    ///
    /// # Errors
    ///
    /// As [`Pod::of`].
    pub async fn pod(&self, release: &str, name: &str) -> Result<Pod> {
        let deployment = format!("{release}-hyperlink");
        let control_plane = self.test_env.control_plane();
        let tenant = &self.test_env.azure().tenant;
        Pod::of(control_plane, HOME, &deployment, name, self.test_env.dir(), tenant).await
    }

    /// Runs a Pod of a release as a process.
    ///
    /// # Errors
    ///
    /// As [`Pod::start`].
    pub async fn run(&self, release: &str, name: &str, role: Role) -> Result<Hyperlink> {
        self.pod(release, name).await?.start(role, self.test_env.dir()).await
    }
}

/// Creates the namespace of the releases, the authorities that they trust, and Secrets with these files `credentials`.
async fn create_home(control_plane: &ControlPlane, authorities: &Path, secrets: &[(&str, &str)]) -> Result<()> {
    let authorities = std::fs::read_to_string(authorities)?;
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": HOME, "name": "authorities"},
            "data": {"ca.pem": authorities}}),
    ];
    objects.extend(secrets.iter().map(|(name, credentials)| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": HOME, "name": name},
            "stringData": {"credentials": credentials}})
    }));
    let objects: Vec<_> = objects.iter().map(Value::to_string).collect();
    control_plane.apply_yaml(&objects.join("\n---\n")).await.map(drop)
}

/// The values of an example, with these settings and the authorities of [`HOME`].
fn example(name: &str, settings: &[(&str, &str)]) -> Result<Value> {
    let text = std::fs::read_to_string(chart().join(format!("examples/{name}.yaml")))?;
    let mut values: Value = serde_saphyr::from_str(&text)?;
    values["image"] = json!({"repository": "registry.example.com/hyperlink"});
    for (setting, value) in settings.iter().chain(&[("caFile", "/etc/authorities/ca.pem")]) {
        values["settings"][setting] = (*value).into();
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

fn install(helm: &Helm, dir: &Path, release: &str, values: &Value) -> Result<()> {
    let file = dir.join(format!("{release}.values.json"));
    std::fs::write(&file, values.to_string())?;
    let (chart, file) = (chart(), file.to_string_lossy().into_owned());
    let chart = chart.to_string_lossy();
    let arguments = [
        "upgrade",
        "--install",
        release,
        &chart,
        "--namespace",
        HOME,
        "--values",
        &file,
    ];
    helm.run(&arguments).map(drop)
}

/// Makes the identities trust the ServiceAccounts of the releases `ho` and `cpo`, by federated credentials.
async fn trust_the_releases(test_env: &TestEnv) -> Result<()> {
    let keys = test_env.control_plane().token_keys().await?;
    let mut seed = crate::azure_sim::world(&keys, None, &json!({}), &json!({}))?;
    let principals = seed.pointer_mut("/tenants/0/principals").and_then(Value::as_array_mut);
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
    control(test_env, reqwest::Method::PUT, "/seed", seed).await
}
