//! What generic code has to know of a kind of resources.

use std::time::Duration;

use serde_json::Value;

use crate::azure::id::ResourceId;

/// All that generic code asks about a kind. Each kind's file has one, as `SPEC`.
#[derive(Debug, Clone, Copy)]
pub struct KindSpec {
    /// The metric label and the word for logs and messages.
    pub label: &'static str,
    /// The resource provider.
    pub provider: &'static str,
    /// The type's levels below the provider, outermost first.
    pub path: &'static [&'static str],
    /// The api-version of every call.
    pub api_version: &'static str,
    /// The service that counts requests beside ARM: kinds of one service share its request budgets.
    pub service: &'static str,
    /// The longest name, in characters; none if names are not checked here.
    pub max_name: Option<usize>,
    /// What a read asks Azure to show in full (`$expand`).
    pub expand: Option<&'static str>,
    /// Whether all clusters share such a resource, so that it has ten times the call budget.
    pub shared: bool,
    /// The time between two reads of a resource while it is in progress and Azure gives no time.
    pub pace: Duration,
    /// How often a ready resource is read.
    pub resync: Resync,
    /// The list that shows ready resources; none if no list is of use.
    pub list: Option<List>,
    /// Whether the body of a ready resource shows it in force. Else it is in progress.
    pub completed: fn(&Value) -> bool,
    /// The resources that the body shows and that no read of their own shows.
    pub children: Option<fn(&Value) -> Vec<ResourceId>>,
    /// Whether only the parent's body shows such a resource, as one of its `children`: the parent is read in its place,
    /// and the operation that deletes it is polled when the next delete is due.
    pub shown_by_parent: bool,
    /// How many resources of this kind are in a parent, by the parent's body. Zero proves that a deleted one is gone.
    pub count_in_parent: Option<fn(&Value) -> Option<u64>>,
    /// Whether Azure honours the precondition that a resource to create is new.
    pub create_if_new: bool,
    /// Whether a delete holds only for the version that was read: deleting it deletes what others put into it.
    pub delete_if_unchanged: bool,
    /// Whether Azure takes one write at a time in the parent, so that writes are queued there.
    pub queued_in_parent: bool,
    /// Whether the parent's body, as it was read, is outdated once a PUT is accepted.
    pub put_changes_parent: bool,
    /// Whether the answer to a PUT lacks something that a read shows: it is read at once.
    pub read_after_put: bool,
}

impl KindSpec {
    /// The fields that a kind leaves out: nothing special.
    pub const DEFAULT: Self = Self {
        label: "",
        provider: "",
        path: &[],
        api_version: "",
        service: "",
        max_name: None,
        expand: None,
        shared: false,
        pace: Duration::from_secs(5),
        resync: Resync::Resource,
        list: None,
        completed: |_| true,
        children: None,
        shown_by_parent: false,
        count_in_parent: None,
        create_if_new: false,
        delete_if_unchanged: false,
        queued_in_parent: false,
        put_changes_parent: false,
        read_after_put: false,
    };
}

/// The class of the time after which a ready resource is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// `--resync`, each resource at a time of its own.
    Resource,
    /// `--record-resync`, all resources in one parent at one time, as one list shows them.
    Record,
}

/// A list that shows ready resources, in place of a read of each.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// What the list shows the resources of.
    pub of: ListScope,
    /// How many resources it has to serve to cost less than a read of each.
    pub min_served: usize,
    /// How many rows the list has, by the body of the parent; none if the list is always worth a call.
    pub rows: Option<fn(&Value) -> u64>,
}

/// Where the resources are that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope {
    /// In the subscription.
    Subscription,
    /// In the resource group.
    Group,
    /// In the parent resource.
    Parent,
}
