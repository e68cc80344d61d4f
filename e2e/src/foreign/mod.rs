//! A [`Target`] that is not ours: a cluster by its kubeconfig, and an Azure by the AZURE_ variables.
//!
//! Everything that a run makes bears its prefix, and nothing without the prefix is ever written. `cluster` and `arm` say what
//! may be touched; `clean` takes all of it away, whatever has become of the run that made it.

pub mod arm;
mod cloud_provider;
pub mod cluster;
mod oracle;
mod reachable;
pub mod settings;

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use anyhow::{Context, Result};
use hyperlink::azure::auth::{CredentialSource, TokenCache};
use hyperlink::azure::https::HttpSettings;
use hyperlink::azure::transport::HttpsTransport;
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

/// The run's group for what the management cluster has in Azure.
const MANAGEMENT: &str = "management";

/// What Hyperlink reads a client secret from.
const SECRET_FILE: &str = "azure-credentials.json";

/// A cluster and an Azure that are not ours.
pub struct Foreign {
    settings: Settings,
    arm: Arc<Arm>,
    target: Target,
}

impl Foreign {
    /// Reads the kubeconfig. Asks nobody anything yet.
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

    /// Refuses a cluster that is not for this.
    ///
    /// # Errors
    ///
    /// As [`cluster::may_be_used`].
    pub async fn check(&self) -> Result<()> {
        cluster::may_be_used(&self.target.client()?).await
    }

    /// What a run would make, one id or name per line; a resource includes what is inside it.
    ///
    /// Nobody is asked anything for it.
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
                self.given()
            } else {
                cluster.own_nat_subnet(target)
            });
            lines.extend(cluster.zones());
        }
        lines.sort();
        lines.dedup();
        lines
    }

    /// Runs all scenarios, one after the other, and says on standard output how each has ended.
    ///
    /// # Errors
    ///
    /// The first scenario that fails.
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

    /// What every scenario finds there.
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

    /// Takes away everything that bears the prefix: first the cluster's objects, so that nobody makes anything anew, then the groups of
    /// the hosted clusters, whose endpoints hold the Private Link Services, then the rest.
    ///
    /// # Errors
    ///
    /// Something cannot be taken away.
    pub async fn clean(&self) -> Result<()> {
        let (client, prefix) = (self.target.client()?, &self.settings.prefix);
        let own = Own {
            prefix,
            // The chart is somebody else's.
            except: self.settings.pods.then(|| self.target.hyperlink_namespace()),
        };
        cluster::let_go(&client, &own).await?;
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
                if self.arm.bounds().own(id) {
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

    fn given(&self) -> String {
        format!(
            "{}/subnets/{}",
            self.target.azure().management_vnet,
            self.target.name("given")
        )
    }
}

/// The logs may stay; the secret may not.
impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.target.dir().join(SECRET_FILE));
    }
}

/// One subscription and one identity for everything.
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
