//! Load balancers are read by name.

use hyperlink_engine::client::Reconcile;
use hyperlink_engine::cloud::Key;
use serde_json::Value;

use super::{Calls, shown};
use crate::api::error::AwsError;
use crate::slot::Slot;

impl Calls {
    /// Reads the network load balancer of this name.
    pub(super) async fn load_balancer(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let names = [slot.name().to_owned()];
        let found = self.load_balancing.by_name(reconcile, &names).await?;
        let mut found = found.iter().filter(|one| one.name == slot.name());
        let found = found.find(|one| one.kind.as_deref() == Some("network"));
        found.map(shown::load_balancer).ok_or_else(AwsError::missing)
    }
}
