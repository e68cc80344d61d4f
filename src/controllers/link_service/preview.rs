//! What a pass over the management side would do. Reads only.

use jiff::Timestamp;
use tokio::time::Instant;

use super::{LinkServiceController, plan, status, teardown};
use crate::api::AzurePrivateLinkService;
use crate::azure::client::Pass;
use crate::controllers::context::Context;
use crate::controllers::decision::Course;
use crate::controllers::facts::Facts;
use crate::controllers::frame;
use crate::controllers::preview::{Fact, Foreseen, as_sent};
use crate::controllers::run::Foresees;

impl Foresees for LinkServiceController {
    async fn foresee(
        &self,
        cx: &Context,
        pass: Pass,
        cr: &AzurePrivateLinkService,
        around: &plan::Surroundings,
    ) -> Foreseen {
        let (mut facts, began) = (Facts::default(), Instant::now());
        let course = Course::of(cx.role, cr, cr.metadata.deletion_timestamp.is_some());
        let (decision, report) = match course {
            Course::Nothing => return Foreseen::nothing(known(around)),
            Course::Build => {
                let mut decide = |facts: &Facts| plan::build(cr, around, facts, &self.settings, &[]);
                let (decision, found) = frame::decided(cx, pass, &mut facts, (began, None), &mut decide).await;
                let report = status::after_build(cr, &decision, &found, &as_sent(&decision.steps));
                (decision, report)
            }
            Course::Teardown => {
                let mut decide = |facts: &Facts| {
                    let decided = teardown::teardown(cr, around, facts, &self.settings, Timestamp::now());
                    decided.map(|decision| (decision, ()))
                };
                let (decision, ()) = frame::decided(cx, pass, &mut facts, (began, None), &mut decide).await;
                let report = status::after_teardown(cr, &decision, &as_sent(&decision.steps));
                (decision, report)
            }
        };
        Foreseen {
            course,
            around: known(around),
            report: Some(report),
            holds: Vec::new(),
            wait: Some(frame::next_look(cx, &decision, Instant::now())),
            decision,
            facts,
        }
    }
}

fn known(around: &plan::Surroundings) -> Vec<Fact> {
    let (id, state) = match &around.identity {
        Ok(identity) => {
            let state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
            (identity.name.clone(), state)
        }
        Err(problem) => (String::new(), problem.message.clone()),
    };
    let kind = "HostedCluster";
    let cluster = Fact { kind, id, state };
    let service = around.service.as_ref().map(|service| {
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
