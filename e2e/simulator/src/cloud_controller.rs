//! The part of a cloud provider that gives Services load balancers: watches Services, lets the cloud make and remove
//! what each asks for, and shows its address in the Service's status. Knows no cloud and nothing of private links.

mod control;
mod service;

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{Controller, WatchStreamExt as _, controller, controller::Action, reflector, watcher},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use control::{ControlClient, ControlError, query};
use service::Desired;

/// Load balancers are checked again at this interval, because the simulator's state can be changed behind everybody's
/// back.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
/// So many Services are checked in each interval: each check reads what the cloud has.
const FEW: usize = 20;
const RETRY: Duration = Duration::from_secs(1);

/// Whom the controller serves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster whose Services are served.
    pub kubeconfig: PathBuf,
    /// What is printed, as one line, when all Services have been read once.
    pub ready: Value,
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
    Control(#[from] ControlError),
    /// The cloud cannot do it now; why.
    #[error("{0}")]
    Cloud(String),
}

/// What a cloud does for Services. `name` is the one that cloud providers derive from a Service's UID.
pub trait LoadBalancers: Send + Sync + 'static {
    /// What the names of this cloud's annotations begin with. A Service with those of other clouds alone is theirs.
    const ANNOTATIONS: &'static str;

    /// Whether this cloud gives such a Service, which is of type LoadBalancer, what it asks for.
    fn serves(&self, service: &Service) -> bool;

    /// Makes what the Service asks for, unless it is there; returns its address.
    fn ensure_present(
        &self,
        service: &Service,
        name: &str,
    ) -> impl Future<Output = Result<LoadBalancerIngress, CloudControllerError>> + Send;

    /// Removes what was made, if it is there.
    fn ensure_absent(&self, name: &str) -> impl Future<Output = Result<(), CloudControllerError>> + Send;
}

struct Context<C> {
    client: Client,
    cloud: C,
    known: reflector::Store<Service>,
}

/// Serves Services until `stop` is cancelled. Prints one line of JSON to standard output when all Services have been
/// read once. Lost connections are taken up again.
///
/// # Errors
/// Only a kubeconfig that cannot be used; everything later is retried.
pub async fn run<C: LoadBalancers>(
    cloud: C,
    options: Options,
    stop: CancellationToken,
) -> Result<(), CloudControllerError> {
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
    let store = reader.clone();
    let ready = async move {
        if store.wait_until_ready().await.is_ok() {
            println!("{}", options.ready);
        }
    };
    let context = Arc::new(Context {
        client,
        cloud,
        known: reader.clone(),
    });
    // One at a time: a cloud may read, edit and write one thing for all Services.
    let reconciles = Controller::for_stream(watch, reader)
        .with_config(controller::Config::default().concurrency(1))
        .graceful_shutdown_on(async move { stop.cancelled().await })
        .run(
            |service, context| async move { context.reconcile(&service).await },
            |service, error, _| failed(&service, error),
            context,
        )
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

impl<C: LoadBalancers> Context<C> {
    async fn reconcile(&self, service: &Service) -> Result<Action, CloudControllerError> {
        let name = service::load_balancer_name(&service.uid().unwrap_or_default());
        if service::is_anothers(service, C::ANNOTATIONS) {
            return Ok(Action::await_change());
        }
        match service::desired(service, self.cloud.serves(service)) {
            Desired::Ignore => Ok(Action::await_change()),
            Desired::Nothing => self.ensure_absent(service, &name).await,
            Desired::LoadBalancer => self.ensure_present(service, &name).await,
        }
    }

    async fn ensure_present(&self, service: &Service, name: &str) -> Result<Action, CloudControllerError> {
        if let Some(patch) = service::finalizer_patch(service, true) {
            self.services(service)
                .patch(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        let ingress = self.cloud.ensure_present(service, name).await?;
        if let Some(patch) = service::status_patch(service, Some(&ingress)) {
            self.services(service)
                .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        let many = u32::try_from(self.known.len() / FEW).unwrap_or(u32::MAX);
        Ok(Action::requeue(RECHECK_INTERVAL * (1 + many)))
    }

    async fn ensure_absent(&self, service: &Service, name: &str) -> Result<Action, CloudControllerError> {
        self.cloud.ensure_absent(name).await?;
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

    fn services(&self, service: &Service) -> Api<Service> {
        Api::namespaced(self.client.clone(), &service.namespace().unwrap_or_default())
    }
}
