//! HO: the load balancer's side of a private path. Observes, plans, executes, reports.

pub mod frontend;
pub mod nat_subnet;
mod observe;
pub mod plan;
mod preview;
pub mod status;
pub mod teardown;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::api::AzurePrivateLinkService;
use crate::azure::client::Pass;
use crate::azure::plan::Done;
use crate::azure::resource::Kind;
use crate::controllers::context::Context;
use crate::controllers::decision::Course;
use crate::controllers::facts::Facts;
use crate::controllers::frame::{self, Outcome, PassError};
use crate::controllers::run::{self, Reconciler};

/// The controller of the HO role.
pub struct LinkServiceController {
    settings: plan::Settings,
    /// Prefixes that Azure refused, by the UID of the custom resource; another cluster was quicker.
    refused: Mutex<HashMap<String, Vec<Ipv4Net>>>,
}

impl LinkServiceController {
    /// With the operator's settings.
    pub fn new(settings: plan::Settings) -> Self {
        Self {
            settings,
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
        let outcome = frame::carry_out(cx, pass, cr, also, Facts::default(), |cr, facts| {
            plan::build(cr, around, facts, &self.settings, &refused)
        });
        let Outcome {
            decision,
            extra: found,
            done,
            cr,
        } = outcome.await?;
        let mut wait = frame::next_look(cx, &decision, Instant::now());
        if let Some(prefix) = overlapping(&decision.steps, &done) {
            self.refuse(&uid, prefix);
            cx.memory.doubt(&decision.steps[0].id, Instant::now());
            wait = Duration::ZERO;
        }
        if decision.paused {
            return Ok(run::Ended::waiting(cr, wait));
        }
        let report = status::after_build(&cr, &decision, &found, &done);
        let settled = report.conditions.iter().all(|c| c.status == crate::api::Status::True);
        let cr = frame::write_status(cx, cr, also, &report).await?;
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
        let outcome = frame::carry_out(cx, pass, cr, also, Facts::default(), |cr, facts| {
            teardown::teardown(cr, around, facts, &self.settings, Timestamp::now()).map(|decision| (decision, ()))
        });
        let Outcome { decision, done, cr, .. } = outcome.await?;
        if decision.nothing_left() {
            decision.steps.iter().for_each(|step| cx.memory.forget(&step.id));
            return Ok(run::Ended::released(
                frame::release(cx, cr, also, &decision.steps).await?,
            ));
        }
        let wait = frame::next_look(cx, &decision, Instant::now());
        let report = status::after_teardown(&cr, &decision, &done);
        let cr = frame::write_status(cx, cr, also, &report).await?;
        Ok(run::Ended::unsettled(cr, wait, &decision, &done))
    }

    fn refused(&self, uid: &str) -> Vec<Ipv4Net> {
        let all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(uid).cloned().unwrap_or_default()
    }

    fn refuse(&self, uid: &str, prefix: Ipv4Net) {
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(uid.to_owned()).or_default().push(prefix);
    }
}

/// The prefix that Azure refused because another subnet has it.
fn overlapping(steps: &[crate::azure::plan::Step], done: &[Done]) -> Option<Ipv4Net> {
    let refused = steps.iter().zip(done).find(|(step, done)| {
        step.kind == Kind::Subnet && matches!(done, Done::Failed(error) if error.code == "NetcfgSubnetRangesOverlap")
    });
    match &refused?.0.verb {
        crate::azure::plan::Verb::Put(body) => body.pointer("/properties/addressPrefix")?.as_str()?.parse().ok(),
        _ => None,
    }
}

impl Reconciler for LinkServiceController {
    type Around = plan::Surroundings;

    async fn around(&self, cx: &Context, cr: &AzurePrivateLinkService) -> Result<(Self::Around, String), PassError> {
        let around = observe::surroundings(cx, cr).await?;
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
}
