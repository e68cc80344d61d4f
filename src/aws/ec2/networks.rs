//! Networks (VPCs) and their subnets, which others make.

use hyperlink_engine::client::Reconcile;

use super::{Ec2, Selection, page};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::wire::xml::{Element, Malformed};

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// `subnet-…`
    pub id: String,
    /// The network that it is in.
    pub vpc_id: String,
    /// The name of its zone, which other accounts may have for another zone.
    pub zone: String,
    /// The id of its zone, which is the same in all accounts.
    pub zone_id: Option<String>,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vpc {
    /// `vpc-…`
    pub id: String,
    /// The account that it is in.
    pub owner: Option<String>,
    /// Its IPv4 ranges, as CIDRs.
    pub cidrs: Vec<String>,
}

impl Ec2 {
    /// Lists subnets of the account, and those that are shared with it.
    ///
    /// # Errors
    /// AWS's.
    pub async fn subnets(&self, reconcile: Reconcile, selection: &Selection) -> Result<Vec<Subnet>, AwsError> {
        let action = Action::DescribeSubnets;
        self.list(reconcile, action, ("SubnetId", selection), subnets).await
    }

    /// Lists networks of the account, and those that are shared with it.
    ///
    /// # Errors
    /// AWS's.
    pub async fn vpcs(&self, reconcile: Reconcile, selection: &Selection) -> Result<Vec<Vpc>, AwsError> {
        self.list(reconcile, Action::DescribeVpcs, ("VpcId", selection), vpcs)
            .await
    }
}

fn subnets(root: &Element) -> Result<Page<Subnet>, Malformed> {
    page(root, "subnetSet", |item| {
        Ok(Subnet {
            id: item.required("subnetId")?,
            vpc_id: item.required("vpcId")?,
            zone: item.required("availabilityZone")?,
            zone_id: item.optional("availabilityZoneId"),
        })
    })
}

fn vpcs(root: &Element) -> Result<Page<Vpc>, Malformed> {
    page(root, "vpcSet", |item| {
        let ranges = item.items("cidrBlockAssociationSet", "item");
        Ok(Vpc {
            id: item.required("vpcId")?,
            owner: item.optional("ownerId"),
            cidrs: ranges.filter_map(|range| range.optional("cidrBlock")).collect(),
        })
    })
}
