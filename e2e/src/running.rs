//! The running Hyperlink that a scenario tests: processes of the test, or the Pods of a chart that somebody has
//! installed.

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams};

use crate::hyperlink::{Hyperlink, Role};
use crate::{Target, eventually};

const ROLES: [Role; 2] = [Role::Ho, Role::Cpo];

/// Both roles of a running Hyperlink.
#[derive(Debug)]
pub enum Running {
    /// One process for each role.
    Processes(Vec<Hyperlink>),
    /// The Pods of a chart with both roles, in [`Target::hyperlink_namespace`].
    Pods,
}

impl Running {
    /// Starts one process for each role.
    ///
    /// # Errors
    ///
    /// The build fails or a process ends.
    pub async fn processes(target: &Target) -> Result<Self> {
        Ok(Self::Processes(start(target, "").await?))
    }

    /// Stops or deletes the leaders and waits until others lead.
    ///
    /// # Errors
    ///
    /// No other candidate leads in time.
    pub async fn hand_over(self, target: &Target) -> Result<Self> {
        match self {
            Self::Processes(first) => {
                for process in &first {
                    process.leading(target.patience()).await?;
                }
                let next = start(target, "-next").await?;
                for process in first {
                    process.stop().await?;
                }
                for process in &next {
                    process.leading(target.patience()).await?;
                }
                Ok(Self::Processes(next))
            }
            Self::Pods => {
                for role in ROLES {
                    next_pod(target, role).await?;
                }
                Ok(Self::Pods)
            }
        }
    }

    /// Stops the processes gracefully; does not change Pods.
    ///
    /// # Errors
    ///
    /// A process does not stop in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        if let Self::Processes(processes) = self {
            for process in processes {
                process.stop().await?;
            }
        }
        Ok(())
    }
}

async fn start(target: &Target, suffix: &str) -> Result<Vec<Hyperlink>> {
    let resync = format!("{}s", target.resync().as_secs().max(1));
    let flags = [("resync", resync.as_str()), ("record-resync", resync.as_str())];
    let mut processes = Vec::new();
    for role in ROLES {
        let name = format!("{}{suffix}", role.as_str());
        processes.push(Hyperlink::start(target, role, &name, &flags).await?);
    }
    Ok(processes)
}

/// Deletes the Pod that leads and waits until another Pod holds the lease.
async fn next_pod(target: &Target, role: Role) -> Result<()> {
    let (client, namespace) = (target.client()?, target.hyperlink_namespace());
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let lease = format!("hyperlink-{}", role.as_str());
    let holder = async || -> Result<String> {
        let spec = leases.get(&lease).await?.spec;
        let holder = spec.and_then(|spec| spec.holder_identity).filter(|one| !one.is_empty());
        holder.with_context(|| format!("nobody holds {lease}"))
    };
    let first = eventually("somebody leads", target.patience(), holder).await?;
    let all = pods.list(&Default::default()).await?.items;
    let names = all.into_iter().filter_map(|pod| pod.metadata.name);
    // The holder is the Pod's name and a random suffix.
    let leader = names.into_iter().find(|name| first.starts_with(name.as_str()));
    let leader = leader.ok_or_else(|| anyhow!("{first}, which holds {lease}, is no pod of {namespace}"))?;
    pods.delete(&leader, &DeleteParams::default()).await?;
    eventually("another pod leads", target.patience(), || async {
        let now = holder().await?;
        ensure!(!now.starts_with(&leader), "{now} leads");
        Ok(())
    })
    .await
}
