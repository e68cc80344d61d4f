//! Lists that many clusters share: what was seen, when. Who asks says how old it may be.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::client::{Client, Pass};
use super::error::ArmError;
use super::id::SubscriptionId;
use super::load_balancer::{Frontend, internal_frontends};
use super::resource::Kind;

/// A subscription, and a group in it; no group means the whole subscription.
type Scope = (SubscriptionId, Option<String>);

/// The lists of one process.
#[derive(Debug, Default)]
pub struct Inventory {
    frontends: Mutex<HashMap<Scope, (Instant, Vec<Frontend>)>>,
}

impl Inventory {
    /// The internal frontends in a scope, seen at most `max_age` ago. One call where the list is older.
    pub async fn frontends(
        &self,
        client: &Client,
        pass: Pass,
        subscription: &SubscriptionId,
        group: Option<&str>,
        max_age: Duration,
    ) -> Result<Vec<Frontend>, ArmError> {
        let scope = (subscription.clone(), group.map(str::to_ascii_lowercase));
        if let Some(list) = self.recent(&scope, max_age) {
            return Ok(list);
        }
        let group_part = group
            .map(|group| format!("/resourceGroups/{group}"))
            .unwrap_or_default();
        let path = format!("/subscriptions/{subscription}{group_part}/providers/Microsoft.Network/loadBalancers");
        let bodies = client.list(pass, Kind::LoadBalancer, subscription, &path).await?;
        let list = internal_frontends(&bodies);
        let mut all = self.frontends.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(scope, (Instant::now(), list.clone()));
        Ok(list)
    }

    fn recent(&self, scope: &Scope, max_age: Duration) -> Option<Vec<Frontend>> {
        let all = self.frontends.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(scope)
            .filter(|(seen, _)| seen.elapsed() < max_age)
            .map(|(_, list)| list.clone())
    }
}
