//! The part of a cloud provider that a run needs, for a cluster that has none. It gives each internal Service of the
//! run a frontend on one load balancer, named as Azure's cloud provider names it, and publishes its address. The load
//! balancer is deleted with its resource group.

use std::sync::Arc;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::arm::Arm;

const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// The length to which Azure's cloud provider cuts a frontend's name.
const LONGEST: usize = 32;

/// A task that serves Services until this value is dropped.
pub(super) struct CloudProvider(JoinHandle<()>);

impl Drop for CloudProvider {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The load balancer, and the subnet of its addresses.
#[derive(Clone, Debug)]
pub(super) struct Balancer {
    pub(super) id: String,
    pub(super) subnet: String,
}

impl CloudProvider {
    pub(super) fn start(arm: Arc<Arm>, client: kube::Client, balancer: Balancer) -> Self {
        Self(tokio::spawn(async move {
            loop {
                if let Err(error) = serve(&arm, &client, &balancer).await {
                    eprintln!("cloud provider: {error:#}");
                }
                tokio::time::sleep(arm.pace()).await;
            }
        }))
    }
}

async fn serve(arm: &Arm, client: &kube::Client, balancer: &Balancer) -> Result<()> {
    let services: Api<Service> = Api::all(client.clone());
    for service in services.list(&Default::default()).await? {
        let namespace = service.metadata.namespace.clone().unwrap_or_default();
        if arm.bounds().prefix.owns(&namespace) && needs_address(&service) {
            let (name, uid) = (service.metadata.name, service.metadata.uid);
            let address = frontend(arm, balancer, &uid.unwrap_or_default()).await?;
            let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
            let own: Api<Service> = Api::namespaced(client.clone(), &namespace);
            own.patch_status(
                &name.unwrap_or_default(),
                &PatchParams::default(),
                &Patch::Merge(status),
            )
            .await?;
        }
    }
    Ok(())
}

/// Whether a Service asks for an internal load balancer and has no address yet.
fn needs_address(service: &Service) -> bool {
    let internal = service
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(INTERNAL))
        .is_some_and(|value| value == "true");
    let balanced = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let has_address = status
        .and_then(|status| status.ingress.as_ref())
        .is_some_and(|all| !all.is_empty());
    internal && balanced && !has_address && service.metadata.deletion_timestamp.is_none()
}

/// The address of the Service's frontend, which is created if it does not exist.
async fn frontend(arm: &Arm, balancer: &Balancer, uid: &str) -> Result<String> {
    let mut name = format!("a{}", uid.replace('-', ""));
    name.truncate(LONGEST);
    let mut found = arm.get(&balancer.id).await?.context("no load balancer")?;
    if address(&found, &name).is_none() {
        let all = &mut found["properties"]["frontendIPConfigurations"];
        if all.is_null() {
            *all = json!([]);
        }
        let all = all.as_array_mut().context("a load balancer with a list of frontends")?;
        all.push(json!({"name": name, "properties": {
            "privateIPAllocationMethod": "Dynamic", "subnet": {"id": balancer.subnet}}}));
        arm.put(&balancer.id, &found).await?;
        found = arm.get(&balancer.id).await?.unwrap_or_default();
    }
    address(&found, &name).with_context(|| format!("the frontend {name} has no address"))
}

fn address(balancer: &Value, name: &str) -> Option<String> {
    let all = balancer["properties"]["frontendIPConfigurations"].as_array()?;
    let one = all.iter().find(|one| one["name"] == name)?;
    one["properties"]["privateIPAddress"].as_str().map(str::to_owned)
}
