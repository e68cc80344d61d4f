//! Finds out what a decision needs to know of Azure. Reads only.

use std::time::Duration;

use futures::future::join_all;

use tokio::time::Instant;

use super::context::Context;
use super::facts::{Facts, Need, Needs};
use super::polls;
use crate::azure::client::Pass;
use crate::azure::error::ArmError;
use crate::azure::id::SubscriptionId;
use crate::azure::load_balancer::Frontend;
use crate::azure::look::Looker;
use crate::azure::resource::{Kind, Seen};

/// A list that is searched for something that must have appeared just now may be this old: whatever appears, and wherever, it
/// is not read more often.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Runs `decide` until it needs nothing more.
pub async fn until_decided<T>(
    cx: &Context,
    pass: Pass,
    facts: &mut Facts,
    decide: &mut impl FnMut(&Facts) -> Result<T, Needs>,
) -> T {
    loop {
        match decide(facts) {
            Ok(decided) => return decided,
            Err(needs) => satisfy(cx, pass, facts, needs).await,
        }
    }
}

async fn satisfy(cx: &Context, pass: Pass, facts: &mut Facts, needs: Needs) {
    read_single(cx, pass, facts, &needs).await;
    for need in needs {
        match need {
            Need::Look(..) => {}
            Need::NewLook(_, id) => {
                facts.new_looks.insert(id);
            }
            Need::Frontends(subscription, group) => {
                let found = frontends(cx, pass, &subscription, group.as_deref(), cx.resync * 4 / 5)
                    .await
                    .1;
                facts.frontends.insert((subscription, group), found);
            }
            Need::NewFrontends(subscription, group, namespace) => {
                let list = format!("{subscription}/{}", group.as_deref().unwrap_or_default());
                let held = !cx.polls.may_list(&namespace, &list, Instant::now());
                // Where it is held, another one for the namespace was made no longer ago.
                let age = if held { polls::LIST_EACH + JUST_NOW } else { JUST_NOW };
                let (seen, found) = frontends(cx, pass, &subscription, group.as_deref(), age).await;
                facts.frontends.insert((subscription.clone(), group.clone()), found);
                facts.older_frontends |= seen < pass.began;
                facts.held_frontends |= held;
                facts.new_frontends.insert((subscription, group));
            }
            Need::Inside(kind, zone) => {
                let part = if kind == Kind::Record {
                    "ALL"
                } else {
                    "virtualNetworkLinks"
                };
                let found = cx
                    .arm
                    .list(pass, kind, zone.subscription(), &format!("{zone}/{part}"))
                    .await;
                let found = cx.memory.list_of(&zone, found, Instant::now());
                facts.inside.insert((kind, zone), found);
            }
        }
    }
}

/// What looks need, in one pass.
pub(super) fn looker(cx: &Context, pass: Pass) -> Looker<'_> {
    Looker {
        client: &cx.arm,
        memory: &cx.memory,
        inventory: &cx.inventory,
        pass,
    }
}

/// Reads the single resources among the needs, all at once.
async fn read_single(cx: &Context, pass: Pass, facts: &mut Facts, needs: &[Need]) {
    let looker = looker(cx, pass);
    let looks = needs.iter().map(async |need| {
        let (kind, id, seen) = match need {
            Need::Look(kind, id) => (*kind, id, looker.look(*kind, id).await),
            Need::NewLook(kind, id) => (*kind, id, looker.look_anew(*kind, id).await),
            _ => return None,
        };
        if kind == Kind::Endpoint && seen == Seen::Absent {
            // Its names wait until that is certain.
            looker.prove_gone(kind, id).await;
        }
        Some((id.clone(), seen))
    });
    let seen: Vec<_> = join_all(looks).await.into_iter().flatten().collect();
    let now = Instant::now();
    let gone = seen
        .iter()
        .filter_map(|(id, _)| Some((id.clone(), cx.memory.gone_for(id, now)?)));
    facts.gone_for.extend(gone);
    for (id, seen) in &seen {
        // It may have been seen otherwise before.
        facts.proven.remove(id);
        facts.surely_gone.remove(id);
        match seen {
            Seen::Found(body) if cx.memory.is_proven(id, body) => drop(facts.proven.insert(id.clone())),
            Seen::Absent if cx.memory.surely_gone(id) => drop(facts.surely_gone.insert(id.clone())),
            _ => {}
        }
    }
    facts.looks.extend(seen);
}

async fn frontends(
    cx: &Context,
    pass: Pass,
    subscription: &SubscriptionId,
    group: Option<&str>,
    age: Duration,
) -> (Instant, Result<Vec<Frontend>, ArmError>) {
    cx.inventory.frontends(&cx.arm, pass, subscription, group, age).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;
    use crate::azure::client::Client;
    use crate::azure::ports::Gate;
    use crate::azure::transport::{Transport, TransportError};
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

    /// Searches for a frontend on behalf of a namespace; whether what was found is older than the question.
    async fn search(cx: &Context, namespace: &str) -> bool {
        let (pass, subscription) = (
            Pass::begin(),
            SubscriptionId::parse(crate::controllers::samples::MANAGEMENT).unwrap(),
        );
        let mut facts = Facts::default();
        let mut decide = |facts: &Facts| facts.new_frontends(&subscription, Some("g"), namespace).cloned();
        let found = until_decided(cx, pass, &mut facts, &mut decide).await;
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
        cx.arm = Client::new(azure.clone(), endpoint, azure.clone(), cx.metrics.clone());
        for _ in 0..600 {
            search(&cx, "attacker").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let lists = azure.0.load(Ordering::SeqCst);
        assert!((10..=16).contains(&lists), "{lists} in a minute");
        tokio::time::sleep(JUST_NOW).await;
        for cluster in 0..20 {
            let namespace = format!("cluster-{cluster}");
            if search(&cx, &namespace).await {
                tokio::time::sleep(JUST_NOW + Duration::from_millis(1)).await;
                assert!(!search(&cx, &namespace).await, "it is held up");
            }
        }
    }
}
