//! What lists of AWS show to a decision, beside those of the inventory: hosted zones, in which zones subnets are, and
//! the endpoint services and endpoints that have a cluster's tags. Data only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::aws::api::error::AwsError;
use crate::aws::cloud::Aws;
use crate::aws::route53::hosted_zone::HostedZone;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::{Facts, Needs};
use crate::controllers::cloud::{ListFacts, ServedCloud, ShownList};
use crate::controllers::facts::Need;

/// A list that a decision needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListNeed {
    /// All hosted zones of an account.
    HostedZones(Scope),
    /// The zones of subnets in a VPC.
    SubnetZones(SubnetsIn),
    /// The endpoint services with the tag of a cluster.
    EndpointServices(ServicesOf),
    /// The endpoints with the tags of a custom resource.
    Endpoints(EndpointsOf),
}

/// The endpoint services of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServicesOf {
    /// The account and region.
    pub scope: Scope,
    /// The id of the cluster, which their tag names.
    pub cluster_id: String,
}

/// The endpoints of a custom resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointsOf {
    /// The account and region.
    pub scope: Scope,
    /// The id of the VPC.
    pub vpc: String,
    /// The tags that they have.
    pub tags: BTreeMap<String, String>,
}

/// Subnets in a VPC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubnetsIn {
    /// The account and region.
    pub scope: Scope,
    /// The id of the VPC.
    pub vpc: String,
    /// The ids of the subnets.
    pub subnets: BTreeSet<String>,
}

/// For how long a list of hosted zones tells, beside the next one, that a zone is gone: a zone may be younger than an
/// older list.
const TELLS_FOR: Duration = Duration::from_secs(900);

/// The hosted zones of an account, as the last two lists show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneLists {
    /// Those in the last list.
    pub last: Vec<HostedZone>,
    /// When that was read.
    read: Instant,
    /// The ids of those in the list before it; none if that is not known, or tells nothing any more.
    before: Option<BTreeSet<String>>,
}

impl ZoneLists {
    /// The lists once another one has shown these zones.
    pub fn after(before: Option<&Self>, last: Vec<HostedZone>, now: Instant) -> Self {
        let ids = |lists: &Self| lists.last.iter().map(|zone| zone.id.clone()).collect();
        let tells = |lists: &&Self| now.saturating_duration_since(lists.read) <= TELLS_FOR;
        Self {
            last,
            read: now,
            before: before.filter(tells).map(ids),
        }
    }

    /// Whether the last list shows a zone.
    pub fn shows(&self, id: &str) -> bool {
        self.last.iter().any(|zone| zone.id == id)
    }

    /// Whether neither list shows a zone. One alone may be behind.
    pub fn lack(&self, id: &str) -> bool {
        !self.shows(id) && self.before.as_ref().is_some_and(|before| !before.contains(id))
    }
}

/// The hosted zones of an account, which all who read them share.
pub type HostedZones = Result<Arc<ZoneLists>, AwsError>;

/// The ids of zones, by the id of a subnet. Subnets that AWS does not know have none.
pub type SubnetZones = Result<HashMap<String, String>, AwsError>;

/// What lists have shown.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Hosted zones by account.
    pub hosted_zones: HashMap<Scope, HostedZones>,
    /// Zones of subnets.
    pub subnet_zones: HashMap<SubnetsIn, SubnetZones>,
    /// Bodies of endpoint services.
    pub endpoint_services: HashMap<ServicesOf, Result<Vec<Value>, AwsError>>,
    /// Bodies of endpoints.
    pub endpoints: HashMap<EndpointsOf, Result<Arc<Vec<Value>>, AwsError>>,
}

impl ServedCloud for Aws {
    type ListNeed = ListNeed;
    type ListFacts = Lists;

    fn is_same(id: &str, other: &str) -> bool {
        id == other
    }
}

impl ListFacts<Aws> for Lists {
    fn forget_unread(&mut self) {
        self.hosted_zones.retain(|_, found| found.is_ok());
        self.subnet_zones.retain(|_, found| found.is_ok());
        self.endpoint_services.retain(|_, found| found.is_ok());
        self.endpoints.retain(|_, found| found.is_ok());
    }

    /// Nothing that Hyperlink writes changes the others.
    fn forget_changed(&mut self) {
        self.endpoint_services.clear();
    }

    /// None: what a decision finds in them has steps.
    fn shown(&self) -> Vec<ShownList<Aws>> {
        Vec::new()
    }
}

impl Facts {
    /// Whether a create has to have another client token: AWS takes the last one no more, and what that may have made is
    /// surely gone, or was never there.
    pub fn is_token_spent(&self, slot: &Slot) -> bool {
        let refused = self.failing.get(slot).is_some_and(AwsError::refuses_token);
        refused && self.surely_gone.contains(slot)
    }

    /// All hosted zones of an account.
    pub fn hosted_zones(&self, scope: &Scope) -> Result<&HostedZones, Needs> {
        let known = self.lists.hosted_zones.get(scope);
        known.ok_or_else(|| vec![Need::List(ListNeed::HostedZones(scope.clone()))])
    }

    /// The zones of subnets.
    pub fn subnet_zones(&self, subnets: &SubnetsIn) -> Result<&SubnetZones, Needs> {
        let known = self.lists.subnet_zones.get(subnets);
        known.ok_or_else(|| vec![Need::List(ListNeed::SubnetZones(subnets.clone()))])
    }

    /// The endpoint services with the tag of a cluster.
    pub fn endpoint_services(&self, services: &ServicesOf) -> Result<&Result<Vec<Value>, AwsError>, Needs> {
        let known = self.lists.endpoint_services.get(services);
        known.ok_or_else(|| vec![Need::List(ListNeed::EndpointServices(services.clone()))])
    }

    /// The endpoints with the tags of a custom resource.
    pub fn endpoints(&self, endpoints: &EndpointsOf) -> Result<&Result<Arc<Vec<Value>>, AwsError>, Needs> {
        let known = self.lists.endpoints.get(endpoints);
        known.ok_or_else(|| vec![Need::List(ListNeed::Endpoints(endpoints.clone()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_is_lacking_only_if_two_lists_do_not_show_it() {
        let zone = |id: &str| HostedZone {
            id: id.to_owned(),
            name: "example.hypershift.local".to_owned(),
            private: true,
        };
        let now = Instant::now();
        let first = ZoneLists::after(None, vec![zone("Z1")], now);
        assert!(first.shows("Z1") && !first.lack("Z1"));
        assert!(!first.shows("Z2") && !first.lack("Z2"), "one list is not enough");
        let second = ZoneLists::after(Some(&first), vec![zone("Z2")], now);
        assert!(!second.shows("Z1") && !second.lack("Z1") && second.lack("Z3"));
        let third = ZoneLists::after(Some(&second), vec![zone("Z2")], now + TELLS_FOR);
        assert!(third.lack("Z1") && !third.lack("Z2"));
    }

    #[test]
    fn zone_may_be_younger_than_an_old_list() {
        let now = Instant::now();
        let first = ZoneLists::after(None, Vec::new(), now);
        let late = now + TELLS_FOR + Duration::from_secs(1);
        assert!(!ZoneLists::after(Some(&first), Vec::new(), late).lack("Z1"));
    }
}
