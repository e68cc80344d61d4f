//! What the observer watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;

use super::Observer;
use super::rules::PlatformRules;
use crate::api::HostedControlPlane;
use crate::api::markers::EXTERNAL_VALUE;
use crate::controllers::context::Context;
use crate::controllers::watch::whom::control_planes_of;
use crate::controllers::watch::{Heard, services};
use crate::metrics::Controller as Label;
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::reconcile;
use crate::runtime::watch::{Scope, changes, gone, pages, stored};
use crate::runtime::work_queue::{Action, WorkQueue};

/// Runs the observer for the CPO role, over the control planes, the Services that publish them and their custom
/// resources.
pub(super) async fn run<P: PlatformRules>(
    cx: Arc<Context<P::Resource>>,
    rules: P,
    scope: Scope,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    let client = cx.runtime.kube.clone();
    let [external, _] = P::EXTERNALS;
    let label = pages().labels(&format!("{}={EXTERNAL_VALUE}", external.label));
    let (external, external_events) = stored(scope.events::<Service>(&client, label));
    let custom = cx.resources.follow();
    let observer = Arc::new(Observer::new(cx, rules, external));
    let planes = planes.inspect_ok({
        let observer = Arc::clone(&observer);
        gone(move |uid| observer.forget(uid))
    });
    let (reader, planes) = stored::<HostedControlPlane>(planes);
    let published = P::SERVICES.map(|name| services(&scope, &client, name).boxed());
    let of_service = {
        let known = reader.clone();
        move |service| control_planes_of(&known, &service)
    };
    let of_custom_resources = {
        let known = reader.clone();
        custom.flat_map(move |cr| stream::iter(control_planes_of(&known, cr.as_ref())))
    };
    let queue = WorkQueue::new(changes(planes), reader)
        .watches(stream::select_all(published), of_service.clone())
        .watches(external_events.touched_objects(), of_service)
        .reconcile_on(of_custom_resources)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::Observer, scope.concurrency);
    reconcile::run_each(queue, limit, scope.stop, move |control_plane, limit| {
        let observer = Arc::clone(&observer);
        async move {
            let cx = observer.context();
            let namespace = control_plane.namespace().unwrap_or_default();
            if cx.excluded.contains(&namespace) {
                return Action::AwaitChange;
            }
            let work = || super::reconcile(control_plane, Arc::clone(&observer));
            let action = limit.take(&cx.runtime.metrics, Requester::of(&namespace), work).await;
            action.unwrap_or(Action::AwaitChange)
        }
    })
    .await;
}
