//! Stand-ins for the controllers around a cluster on Azure that Cluster API makes: CAPZ with the Azure Service
//! Operator, the DNS operator, Helm, and the operator in Go that Hyperlink replaces. They write to Kubernetes and to
//! Azure what the real ones write, in the same form. They know nothing of Hyperlink and do not follow its rules.

mod azure_cluster;
mod capz;
mod dns;
mod endpoints;
mod helm;
mod history;
mod link_services;
mod reference;
mod service_operator;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt;
use futures::future::BoxFuture;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;

pub use self::capz::{Capz, Settings, Variant};
pub use self::dns::DnsOperator;
pub use self::helm::upgrade;
pub use self::reference::{
    API_SERVER_IP, CONDITION, FINALIZER, LEASE, MANAGEMENT_INGRESS_IP, ReferenceOperator, gateway_entry, link_entry,
};

/// When a failed reconcile is tried again. The real controllers wait longer.
const RETRY: Duration = Duration::from_secs(1);

/// What a controller does with one object.
trait Reconcile: Send + Sync + 'static {
    /// Reconciles an object that has changed. Returns when it is reconciled again without a change.
    fn reconcile(&self, object: &DynamicObject) -> impl Future<Output = Result<Action>> + Send;
}

/// A controller of the objects of a kind, which reconciles each after every change of it, and many at once.
fn controller<R: Reconcile>(
    api: Api<DynamicObject>,
    kind: ApiResource,
    reconciler: Arc<R>,
) -> BoxFuture<'static, Result<()>> {
    let controller = Controller::new_with(api, watcher::Config::default(), kind);
    let outcomes = controller.run(reconcile::<R>, |_, error, _| match *error {}, reconciler);
    Box::pin(async move {
        outcomes.for_each(|_| std::future::ready(())).await;
        Ok(())
    })
}

async fn reconcile<R: Reconcile>(object: Arc<DynamicObject>, reconciler: Arc<R>) -> Result<Action, Infallible> {
    let outcome = reconciler.reconcile(&object).await;
    Ok(outcome.unwrap_or_else(|error| {
        tracing::debug!(name = object.metadata.name, "Reconciler error: {error:#}");
        Action::requeue(RETRY)
    }))
}
