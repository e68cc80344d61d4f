//! What the operator decided for all clusters on AWS. Data only.

use crate::aws::region::Region;
use crate::aws::slot::Scope;
use crate::hypershift::aws::load_balancer_name::NlbMatch;

/// The settings of the HO role on AWS.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The account and region of the management cluster, in which load balancers and endpoint services are.
    pub account: Scope,
    /// The same region.
    pub region: Region,
    /// The name of the management cluster's infrastructure, where it has one.
    pub infrastructure: Option<String>,
    /// How the load balancer of a Service is recognised.
    pub nlb_match: NlbMatch,
}
