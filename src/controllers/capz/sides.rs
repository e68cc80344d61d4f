//! Reads the two directions of a workload cluster's private path: what is decided on each, with the addresses of its
//! private endpoints.

use super::Context;
use super::addresses::{self, Found};
use super::served_links::{self, Certainty};
use crate::api::capi::AzureCluster;
use crate::capz::address::Address;
use crate::capz::assignments::EntryState;
use crate::capz::cluster::{Access, access, reference, uid};
use crate::capz::gateway::Gateway;
use crate::capz::links;
use crate::capz::status::{Endpoint, Side};
use crate::runtime::requeue::Requeue;

/// The way to the API server; none while its entries are not decided on yet.
pub(super) async fn api_server(
    cx: &Context,
    cluster: &AzureCluster,
    management: &AzureCluster,
    requeues: &mut Vec<Requeue>,
) -> Option<Side> {
    if access(cluster) != Ok(Access::Internal) {
        return Some(Side::NotDesired);
    }
    match served_links::certainty(cx, cluster, management) {
        Certainty::Certain => {}
        Certainty::Uncertain(problem) => return Some(Side::Undecided(problem)),
        Certainty::NotYet => return None,
    }
    let state = cx.decided(|decided| decided.of.get(uid(cluster)).cloned())?;
    let desired = links::desired(cluster, management);
    // Else it is decided on what the links were before.
    if !state.is_about(&desired.entries) {
        return None;
    }
    let problem_of_links = desired.problem.or_else(|| state.problem(&reference(cluster).namespace));
    let mut endpoints = Vec::new();
    for EntryState {
        entry,
        problem,
        is_there,
        was_there,
    } in state.entries
    {
        let address = match problem {
            Some(problem) => Address::Missing(problem),
            None => {
                let Found { address, requeue } = addresses::read(cx, cluster, management, (&entry, is_there)).await;
                requeues.push(requeue);
                address
            }
        };
        endpoints.push(Endpoint {
            name: entry.name,
            was_there,
            address,
        });
    }
    Some(Side::Desired(endpoints, problem_of_links))
}

/// The way to the gateway.
pub(super) async fn gateway_side(
    cx: &Context,
    cluster: &AzureCluster,
    gateway: Gateway,
    requeues: &mut Vec<Requeue>,
) -> Side {
    match gateway {
        Gateway::NotDesired(_) => Side::NotDesired,
        Gateway::Blocked(problem) => Side::Undecided(problem),
        Gateway::Desired { entry, is_there, .. } => {
            let Found { address, requeue } = addresses::read(cx, cluster, cluster, (&entry, is_there)).await;
            requeues.push(requeue);
            let endpoint = Endpoint {
                name: entry.name,
                was_there: is_there,
                address,
            };
            Side::Desired(vec![endpoint], None)
        }
    }
}
