//! Reads from Azure what a decision needs to know. Writes nothing.

use std::time::Duration;

use futures::future::join_all;

use tokio::time::Instant;

use super::context::Context;
use super::facts::{Facts, NEW_LIST_AGE, Need, Needs};
use super::reconciler::ServedResource;
use crate::azure::arm::id::SubscriptionId;
use crate::azure::cloud::Observed;
use crate::azure::kinds::load_balancer::FrontendList;
use crate::engine::client::Reconcile;
use crate::engine::cloud::ResourceKind;
use crate::runtime::polls;

/// Runs `decide` until it needs nothing more, and reads what it needs.
pub async fn until_decided<R: ServedResource, T>(
    cx: &Context<R>,
    reconcile: Reconcile,
    facts: &mut Facts,
    decide: &mut impl FnMut(&Facts) -> Result<T, Needs>,
) -> T {
    loop {
        match decide(facts) {
            Ok(decided) => return decided,
            Err(needs) => satisfy(cx, reconcile, facts, needs).await,
        }
    }
}

async fn satisfy<R: ServedResource>(cx: &Context<R>, reconcile: Reconcile, facts: &mut Facts, needs: Needs) {
    read_single(cx, reconcile, facts, &needs).await;
    for need in needs {
        match need {
            Need::Read(..) => {}
            Need::FreshRead(_, id) => {
                facts.fresh_reads.insert(id);
            }
            Need::Frontends(subscription, group) => {
                let found = frontends(
                    cx,
                    reconcile,
                    &subscription,
                    group.as_deref(),
                    cx.runtime.resync * 4 / 5,
                )
                .await
                .1;
                facts.frontends.insert((subscription, group), found);
            }
            Need::NewFrontends(subscription, group, namespace) => {
                let list = format!("{subscription}/{}", group.as_deref().unwrap_or_default());
                let held = !cx.polls.may_list(&namespace, &list, Instant::now());
                // If the list is held back, another one for the namespace was read no longer ago than this.
                let age = if held {
                    polls::LIST_EACH + NEW_LIST_AGE
                } else {
                    NEW_LIST_AGE
                };
                let (read_at, found) = frontends(cx, reconcile, &subscription, group.as_deref(), age).await;
                facts.frontends.insert((subscription.clone(), group.clone()), found);
                facts.older_frontends |= read_at < reconcile.began;
                facts.held_frontends |= held;
                facts.new_frontends.insert((subscription, group));
            }
            Need::Inside(kind, zone) => {
                let all = kind.all_in(&zone);
                let found = cx.arm.client.list(reconcile, kind, zone.subscription(), &all).await;
                let found = cx.arm.observations.list_of(&zone, found, Instant::now());
                facts.inside.insert((kind, zone), found);
            }
        }
    }
}

/// Reads the single resources among the needs, all at once.
async fn read_single<R: ServedResource>(cx: &Context<R>, reconcile: Reconcile, facts: &mut Facts, needs: &[Need]) {
    let reader = cx.arm.reader(reconcile);
    let reads = needs.iter().map(async |need| {
        let (kind, id, observed) = match need {
            Need::Read(kind, id) => (*kind, id, reader.read(*kind, id).await),
            Need::FreshRead(kind, id) => (*kind, id, reader.read_uncached(*kind, id).await),
            _ => return None,
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
        .filter_map(|(id, _)| Some((id.clone(), cx.arm.observations.gone_for(id, now)?)));
    facts.gone_for.extend(gone);
    for (id, observed) in &results {
        // An earlier read may have shown it otherwise.
        facts.proven.remove(id);
        facts.surely_gone.remove(id);
        match observed {
            Observed::Found(body) if cx.arm.observations.is_proven(id, body) => drop(facts.proven.insert(id.clone())),
            Observed::Absent if cx.arm.observations.surely_gone(id) => drop(facts.surely_gone.insert(id.clone())),
            _ => {}
        }
    }
    facts.reads.extend(results);
}

async fn frontends<R: ServedResource>(
    cx: &Context<R>,
    reconcile: Reconcile,
    subscription: &SubscriptionId,
    group: Option<&str>,
    age: Duration,
) -> (Instant, FrontendList) {
    cx.arm
        .frontends
        .list(&cx.arm.client, reconcile, subscription, group, age)
        .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;
    use crate::azure::arm::client::Client;
    use crate::azure::arm::ports::Gate;
    use crate::azure::arm::transport::{Transport, TransportError};
    use crate::controllers::context::sample;

    /// An Azure without a load balancer, which counts how often it is asked.
    #[derive(Default)]
    struct Empty(AtomicUsize);

    impl Gate for Empty {
        fn open(&self) -> bool {
            false
        }
    }

    #[async_trait]
    impl Transport for Empty {
        async fn ready(&self) -> Result<(), TransportError> {
            Ok(())
        }

        async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Response::new(Bytes::from_static(b"{\"value\":[]}")))
        }
    }

    /// Searches for a frontend on behalf of a namespace; returns whether what was found is older than the reconcile.
    async fn search(cx: &Context, namespace: &str) -> bool {
        let (reconcile, subscription) = (
            Reconcile::begin(),
            SubscriptionId::parse(crate::controllers::samples::MANAGEMENT).unwrap(),
        );
        let mut facts = Facts::default();
        let mut decide = |facts: &Facts| facts.new_frontends(&subscription, Some("g"), namespace).cloned();
        let found = until_decided(cx, reconcile, &mut facts, &mut decide).await;
        assert!(found.is_ok_and(|found| found.is_empty()));
        facts.older_frontends
    }

    #[tokio::test(start_paused = true)]
    async fn frontend_searched_for_without_end_costs_few_lists() {
        let nobody = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<Result<Response<kube::client::Body>, tower::BoxError>>()
        });
        let mut cx = sample::context(kube::Client::new(nobody, "default"));
        let azure = Arc::new(Empty::default());
        let endpoint = "https://management.azure.com".parse().unwrap();
        cx.arm.client = Client::new(azure.clone(), endpoint, azure.clone(), cx.runtime.metrics.clone());
        for _ in 0..600 {
            search(&cx, "attacker").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let lists = azure.0.load(Ordering::SeqCst);
        assert!((10..=16).contains(&lists), "{lists} in a minute");
        tokio::time::sleep(NEW_LIST_AGE).await;
        for cluster in 0..20 {
            let namespace = format!("cluster-{cluster}");
            if search(&cx, &namespace).await {
                tokio::time::sleep(NEW_LIST_AGE + Duration::from_millis(1)).await;
                assert!(!search(&cx, &namespace).await, "it is held up");
            }
        }
    }
}
