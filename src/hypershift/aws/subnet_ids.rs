//! The subnets from which a guest's workers reach the endpoint: those of its NodePools and of Karpenter. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::ids::is_id;
use crate::api::NodePool;
use crate::api::markers::aws::{KARPENTER_LABEL, KARPENTER_SUBNETS, KARPENTER_SUBNETS_KEY, KARPENTER_VALUE};

/// The most subnets that the definition lets a custom resource have.
pub const MAX_SUBNETS: usize = 10;

/// The most bytes of somebody's text that a complaint repeats.
const MAX_SHOWN: usize = 64;

/// The most left-out subnets that are named, and the most NodePools about which there is a complaint: whoever makes
/// them may make any number.
const MAX_NAMED: usize = 8;

/// What Karpenter's ConfigMap lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KarpenterList {
    /// There is no such ConfigMap, or it is not Karpenter's.
    #[default]
    Absent,
    /// The subnets of its nodes.
    Read(Vec<String>),
    /// It has no list of texts, or one that is too long.
    Unreadable,
}

impl KarpenterList {
    /// Reads the ConfigMap of that name, if there is one.
    pub fn of(config_map: Option<&ConfigMap>) -> Self {
        let is_karpenters = |map: &&ConfigMap| {
            let label = map.labels().get(KARPENTER_LABEL);
            map.name_any() == KARPENTER_SUBNETS && label.is_some_and(|value| value == KARPENTER_VALUE)
        };
        let Some(map) = config_map.filter(is_karpenters) else {
            return Self::Absent;
        };
        let text = map.data.as_ref().and_then(|data| data.get(KARPENTER_SUBNETS_KEY));
        let list = text.and_then(|text| serde_json::from_str(text).ok());
        list.map_or(Self::Unreadable, Self::Read)
    }
}

/// What the subnets follow from.
#[derive(Debug, Clone, Copy)]
pub struct SubnetSources<'a> {
    /// The name of the cluster.
    pub cluster: &'a str,
    /// The NodePools in its namespace, those of other clusters too.
    pub pools: &'a [NodePool],
    /// Karpenter's list.
    pub karpenter: &'a KarpenterList,
    /// `spec.subnetIDs` as it is now: the subnets that the endpoint is in.
    pub current: &'a [String],
}

/// The desired `spec.subnetIDs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredSubnets {
    /// The ids, in order, each once.
    pub ids: Vec<String>,
    /// Those for which there is no room.
    pub left_out: Vec<String>,
    /// What cannot be used, in words for an Event.
    pub complaints: Vec<String>,
}

/// The subnets that the endpoint should be in. Only what was read removes one: while Karpenter's list cannot be read,
/// and when no subnet is named any more, those that are there stay.
pub fn desired(sources: SubnetSources<'_>) -> DesiredSubnets {
    let mut complaints = Vec::new();
    let mut named = of_pools(sources, &mut complaints);
    let more = complaints.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        complaints.truncate(MAX_NAMED);
        complaints.push(format!("{more} more NodePools"));
    }
    let current = sources.current.iter().filter(|id| is_id("subnet", id)).cloned();
    match sources.karpenter {
        KarpenterList::Absent => {}
        KarpenterList::Read(list) => named.extend(usable(list, KARPENTER_SUBNETS, &mut complaints)),
        KarpenterList::Unreadable => {
            complaints.push(format!(
                "ConfigMap {KARPENTER_SUBNETS}: {KARPENTER_SUBNETS_KEY} is no JSON list of texts, or too long: no \
                 subnet is removed"
            ));
            named.extend(current.clone());
        }
    }
    if named.is_empty() {
        named.extend(current);
    }
    let (ids, left_out) = fitting(named, sources);
    if !left_out.is_empty() {
        complaints.push(format!(
            "an endpoint takes {MAX_SUBNETS} subnets, left out: {}",
            first_of(&left_out)
        ));
    }
    DesiredSubnets {
        ids,
        left_out,
        complaints,
    }
}

/// The first of these ids, and how many more there are.
fn first_of(ids: &[String]) -> String {
    let named = ids[..ids.len().min(MAX_NAMED)].join(", ");
    match ids.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The subnets of the cluster's NodePools.
fn of_pools(sources: SubnetSources<'_>, complaints: &mut Vec<String>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let own = sources.pools.iter();
    for pool in own.filter(|pool| pool.spec.cluster_name.as_deref() == Some(sources.cluster)) {
        let name = format!("NodePool {}", pool.name_any());
        let Some(aws) = &pool.spec.platform.aws else {
            continue;
        };
        match &aws.subnet.id {
            Some(id) => named.extend(usable(std::slice::from_ref(id), &name, complaints)),
            None if aws.subnet.has_filters => {
                complaints.push(format!(
                    "{name}: subnets cannot be found by filters, name one by its id"
                ));
            }
            None => {}
        }
    }
    named
}

/// Those that are ids of subnets.
fn usable(ids: &[String], source: &str, complaints: &mut Vec<String>) -> BTreeSet<String> {
    let (usable, unusable): (Vec<&String>, Vec<&String>) = ids.iter().partition(|id| is_id("subnet", id));
    if let Some(first) = unusable.first() {
        let shown = &first[..first.floor_char_boundary(MAX_SHOWN)];
        complaints.push(format!("{source}: {shown:?} is not the id of a subnet"));
    }
    usable.into_iter().cloned().collect()
}

/// As many as fit, in order, and the others. Those that serve already come first, so that no working interface is
/// removed for another.
fn fitting(named: BTreeSet<String>, sources: SubnetSources<'_>) -> (Vec<String>, Vec<String>) {
    let (serving, others): (Vec<String>, Vec<String>) = named.into_iter().partition(|id| sources.current.contains(id));
    let mut ids = [serving, others].concat();
    let mut left_out = ids.split_off(ids.len().min(MAX_SUBNETS));
    ids.sort_unstable();
    left_out.sort_unstable();
    (ids, left_out)
}

#[cfg(test)]
mod tests;
