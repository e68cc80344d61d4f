//! The lists of ARM: the resources of a kind in a subscription, a group or a parent resource.

use hyperlink_engine::cloud::List;

use crate::arm::id::{ResourceId, SubscriptionId, lower, same};
use crate::kinds::{Kind, ListScope};

/// A list of the resources of one kind.
#[derive(Debug)]
pub struct ResourceList {
    kind: Kind,
    subscription: SubscriptionId,
    group: Option<String>,
    parent: Option<ResourceId>,
}

impl ResourceList {
    /// The list of this scope that shows the resource; none if the resource has no parent whose list it would be.
    pub fn of(kind: Kind, id: &ResourceId, scope: ListScope) -> Option<Self> {
        let (group, parent) = match scope {
            ListScope::Subscription => (None, None),
            ListScope::Group => (Some(id.group().to_owned()), None),
            ListScope::Parent => (None, Some(id.parent()?)),
        };
        Some(Self {
            kind,
            subscription: id.subscription().clone(),
            group,
            parent,
        })
    }

    /// The subscription whose request budget the list draws on.
    pub fn subscription(&self) -> &SubscriptionId {
        &self.subscription
    }

    /// The path that a call reads.
    pub fn path(&self) -> String {
        let spec = self.kind.spec();
        let provider = spec.provider;
        let scope = match (&self.parent, &self.group) {
            (Some(parent), _) => parent.to_string(),
            (None, Some(group)) => {
                format!(
                    "/subscriptions/{}/resourceGroups/{group}/providers/{provider}",
                    self.subscription
                )
            }
            (None, None) => format!("/subscriptions/{}/providers/{provider}", self.subscription),
        };
        format!("{scope}/{}", spec.path.last().copied().unwrap_or_default())
    }
}

impl List<ResourceId> for ResourceList {
    fn address(&self) -> String {
        lower(&self.path())
    }

    fn shows(&self, id: &ResourceId) -> bool {
        *id.subscription() == self.subscription
            && self.group.as_ref().is_none_or(|group| same(group, id.group()))
            && self.parent.as_ref().is_none_or(|parent| id.is_in(parent))
    }
}
