//! The internal frontends of load balancers, in lists that many clusters share.

use std::time::Duration;

use hyperlink_engine::client::Reconcile;
use hyperlink_engine::failure::{Class, Failure, NOT_READ_YET};
use hyperlink_engine::lists::{Asked, LIST_ENDS_IN, Lists, in_time, patience};
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
        // A list that was started after this call is new enough, however long it took.
        let since = Instant::now().checked_sub(max_age);
        let shared = self.0.at(&lower(&path));
        let patience = if reconcile.urgency.is_awaited() {
            // There is no other way to a frontend, and the reader gives up in time.
            LIST_ENDS_IN + Duration::from_secs(1)
        } else {
            patience(reconcile.urgency)
        };
        let asked = shared.ask(since, ArmError::delay, patience);
        let (observed, list) = match asked.await {
            Asked::Known(known) => known,
            Asked::Pending => {
                let pending = ArmError::own(Class::Throttled, NOT_READ_YET);
                return (Instant::now(), Err(pending.with_retry_after(LIST_ENDS_IN)));
            }
            Asked::Reader(reader) => {
                let bodies = in_time(client.list(reconcile, Kind::LoadBalancer, subscription, &path));
                reader
                    .read(async { bodies.await.map(|found| internal_frontends(&found)) })
                    .await
            }
        };
        let list = list.map_err(|error| ArmError {
            retry_after: Some(shared.retry_wait(&error)),
            lasting: shared.fails_for_long(),
            exact: true,
            ..error
        });
        (observed, list)
    }
}
