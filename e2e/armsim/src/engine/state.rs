//! Everything the simulated Azure remembers, in a form that can be saved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use simulator::random::Random;

use super::fault::Faults;
use super::id::ResourceId;
use super::journal::Journal;
use super::operation::Operations;
use super::preset::{Pace, Preset};
use super::resource::Store;
use super::seed::{Quotas, Role, Service, Subscription, Switches, Tenant, ThrottleSeed};
use super::throttle::Throttle;
use crate::{dns, resources};

/// The state of one simulated Azure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) preset: Preset,
    /// How long the next operations take, whatever they are, where that is known.
    #[serde(skip)]
    pub(crate) next_pace: Option<Pace>,
    pub(crate) random: Random,
    pub(crate) store: Store,
    pub(crate) operations: Operations,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) roles: Vec<Role>,
    pub(crate) services: Vec<Service>,
    pub(crate) switches: Switches,
    pub(crate) throttle_seed: ThrottleSeed,
    pub(crate) throttle: Throttle,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    /// Addresses in use: by subnet (key of its id), by address, the id of the IP configuration that has it.
    pub(crate) addresses: BTreeMap<String, BTreeMap<std::net::Ipv4Addr, String>>,
    /// Private link services by alias in lower case.
    pub(crate) aliases: BTreeMap<String, ResourceId>,
    /// The order of writes to private DNS.
    pub(crate) dns: dns::Ledger,
    /// Which providers the subscriptions have registered.
    pub(crate) registrations: resources::Registrations,
}

impl State {
    pub(crate) fn new(preset: Preset, random: Random) -> Self {
        Self {
            preset,
            next_pace: None,
            random,
            store: Store::default(),
            operations: Operations::default(),
            tenants: vec![],
            subscriptions: vec![],
            roles: vec![],
            services: vec![],
            switches: Switches::default(),
            throttle_seed: ThrottleSeed::default(),
            throttle: Throttle::default(),
            journal: Journal::default(),
            faults: Faults::default(),
            addresses: BTreeMap::new(),
            aliases: BTreeMap::new(),
            dns: dns::Ledger::default(),
            registrations: resources::Registrations::default(),
        }
    }

    pub(crate) fn subscription(&self, id: &str) -> Option<&Subscription> {
        self.subscriptions
            .iter()
            .find(|known| known.id.eq_ignore_ascii_case(id))
    }

    /// The limits of a subscription.
    pub(crate) fn quotas(&self, subscription: &str) -> Quotas {
        self.subscription(subscription)
            .map(|known| known.quotas.clone())
            .unwrap_or_default()
    }
}
