//! Everything the simulated AWS remembers, in a form that can be saved.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use simulator::random::Random;

use super::fault::Faults;
use super::journal::Journal;
use super::preset::Preset;
use super::seed::{Account, KubernetesService, Quotas};
use super::switches::Switches;
use super::throttle::{Throttle, ThrottleSeed};
use crate::ec2::endpoint::{Endpoint, Interface};
use crate::ec2::endpoint_service::EndpointService;
use crate::ec2::security_group::SecurityGroup;
use crate::ec2::vpc::{Subnet, Vpc};
use crate::elbv2::LoadBalancer;
use crate::metadata::Machine;
use crate::route53::zone::{Change, HostedZone};
use crate::sts::session::Session;

/// The state of one simulated AWS. Maps are by id, sessions by access key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// How far the clocks of callers, who sign by real time, are behind the simulated one.
    #[serde(skip)]
    pub(crate) callers_behind: SignedDuration,
    pub(crate) preset: Preset,
    pub(crate) random: Random,
    pub(crate) accounts: Vec<Account>,
    pub(crate) services: Vec<KubernetesService>,
    pub(crate) switches: Switches,
    pub(crate) throttle_seed: ThrottleSeed,
    pub(crate) throttle: Throttle,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) vpcs: BTreeMap<String, Vpc>,
    pub(crate) subnets: BTreeMap<String, Subnet>,
    pub(crate) groups: BTreeMap<String, SecurityGroup>,
    pub(crate) interfaces: BTreeMap<String, Interface>,
    pub(crate) endpoint_services: BTreeMap<String, EndpointService>,
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
    pub(crate) load_balancers: BTreeMap<String, LoadBalancer>,
    pub(crate) zones: BTreeMap<String, HostedZone>,
    pub(crate) changes: BTreeMap<String, Change>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// The machine on which clients run.
    pub(crate) machine: Machine,
    /// Client tokens by account, region and action.
    pub(crate) tokens: BTreeMap<String, SpentToken>,
}

/// A client token and what it made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SpentToken {
    pub(crate) fingerprint: String,
    pub(crate) id: String,
}

impl State {
    pub(crate) fn new(preset: Preset, random: Random) -> Self {
        Self {
            preset,
            random,
            accounts: vec![],
            services: vec![],
            switches: Switches::default(),
            throttle_seed: ThrottleSeed::default(),
            throttle: Throttle::default(),
            journal: Journal::default(),
            faults: Faults::default(),
            vpcs: BTreeMap::new(),
            subnets: BTreeMap::new(),
            groups: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            endpoint_services: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            load_balancers: BTreeMap::new(),
            zones: BTreeMap::new(),
            changes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            machine: Machine::default(),
            callers_behind: SignedDuration::ZERO,
            tokens: BTreeMap::new(),
        }
    }

    pub(crate) fn account(&self, id: &str) -> Option<&Account> {
        self.accounts.iter().find(|known| known.id == id)
    }

    pub(crate) fn quotas(&self, account: &str) -> Quotas {
        self.account(account)
            .map(|known| known.quotas.clone())
            .unwrap_or_default()
    }

    pub(crate) fn partition(&self, account: &str) -> &str {
        self.account(account).map_or("aws", |known| &known.partition)
    }

    /// An id of EC2's form: a prefix and 17 hexadecimal digits.
    pub(crate) fn new_id(&mut self, prefix: &str) -> String {
        format!("{prefix}-{:016x}{:x}", self.random.bits(), self.random.bits() & 15)
    }

    /// The name that an account has for a zone, by the zone's id. The letters differ between accounts.
    pub(crate) fn zone_name(&self, account: &str, region: &str, zone_id: &str) -> String {
        if let Some(name) = self.account(account).and_then(|known| known.zone_names.get(zone_id)) {
            return name.clone();
        }
        let number: u32 = zone_id
            .rsplit("az")
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1);
        let shift = account
            .bytes()
            .last()
            .map_or(0, |digit| u32::from(digit.saturating_sub(b'0')));
        let letter = char::from(b'a' + ((number + shift) % 6) as u8);
        format!("{region}{letter}")
    }

    /// Ends what is over at `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        for service in self.endpoint_services.values_mut() {
            service.advance(now);
        }
        self.endpoint_services.retain(|_, service| !service.is_gone(now));
        for endpoint in self.endpoints.values_mut() {
            endpoint.advance(now, self.preset);
        }
        let rejected = seconds(self.switches.rejected_listed_s);
        self.endpoints.retain(|_, endpoint| !endpoint.is_gone(now, rejected));
        self.interfaces
            .retain(|_, interface| interface.gone_at.is_none_or(|at| at > now));
        for balancer in self.load_balancers.values_mut() {
            balancer.advance(now);
        }
        self.changes
            .retain(|_, change| now.duration_since(change.submitted) < SignedDuration::from_hours(24));
    }
}

/// A duration of so many seconds.
pub(crate) fn seconds(seconds: f64) -> SignedDuration {
    SignedDuration::from_millis((seconds * 1000.0) as i64)
}
