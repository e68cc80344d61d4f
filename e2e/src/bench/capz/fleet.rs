//! The clusters that are measured, with CAPZ and Hyperlink.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::MutexGuard;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::super::{PATIENCE, SOON};
use super::observer::{Observed, Observer};
use crate::CapzEnv;
use crate::azure_sim::{Preset, shipped_actions};
use crate::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use crate::capz_controllers::{Capz, Settings};
use crate::capz_env::{CAPZ_CLIENT, CERTIFICATE_CLIENT, FEDERATED_CLIENT, SECRET_CLIENT, TENANT, WORKLOAD};
use crate::hyperlink::Hyperlink;

const NAMESPACE: &str = "org-bench";
const MANAGEMENT: &str = "mc";
/// How many clusters are created at the same time.
const AT_ONCE: usize = 16;

/// The subscriptions of workload clusters, each with the type of its identity.
const SUBSCRIPTIONS: [(&str, IdentityType); 3] = [
    (WORKLOAD, IdentityType::WorkloadIdentity),
    ("11111111-2222-4111-8111-111111111111", IdentityType::ServicePrincipal),
    (
        "11111111-3333-4111-8111-111111111111",
        IdentityType::ServicePrincipalCertificate,
    ),
];
/// The client ids by which Hyperlink calls.
pub(super) const READERS: [&str; 3] = [FEDERATED_CLIENT, SECRET_CLIENT, CERTIFICATE_CLIENT];

pub(super) struct Fleet {
    observer: Observer,
    hyperlink: Hyperlink,
    capz: Capz,
    management: CapzCluster,
    /// The cluster of each subscription that has its identity.
    owners: Vec<CapzCluster>,
    env: CapzEnv,
}

impl Fleet {
    /// Starts a management cluster without workload clusters.
    pub(super) async fn start(preset: Preset, program: &Path) -> Result<Self> {
        let shipped = shipped_actions("capz")?;
        let env = CapzEnv::local_with(preset, |seed| change(seed, &shipped)).await?;
        let management = CapzCluster::management(NAMESPACE, MANAGEMENT, LoadBalancer::Internal);
        let capz = Capz::start(&env, &[NAMESPACE], Settings::FORK).await?;
        management.create(&env).await?;
        let subscriptions = SUBSCRIPTIONS.map(|(id, _)| id);
        management.create_gateway(&env, &subscriptions).await?;
        let mut owners = Vec::new();
        for (number, (subscription, identity)) in SUBSCRIPTIONS.into_iter().enumerate() {
            let owner = CapzCluster::workload(NAMESPACE, &format!("owner-{number}"), LoadBalancer::Internal)
                .in_subscription(subscription)
                .with_identity_type(identity);
            owner.create_identity(&env).await?;
            owners.push(owner);
        }
        let of = (&management, &[NAMESPACE][..]);
        let hyperlink = Hyperlink::start_capz_program(program, &env, of, "capz", &[]).await?;
        hyperlink.ready(SOON).await?;
        let observer = Observer::begin(management.azure_clusters(&env.client()?), MANAGEMENT);
        Ok(Self {
            observer,
            hyperlink,
            capz,
            management,
            owners,
            env,
        })
    }

    pub(super) fn env(&self) -> &CapzEnv {
        &self.env
    }

    pub(super) fn capz(&self) -> &Capz {
        &self.capz
    }

    pub(super) fn hyperlink(&self) -> &Hyperlink {
        &self.hyperlink
    }

    pub(super) fn management(&self) -> &CapzCluster {
        &self.management
    }

    pub(super) fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observer.observed()
    }

    /// The workload cluster of this number; the subscriptions take turns.
    pub(super) fn cluster(&self, number: usize) -> CapzCluster {
        let owner = &self.owners[number % self.owners.len()];
        CapzCluster::workload(NAMESPACE, &format!("wc-{number}"), LoadBalancer::Internal)
            .in_subscription(owner.subscription())
            .with_identity_of(owner)
    }

    pub(super) fn clusters(&self, count: usize) -> Vec<CapzCluster> {
        (0..count).map(|number| self.cluster(number)).collect()
    }

    /// The entry of the cluster of this number in the management cluster.
    pub(super) fn entry_of(&self, number: usize) -> String {
        format!("{}-privateendpoint", self.cluster(number).links()[0].name())
    }

    /// Creates these clusters: their networks first, so that they come at once.
    pub(super) async fn create(&self, clusters: &[CapzCluster]) -> Result<()> {
        let resources = clusters.iter().map(|cluster| cluster.create_resources(&self.env));
        stream::iter(resources)
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        let objects = clusters.iter().map(|cluster| cluster.create_objects(&self.env));
        stream::iter(objects)
            .buffer_unordered(AT_ONCE)
            .map_ok(drop)
            .try_collect::<()>()
            .await
    }

    /// Waits until the management cluster has so many private endpoints that are ready; returns when each was, by the
    /// name of its workload cluster.
    pub(super) async fn endpoints_become_ready(&self, count: usize) -> Result<BTreeMap<String, Instant>> {
        let mut ready: BTreeMap<String, Instant> = BTreeMap::new();
        let prefix = self.management.endpoint("");
        let began = Instant::now();
        while ready.len() < count {
            ensure!(
                began.elapsed() < PATIENCE,
                "{} of {count} endpoints are ready",
                ready.len()
            );
            for endpoint in self.env.oracle().resources(&prefix).await? {
                let name = endpoint["name"].as_str().unwrap_or_default();
                let cluster = name.strip_suffix("-api-privatelink-privateendpoint").unwrap_or(name);
                if endpoint["properties"]["provisioningState"] == "Succeeded" && cluster.starts_with("wc-") {
                    ready.entry(cluster.to_owned()).or_insert_with(Instant::now);
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
        Ok(ready)
    }

    /// The value of one series of Hyperlink's metrics.
    pub(super) async fn metric(&self, series: &str) -> Result<f64> {
        let (_, text) = self.hyperlink.page("/metrics").await?;
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.with_context(|| format!("no {series}"))?
            .trim()
            .parse()
            .map_err(Into::into)
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.hyperlink.stop().await?;
        self.capz.stop().await
    }
}

/// Adds the subscriptions and what the identities may do there, `shipped` for Hyperlink's. Every operation takes as
/// long as most of its kind, and Azure's request limits of one subscription do not count: CAPZ's part is not measured.
fn change(seed: &mut Value, shipped: &[String]) {
    let mut add = |list: &str, item: Value| {
        if let Some(all) = seed[list].as_array_mut() {
            all.push(item);
        }
    };
    for (id, _) in SUBSCRIPTIONS.iter().filter(|(id, _)| *id != WORKLOAD) {
        add("subscriptions", json!({"id": id, "tenant": TENANT}));
        let role = |client: &str, actions: &[String]| json!({"object_id": client, "scope": format!("/subscriptions/{id}"), "actions": actions});
        add("roles", role(CAPZ_CLIENT, &["*".to_owned()]));
        for reader in READERS {
            add("roles", role(reader, shipped));
        }
    }
    for subscription in seed["subscriptions"].as_array_mut().into_iter().flatten() {
        subscription["quotas"] = json!({"endpoints_per_pls": 1000, "pls": 1000});
    }
    seed["throttle"] = json!({"enabled": false});
    seed["switches"] = json!({"rare_durations": false});
}
