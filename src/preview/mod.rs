//! `hyperlink plan`: reads what the roles' reconciles would read, decides as they would, and changes nothing.

mod print;

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use kube::Api;
use kube::api::DynamicObject;

use crate::api::{LedRole, Platform};
use crate::config::Config;
use crate::engine::gate::{Gate, NeverOpen};
use crate::manager::{self, Clouds};
use crate::metrics::Metrics;
use crate::roles::{self, Foundation};
use crate::runtime::call::within;
use crate::runtime::leader::gated_client;
use crate::{COMMIT, VERSION};

pub use print::RolePlan;

/// The custom resource to plan for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What the reconciles of the chosen roles would do for one object.
#[derive(Debug)]
pub struct Plan {
    object: Object,
    roles: Vec<RolePlan>,
}

/// Plans for the roles of this configuration, one after the other.
pub async fn plan(config: &Config, object: &Object) -> anyhow::Result<Plan> {
    let namespace = &object.namespace;
    let served = config
        .scope
        .namespace
        .as_ref()
        .filter(|_| !is_management_cluster(config, object));
    if let Some(served) = served.filter(|served| *served != namespace) {
        bail!("--namespace says that only {served} is served");
    }
    if roles::excluded(config).contains(namespace) {
        bail!("{namespace} is excluded: a process of its own serves it");
    }
    // Writes end here, whatever other code forgets that nothing is to be changed.
    let gate: Arc<dyn Gate> = Arc::new(NeverOpen);
    let kube = gated_client(manager::kube_config(config).await?, || false)?;
    let metrics = Arc::new(Metrics::new(VERSION, COMMIT)?);
    let platform = platform_of(config, &kube, object).await?;
    let cloud = Clouds::new(config, &metrics, true)?.of(platform)?;
    let mut previews = Vec::new();
    for role in config.roles.iter().copied() {
        let foundation = Foundation {
            config,
            role,
            kube: kube.clone(),
            gate: Arc::clone(&gate),
            metrics: Arc::clone(&metrics),
        };
        previews.push(roles::dry_run(&foundation, &cloud, object).await?);
    }
    Ok(Plan {
        object: object.clone(),
        roles: previews,
    })
}

/// Whether this is the management cluster of role `capz`, which is served wherever it is.
fn is_management_cluster(config: &Config, object: &Object) -> bool {
    let own = config.capz.as_ref().map(|own| &own.management);
    own.is_some_and(|own| own.namespace == object.namespace && own.name == object.name)
}

/// The platform of the object: the only one, or that of which a custom resource has the name.
async fn platform_of(config: &Config, kube: &kube::Client, object: &Object) -> anyhow::Result<Platform> {
    let platforms: Vec<Platform> = config.platforms().collect();
    // All roles of a platform reconcile one kind of resource.
    let role = *config.roles.first().context("no role is chosen")?;
    for platform in platforms.iter().skip(1).rev() {
        let resource = roles::resource(LedRole::on(role, *platform));
        let api: Api<DynamicObject> = Api::namespaced_with(kube.clone(), &object.namespace, &resource);
        if within(api.get_opt(&object.name)).await?.is_some() {
            return Ok(*platform);
        }
    }
    platforms.first().copied().context("no platform is chosen")
}

impl Plan {
    /// Whether a step is to be done, is under way, or is prevented.
    pub fn pending(&self) -> bool {
        self.roles.iter().any(|role| role.pending)
    }

    /// Fails if something could not be read.
    pub fn complete(&self) -> anyhow::Result<()> {
        for preview in &self.roles {
            ensure!(
                !preview.unreadable,
                "role {}: something could not be read, see the facts",
                preview.role
            );
        }
        Ok(())
    }
}
