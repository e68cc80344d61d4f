//! A given [`Target`]: a cluster by its kubeconfig, and an Azure by the AZURE_ variables.
//!
//! Everything that a run creates bears its prefix, and the run writes nothing without the prefix. `cluster` and `arm`
//! define what may be changed; `clean` deletes all of it, however the run ended.

pub mod arm;
mod cloud_provider;
pub mod cluster;
mod oracle;
mod reachable;
pub mod settings;

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use anyhow::{Context, Result};
use hyperlink::azure::arm::auth::{CredentialSource, TokenCache};
use hyperlink::azure::arm::https::HttpSettings;
use hyperlink::azure::arm::transport::HttpsTransport;
use serde_json::json;

use crate::kubeconfig::Access;
use crate::run_dir::RunDir;
use crate::running::Running;
use crate::test_env::{Azure, Credential};
use crate::{Target, crds, roles, shared_env};
use arm::{Arm, Bounds};
use cloud_provider::{Balancer, CloudProvider};
use cluster::Own;
use oracle::ArmOracle;
use settings::{Proof, Settings};

/// The suffix of the run's resource group for the management cluster's resources.
const MANAGEMENT: &str = "management";

/// The name of the file from which Hyperlink reads a client secret.
const SECRET_FILE: &str = "azure-credentials.json";

/// A run on a given cluster and a given Azure.
pub struct Foreign {
    settings: Settings,
    arm: Arc<Arm>,
    target: Target,
}

impl Foreign {
    /// Reads the kubeconfig. It sends no request yet.
    ///
    /// # Errors
    ///
    /// The kubeconfig, its context or the CA file cannot be used.
    pub async fn new(settings: Settings) -> Result<Self> {
        let dir = RunDir::new("e2e")?;
        let access = Access::read(&settings.kubeconfig, Some(&settings.context)).await?;
        let azure = azure(&settings, &dir)?;
        let http = HttpSettings {
            ca_file: settings.ca_file.clone(),
            ..HttpSettings::new("e2e")
        };
        let (http, cloud) = (http.client()?, &settings.cloud);
        let tokens = Arc::new(TokenCache::new(source(&azure.ho), cloud, http.clone()));
        let bounds = Bounds {
            prefix: settings.prefix.clone(),
            subscription: settings.subscription.clone(),
            cluster_vnet: settings.cluster_vnet.clone(),
        };
        let transport = Box::new(HttpsTransport::new(http, cloud, tokens));
        let arm = Arc::new(Arm::new(transport, cloud.endpoint().clone(), bounds, settings.patience));
        let oracle = Arc::new(ArmOracle::new(Arc::clone(&arm), access.client()?));
        let prefix = Some(settings.prefix.to_string());
        let target = Target::new(azure, oracle, access, prefix, settings.patience, dir);
        Ok(Self { settings, arm, target })
    }

    /// Fails if the cluster must not be used for a run.
    ///
    /// # Errors
    ///
    /// As [`cluster::may_be_used`].
    pub async fn check(&self) -> Result<()> {
        cluster::may_be_used(&self.target.client()?).await
    }

    /// What a run would create, one id or name for each line; a resource includes what is inside it.
    ///
    /// This sends no request.
    pub fn would_make(&self) -> Vec<String> {
        let target = &self.target;
        let mut lines = vec![
            format!("namespace {}", target.hosted_clusters()),
            self.management_group(),
        ];
        if !self.settings.pods {
            lines.push(format!("namespace {}", target.hyperlink_namespace()));
            let roles = ["ho", "cpo"].map(|role| target.name(&format!("hyperlink-{role}")));
            lines.extend(roles.map(|name| format!("clusterrole {name}")));
        }
        if self.settings.cluster_vnet.is_none() {
            lines.extend([target.azure().management_vnet.clone(), self.balancer().id]);
        }
        for scenario in &self.settings.scenarios {
            let cluster = scenario.cluster(target);
            lines.extend([
                format!("namespace {}", cluster.control_plane_namespace()),
                cluster.resource_group(),
                cluster.vnet(),
                cluster.link_service(target),
                cluster.endpoint(),
            ]);
            lines.push(if scenario.gives_a_nat_subnet() {
                self.given_nat_subnet()
            } else {
                cluster.own_nat_subnet(target)
            });
            lines.extend(cluster.zones());
        }
        lines.sort();
        lines.dedup();
        lines
    }

    /// Runs all scenarios, one after the other, and prints the name of each that has passed.
    ///
    /// # Errors
    ///
    /// A scenario fails; the later ones do not run.
    pub async fn run(&self) -> Result<()> {
        let client = self.target.client()?;
        crds::install_missing(&client).await?;
        let _provider = self.prepare(client).await?;
        for scenario in &self.settings.scenarios {
            let name = scenario.as_str();
            let running = if self.settings.pods {
                Running::Pods
            } else {
                Running::processes(&self.target).await?
            };
            scenario
                .run(&self.target, running)
                .await
                .with_context(|| format!("scenario {name}"))?;
            println!("{name}: passed");
        }
        Ok(())
    }

    /// Creates what every scenario needs; returns the cloud provider, if the cluster has none.
    async fn prepare(&self, client: kube::Client) -> Result<Option<CloudProvider>> {
        let (target, settings) = (&self.target, &self.settings);
        if !settings.pods {
            let prefix = target.name("");
            roles::install_in(target.admin(), target.dir(), &target.hyperlink_namespace(), &prefix).await?;
            shared_env::leases(target).await?;
        }
        let location = &settings.location;
        target
            .oracle()
            .drift_put(&self.management_group(), &json!({"location": location}))
            .await?;
        if settings.cluster_vnet.is_some() {
            return Ok(None);
        }
        let vnet = json!({"location": location, "properties": {
            "addressSpace": {"addressPrefixes": ["10.224.0.0/12"]},
            "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.224.0.0/16"}}]}});
        target
            .oracle()
            .drift_put(&target.azure().management_vnet, &vnet)
            .await?;
        let balancer = self.balancer();
        let empty = json!({"location": location, "sku": {"name": "Standard"}, "properties": {}});
        target.oracle().drift_put(&balancer.id, &empty).await?;
        Ok(Some(CloudProvider::start(Arc::clone(&self.arm), client, balancer)))
    }

    /// Deletes everything that bears the prefix. First the cluster's objects, so that nobody recreates anything; then
    /// the groups of the hosted clusters, whose Private Endpoints block deletion of the Private Link Services; then
    /// everything else.
    ///
    /// # Errors
    ///
    /// Something cannot be deleted.
    pub async fn clean(&self) -> Result<()> {
        let (client, prefix) = (self.target.client()?, &self.settings.prefix);
        let own = Own {
            prefix,
            // The run has not installed the chart.
            except: self.settings.pods.then(|| self.target.hyperlink_namespace()),
        };
        cluster::delete_objects(&client, &own).await?;
        let management = self.management_group();
        let (last, first): (Vec<_>, Vec<_>) = self
            .arm
            .groups()
            .await?
            .into_iter()
            .partition(|id| id.eq_ignore_ascii_case(&management));
        for group in first.into_iter().chain(last) {
            self.arm.delete(&group).await?;
        }
        if let Some(vnet) = &self.settings.cluster_vnet {
            for subnet in self.arm.list(&format!("{vnet}/subnets")).await? {
                let id = subnet["id"].as_str().unwrap_or_default();
                if self.arm.bounds().owns(id) {
                    self.arm.delete(id).await?;
                }
            }
        }
        cluster::is_clean(&client, &own, self.settings.patience).await
    }

    fn management_group(&self) -> String {
        let azure = self.target.azure();
        format!(
            "/subscriptions/{}/resourceGroups/{}",
            azure.management_subscription, azure.management_group
        )
    }

    fn balancer(&self) -> Balancer {
        Balancer {
            id: format!(
                "{}/providers/Microsoft.Network/loadBalancers/kubernetes-internal",
                self.management_group()
            ),
            subnet: format!("{}/subnets/nodes", self.target.azure().management_vnet),
        }
    }

    fn given_nat_subnet(&self) -> String {
        format!(
            "{}/subnets/{}",
            self.target.azure().management_vnet,
            self.target.name("given")
        )
    }
}

/// Deletes the client secret, which must not stay with the logs.
impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.target.dir().join(SECRET_FILE));
    }
}

/// The target's Azure, with one subscription and one identity for everything.
fn azure(settings: &Settings, dir: &RunDir) -> Result<Azure> {
    let credential = credential(settings, dir)?;
    let (subscription, group) = (&settings.subscription, format!("{}-{MANAGEMENT}", settings.prefix));
    let own_vnet = format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/management"
    );
    let origin = |url: &url::Url| url.as_str().trim_end_matches('/').to_owned();
    Ok(Azure {
        arm: origin(settings.cloud.endpoint()),
        authority: origin(settings.cloud.authority()),
        audience: settings.cloud.audience().to_owned(),
        ca_file: settings.ca_file.clone(),
        tenant: settings.tenant.clone(),
        location: settings.location.clone(),
        management_subscription: subscription.clone(),
        management_group: group,
        management_vnet: settings.cluster_vnet.clone().unwrap_or(own_vnet),
        guest_subscription: subscription.clone(),
        other_guest_subscription: subscription.clone(),
        additional_subscription: subscription.clone(),
        ho: credential.clone(),
        ho_twin: credential.clone(),
        cpo: credential.clone(),
        cpo_twin: credential.clone(),
        go_ho: credential.clone(),
        go_cpo: credential,
    })
}

fn credential(settings: &Settings, dir: &RunDir) -> Result<Credential> {
    let (tenant, client) = (&settings.tenant, &settings.client);
    Ok(match &settings.proof {
        Proof::TokenFile(token_file) => Credential::WorkloadIdentity {
            tenant: tenant.clone(),
            client: client.clone(),
            token_file: token_file.clone(),
        },
        Proof::Secret(secret) => {
            let path = dir.path().join(SECRET_FILE);
            let file = json!({"subscriptionId": settings.subscription, "tenantId": tenant, "clientId": client,
                "clientSecret": secret});
            std::fs::write(&path, file.to_string())?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            Credential::SecretFile { path }
        }
    })
}

fn source(credential: &Credential) -> CredentialSource {
    match credential.clone() {
        Credential::SecretFile { path } => CredentialSource::SecretFile { path },
        Credential::WorkloadIdentity {
            tenant,
            client,
            token_file,
        } => CredentialSource::WorkloadIdentity {
            tenant,
            client,
            token_file,
        },
    }
}
