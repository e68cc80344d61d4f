//! What the engine has to know of a kind of resources.

use std::time::Duration;

use serde_json::Value;

use super::cloud::Cloud;

/// Reads the keys of other resources from a body.
pub type Children<C> = fn(&Value) -> Vec<<C as Cloud>::Key>;

/// Reads from a body the numbers of what is in the resource, by kind.
pub type NumbersInside<C> = fn(&Value) -> Vec<(<C as Cloud>::Kind, u64)>;

/// All that the engine asks about a kind.
#[derive(Debug, Clone)]
pub struct KindRules<C: Cloud> {
    /// Whether all clusters share such a resource, so that it has ten times the call budget.
    pub shared: bool,
    /// The time between two reads of a resource while it is in progress and the cloud gives no time.
    pub pace: Duration,
    /// How often a ready resource is read.
    pub resync: Resync,
    /// The list that shows ready resources; none if no list is of use.
    pub list: Option<ListRules<C>>,
    /// Whether the body of a resource that is ready, or in progress, shows all that decisions need. Else nothing is known
    /// of it, and it is neither written nor deleted.
    pub completed: fn(&Value) -> bool,
    /// Whether a ready resource does its work already. Else it is waited for if nothing about it differs.
    pub in_force: fn(&Value) -> bool,
    /// The resources that the body shows and that no read of their own shows.
    pub children: Option<Children<C>>,
    /// Whether only the parent's body shows such a resource, as one of its `children`: the parent is read in its place,
    /// and the operation that deletes it is polled when the next delete is due.
    pub shown_by_parent: bool,
    /// Numbers in the body that change with the resources in it, by their kind; zero for none. When others change one,
    /// those of the kind are read.
    pub numbers_inside: Option<NumbersInside<C>>,
    /// How many resources of this kind are in a parent, by the parent's body. Zero proves that a deleted one is gone.
    pub count_in_parent: Option<fn(&Value) -> Option<u64>>,
    /// Whether the cloud honours the precondition that a resource to create is new.
    pub create_if_new: bool,
    /// Whether a resource that was never observed counts as absent only after a second read: no precondition and no name
    /// keeps a create from making another one beside it.
    pub confirms_absence: bool,
    /// Whether a delete holds only for the version that was read: deleting it deletes what others put into it.
    pub delete_if_unchanged: bool,
    /// The time between the first two replacements of such a resource, which doubles with each; none if they are not
    /// limited. One that is limited counts as failed only after a second read.
    pub replaced_after: Option<Duration>,
    /// Where the cloud takes one write at a time in the parent, how long a write takes there: writes are queued.
    pub queued_in_parent: Option<WriteTimes>,
    /// Whether the parent's body, as it was read, is outdated once a PUT is accepted.
    pub put_changes_parent: bool,
    /// Whether the answer to a PUT lacks something that a read shows: it is read at once.
    pub read_after_put: bool,
    /// Whether a write is done when the cloud has accepted it.
    pub written_at_once: bool,
    /// Whether others are made or deleted because such a resource is gone, which has to be certain then.
    pub proves_gone: bool,
    /// A kind in which such a resource lies, and which the cloud does not delete while it is there.
    pub lies_in: Option<C::Kind>,
    /// The cloud's code where it refuses to delete such a resource because others use it.
    pub in_use: Option<&'static str>,
    /// Whether that refusal shows all that a read would, so that the next delete needs none.
    pub in_use_shows_it: bool,
    /// Whether a delete has been carried out when the cloud has answered it.
    pub deleted_at_once: bool,
    /// Whether such a resource shows, where it is there before anything was recorded, that others have served the object.
    pub shows_predecessor: bool,
}

impl<C: Cloud> KindRules<C> {
    /// Whether a list shows such a resource as a read does.
    pub(crate) fn shown_whole_in_list(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.suffices.is_none())
    }

    /// The fields that a kind leaves out: nothing special.
    pub const DEFAULT: Self = Self {
        shared: false,
        // The time between two reads of a resource in progress if neither its kind nor the cloud gives a time.
        pace: Duration::from_secs(5),
        resync: Resync::Resource,
        list: None,
        completed: |_| true,
        in_force: |_| true,
        children: None,
        shown_by_parent: false,
        numbers_inside: None,
        count_in_parent: None,
        create_if_new: false,
        confirms_absence: false,
        delete_if_unchanged: false,
        replaced_after: None,
        queued_in_parent: None,
        put_changes_parent: false,
        read_after_put: false,
        written_at_once: false,
        proves_gone: false,
        lies_in: None,
        in_use: None,
        in_use_shows_it: false,
        deleted_at_once: false,
        shows_predecessor: false,
    };
}

/// The class of the time after which a ready resource is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// That of most resources: each is read at a time of its own.
    Resource,
    /// That of records: all in one parent are read at one time, as one list shows them.
    Record,
    /// That of records, or where one is as desired several times that: the parent's `numbers_inside` show what others
    /// do.
    Counted,
}

/// A list that shows ready resources, in place of a read of each.
#[derive(Debug, Clone)]
pub struct ListRules<C: Cloud> {
    /// What the list shows the resources of.
    pub of: C::ListScope,
    /// How many resources it has to serve to cost less than a read of each.
    pub min_served: usize,
    /// How many rows the list has, by the body of the parent; none if the list is always worth a call.
    pub rows: Option<fn(&Value) -> u64>,
    /// Where a row lacks something that a read shows: whether a row shows so much that the first read can wait for its
    /// turn. None: a row shows the whole resource.
    pub suffices: Option<fn(&Value) -> bool>,
}

/// How long a write usually takes, if writes are sent one after the other.
#[derive(Debug, Clone, Copy)]
pub struct WriteTimes {
    /// A PUT.
    pub put: Duration,
    /// A DELETE.
    pub delete: Duration,
}

impl WriteTimes {
    /// How long this write usually takes.
    pub fn of(self, deletes: bool) -> Duration {
        if deletes { self.delete } else { self.put }
    }
}
