//! Builds clients, waits for what the roles need, runs their controllers while leading, and stops in order.

mod clouds;
mod items;
mod own_pod;
mod rights;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::watch::{self, Receiver};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::{LedRole, Platform, Role};
use crate::config::{Config, Run};
use crate::engine::gate::Gate;
use crate::http::{HttpServer, Pages, Readiness, ReadinessItem};
use crate::hypershift::shard::Shard;
use crate::metrics::Metrics;
use crate::roles::{self, CloudConnection, Foundation, PreparedCloud, Work};
use crate::runtime::leader::{Electors, LeaderGates, LeaseSettings, Standing, Standings, Worked, gated_client};
use crate::runtime::watch::Scope;
use crate::runtime::watch_health::WatchHealth;
use crate::{COMMIT, VERSION};
pub use clouds::Clouds;
use items::{Items, RoleItems};
use waits::{follow_watches, wait_for_crd, with_heartbeat};

/// Writes to clouds go out while the leader's gates are open.
impl Gate for LeaderGates {
    fn open(&self) -> bool {
        Self::open(self)
    }
}

/// How long running reconciles may take to end when the process stops. The chart's Pods are killed after 30 s.
///
/// Rule: `docs/sizing.md`.
const GRACE: Duration = Duration::from_secs(20);

/// What the roles of one process share.
struct RoleContext {
    config: Config,
    kube: kube::Config,
    metrics: Arc<Metrics>,
    /// Changes when all objects are to be reconciled again.
    again: watch::Sender<()>,
}

/// Runs until `stop`, or until a role's lease is lost, which is an error.
pub async fn run(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let server = HttpServer::bind(of_run(&config)?.serving.clone()).await?;
    let address = server.metrics()?;
    let probes = server.probes()?;
    tracing::info!(version = VERSION, commit = COMMIT, %address, %probes, "started");
    let kube = kube_config(&config).await?;
    let metrics = Arc::new(Metrics::new(VERSION, COMMIT)?);
    let readiness = Readiness::default();
    // All items exist before the first probe, which would not notice that one is still to come.
    let items = Items::of(&readiness, &config);
    let status_reports = own_pod::start_status_reports(&config, kube.clone(), readiness.clone(), Arc::clone(&metrics))?;
    let pages = Pages {
        readiness,
        metrics: Arc::clone(&metrics),
    };
    // Probes and metrics are answered until all else has ended.
    let all_ended = CancellationToken::new();
    let serving = tokio::spawn(server.serve(pages, kube.clone(), all_ended.clone()));
    let result = manage(config, kube, metrics, items, &stop).await;
    drop(status_reports);
    all_ended.cancel();
    let served = serving.await?;
    result?;
    Ok(served?)
}

async fn manage(
    config: Config,
    kube: kube::Config,
    metrics: Arc<Metrics>,
    items: Items,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let clouds = Clouds::new(&config, &metrics, false)?;
    let roles = items.roles.into_iter().map(|(led, items)| {
        let cloud = clouds.of(led.platform)?;
        Ok((led, cloud, items))
    });
    let roles = roles.collect::<anyhow::Result<Vec<_>>>()?;
    let waiting = tokio::spawn(clouds.keep(items.clouds));
    let again = watch::Sender::new(());
    if let (Some(file), Some(item)) = (config.scope.allow_scopes.clone(), items.scopes) {
        tokio::spawn(bump(file.allowed(), again.clone()));
        tokio::spawn(file.follow(item, Arc::clone(&metrics)));
    }
    let shared = Arc::new(RoleContext {
        config,
        kube,
        metrics,
        again,
    });
    let result = run_roles(&shared, roles, stop).await;
    waiting.abort();
    result
}

/// Notifies `again` of each change of `changing`.
async fn bump<T>(mut changing: Receiver<T>, again: watch::Sender<()>) {
    while changing.changed().await.is_ok() {
        again.send_replace(());
    }
}

/// How the API server is reached.
pub async fn kube_config(config: &Config) -> anyhow::Result<kube::Config> {
    let mut kube = match &config.kubeconfig {
        None => kube::Config::infer()
            .await
            .context("no Kubernetes API server is configured")?,
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(path)?;
            kube::Config::from_custom_kubeconfig(file, &Default::default()).await?
        }
    };
    kube.connect_timeout = Some(Duration::from_secs(10));
    Ok(kube)
}

/// Runs each role by itself. The first one that fails stops all.
async fn run_roles(
    shared: &Arc<RoleContext>,
    all: Vec<(LedRole, CloudConnection, RoleItems)>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut roles = JoinSet::new();
    for (led, cloud, items) in all {
        roles.spawn(run_role(Arc::clone(shared), led, cloud, items, stop.clone()));
    }
    let mut outcome = Ok(());
    while let Some(result) = roles.join_next().await {
        if let Err(error) = result.map_err(anyhow::Error::from).and_then(|role| role) {
            tracing::error!(error = format!("{error:#}"), "a role has ended");
            outcome = outcome.and(Err(error));
            stop.cancel();
        }
    }
    outcome
}

/// Waits for the lease, runs the role's controllers while leading, and releases the lease.
async fn run_role(
    shared: Arc<RoleContext>,
    led: LedRole,
    cloud: CloudConnection,
    items: RoleItems,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let role = led.role;
    let leases = leases(&shared.config, led).context("no lease is configured")?;
    shared.metrics.shards(led, of_run(&shared.config)?.shard.of());
    let electors = Electors::new(&shared.kube, leases.common, leases.own)?;
    let gates = electors.gates();
    // Ends by itself with the elections.
    tokio::spawn(follow(
        electors.standings(),
        items.lease,
        led,
        Arc::clone(&shared.metrics),
    ));
    let leads = gates.clone();
    let kube = gated_client(shared.kube.clone(), move || leads.open())?;
    let gate = Arc::new(gates);
    // Ends with the role. It does not use the gate: it asks, and writes nothing.
    let mut asking = JoinSet::new();
    let rights = rights::rights(&shared.config, led)?;
    let ungated = kube::Client::try_from(shared.kube.clone())?;
    asking.spawn(rights::wait_for_rights(ungated, rights, items.rights));
    items.controllers.ready_as("not leading");
    let ready = async {
        wait_for_crd(
            &kube,
            &roles::resource(led),
            shared.config.scope.namespace.as_deref(),
            &items.kubernetes,
            &items.crd,
        )
        .await;
        roles::prepare(role, cloud, &kube, &items.kubernetes).await
    };
    let prepared = tokio::select! {
        prepared = ready => prepared,
        () = stop.cancelled() => return Ok(()),
    };
    let working = |finish: CancellationToken| {
        let foundation = Foundation {
            config: &shared.config,
            role,
            kube,
            gate,
            metrics: Arc::clone(&shared.metrics),
        };
        let work = work(&shared, foundation, prepared, items.controllers, finish);
        with_heartbeat(&shared.metrics, led, work)
    };
    let worked = electors.work(&stop, GRACE, working).await;
    let Some(Worked { outcome, released }) = worked.with_context(|| format!("role {led}"))? else {
        return Ok(());
    };
    outcome.unwrap_or(Ok(()))?;
    if !stop.is_cancelled() {
        bail!("the controllers of role {led} have ended");
    }
    released.with_context(|| format!("cannot release the lease of role {led}"))
}

/// What only `hyperlink run` has.
fn of_run(config: &Config) -> anyhow::Result<&Run> {
    config.run.as_ref().context("no settings of `hyperlink run`")
}

/// The leases of a role in one process.
struct Leases {
    /// The one that all shards hold together; none if there is one shard.
    common: Option<LeaseSettings>,
    own: LeaseSettings,
}

fn leases(config: &Config, led: LedRole) -> Option<Leases> {
    let run = config.run.as_ref()?;
    let lease = &run.lease;
    let shard = run.shard;
    let name = match &config.scope.namespace {
        Some(scope) if *scope != lease.namespace => format!("hyperlink-{led}-{scope}"),
        _ => format!("hyperlink-{led}"),
    };
    let whole = LeaseSettings {
        name,
        namespace: lease.namespace.clone(),
        identity: LeaseSettings::identity(&lease.candidate),
        shared: false,
        times: lease.times,
    };
    if shard == Shard::WHOLE {
        return Some(Leases {
            common: None,
            own: whole,
        });
    }
    let own = LeaseSettings {
        name: format!("{}.shard-{}", whole.name, shard.number()),
        ..whole.clone()
    };
    let common = LeaseSettings {
        identity: match (led.role, led.platform) {
            // Another file splits the clusters otherwise.
            (Role::Ho, Platform::Azure) => format!(
                "{} shards of {}",
                shard.of(),
                config.management.as_ref()?.scopes.fingerprint()
            ),
            _ => format!("{} shards", shard.of()),
        },
        shared: true,
        ..whole
    };
    Some(Leases {
        common: Some(common),
        own,
    })
}

/// Reports the role's standing in the election to probes and metrics.
async fn follow(mut standings: Standings, item: ReadinessItem, led: LedRole, metrics: Arc<Metrics>) {
    loop {
        let now = standings.now();
        metrics.leader(led, now == Standing::Leading);
        match now {
            Standing::Unknown => item.waiting("the API server does not answer about the lease"),
            Standing::Standby { holder: Some(holder) } => item.ready_as(&format!("standing by, {holder} leads")),
            Standing::Standby { holder: None } => item.ready_as("standing by"),
            Standing::Leading => item.ready_as("leading"),
            Standing::Lost => item.waiting("lost"),
        }
        if standings.changed().await.is_err() {
            return;
        }
    }
}

/// Runs the role's controllers until `stop`.
async fn work(
    shared: &RoleContext,
    foundation: Foundation<'_>,
    cloud: PreparedCloud,
    watches: ReadinessItem,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let config = &shared.config;
    let health = Arc::new(WatchHealth::new(Arc::clone(&shared.metrics)));
    // Ends with the last watch.
    tokio::spawn(follow_watches(health.follow(), watches));
    let scope = Scope {
        namespace: config.scope.namespace.clone(),
        concurrency: of_run(config)?.concurrency,
        stop,
        again: shared.again.subscribe(),
        health,
    };
    roles::run(Work {
        foundation,
        cloud,
        scope,
    })
    .await
}
