//! The dry run of the HO role: what a reconcile would do. Reads only.

use jiff::Timestamp;
use tokio::time::Instant;

use super::{PrivateLinkServiceController, plan, status, teardown};
use crate::api::AzurePrivateLinkService;
use crate::azure::client::Reconcile;
use crate::controllers::context::Context;
use crate::controllers::decision::Lifecycle;
use crate::controllers::driver;
use crate::controllers::facts::Facts;
use crate::controllers::preview::{DryRun, Fact, as_sent};
use crate::controllers::reconciler::SupportsDryRun;

impl SupportsDryRun for PrivateLinkServiceController {
    async fn dry_run(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: &AzurePrivateLinkService,
        inputs: &plan::PrivateLinkServiceInputs,
    ) -> DryRun {
        let (mut facts, began) = (Facts::default(), Instant::now());
        let lifecycle = Lifecycle::of(cx.role, cr, cr.metadata.deletion_timestamp.is_some());
        let (decision, report) = match lifecycle {
            Lifecycle::Nothing => return DryRun::nothing(known(inputs)),
            Lifecycle::Build => {
                let mut decide = |facts: &Facts| plan::build(cr, inputs, facts, &self.settings, &[]);
                let (decision, found) = driver::decided(cx, reconcile, &mut facts, (began, None), &mut decide).await;
                let report = status::after_build(cr, &decision, &found, &as_sent(&decision.steps));
                (decision, report)
            }
            Lifecycle::Teardown => {
                let mut decide = |facts: &Facts| {
                    let decided = teardown::teardown(cr, inputs, facts, &self.settings, Timestamp::now());
                    decided.map(|decision| (decision, ()))
                };
                let (decision, ()) = driver::decided(cx, reconcile, &mut facts, (began, None), &mut decide).await;
                let report = status::after_teardown(cr, &decision, &as_sent(&decision.steps));
                (decision, report)
            }
        };
        DryRun {
            lifecycle,
            inputs: known(inputs),
            report: Some(report),
            holds: Vec::new(),
            requeue: Some(driver::requeue(cx, &decision, Instant::now())),
            decision,
            facts,
        }
    }
}

fn known(inputs: &plan::PrivateLinkServiceInputs) -> Vec<Fact> {
    let (id, state) = match &inputs.identity {
        Ok(identity) => {
            let state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
            (identity.name.clone(), state)
        }
        Err(problem) => (String::new(), problem.message.clone()),
    };
    let kind = "HostedCluster";
    let cluster = Fact { kind, id, state };
    let service = inputs.service.as_ref().map(|service| {
        let addresses: Vec<_> = service.addresses.iter().map(ToString::to_string).collect();
        Fact {
            kind: "Service",
            id: service.uid.clone(),
            state: match addresses.as_slice() {
                [] => "no address".to_owned(),
                some => some.join(", "),
            },
        }
    });
    std::iter::once(cluster).chain(service).collect()
}
