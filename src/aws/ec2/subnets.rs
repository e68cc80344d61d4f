//! Subnets, which others make.

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

impl Ec2 {
    /// Lists subnets of the account, and those that are shared with it.
    ///
    /// # Errors
    /// AWS's.
    pub async fn subnets(&self, reconcile: Reconcile, selection: &Selection) -> Result<Vec<Subnet>, AwsError> {
        let action = Action::DescribeSubnets;
        self.list(reconcile, action, ("SubnetId", selection), subnets).await
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
