//! Reads from the cloud what a decision needs to know. Writes nothing.

use futures::future::join_all;
use tokio::time::Instant;

use super::cloud_access::{CloudAccess, Reading};
use super::context::Context;
use super::facts::{Facts, Need, Needs};
use super::reconciler::ServedResource;
use crate::engine::client::Reconcile;
use crate::engine::cloud::ResourceKind;
use crate::engine::resource::Observed;

/// Runs `decide` until it needs nothing more, and reads what it needs.
pub async fn until_decided<R: ServedResource, T>(
    cx: &Context<R>,
    reconcile: Reconcile,
    facts: &mut Facts<R::Cloud>,
    decide: &mut impl FnMut(&Facts<R::Cloud>) -> Result<T, Needs<R::Cloud>>,
) -> T {
    loop {
        match decide(facts) {
            Ok(decided) => return decided,
            Err(needs) => satisfy(cx, reconcile, facts, needs).await,
        }
    }
}

async fn satisfy<R: ServedResource>(
    cx: &Context<R>,
    reconcile: Reconcile,
    facts: &mut Facts<R::Cloud>,
    needs: Needs<R::Cloud>,
) {
    read_single(cx, reconcile, facts, &needs).await;
    for need in needs {
        match need {
            Need::Read(..) => {}
            Need::FreshRead(_, id) => {
                facts.fresh_reads.insert(id);
            }
            Need::List(need) => {
                let reading = Reading {
                    cloud: &cx.cloud,
                    polls: &cx.polls,
                    resync: cx.runtime.resync,
                    reconcile,
                };
                R::Cloud::read_list(reading, need, &mut facts.lists).await;
            }
        }
    }
}

/// Reads the single resources among the needs, all at once.
async fn read_single<R: ServedResource>(
    cx: &Context<R>,
    reconcile: Reconcile,
    facts: &mut Facts<R::Cloud>,
    needs: &[Need<R::Cloud>],
) {
    let observations = &cx.cloud.observations;
    let reader = cx.cloud.reader(reconcile);
    let reads = needs.iter().map(async |need| {
        let (kind, id, observed) = match need {
            Need::Read(kind, id) => (*kind, id, reader.read(*kind, id).await),
            Need::FreshRead(kind, id) => (*kind, id, reader.read_uncached(*kind, id).await),
            Need::List(_) => return None,
        };
        if kind.rules().proves_gone && observed == Observed::Absent {
            reader.prove_gone(kind, id).await;
        }
        Some((id.clone(), observed))
    });
    let results: Vec<_> = join_all(reads).await.into_iter().flatten().collect();
    let now = Instant::now();
    let gone = results
        .iter()
        .filter_map(|(id, _)| Some((id.clone(), observations.gone_for(id, now)?)));
    facts.gone_for.extend(gone);
    for (id, observed) in &results {
        // An earlier read may have shown it otherwise.
        facts.proven.remove(id);
        facts.surely_gone.remove(id);
        facts.failing.remove(id);
        if let (Observed::Absent, Some(error)) = (observed, observations.failing(id)) {
            facts.failing.insert(id.clone(), error);
        }
        match observed {
            Observed::Found(body) if observations.is_proven(id, body) => drop(facts.proven.insert(id.clone())),
            Observed::Absent if observations.surely_gone(id) => drop(facts.surely_gone.insert(id.clone())),
            _ => {}
        }
    }
    facts.reads.extend(results);
}
