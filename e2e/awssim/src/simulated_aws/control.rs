//! What the control calls ask of the simulated AWS: to start again from a seed, to show the state, to change it behind
//! everybody's back, and to break answers.

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::SimulatedAws;
use crate::engine::fault::FaultRule;
use crate::engine::journal::JournalEntry;
use crate::engine::resource;
use crate::engine::seed::{KubernetesService, Seed, SeedError};
use crate::engine::state::State;
use crate::engine::switches::Switches;
use crate::iam::caller::find_role;
use crate::{elbv2, metadata};

/// A control call that cannot be done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(String);

impl SimulatedAws {
    /// Replaces everything by what the seed describes.
    ///
    /// # Errors
    /// A thing that cannot be put; then nothing is changed.
    pub fn seed(&mut self, now: Timestamp, seed: Seed) -> Result<(), SeedError> {
        let mut state = State::new(self.state.preset, self.state.random.clone());
        state.accounts = seed.accounts;
        state.services = seed.services;
        state.switches = seed.switches;
        state.throttle_seed = seed.throttle;
        state.machine.role = seed.machine_role;
        if let Some(role) = state
            .machine
            .role
            .as_ref()
            .filter(|role| find_role(&state, role).is_none())
        {
            let (id, why) = (role.clone(), "no account has this role".to_owned());
            return Err(SeedError::Resource { id, why });
        }
        for body in seed.resources {
            let id = body["id"].as_str().unwrap_or_default().to_owned();
            resource::put(&mut state, now, &id, body).map_err(|why| SeedError::Resource { id, why })?;
        }
        self.state = state;
        Ok(())
    }

    /// All things whose ARN starts with `prefix`, as they are kept.
    pub fn resources(&mut self, now: Timestamp, prefix: &str) -> Vec<Value> {
        self.state.advance(now);
        let all = resource::all(&self.state).into_iter();
        all.filter(|(arn, _)| arn.starts_with(prefix))
            .map(|(_, value)| value)
            .collect()
    }

    /// Creates or replaces a thing behind everybody's back; returns it.
    ///
    /// # Errors
    /// No ARN, of an unknown account or kind; a body of another form.
    pub fn put_resource(&mut self, now: Timestamp, id: &str, body: Value) -> Result<Value, ControlError> {
        self.state.advance(now);
        resource::put(&mut self.state, now, id, body).map_err(ControlError)?;
        let all = resource::all(&self.state).into_iter();
        Ok(all
            .into_iter()
            .find(|(arn, _)| arn == id)
            .map_or(json!(null), |(_, value)| value))
    }

    /// Removes a thing behind everybody's back; returns whether it was there.
    pub fn delete_resource(&mut self, now: Timestamp, id: &str) -> bool {
        self.state.advance(now);
        resource::delete(&mut self.state, id)
    }

    /// Removes a load balancer as its owner does; returns whether it was there.
    ///
    /// # Errors
    /// An endpoint service uses it.
    pub fn delete_load_balancer(&mut self, now: Timestamp, arn: &str) -> Result<bool, ControlError> {
        self.state.advance(now);
        elbv2::remove(&mut self.state, arn).map_err(|error| ControlError(error.to_string()))
    }

    /// The calls after number `since`.
    pub fn journal(&self, since: u64) -> &[JournalEntry] {
        self.state.journal.since(since)
    }

    /// Forgets the calls made so far; their numbers are not used again.
    pub fn clear_journal(&mut self) {
        self.state.journal.clear();
    }

    /// Answers a request to the metadata service of the machine on which clients run.
    pub fn machine_metadata(&mut self, now: Timestamp, asked: (&Method, &str), headers: &HeaderMap) -> Response<Bytes> {
        metadata::answer(&mut self.state, now, asked, headers)
    }

    /// Replaces all fault rules and their counts.
    pub fn set_faults(&mut self, rules: Vec<FaultRule>) {
        self.state.faults.set(rules);
    }

    /// Removes all fault rules.
    pub fn clear_faults(&mut self) {
        self.state.faults.set(vec![]);
    }

    /// Says how far the clocks of callers are behind the simulated one: they sign by real time, whatever is simulated.
    pub fn set_callers_behind(&mut self, behind: SignedDuration) {
        self.state.callers_behind = behind;
    }

    /// The choices in force.
    pub fn switches(&self) -> &Switches {
        &self.state.switches
    }

    /// What stands behind load balancers.
    pub fn services(&self) -> &[KubernetesService] {
        &self.state.services
    }

    /// Says what stands behind a load balancer, in place of what stood there.
    pub fn put_service(&mut self, service: KubernetesService) {
        self.delete_service(&service.load_balancer);
        self.state.services.push(service);
    }

    /// Nothing stands behind that load balancer any more.
    pub fn delete_service(&mut self, load_balancer: &str) {
        self.state.services.retain(|known| known.load_balancer != load_balancer);
    }
}
