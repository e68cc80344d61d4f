//! How controllers reach Azure: its client, and the lists that decisions need.

use std::time::Duration;

use tokio::time::Instant;

use super::lists::{ListNeed, Lists, NEW_LIST_AGE};
use crate::api::AzurePrivateLinkService;
use crate::azure::arm::client::Client;
use crate::azure::arm::id::SubscriptionId;
use crate::azure::cloud::Arm;
use crate::azure::frontends::Frontends;
use crate::azure::kinds::load_balancer::FrontendList;
use crate::controllers::cloud_access::{CloudAccess, CloudContext, Reading};
use crate::controllers::context;
use crate::runtime::polls;

/// Azure, and what was observed in it.
pub type ArmContext = CloudContext<Arm>;
/// What every reconcile of an AzurePrivateLinkService works with.
pub type Context = context::Context<AzurePrivateLinkService>;

impl CloudAccess for Arm {
    type Client = Client;
    type SharedLists = Frontends;

    async fn read_list(reading: Reading<'_, Self>, need: ListNeed, facts: &mut Lists) {
        match need {
            ListNeed::Frontends(subscription, group) => {
                let age = reading.resync * 4 / 5;
                let (_, found) = frontends(&reading, &subscription, group.as_deref(), age).await;
                facts.frontends.insert((subscription, group), found);
            }
            ListNeed::NewFrontends(subscription, group, namespace) => {
                let list = format!("{subscription}/{}", group.as_deref().unwrap_or_default());
                let held = !reading.polls.may_list(&namespace, &list, Instant::now());
                // If the list is held back, another one for the namespace was read no longer ago than this.
                let age = if held {
                    polls::LIST_EACH + NEW_LIST_AGE
                } else {
                    NEW_LIST_AGE
                };
                let (read_at, found) = frontends(&reading, &subscription, group.as_deref(), age).await;
                facts.frontends.insert((subscription.clone(), group.clone()), found);
                facts.older_frontends |= read_at < reading.reconcile.began;
                facts.held_frontends |= held;
                facts.new_frontends.insert((subscription, group));
            }
            ListNeed::Inside(kind, zone) => {
                let Reading { cloud, reconcile, .. } = reading;
                let all = kind.all_in(&zone);
                let found = cloud.client.list(reconcile, kind, zone.subscription(), &all).await;
                let found = cloud.observations.list_of(&zone, found, Instant::now());
                facts.inside.insert((kind, zone), found);
            }
        }
    }
}

async fn frontends(
    reading: &Reading<'_, Arm>,
    subscription: &SubscriptionId,
    group: Option<&str>,
    age: Duration,
) -> (Instant, FrontendList) {
    let cloud = reading.cloud;
    let list = cloud
        .lists
        .list(&cloud.client, reading.reconcile, subscription, group, age);
    list.await
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
    use crate::azure::arm::transport::{Transport, TransportError};
    use crate::controllers::azure::Facts;
    use crate::controllers::context::sample;
    use crate::controllers::observe::until_decided;
    use crate::engine::client::Reconcile;
    use crate::engine::gate::Gate;

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
        facts.lists.older_frontends
    }

    #[tokio::test(start_paused = true)]
    async fn frontend_searched_for_without_end_costs_few_lists() {
        let nobody = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<Result<Response<kube::client::Body>, tower::BoxError>>()
        });
        let mut cx = sample::context(kube::Client::new(nobody, "default"));
        let azure = Arc::new(Empty::default());
        let endpoint = "https://management.azure.com".parse().unwrap();
        cx.cloud.client = Client::new(azure.clone(), endpoint, azure.clone(), cx.runtime.metrics.clone());
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
