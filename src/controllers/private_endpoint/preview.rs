//! The dry run of the CPO role: what a reconcile would do. Reads only.

use kube::ResourceExt;
use tokio::time::Instant;

use super::{PrivateEndpointController, PrivateEndpointInputs, expedite_endpoint, plan, status, teardown};
use crate::api::AzurePrivateLinkService;
use crate::api::markers::HCP_FINALIZER;
use crate::azure::client::Reconcile;
use crate::controllers::context::Context;
use crate::controllers::decision::Lifecycle;
use crate::controllers::driver;
use crate::controllers::facts::Facts;
use crate::controllers::preview::{DryRun, Fact, FinalizerChange, as_sent};
use crate::controllers::reconciler::SupportsDryRun;

impl SupportsDryRun for PrivateEndpointController {
    async fn dry_run(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: &AzurePrivateLinkService,
        inputs: &PrivateEndpointInputs,
    ) -> DryRun {
        let (mut facts, began, state) = (Facts::default(), Instant::now(), &inputs.state);
        let lifecycle = inputs.lifecycle(cr);
        let (decision, report) = match lifecycle {
            Lifecycle::Nothing => return DryRun::nothing(known(state)),
            Lifecycle::Build => {
                let mut decide = |facts: &Facts| plan::build(cr, state, facts);
                let (decision, names) = driver::decided(cx, reconcile, &mut facts, (began, None), &mut decide).await;
                expedite_endpoint(cx, &cr.uid().unwrap_or_default(), &decision);
                let outcomes = as_sent(&decision.steps);
                let report = status::after_build(cr, &decision, &names, &outcomes);
                (decision, report)
            }
            Lifecycle::Teardown => {
                let mut decide = |facts: &Facts| teardown::teardown(cr, state, facts).map(|decision| (decision, ()));
                let (decision, ()) = driver::decided(cx, reconcile, &mut facts, (began, None), &mut decide).await;
                let report = status::after_teardown(cr, &decision, &as_sent(&decision.steps));
                (decision, report)
            }
        };
        let held = inputs.to_be_held(cr).filter(|_| lifecycle == Lifecycle::Build);
        DryRun {
            lifecycle,
            inputs: known(state),
            report: Some(report),
            holds: Vec::from_iter(held.map(|_| FinalizerChange {
                verb: "set",
                kind: "HostedControlPlane",
                finalizer: HCP_FINALIZER,
            })),
            requeue: Some(driver::requeue(cx, &decision, Instant::now())),
            decision,
            facts,
        }
    }
}

fn known(control_plane_state: &plan::ControlPlaneState) -> Vec<Fact> {
    let (id, state) = match &control_plane_state.control_plane {
        Ok(control_plane) => {
            let identity = &control_plane.identity;
            let state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
            (identity.name.clone(), state)
        }
        Err(problem) => (String::new(), problem.message.clone()),
    };
    let kind = "HostedControlPlane";
    vec![Fact { kind, id, state }]
}
