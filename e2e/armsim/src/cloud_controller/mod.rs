//! The part of Azure's cloud provider that gives internal Services an address: watches Services, keeps one frontend each on one load
//! balancer of the simulator, and shows the address in the Service's status. Decides nothing about Private Link.

mod control;
mod frontend;
mod service;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{Controller, WatchStreamExt as _, controller, controller::Action, reflector, watcher},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use control::{Control, ControlError};
use service::Desired;

/// Frontends are checked again at this interval, because the simulator's state can be changed behind everybody's back.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
/// So many Services are checked in each interval: each check reads the whole load balancer.
const FEW: usize = 20;
const RETRY: Duration = Duration::from_secs(1);

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

/// Why the controller could not start or one reconcile failed.
#[derive(Debug, thiserror::Error)]
pub enum CloudControllerError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The API server refused or did not answer.
    #[error("Kubernetes: {0}")]
    Kubernetes(#[from] kube::Error),
    /// The simulator refused or did not answer.
    #[error("{0}")]
    Control(String),
    /// The load balancer of the options is not in the simulator.
    #[error("load balancer {0} is not in the simulator: seed it")]
    NoLoadBalancer(String),
    /// The frontend has no address: the subnet is missing or full.
    #[error("frontend {0} has no address: is the subnet there, and not full?")]
    NoAddress(String),
    /// Azure keeps a frontend that a Private Link Service uses.
    #[error("frontend {frontend} is in use by {link_service}")]
    InUse {
        /// Name of the frontend.
        frontend: String,
        /// ARM id of the Private Link Service.
        link_service: String,
    },
}

impl From<ControlError> for CloudControllerError {
    fn from(error: ControlError) -> Self {
        Self::Control(error.to_string())
    }
}

struct Context {
    client: Client,
    control: Control,
    options: Options,
    known: reflector::Store<Service>,
}

/// Serves Services until `stop` is cancelled. Prints one line of JSON to standard output when all Services have been
/// read once. Lost connections are taken up again.
///
/// # Errors
/// Only a kubeconfig that cannot be used; everything later is retried.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), CloudControllerError> {
    let kubeconfig = Kubeconfig::read_from(&options.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let services: Api<Service> = Api::all(client.clone());
    let (reader, writer) = reflector::store();
    let watch = watcher(services, watcher::Config::default().page_size(50))
        .default_backoff()
        .modify(|service| service.metadata.managed_fields = None)
        .reflect(writer)
        .applied_objects();
    let ready = {
        let (store, options) = (reader.clone(), options.clone());
        async move {
            if store.wait_until_ready().await.is_ok() {
                println!(
                    "{}",
                    json!({"ready": true, "load_balancer": options.load_balancer, "control": options.control})
                );
            }
        }
    };
    let context = Arc::new(Context {
        client,
        control: Control::new(&options.control),
        options,
        known: reader.clone(),
    });
    // One at a time: each reconcile reads, edits and writes the one load balancer.
    let reconciles = Controller::for_stream(watch, reader)
        .with_config(controller::Config::default().concurrency(1))
        .graceful_shutdown_on(async move { stop.cancelled().await })
        .run(reconcile, |service, error, _| failed(&service, error), context)
        .for_each(|_| async {});
    tokio::pin!(reconciles);
    tokio::select! {
        () = &mut reconciles => return Ok(()),
        () = ready => {}
    }
    reconciles.await;
    Ok(())
}

fn failed(service: &Service, error: &CloudControllerError) -> Action {
    tracing::warn!(service = service.name_any(), namespace = service.namespace(), %error, "reconcile failed");
    Action::requeue(RETRY)
}

async fn reconcile(service: Arc<Service>, context: Arc<Context>) -> Result<Action, CloudControllerError> {
    match service::desired(&service) {
        Desired::Ignore => Ok(Action::await_change()),
        Desired::Nothing => context.take_away(&service).await,
        Desired::Frontend => context.give(&service).await,
    }
}

impl Context {
    async fn give(&self, service: &Service) -> Result<Action, CloudControllerError> {
        if let Some(patch) = service::finalizer_patch(service, true) {
            self.services(service)
                .patch(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        let name = service::frontend_name(&service.uid().unwrap_or_default());
        let mut balancer = self.load_balancer().await?;
        if frontend::add(&mut balancer, &name, &self.options.subnet) {
            self.control.put(&self.options.load_balancer, &balancer).await?;
            balancer = self.load_balancer().await?;
            tracing::info!(
                service = service.name_any(),
                namespace = service.namespace(),
                frontend = name,
                "frontend made"
            );
        }
        let address =
            frontend::address(&balancer, &name).ok_or_else(|| CloudControllerError::NoAddress(name.clone()))?;
        let behind = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
        self.control
            .stand_behind(&self.options.load_balancer, &name, Some(&behind))
            .await?;
        if let Some(patch) = service::status_patch(service, Some(address)) {
            self.services(service)
                .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        let many = u32::try_from(self.known.len() / FEW).unwrap_or(u32::MAX);
        Ok(Action::requeue(RECHECK_INTERVAL * (1 + many)))
    }

    async fn take_away(&self, service: &Service) -> Result<Action, CloudControllerError> {
        let name = service::frontend_name(&service.uid().unwrap_or_default());
        self.remove_frontend(&name).await?;
        self.control
            .stand_behind(&self.options.load_balancer, &name, None)
            .await?;
        if service.metadata.deletion_timestamp.is_none()
            && let Some(patch) = service::status_patch(service, None)
        {
            self.services(service)
                .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            // The write gave the Service a new version; its event brings us back for the finalizer.
            return Ok(Action::requeue(RETRY));
        }
        if let Some(patch) = service::finalizer_patch(service, false) {
            self.services(service)
                .patch(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        Ok(Action::await_change())
    }

    async fn remove_frontend(&self, name: &str) -> Result<(), CloudControllerError> {
        let id = &self.options.load_balancer;
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
            return Err(CloudControllerError::InUse {
                frontend: name.to_owned(),
                link_service: link_service.to_owned(),
            });
        }
        self.control.put(id, &balancer).await?;
        tracing::info!(frontend = name, "frontend removed");
        Ok(())
    }

    async fn load_balancer(&self) -> Result<Value, CloudControllerError> {
        let id = &self.options.load_balancer;
        self.control
            .get(id)
            .await?
            .ok_or_else(|| CloudControllerError::NoLoadBalancer(id.clone()))
    }

    fn services(&self, service: &Service) -> Api<Service> {
        Api::namespaced(self.client.clone(), &service.namespace().unwrap_or_default())
    }
}
