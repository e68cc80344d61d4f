//! `hyperlink plan`: reads what the roles' reconciles would read, decides as they would, and changes nothing.

mod print;

use std::sync::Arc;

use anyhow::{bail, ensure};

use crate::azure::arm::ports::Gate;
use crate::azure::arm::read_only::{NeverOpen, ReadOnly};
use crate::azure::arm::transport::Transport;
use crate::config::Config;
use crate::controllers::azure::Preview;
use crate::manager;
use crate::metrics::Metrics;
use crate::roles::{self, Foundation};
use crate::runtime::leader::gated_client;
use crate::{COMMIT, VERSION};

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
    roles: Vec<Preview>,
}

/// Plans for the roles of this configuration, one after the other.
pub async fn plan(config: &Config, object: &Object) -> anyhow::Result<Plan> {
    let namespace = &object.namespace;
    if let Some(served) = config.scope.namespace.as_ref().filter(|served| *served != namespace) {
        bail!("--namespace says that only {served} is served");
    }
    if roles::excluded(config).contains(namespace) {
        bail!("{namespace} is excluded: a process of its own serves it");
    }
    // Writes end here, whatever other code forgets that nothing is to be changed.
    let gate: Arc<dyn Gate> = Arc::new(NeverOpen);
    let kube = gated_client(manager::kube_config(config).await?, || false)?;
    let (azure, _) = manager::azure(config, config.azure.http.client()?);
    let azure: Arc<dyn Transport> = Arc::new(ReadOnly(azure));
    let metrics = Arc::new(Metrics::new(VERSION, COMMIT)?);
    let mut previews = Vec::new();
    for role in config.roles.iter().copied() {
        let foundation = Foundation {
            config,
            role,
            kube: kube.clone(),
            azure: Arc::clone(&azure),
            gate: Arc::clone(&gate),
            metrics: Arc::clone(&metrics),
        };
        previews.push(roles::dry_run(&foundation, object).await?);
    }
    Ok(Plan {
        object: object.clone(),
        roles: previews,
    })
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
