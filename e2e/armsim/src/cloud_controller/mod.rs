//! The part of Azure's cloud provider that gives internal Services an address: keeps one frontend each on one load
//! balancer of the simulator. Decides nothing about Private Link.

mod control;
mod frontend;

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use simulator::cloud_controller::{self, LoadBalancers};
use tokio_util::sync::CancellationToken;

use control::Control;

pub use simulator::cloud_controller::CloudControllerError;

/// The annotation that makes a load balancer internal
/// (<https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/#loadbalancer-annotations>).
const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

/// What the controller works with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster whose Services are served.
    pub kubeconfig: PathBuf,
    /// The simulator's control API, `http://127.0.0.1:PORT`.
    pub control: String,
    /// ARM id of the load balancer that gets the frontends.
    pub load_balancer: String,
    /// ARM id of the subnet that the addresses come from.
    pub subnet: String,
}

/// The frontends of one load balancer.
struct Frontends {
    control: Control,
    load_balancer: String,
    subnet: String,
}

/// Serves Services until `stop` is cancelled. Prints one line of JSON to standard output when all Services have been
/// read once. Lost connections are taken up again.
///
/// # Errors
/// Only a kubeconfig that cannot be used; everything later is retried.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), CloudControllerError> {
    let ready = json!({"ready": true, "load_balancer": options.load_balancer, "control": options.control});
    let frontends = Frontends {
        control: Control::new(&options.control),
        load_balancer: options.load_balancer,
        subnet: options.subnet,
    };
    let kubeconfig = options.kubeconfig;
    cloud_controller::run(frontends, cloud_controller::Options { kubeconfig, ready }, stop).await
}

impl LoadBalancers for Frontends {
    const ANNOTATIONS: &'static str = "service.beta.kubernetes.io/azure-";

    fn serves(&self, service: &Service) -> bool {
        service.annotations().get(INTERNAL).map(String::as_str) == Some("true")
    }

    async fn ensure_present(&self, service: &Service, name: &str) -> Result<LoadBalancerIngress, CloudControllerError> {
        let mut balancer = self.load_balancer().await?;
        if frontend::add(&mut balancer, name, &self.subnet) {
            self.control.put(&self.load_balancer, &balancer).await?;
            balancer = self.load_balancer().await?;
            tracing::info!(
                service = service.name_any(),
                namespace = service.namespace(),
                frontend = name,
                "frontend made"
            );
        }
        let address = frontend::address(&balancer, name).ok_or_else(|| {
            CloudControllerError::Cloud(format!(
                "frontend {name} has no address: is the subnet there, and not full?"
            ))
        })?;
        let behind = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
        self.control
            .stand_behind(&self.load_balancer, name, Some(&behind))
            .await?;
        Ok(LoadBalancerIngress {
            ip: Some(address.to_owned()),
            ..LoadBalancerIngress::default()
        })
    }

    async fn ensure_absent(&self, name: &str) -> Result<(), CloudControllerError> {
        self.remove_frontend(name).await?;
        Ok(self.control.stand_behind(&self.load_balancer, name, None).await?)
    }
}

impl Frontends {
    async fn remove_frontend(&self, name: &str) -> Result<(), CloudControllerError> {
        let id = &self.load_balancer;
        // Without a load balancer there is no frontend either.
        let Some(mut balancer) = self.control.get(id).await? else {
            return Ok(());
        };
        if !frontend::remove(&mut balancer, name) {
            return Ok(());
        }
        let subscription = id.split('/').take(3).collect::<Vec<_>>().join("/");
        let resources = self.control.list(&subscription).await?;
        if let Some(link_service) = frontend::link_service(&resources, id, name) {
            let message = format!("frontend {name} is in use by {link_service}");
            return Err(CloudControllerError::Cloud(message));
        }
        self.control.put(id, &balancer).await?;
        tracing::info!(frontend = name, "frontend removed");
        Ok(())
    }

    async fn load_balancer(&self) -> Result<Value, CloudControllerError> {
        let id = &self.load_balancer;
        let found = self.control.get(id).await?;
        let missing = || CloudControllerError::Cloud(format!("load balancer {id} is not in the simulator: seed it"));
        found.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_with_the_internal_annotation_is_served() {
        let frontends = Frontends {
            control: Control::new("http://127.0.0.1:1"),
            load_balancer: String::new(),
            subnet: String::new(),
        };
        let service = |annotations: Value| -> Service {
            serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        assert!(frontends.serves(&service(json!({INTERNAL: "true"}))));
        assert!(!frontends.serves(&service(json!({INTERNAL: "false"}))));
        assert!(!frontends.serves(&service(json!(null))));
    }
}
