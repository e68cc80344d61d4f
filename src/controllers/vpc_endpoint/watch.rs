//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use kube::runtime::{WatchStreamExt, watcher};

use super::VpcEndpointController;
use crate::api::HostedControlPlane;
use crate::controllers::watch::whom::in_its_namespace;
use crate::controllers::watch::{Heard, changes_for, forget_gone, woken};
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch::{Scope, changes, pages};
use crate::runtime::work_queue::WorkQueue;

/// Runs the controller over the custom resources and the control planes of their namespaces.
pub async fn run(
    runner: Arc<Runner<VpcEndpointController>>,
    scope: Scope,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    let client = runner.cx.runtime.kube.clone();
    let heard = {
        let cx = Arc::clone(&runner.cx);
        let mut forget = forget_gone(&runner);
        move |event: &watcher::Event<_>| {
            cx.resources.heard(event);
            forget(event);
        }
    };
    let resources = scope.events(&client, pages()).inspect_ok(heard);
    let known = runner.cx.resources.store();
    let queue = WorkQueue::new(resources.touched_objects(), known)
        .watches(changes(planes), {
            let runner = Arc::clone(&runner);
            move |control_plane| woken(&runner, in_its_namespace(&runner.cx.resources, &control_plane))
        })
        .reconcile_on(runner.cx.resources.promoted())
        .reconcile_all_on(changes_for(&scope, &runner));
    reconcile::run(queue, runner, scope.concurrency, scope.stop).await;
}
