//! The CPO role with two defects: its transport to Azure panics for a path with `unusual` in it, and one zone is read
//! in a loop. Everything else is the product's own: settings, controllers, metrics, log.
//!
//! It takes the arguments and the environment of `hyperlink run --role cpo`. It leads without a lease, so no other
//! process of the role may run at the same time.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bytes::Bytes;
use e2e::kubeconfig::Access;
use http::{Request, Response};
use hyperlink::api::Role;
use hyperlink::azure::arm::auth::TokenCache;
use hyperlink::azure::arm::client::Client;
use hyperlink::azure::arm::id::ResourceId;
use hyperlink::azure::arm::transport::{HttpsTransport, Transport, TransportError};
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::observations::ObservationCache;
use hyperlink::config::{self, Azure, Config, Environment, RunSettings};
use hyperlink::controllers::azure::access::{ArmContext, Context};
use hyperlink::controllers::private_endpoint::{self, HostedClusters, PrivateEndpointController};
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::failure::CALL_BUDGET_EXHAUSTED;
use hyperlink::engine::gate::Gate;
use hyperlink::http::{HttpServer, Pages, Readiness};
use hyperlink::hypershift::cluster_index::ClusterIndex;
use hyperlink::metrics::{Controller, Metrics};
use hyperlink::observer;
use hyperlink::runtime::reconcile::Runner;
use hyperlink::runtime::watch::{self as events, Scope, twice};
use hyperlink::runtime::watch_health::WatchHealth;
use hyperlink::scopes_file::ScopesFile;
use hyperlink::telemetry;
use tokio_util::sync::CancellationToken;

/// A path with this word makes the transport panic.
const UNUSUAL: &str = "unusual";

struct Defective(HttpsTransport);

#[async_trait]
impl Transport for Defective {
    async fn ready(&self) -> Result<(), TransportError> {
        self.0.ready().await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        assert!(!request.uri().path().contains(UNUSUAL), "nobody thought of this");
        self.0.send(request).await
    }
}

struct Alone;

impl Gate for Alone {
    fn open(&self) -> bool {
        true
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    e2e::scenario::install_tls_provider();
    let environment = Environment::of_process();
    let settings: RunSettings = config::parse(std::env::args().skip(1), &environment)?;
    let config = settings.resolve(&environment)?;
    let run = config.run.as_ref().context("no settings of `hyperlink run`")?;
    telemetry::init(config.log.format, telemetry::filter(&config.log.filter)?)?;
    telemetry::log_panics();
    let path = config.kubeconfig.as_deref().context("no kubeconfig")?;
    let kube = Access::read(path, None).await?.config();
    let metrics = Arc::new(Metrics::new("0", "defective")?);
    let server = HttpServer::bind(run.serving.clone()).await?;
    tracing::info!(address = %server.metrics()?, probes = %server.probes()?, "started");
    let pages = Pages {
        readiness: Readiness::default(),
        metrics: Arc::clone(&metrics),
    };
    tokio::spawn(server.serve(pages, kube.clone(), CancellationToken::new()));
    let azure = config.azure.as_ref().context("no settings of Azure")?;
    let cx = Arc::new(context(&config, azure, kube::Client::try_from(kube)?, metrics)?);
    tokio::spawn(reads_in_a_loop(cx.cloud.client.clone()));
    let hosted_clusters = Arc::new(ClusterIndex::default());
    let controller = PrivateEndpointController {
        hosted_clusters: Some(HostedClusters {
            all: Arc::clone(&hosted_clusters),
            cloud: azure.cloud_name,
        }),
        allowed: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
    };
    let runner = Arc::new(Runner::new(controller, Arc::clone(&cx), Controller::PrivateEndpoint));
    let (_again, never) = tokio::sync::watch::channel(());
    let scope = Scope {
        namespace: config.scope.namespace.clone(),
        concurrency: run.concurrency,
        stop: CancellationToken::new(),
        again: never,
        health: Arc::new(WatchHealth::new(Arc::clone(&cx.runtime.metrics))),
    };
    let (planes, again) = twice(scope.events(&cx.runtime.kube, events::pages()));
    tokio::join!(
        observer::azure::run(cx, azure.cloud_name, scope.clone(), planes),
        private_endpoint::watch::run(runner, scope, Some(hosted_clusters), again)
    );
    Ok(())
}

/// Reads one zone until the call budget is exhausted, waits as long as the error says, and starts again.
async fn reads_in_a_loop(arm: Client) -> Result<()> {
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/looped";
    let id = ResourceId::parse(id)?;
    loop {
        let answer = arm.get(Reconcile::begin(), Kind::PrivateDnsZone, &id).await;
        if let Err(error) = answer
            && error.code == CALL_BUDGET_EXHAUSTED
        {
            tokio::time::sleep(error.delay(1)).await;
        }
    }
}

fn context(config: &Config, azure: &Azure, kube: kube::Client, metrics: Arc<Metrics>) -> Result<Context> {
    let http = azure.http.client()?;
    let cloud = &azure.cloud;
    let source = azure.credential.clone().context("no credential")?;
    let tokens = TokenCache::new(source, cloud, http.clone());
    let transport = Arc::new(Defective(HttpsTransport::new(http, cloud, Arc::new(tokens))));
    let endpoint = cloud.endpoint().clone();
    let intervals = &config.intervals;
    let client = Client::new(transport, endpoint, Arc::new(Alone), metrics.clone());
    let arm = ArmContext::new(client, ObservationCache::new(intervals.resync, intervals.record_resync));
    Ok(Context::new(
        Role::Cpo,
        "defective",
        kube,
        arm,
        metrics,
        intervals.resync,
    ))
}
