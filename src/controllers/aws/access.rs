//! How controllers reach AWS.

use super::lists::{ListNeed, Lists};
use crate::api::AWSEndpointService;
use crate::aws::calls::Calls;
use crate::aws::cloud::Aws;
use crate::controllers::cloud_access::{CloudAccess, CloudContext, Reading};
use crate::controllers::context;

/// AWS, and what was observed in it.
pub type AwsContext = CloudContext<Aws>;
/// What every reconcile of an AWSEndpointService works with.
pub type Context = context::Context<AWSEndpointService>;

impl CloudAccess for Aws {
    type Client = Calls;
    type SharedLists = ();

    async fn read_list(_: Reading<'_, Self>, need: ListNeed, _: &mut Lists) {
        match need {}
    }
}
