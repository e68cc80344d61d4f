//! The links of a cluster: items of `spec.networkSpec.apiServerLB.privateLinks`.

use serde_json::{Value, json};

use super::NODE_SUBNET;
use crate::capz_env::MANAGEMENT;
use crate::hosted_cluster::merge;

/// A link of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateLink {
    name: String,
    allowed: Vec<String>,
    approved: Vec<String>,
    patch: Value,
}

impl PrivateLink {
    /// A link that approves connections from [`MANAGEMENT`].
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            allowed: vec![MANAGEMENT.to_owned()],
            approved: vec![MANAGEMENT.to_owned()],
            patch: json!({}),
        }
    }

    /// Is visible to these subscriptions and no others.
    #[must_use]
    pub fn allowing(mut self, subscriptions: &[&str]) -> Self {
        self.allowed = subscriptions.iter().map(|id| (*id).to_owned()).collect();
        self
    }

    /// Approves connections from these subscriptions and no others; Azure refuses one that it is not visible to.
    #[must_use]
    pub fn approving(mut self, subscriptions: &[&str]) -> Self {
        self.approved = subscriptions.iter().map(|id| (*id).to_owned()).collect();
        self
    }

    /// Applies this merge patch (RFC 7396) to the item.
    #[must_use]
    pub fn with(mut self, patch: Value) -> Self {
        self.patch = patch;
        self
    }

    /// The name of the link and of its Private Link Service.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The item, for the frontend of this name.
    pub(super) fn item(&self, frontend: &str) -> Value {
        let mut item = json!({
            "name": self.name,
            "lbFrontendIPConfigNames": [frontend],
            "allowedSubscriptions": self.allowed,
            "autoApprovedSubscriptions": self.approved,
            "natIpConfigurations": [{"allocationMethod": "Dynamic", "subnet": NODE_SUBNET}],
        });
        merge(&mut item, &self.patch);
        item
    }
}
