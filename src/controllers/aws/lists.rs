//! What lists of AWS show to a decision, beside those of the inventory: hosted zones, and in which zones subnets are.
//! Data only.

use std::collections::{BTreeSet, HashMap};

use crate::aws::api::error::AwsError;
use crate::aws::cloud::Aws;
use crate::aws::route53::hosted_zone::HostedZone;
use crate::aws::slot::Scope;
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

/// The ids of zones, by the id of a subnet. Subnets that AWS does not know have none.
pub type SubnetZones = Result<HashMap<String, String>, AwsError>;

/// What lists have shown.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Hosted zones by account.
    pub hosted_zones: HashMap<Scope, Result<Vec<HostedZone>, AwsError>>,
    /// Zones of subnets.
    pub subnet_zones: HashMap<SubnetsIn, SubnetZones>,
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
    }

    /// Nothing that Hyperlink writes changes them.
    fn forget_changed(&mut self) {}

    /// None: they are of no kind of resources.
    fn shown(&self) -> Vec<ShownList<Aws>> {
        Vec::new()
    }
}

impl Facts {
    /// All hosted zones of an account.
    pub fn hosted_zones(&self, scope: &Scope) -> Result<&Result<Vec<HostedZone>, AwsError>, Needs> {
        let known = self.lists.hosted_zones.get(scope);
        known.ok_or_else(|| vec![Need::List(ListNeed::HostedZones(scope.clone()))])
    }

    /// The zones of subnets.
    pub fn subnet_zones(&self, subnets: &SubnetsIn) -> Result<&SubnetZones, Needs> {
        let known = self.lists.subnet_zones.get(subnets);
        known.ok_or_else(|| vec![Need::List(ListNeed::SubnetZones(subnets.clone()))])
    }
}
