//! The internal frontends of load balancers, in lists that many clusters share.

use std::time::Duration;

use hyperlink_engine::client::Reconcile;
use hyperlink_engine::lists::Lists;
use tokio::time::Instant;

use super::kinds::Kind;
use super::kinds::load_balancer::{Frontend, FrontendList, internal_frontends};
use crate::arm::client::Client;
use crate::arm::error::ArmError;
use crate::arm::id::{SubscriptionId, lower};

/// The frontends of one process, by the path of the list of load balancers.
#[derive(Debug, Default)]
pub struct Frontends(Lists<Vec<Frontend>, ArmError>);

impl Frontends {
    /// The internal frontends in a subscription or a group, and when they were observed: at most `max_age` ago. If the
    /// list is older, one call reads it again.
    ///
    /// # Errors
    /// A failure is shared too, but for that of a list that was not sent. Its `retry_after` is the time for which the
    /// list is still not tried again.
    pub async fn list(
        &self,
        client: &Client,
        reconcile: Reconcile,
        subscription: &SubscriptionId,
        group: Option<&str>,
        max_age: Duration,
    ) -> (Instant, FrontendList) {
        let group_part = group
            .map(|group| format!("/resourceGroups/{group}"))
            .unwrap_or_default();
        let spec = Kind::LoadBalancer.spec();
        let provider = spec.provider;
        let name = spec.path.join("/");
        let path = format!("/subscriptions/{subscription}{group_part}/providers/{provider}/{name}");
        let call = async |_| {
            let bodies = client.list(reconcile, Kind::LoadBalancer, subscription, &path).await;
            bodies.map(|found| internal_frontends(&found))
        };
        let address = lower(&path);
        self.0.get(&address, reconcile.urgency, max_age, call).await
    }
}
