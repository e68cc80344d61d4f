//! HO: the load balancer's side of a private path. Observes, plans, executes, reports.

pub mod frontend;
pub mod nat_prefix;
mod observe;
pub mod plan;
mod preview;
#[cfg(test)]
mod samples;
pub mod status;
mod subnet;
pub mod teardown;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::api::AzurePrivateLinkService;
use crate::azure::client::Pass;
use crate::azure::plan::{Done, Step, Verb, Why};
use crate::azure::resource::Kind;
use crate::controllers::abandon;
use crate::controllers::context::Context;
use crate::controllers::decision::{Course, Decision, deleted_at};
use crate::controllers::event;
use crate::controllers::frame::{self, Outcome, PassError};
use crate::controllers::identity::Leaving;
use crate::controllers::neighbours::Neighbours;
use crate::controllers::run::{self, Reconciler};
use crate::controllers::write_status::write_status;

/// The controller of the HO role.
pub struct LinkServiceController {
    settings: plan::Settings,
    neighbours: Arc<Neighbours>,
    /// Prefixes that Azure refused, by the UID of the custom resource; another cluster was quicker.
    refused: Mutex<HashMap<String, Vec<Ipv4Net>>>,
}

impl LinkServiceController {
    /// With the operator's settings, among the neighbours that are watched.
    pub fn new(settings: plan::Settings, neighbours: Arc<Neighbours>) -> Self {
        Self {
            settings,
            neighbours,
            refused: Mutex::default(),
        }
    }

    async fn build(
        &self,
        cx: &Context,
        pass: Pass,
        cr: AzurePrivateLinkService,
        around: &plan::Surroundings,
    ) -> Result<run::Ended, PassError> {
        let uid = cr.metadata.uid.clone().unwrap_or_default();
        let refused = self.refused(&uid);
        let also = around.hosted_cluster.as_ref();
        let outcome = frame::carry_out(cx, pass, cr, also, None, |cr, facts| {
            plan::build(cr, around, facts, &self.settings, &refused)
        });
        let Outcome {
            decision,
            extra: found,
            done,
            cr,
        } = outcome.await?;
        let mut wait = frame::next_look(cx, &decision, Instant::now());
        if self.chooses_again(cx, &uid, &decision.steps, &done) {
            wait = Duration::ZERO;
        }
        if decision.paused {
            return Ok(run::Ended::waiting(cr, wait));
        }
        let report = status::after_build(
            &cr,
            &decision,
            &found,
            &frame::as_told(&cx.memory, &decision.steps, &done),
        );
        let settled = report.conditions.iter().all(|c| c.status == crate::api::Status::True);
        let cr = write_status(cx, cr, also, &report).await?;
        Ok(if settled {
            run::Ended::settled(cr, wait)
        } else {
            run::Ended::unsettled(cr, wait, &decision, &done)
        })
    }

    async fn teardown(
        &self,
        cx: &Context,
        pass: Pass,
        cr: AzurePrivateLinkService,
        around: &plan::Surroundings,
    ) -> Result<run::Ended, PassError> {
        let also = around.hosted_cluster.as_ref();
        let since = deleted_at(&cr);
        let outcome = frame::carry_out(cx, pass, cr, also, since, |cr, facts| {
            teardown::teardown(cr, around, facts, &self.settings, Timestamp::now()).map(|decision| (decision, ()))
        });
        let Outcome { decision, done, cr, .. } = outcome.await?;
        let failing = |step: &Step| cx.memory.failing_for(&step.id, Instant::now());
        let abandoned = abandon::permission(&cr, cx.role, &decision, &done, &failing);
        if decision.nothing_left() || abandoned.is_some() {
            decision.steps.iter().for_each(|step| cx.memory.forget(&step.id));
            let said = match abandoned {
                Some(event) => vec![event],
                // Somebody recorded ids that another cluster has.
                None if around.leaving == Leaving::OfAnother => {
                    vec![event::not_looked_at(
                        "the ids that are known belong to another HostedCluster",
                    )]
                }
                None => event::released(&decision.steps),
            };
            return Ok(run::Ended::released(frame::release(cx, cr, also, &said).await?));
        }
        hasten_subnet(cx, &decision);
        let wait = frame::next_look(cx, &decision, Instant::now());
        let report = status::after_teardown(&cr, &decision, &done);
        let cr = write_status(cx, cr, also, &report).await?;
        Ok(run::Ended::unsettled(cr, wait, &decision, &done))
    }

    /// A prefix that Azure did not take is not tried again, and the next one is chosen in the network as it is then:
    /// another cluster was quicker. Whether to do so at once.
    fn chooses_again(&self, cx: &Context, uid: &str, steps: &[Step], done: &[Done]) -> bool {
        let mut steps = steps.iter().zip(done);
        let Some((step, outcome)) = steps.find(|(step, _)| step.kind == Kind::Subnet) else {
            return false;
        };
        if step.settled().is_some() {
            self.all_refused().remove(uid);
            return false;
        }
        let Done::Failed(error) = outcome else {
            return false;
        };
        let now = Instant::now();
        if let Some(network) = step.id.parent() {
            cx.memory.doubt(&network, now);
        }
        let overlaps = matches!(error.code.as_str(), "NetcfgSubnetRangesOverlap" | "NetcfgInvalidSubnet");
        let Some(prefix) = proposed(step).filter(|_| overlaps) else {
            return false;
        };
        let another = tries_another(self.all_refused().entry(uid.to_owned()).or_default(), prefix);
        if another {
            cx.memory.doubt(&step.id, now);
        }
        another
    }

    fn refused(&self, uid: &str) -> Vec<Ipv4Net> {
        self.all_refused().get(uid).cloned().unwrap_or_default()
    }

    fn all_refused(&self) -> MutexGuard<'_, HashMap<String, Vec<Ipv4Net>>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many prefixes in a row are refused for another reason than a race with other clusters.
const REFUSALS: usize = 16;

/// Notes a refused prefix; whether another one is tried at once. After too many all are forgotten, and the refusal is waited
/// out like any other.
fn tries_another(refused: &mut Vec<Ipv4Net>, prefix: Ipv4Net) -> bool {
    refused.push(prefix);
    if refused.len() == REFUSALS {
        refused.clear();
    }
    !refused.is_empty()
}

/// What the addresses of a service that just went hold up is looked at again soon.
fn hasten_subnet(cx: &Context, decision: &Decision) {
    if let Some(step) = decision.step(Kind::Subnet)
        && step.found.is_some()
        && matches!(step.why, Why::Needs(_))
    {
        cx.memory.hasten(&step.id, Kind::Subnet.pace(), Instant::now());
    }
}

/// The prefix that a step would give a subnet.
fn proposed(step: &Step) -> Option<Ipv4Net> {
    match &step.verb {
        Verb::Put(body) => body.pointer("/properties/addressPrefix")?.as_str()?.parse().ok(),
        _ => None,
    }
}

impl Reconciler for LinkServiceController {
    type Around = plan::Surroundings;

    async fn around(&self, cx: &Context, cr: &AzurePrivateLinkService) -> Result<(Self::Around, String), PassError> {
        let around = observe::surroundings(cx, cr, &self.neighbours, self.settings.cloud).await?;
        let fingerprint = observe::fingerprint(&around);
        Ok((around, fingerprint))
    }

    async fn pass(
        &self,
        cx: &Context,
        pass: Pass,
        cr: AzurePrivateLinkService,
        around: Self::Around,
    ) -> Result<run::Ended, PassError> {
        match Course::of(cx.role, &cr, cr.metadata.deletion_timestamp.is_some()) {
            Course::Build => self.build(cx, pass, cr, &around).await,
            Course::Teardown => self.teardown(cx, pass, cr, &around).await,
            Course::Nothing => Ok(run::Ended::released(cr)),
        }
    }

    fn forget(&self, uid: &str) {
        self.all_refused().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_are_all_refused_are_waited_out_and_then_tried_again() {
        let mut refused = Vec::new();
        let prefix = |n: u8| Ipv4Net::new([10, 0, n, 0].into(), 28).unwrap();
        for n in 1..16 {
            assert!(
                tries_another(&mut refused, prefix(n)),
                "another cluster may have been quicker"
            );
            assert_eq!(refused.len(), usize::from(n));
        }
        assert!(!tries_another(&mut refused, prefix(16)), "no race");
        assert!(refused.is_empty(), "all may be taken later");
    }
}
