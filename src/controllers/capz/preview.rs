//! What the reconciles would do for one AzureCluster, as data that can be printed: what is known, and what would be
//! written into AzureClusters. Pure.

use jiff::Timestamp;
use json_patch::Patch;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::capi::{AzureCluster, CapiCondition};
use crate::api::markers::capz::{CONDITION, FINALIZER};
use crate::api::{ClusterRef, Role};
use crate::capz::assignments::Assignments;
use crate::capz::cluster::{access, reference, uid};
use crate::capz::condition;
use crate::capz::entry::{Change, key};
use crate::capz::ledger::{Holder, Ledger};
use crate::capz::links;
use crate::capz::patch::removal;
use crate::capz::reason::Problem;
use crate::capz::status::Published;
use crate::controllers::decision::Lifecycle;
use crate::controllers::preview::{ConditionChange, ConditionSummary, Fact, FieldChange, FinalizerChange};
use crate::runtime::requeue::Requeue;

const KIND: &str = "AzureCluster";

/// What the reconciles would do for one AzureCluster.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPreview {
    /// The role that reconciles.
    pub role: Role,
    /// Whether anything is to be done, is under way, or is in the way.
    pub pending: bool,
    /// Whether something could not be read, so that more may have to be done.
    pub unreadable: bool,
    /// What is done for the cluster.
    pub lifecycle: Lifecycle,
    /// What is known of Kubernetes and Azure.
    pub facts: Vec<Fact>,
    /// Finalizers that would be set or removed.
    pub finalizers: Vec<FinalizerChange>,
    /// Changes of entries for private endpoints.
    pub entries: Vec<EntryChange>,
    /// Records of the ledger that would change, by entry.
    pub ledger: Vec<FieldChange>,
    /// Entries of Hyperlink's form that are no workload cluster's: they stay.
    pub unclaimed: Vec<UnclaimedEntry>,
    /// Annotations that would change.
    pub annotations: Vec<FieldChange>,
    /// The condition of the role, if the cluster has it or should.
    pub conditions: Vec<ConditionChange>,
    /// After how many seconds the next reconcile would be due.
    pub requeue_after_seconds: Option<u64>,
    /// Why the next reconcile would be due then.
    pub requeue_reason: Option<&'static str>,
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryChange {
    /// `add`, `repair` or `remove`.
    pub verb: &'static str,
    /// Namespace and name of the AzureCluster that has the entry.
    pub azure_cluster: String,
    /// The name of the entry.
    pub name: String,
    /// The id of the Private Link Service that it would connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_link_service: Option<String>,
    /// The fields that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<&'static str>,
}

/// An entry that is no workload cluster's.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnclaimedEntry {
    /// The name of the entry.
    pub name: String,
    /// The JSON patch of the AzureCluster by which a person can remove it.
    pub removal: Patch,
}

impl ClusterPreview {
    /// Reconciles that do nothing.
    pub fn new(lifecycle: Lifecycle) -> Self {
        Self {
            role: Role::Capz,
            pending: false,
            unreadable: false,
            lifecycle,
            facts: Vec::new(),
            finalizers: Vec::new(),
            entries: Vec::new(),
            ledger: Vec::new(),
            unclaimed: Vec::new(),
            annotations: Vec::new(),
            conditions: Vec::new(),
            requeue_after_seconds: None,
            requeue_reason: None,
        }
    }

    /// Adds something that is known.
    pub fn add_fact(&mut self, kind: &'static str, id: impl Into<String>, state: impl Into<String>) {
        self.facts.push(Fact {
            kind,
            id: id.into(),
            state: state.into(),
        });
    }

    /// Adds how the API server of a cluster is reached.
    pub fn add_cluster(&mut self, cluster: &AzureCluster) {
        let state = access(cluster).map_or_else(|problem| problem.message, |access| format!("{access:?}"));
        self.add_fact(KIND, reference(cluster).to_string(), state);
    }

    /// Adds that the finalizer would be set or removed.
    pub fn add_finalizer(&mut self, verb: &'static str) {
        self.pending = true;
        self.finalizers.push(FinalizerChange {
            verb,
            kind: KIND.into(),
            finalizer: FINALIZER,
        });
    }

    /// Adds changes of entries of this AzureCluster.
    pub fn add_changes<'a>(&mut self, of: &ClusterRef, changes: impl IntoIterator<Item = &'a Change>) {
        self.entries
            .extend(changes.into_iter().map(|change| EntryChange::of(of, change)));
        self.pending |= !self.entries.is_empty();
    }

    /// Adds what was decided on the entries of the management cluster; only for this workload cluster, if one is given.
    pub fn add_assignments(
        &mut self,
        management: &AzureCluster,
        assigned: &Assignments,
        workload: Option<&AzureCluster>,
    ) {
        let before = Ledger::read(management);
        let links: Vec<String> = workload
            .into_iter()
            .flat_map(links::services)
            .map(|(name, _)| key(&name))
            .collect();
        let is_own = |name: &str| {
            let holders = [before.holder(name), assigned.ledger.holder(name)];
            let is_holder = |holder: &Holder| workload.is_some_and(|workload| holder.uid == uid(workload));
            workload.is_none() || holders.into_iter().flatten().any(is_holder) || links.contains(&key(name))
        };
        let changes = assigned.changes.iter().filter(|change| is_own(change.name()));
        self.add_changes(&reference(management), changes);
        let value = |holder: Option<&Holder>| holder.map_or(Value::Null, |holder| json!(holder.to_string()));
        let mut names: Vec<&str> = before
            .all()
            .chain(assigned.ledger.all())
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| is_own(name)) {
            let (is, would_be) = (before.holder(name), assigned.ledger.holder(name));
            if is != would_be {
                self.ledger.push(FieldChange {
                    field: name.to_owned(),
                    is: value(is),
                    would_be: value(would_be),
                });
            }
        }
        self.pending |= !self.ledger.is_empty();
    }

    /// Adds the entries that are nobody's. Their patches can be applied one after the other.
    pub fn add_unclaimed(&mut self, assigned: &Assignments) {
        let mut all = assigned.unclaimed.clone();
        // The last first: each removal leaves the positions before it.
        all.sort_unstable_by(|a, b| b.cmp(a));
        let entries = all.into_iter().map(|(at, name)| UnclaimedEntry {
            removal: removal(at, &name),
            name,
        });
        self.unclaimed.extend(entries);
    }

    /// Adds what would be published on the cluster.
    pub fn add_published(&mut self, cluster: &AzureCluster, published: &Published) {
        for (name, would_be) in &published.annotations {
            self.annotations.push(FieldChange {
                field: (*name).to_owned(),
                is: json!(cluster.annotations().get(*name)),
                would_be: json!(would_be),
            });
        }
        self.pending |= !self.annotations.is_empty() || published.problem.is_some();
        let is = cluster.condition(CONDITION).map(of_condition);
        let would_be = if published.keeps_condition {
            is.clone()
        } else {
            let problem = published.problem.as_ref();
            let patch = condition::patch(cluster, problem, Timestamp::UNIX_EPOCH);
            self.pending |= published.applies && patch.is_some();
            published.applies.then(|| of_problem(problem))
        };
        self.pending |= is.is_some() && would_be.is_none();
        if is.is_some() || would_be.is_some() {
            self.conditions.push(ConditionChange {
                kind: CONDITION,
                is,
                would_be,
            });
        }
    }

    /// Adds a problem for which nothing else is done.
    pub fn add_problem(&mut self, cluster: &AzureCluster, problem: Problem) {
        let published = Published {
            annotations: Vec::new(),
            problem: Some(problem),
            keeps_condition: false,
            applies: true,
        };
        self.add_published(cluster, &published);
    }

    /// Adds when and why the next reconcile would be due.
    pub fn add_requeue(&mut self, requeue: Option<Requeue>) {
        self.requeue_after_seconds = requeue.map(|requeue| requeue.after.as_secs());
        self.requeue_reason = requeue.map(|requeue| requeue.why);
    }
}

impl EntryChange {
    fn of(cluster: &ClusterRef, change: &Change) -> Self {
        let (verb, entry, fields) = match change {
            Change::Add { entry, .. } => ("add", Some(entry), &[][..]),
            Change::Repair { entry, fields, .. } => ("repair", Some(entry), &fields[..]),
            Change::Remove { .. } => ("remove", None, &[][..]),
        };
        Self {
            verb,
            azure_cluster: cluster.to_string(),
            name: change.name().to_owned(),
            private_link_service: entry.map(|entry| entry.service.to_string()),
            fields: fields.iter().map(|field| field.as_str()).collect(),
        }
    }
}

fn of_condition(condition: &CapiCondition) -> ConditionSummary {
    ConditionSummary {
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    }
}

fn of_problem(problem: Option<&Problem>) -> ConditionSummary {
    ConditionSummary {
        status: condition::status(problem).to_owned(),
        reason: problem.map_or("", |problem| problem.reason.as_str()).to_owned(),
        message: condition::message(problem).to_owned(),
    }
}

#[cfg(test)]
mod tests;
