//! The interface endpoint in the guest's VPC.
//!
//! Body: `Id`, `State`, `ServiceName`, `VpcId`, `SubnetIds`, `GroupIds`, `DnsNames` (the regional name first), `Tags`,
//! `Candidates`, the bodies of further endpoints to the same service, and `TagsPending` where no tag is shown yet; to
//! put, `SubnetZones`, `MayBeRefused` and `ClientToken` too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyperlink_engine::cloud::Key;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, REPLACED_AFTER, Rules};
use crate::body::{list, state, tags, text, texts};
use crate::client_token::ClientToken;
use crate::cloud::Aws;
use crate::owner_tags::OwnerTags;
use crate::slot::Slot;

/// What the engine has to know of endpoints.
pub const RULES: Rules = Rules {
    // The time between two reads of an endpoint in progress, which takes a minute or so.
    pace: Duration::from_secs(15),
    // Whose it is shows by its tags.
    completed: |body| body["TagsPending"] != true,
    in_force: |body| dns_name(body).is_some(),
    confirms_absence: true,
    replaced_after: Some(REPLACED_AFTER),
    proves_gone: true,
    shows_predecessor: true,
    ..Rules::DEFAULT
};

/// The key of the tag with the name of the custom resource, which HyperShift's own controllers set too.
pub const CUSTOM_RESOURCE_TAG: &str = "AWSEndpointService";

/// A desired endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VpcEndpoint {
    /// The slot, with the VPC and the name of the endpoint service.
    pub slot: Slot,
    /// The id of its security group.
    pub security_group: String,
    /// Its subnets: one in each zone.
    pub subnets: BTreeSet<String>,
    /// The zones of subnets, these and those that it has, as far as they are known.
    pub zones: BTreeMap<String, String>,
    /// Whether nothing tells that AWS takes all subnets. Which it refuses is remembered then.
    pub may_be_refused: bool,
    /// Its tags.
    pub owner_tags: OwnerTags,
    /// What makes a repeated create answer with the first result.
    pub client_token: ClientToken,
    /// The id of the one that is kept where there are several, if that is known.
    pub kept: Option<String>,
}

/// The DNS name by which the endpoint is reached: the regional one.
pub fn dns_name(body: &Value) -> Option<&str> {
    let names = body["DnsNames"].as_array()?;
    names.first()?.as_str().filter(|name| !name.is_empty())
}

/// Whether an endpoint in this state is one at all, or a trace of one.
pub fn is_live(body: &Value) -> bool {
    state(body) != "deleted"
}

/// The further endpoints to the same service.
pub(crate) fn candidates(body: &Value) -> &[Value] {
    body["Candidates"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// All endpoints to the same service that a body shows.
pub fn all_shown(body: &Value) -> impl Iterator<Item = &Value> + Clone {
    std::iter::once(body).chain(candidates(body))
}

/// Whether only another endpoint can come to be connected.
pub fn is_lost(body: &Value) -> bool {
    matches!(state(body).as_str(), "rejected" | "failed" | "expired")
}

impl Owned<Aws> for VpcEndpoint {
    fn kind(&self) -> Kind {
        Kind::VpcEndpoint
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// It leads from this VPC to the endpoint service, and has the owner's tag or that with the custom resource's name.
    /// Whoever may write the custom resource may name any service, others' too.
    fn is_owned(&self, current: &Value) -> bool {
        let custom_resource = tags(current).remove(CUSTOM_RESOURCE_TAG);
        let is_marked =
            custom_resource.is_some_and(|name| self.owner_tags.value(CUSTOM_RESOURCE_TAG) == Some(name.as_str()));
        text(current, "ServiceName") == self.slot.name()
            && Some(text(current, "VpcId")) == self.slot.container()
            && (is_marked || self.owner_tags.prove(current))
            && !self.owner_tags.deny(current)
    }

    /// The one of several that is kept, else the first that is not another cluster's.
    fn own_part<'a>(&self, current: &'a Value) -> Cow<'a, Value> {
        let mut owned = all_shown(current).filter(|endpoint| self.is_owned(endpoint));
        let is_kept = |endpoint: &&Value| self.kept.as_deref() == Some(text(endpoint, "Id"));
        match owned.clone().find(is_kept).or_else(|| owned.next()) {
            Some(own) if !candidates(current).is_empty() => {
                let mut own = own.clone();
                own.as_object_mut().map(|own| own.remove("Candidates"));
                Cow::Owned(own)
            }
            _ => Cow::Borrowed(current),
        }
    }
}

impl Resource<Aws> for VpcEndpoint {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        // Others may have added groups of their own.
        let has_group = texts(current, "GroupIds").contains(&self.security_group);
        let rules = [
            (is_lost(current), Difference::by_replacement("State")),
            (texts(current, "SubnetIds") != self.subnets, Difference::of("SubnetIds")),
            (!has_group, Difference::of("GroupIds")),
            (self.owner_tags.differ(current), Difference::of("Tags")),
        ];
        let differing = rules.into_iter().filter(|(differs, _)| *differs);
        differing.map(|(_, difference)| difference).collect()
    }

    fn body(&self, _: Option<&Value>) -> Value {
        json!({
            "ServiceName": self.slot.name(),
            "VpcId": self.slot.container(),
            "SubnetIds": list(&self.subnets),
            "SubnetZones": self.zones,
            "MayBeRefused": self.may_be_refused,
            "GroupIds": [self.security_group],
            "Tags": self.owner_tags.all(),
            "ClientToken": self.client_token.as_str(),
        })
    }
}

/// What one call changes about an endpoint's subnets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubnetChange {
    /// Those to add.
    pub added: BTreeSet<String>,
    /// Those to remove.
    pub removed: BTreeSet<String>,
}

impl SubnetChange {
    /// Whether the only subnet is swapped for another one.
    pub fn is_swap(&self) -> bool {
        !self.added.is_empty() && !self.removed.is_empty()
    }

    /// The first half of a swap that AWS does not take in one call.
    #[must_use]
    pub fn removal(self) -> Self {
        Self {
            added: BTreeSet::new(),
            ..self
        }
    }

    /// The next change on the way from what was read to the body of a put; none if all are as desired.
    ///
    /// An endpoint has one subnet in a zone, so that one can be added only where none is. Zones that have none yet come
    /// first, and subnets whose zone is not known one by one; then one subnet is removed, for which another is added.
    /// The only one is swapped in one call.
    pub fn next(found: &Value, body: &Value) -> Option<Self> {
        let zone = |subnet: &str| body["SubnetZones"][subnet].as_str();
        let (current, desired) = (texts(found, "SubnetIds"), texts(body, "SubnetIds"));
        let removed: BTreeSet<String> = current.difference(&desired).cloned().collect();
        let added: Vec<&String> = desired.difference(&current).collect();
        let taken: BTreeSet<Option<&str>> = current.iter().map(|subnet| zone(subnet)).collect();
        let has_room = |subnet: &&String| {
            let zone = zone(subnet);
            zone.is_some() && !taken.contains(&zone) && !taken.contains(&None)
        };
        let free: BTreeSet<String> = added.iter().copied().filter(has_room).cloned().collect();
        if !free.is_empty() {
            return Some(Self {
                added: free,
                ..Self::default()
            });
        }
        if let Some(one) = added.first().filter(|_| removed.is_empty()) {
            return Some(Self {
                added: BTreeSet::from([(*one).clone()]),
                ..Self::default()
            });
        }
        if added.is_empty() {
            return (!removed.is_empty()).then_some(Self {
                removed,
                ..Self::default()
            });
        }
        // AWS may want one at any time.
        if let ([only], [_]) = (Vec::from_iter(&current).as_slice(), added.as_slice()) {
            return Some(Self {
                added: BTreeSet::from([added[0].clone()]),
                removed: BTreeSet::from([(*only).clone()]),
            });
        }
        // That which makes room for another one.
        let added_zones: BTreeSet<Option<&str>> = added.iter().map(|subnet| zone(subnet)).collect();
        let in_the_way = removed.iter().find(|subnet| added_zones.contains(&zone(subnet)));
        let one = in_the_way.or(removed.first())?;
        Some(Self {
            removed: BTreeSet::from([one.clone()]),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests;
