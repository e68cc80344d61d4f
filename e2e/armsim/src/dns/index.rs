//! What zones hold and which links a VNet has, so that no look-up reads all resources.
//!
//! Kept by the three places that store zones, links and record sets, and by what their types do when one is removed. A
//! link that is only still shown is in none of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::links;
use crate::engine::id::ResourceId;
use crate::engine::resource::Resource;

/// Counts by zone and subscription, links by VNet. All keys are ids in lower case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Zones by subscription.
    zones: BTreeMap<String, usize>,
    contents: BTreeMap<String, Contents>,
    /// Keys of links by VNet.
    vnets: BTreeMap<String, BTreeSet<String>>,
}

/// How much a zone holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(crate) record_sets: usize,
    pub(crate) links: usize,
    /// Links with registration, which are counted above too.
    pub(crate) registering: usize,
}

impl Index {
    pub(super) fn zone_added(&mut self, zone: &ResourceId) {
        *self.zones.entry(subscription(zone)).or_default() += 1;
        self.contents.insert(zone.key(), Contents::default());
    }

    pub(super) fn zone_removed(&mut self, zone: &ResourceId) {
        if let Some(count) = self.zones.get_mut(&subscription(zone)) {
            *count = count.saturating_sub(1);
        }
        self.contents.remove(&zone.key());
    }

    pub(super) fn set_added(&mut self, set: &ResourceId) {
        if let Some(zone) = self.zone_of(set) {
            zone.record_sets += 1;
        }
    }

    pub(super) fn set_removed(&mut self, set: &ResourceId) {
        if let Some(zone) = self.zone_of(set) {
            zone.record_sets = zone.record_sets.saturating_sub(1);
        }
    }

    pub(super) fn link_added(&mut self, link: &Resource) {
        let registering = usize::from(links::registers(link));
        if let Some(zone) = self.zone_of(&link.id) {
            zone.links += 1;
            zone.registering += registering;
        }
        self.vnets.entry(vnet(link)).or_default().insert(link.id.key());
    }

    pub(super) fn link_removed(&mut self, link: &Resource) {
        let registering = usize::from(links::registers(link));
        if let Some(zone) = self.zone_of(&link.id) {
            zone.links = zone.links.saturating_sub(1);
            zone.registering = zone.registering.saturating_sub(registering);
        }
        if let Some(links) = self.vnets.get_mut(&vnet(link)) {
            links.remove(&link.id.key());
            if links.is_empty() {
                self.vnets.remove(&vnet(link));
            }
        }
    }

    /// The zones of a subscription.
    pub(super) fn zones(&self, of: &ResourceId) -> usize {
        self.zones.get(&subscription(of)).copied().unwrap_or_default()
    }

    /// What a zone holds.
    pub(super) fn contents(&self, zone: &ResourceId) -> Contents {
        self.contents.get(&zone.key()).copied().unwrap_or_default()
    }

    /// The ids, in lower case, of the links to a VNet.
    pub(crate) fn links_to<'a>(&'a self, vnet: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let links = self.vnets.get(&vnet.to_ascii_lowercase());
        links.into_iter().flatten().map(String::as_str)
    }

    fn zone_of(&mut self, nested: &ResourceId) -> Option<&mut Contents> {
        self.contents.get_mut(&nested.parent()?.key())
    }
}

fn subscription(of: &ResourceId) -> String {
    of.subscription().to_ascii_lowercase()
}

fn vnet(link: &Resource) -> String {
    links::vnet(link).to_ascii_lowercase()
}
