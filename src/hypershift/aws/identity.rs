//! Which clusters are on AWS. Pure.

use crate::api::Reason;
use crate::api::hypershift::ClusterSpec;
use crate::hypershift::identity::IDENTITY_RETRY;
use crate::hypershift::problem::Problem;

/// Whether a cluster is on AWS.
///
/// # Errors
/// Its platform is another one.
pub fn on_aws(spec: &ClusterSpec) -> Result<(), Problem> {
    if spec.aws().is_some() {
        return Ok(());
    }
    let text = "the cluster is not on AWS";
    Err(Problem::new(Reason::CloudMismatch, text).requeue_after(IDENTITY_RETRY))
}
