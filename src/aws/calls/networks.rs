//! What others have made and Hyperlink only reads: hosted zones, and the zones of subnets.

use std::collections::HashMap;

use hyperlink_engine::client::Reconcile;

use super::{Calls, not_sent};
use crate::api::error::AwsError;
use crate::ec2::{Selection, filter};
use crate::route53::hosted_zone::HostedZone;

impl Calls {
    /// Lists the hosted zones of the account.
    ///
    /// # Errors
    /// AWS's.
    pub async fn hosted_zones(&self, reconcile: Reconcile) -> Result<Vec<HostedZone>, AwsError> {
        self.route53.hosted_zones(reconcile).await
    }

    /// The ids of the zones of these subnets of a VPC, by subnet. Others, which a filter leaves out where an id would
    /// make AWS refuse the whole call, have none.
    ///
    /// # Errors
    /// AWS's, or the caller has asked too often about this VPC.
    pub async fn zones_of_subnets(
        &self,
        reconcile: Reconcile,
        subnets: &[String],
        vpc: &str,
    ) -> Result<HashMap<String, String>, AwsError> {
        self.take_call(false, &format!("{:x} subnets {vpc}", reconcile.caller))
            .map_err(not_sent)?;
        let filters = vec![("subnet-id".to_owned(), subnets.to_vec()), filter("vpc-id", vpc)];
        let found = self.ec2.subnets(reconcile, &Selection::Filters(filters)).await?;
        let zones = found.into_iter();
        Ok(zones.filter_map(|subnet| Some((subnet.id, subnet.zone_id?))).collect())
    }
}
