//! What a controller of the custom resource is.

use super::context::Context;
use super::preview::DryRun;
use crate::api::AzurePrivateLinkService;
use crate::azure::client::Reconcile;
use crate::runtime::reconcile::Reconciler;

/// A controller of the custom resource.
pub trait CustomResourceReconciler: Reconciler<Object = AzurePrivateLinkService, Context = Context> {}

impl<R: Reconciler<Object = AzurePrivateLinkService, Context = Context>> CustomResourceReconciler for R {}

/// A controller that can show what a reconcile would do.
pub trait SupportsDryRun: CustomResourceReconciler {
    /// Runs a reconcile up to its first write.
    fn dry_run(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = DryRun> + Send;
}
