//! A reconcile of a custom resource at rest: it finds all as desired and writes nothing, or it is none.

use super::rounds::Executed;
use super::{Driver, until_decided};
use crate::controllers::decision::Lifecycle;
use crate::controllers::facts::Facts;
use crate::controllers::outcome;
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::urgency::urgency;
use crate::controllers::write_status::is_written;
use crate::engine::client::Reconcile;
use crate::runtime::reconcile::ReconcileOutcome;

impl<C: CustomResourceReconciler> Driver<'_, C> {
    /// Reads what is due in the cloud, and decides. None if anything is to be written, to the cloud or to Kubernetes.
    pub async fn at_rest(mut self, cr: C::Object) -> Option<ReconcileOutcome<C::Object>> {
        self.call_for(&cr);
        let Self {
            controller, cx, inputs, ..
        } = self;
        let lifecycle = controller.lifecycle(&cr, inputs);
        if lifecycle != Lifecycle::Build || !controller.holds(lifecycle, &cr, inputs).is_empty() {
            return None;
        }
        let reconcile = Reconcile {
            urgency: urgency(&cr, cx.role, lifecycle, cx.resources.namespaces()),
            ..self.reconcile
        };
        let (decision, found) = until_decided(cx, reconcile, &mut Facts::default(), &mut |facts| {
            self.decide(lifecycle, &cr, facts)
        })
        .await;
        if decision.forgets || !decision.is_as_desired() {
            return None;
        }
        self.report_standing(&cr, &decision).await;
        let outcomes = self.execute(&cr, &decision.steps).await;
        let mut executed = Executed {
            decision,
            found,
            outcomes,
            cr,
        };
        let (requeue, report) = self.built(&mut executed);
        let Executed {
            decision, outcomes, cr, ..
        } = executed;
        is_written(cx, &cr, &report).then(|| outcome::reported(cr, requeue, &report, &decision, &outcomes))
    }
}
