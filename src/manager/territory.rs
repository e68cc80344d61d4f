//! Where a role may work, and from when on: a leader of all namespaces and that of a single one never work on the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyperlink::api::Role;
use hyperlink::controllers::served::{Served, Territory};
use hyperlink::http::ReadinessItem;
use hyperlink::leader::{LeaseSettings, survey};
use hyperlink::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Shared;

/// A role that leads and has not begun to work.
pub(super) struct Claim {
    pub(super) role: Role,
    pub(super) lease: LeaseSettings,
    /// Whether another held the lease until just now.
    pub(super) succeeds: bool,
    pub(super) kube: kube::Client,
    pub(super) item: ReadinessItem,
}

impl Claim {
    /// Waits until the role may work, and tells where. A leader of all namespaces looks at the leases of others as long as
    /// `looking` lives.
    pub(super) async fn begin(self, shared: &Shared, looking: &mut JoinSet<()>) -> Served {
        if shared.config.namespace.is_some() {
            if !self.succeeds {
                self.item
                    .waiting("a leader of all namespaces that may have to notice this one");
                tokio::time::sleep(self.lease.times.duration).await;
            }
            self.item.ready_as("its own");
            return Served::everything();
        }
        let (tell, mut territory) = watch::channel(Territory::Unknown);
        let served = Served::within(territory.clone());
        self.item.waiting("the leases of single namespaces");
        let (metrics, again) = (Arc::clone(&shared.metrics), shared.again.clone());
        looking.spawn(async move {
            let tell = |left| {
                if self.told(left, &tell, &metrics) {
                    again.send_replace(());
                }
            };
            survey(self.kube.clone(), self.lease.clone(), tell).await;
        });
        // Fails only when nobody looks any more, and then nothing is served.
        let _ = territory.wait_for(|now| *now != Territory::Unknown).await;
        served
    }

    /// These namespaces are `left` alone; none: it is not known which. Returns whether that is new.
    fn told(&self, left: Option<BTreeSet<String>>, tell: &watch::Sender<Territory>, metrics: &Metrics) -> bool {
        let now = left.map_or(Territory::Unknown, |left| Territory::AllBut(Arc::new(left)));
        if *tell.borrow() == now {
            return false;
        }
        match &now {
            Territory::Unknown => self.item.waiting("the leases of single namespaces cannot be listed"),
            Territory::AllBut(left) if left.is_empty() => self.item.ready_as("all"),
            Territory::AllBut(left) => self
                .item
                .ready_as(&format!("all but {}, which others lead", left.len())),
        }
        let before = tell.send_replace(now.clone());
        let (before, now) = (others(&before), others(&now));
        for namespace in now.difference(&before) {
            tracing::warn!(role = %self.role, namespace, "left alone: a process for this namespace leads it");
        }
        for namespace in before.difference(&now) {
            tracing::info!(role = %self.role, namespace, "no process for this namespace leads it any more");
        }
        metrics.namespaces_left_alone(self.role, now.len());
        true
    }
}

fn others(territory: &Territory) -> BTreeSet<String> {
    match territory {
        Territory::Unknown => BTreeSet::new(),
        Territory::AllBut(others) => others.as_ref().clone(),
    }
}
