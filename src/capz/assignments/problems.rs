//! Why an entry of a workload cluster is not there.

use crate::api::ClusterRef;
use crate::api::capi::AzureCluster;
use crate::capz::cluster::reference;
use crate::capz::ledger::MOST_OF_NAMESPACE;
use crate::capz::reason::{Problem, Reason};

/// Another cluster has the entry of this name.
pub(super) fn conflict(name: &str, other: &ClusterRef) -> Problem {
    let message = format!("private endpoint {name} is that of AzureCluster {other}");
    Problem::new(Reason::NameConflict, message)
}

/// The problem that somebody else has an entry of this name.
pub fn not_owned(name: &str) -> Problem {
    let message = format!("private endpoint {name} is there already and is not this cluster's");
    Problem::new(Reason::NotOurs, message)
}

/// The problem that a cluster has no subnet for a private endpoint.
pub fn no_subnet(cluster: &AzureCluster) -> Problem {
    let message = format!("AzureCluster {} has no subnet", reference(cluster));
    Problem::new(Reason::SubnetsNotSet, message)
}

/// The clusters of a namespace have as many entries as they may.
pub(super) fn too_many(namespace: &str) -> Problem {
    let message = format!("namespace {namespace} has {MOST_OF_NAMESPACE} private endpoints");
    Problem::new(Reason::TooManyEndpoints, message)
}

/// The records of the clusters of a namespace are as long as they may be.
pub(super) fn no_share(namespace: &str) -> Problem {
    let message = format!("the records of private endpoints of namespace {namespace} are half of what there may be");
    Problem::new(Reason::TooManyEndpoints, message)
}

/// The management cluster is full.
pub(super) fn no_room() -> Problem {
    let message = "the management cluster has no room for the record of another private endpoint";
    Problem::new(Reason::TooManyEndpoints, message)
}
