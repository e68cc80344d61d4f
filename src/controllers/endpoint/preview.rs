//! What a pass over the guest's side would do. Reads only.

use kube::ResourceExt;
use tokio::time::Instant;

use super::{Around, EndpointController, hasten_endpoint, plan, status, teardown};
use crate::api::AzurePrivateLinkService;
use crate::api::markers::HCP_FINALIZER;
use crate::azure::client::Pass;
use crate::controllers::context::Context;
use crate::controllers::decision::Course;
use crate::controllers::facts::Facts;
use crate::controllers::frame;
use crate::controllers::preview::{Fact, FinalizerChange, Foreseen, as_sent};
use crate::controllers::run::Foresees;

impl Foresees for EndpointController {
    async fn foresee(&self, cx: &Context, pass: Pass, cr: &AzurePrivateLinkService, around: &Around) -> Foreseen {
        let (mut facts, began, meaning) = (Facts::default(), Instant::now(), &around.meaning);
        let course = around.course(cr);
        let (decision, report) = match course {
            Course::Nothing => return Foreseen::nothing(known(meaning)),
            Course::Build => {
                let mut decide = |facts: &Facts| plan::build(cr, meaning, facts);
                let (decision, names) = frame::decided(cx, pass, &mut facts, (began, None), &mut decide).await;
                hasten_endpoint(cx, &cr.uid().unwrap_or_default(), &decision);
                let done = as_sent(&decision.steps);
                let report = status::after_build(cr, &decision, &names, &done);
                (decision, report)
            }
            Course::Teardown => {
                let mut decide = |facts: &Facts| teardown::teardown(cr, meaning, facts).map(|decision| (decision, ()));
                let (decision, ()) = frame::decided(cx, pass, &mut facts, (began, None), &mut decide).await;
                let report = status::after_teardown(cr, &decision, &as_sent(&decision.steps));
                (decision, report)
            }
        };
        let held = around.to_be_held(cr).filter(|_| course == Course::Build);
        Foreseen {
            course,
            around: known(meaning),
            report: Some(report),
            holds: Vec::from_iter(held.map(|_| FinalizerChange {
                verb: "set",
                kind: "HostedControlPlane",
                finalizer: HCP_FINALIZER,
            })),
            wait: Some(frame::next_look(cx, &decision, Instant::now())),
            decision,
            facts,
        }
    }
}

fn known(around: &plan::Surroundings) -> Vec<Fact> {
    let (id, state) = match &around.control_plane {
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
