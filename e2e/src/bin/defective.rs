//! The guest side with a defect: what carries its calls to Azure panics where a path has `unusual` in it. All else is the product's
//! own: settings, controllers, metrics, log.
//!
//! Takes the arguments and the environment of `hyperlink run --role cpo`. It leads without a lease, so nobody else may run beside it.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use bytes::Bytes;
use e2e::kubeconfig::Access;
use http::{Request, Response};
use hyperlink::api::Role;
use hyperlink::azure::auth::TokenCache;
use hyperlink::azure::client::Client;
use hyperlink::azure::inventory::Inventory;
use hyperlink::azure::memory::Memory;
use hyperlink::azure::ports::Gate;
use hyperlink::azure::transport::{HttpsTransport, Transport, TransportError};
use hyperlink::config::{self, Config, Environment, Given, SETTINGS};
use hyperlink::controllers::context::{Context, Stated};
use hyperlink::controllers::endpoint::EndpointController;
use hyperlink::controllers::failures::Failures;
use hyperlink::controllers::neighbours::ControlPlanes;
use hyperlink::controllers::recorder::Recorder;
use hyperlink::controllers::run::Runner;
use hyperlink::controllers::served::Served;
use hyperlink::controllers::watch::{self, Scope};
use hyperlink::controllers::watch_health::WatchHealth;
use hyperlink::http::{Face, Pages, Readiness};
use hyperlink::metrics::{Controller, Metrics};
use hyperlink::scopes_file::ScopesFile;
use hyperlink::telemetry;
use tokio_util::sync::CancellationToken;

/// What the defect does not survive.
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
    let config = config::resolve(&given()?, &Environment::of_process())?;
    telemetry::init(config.log.format, telemetry::filter(&config.log.filter)?)?;
    telemetry::tell_panics();
    let path = config.kubeconfig.as_deref().context("no kubeconfig")?;
    let kube = Access::read(path, None).await?.config();
    let metrics = Arc::new(Metrics::new("0", "defective")?);
    let face = Face::bind(config.serving.clone()).await?;
    tracing::info!(address = %face.metrics()?, probes = %face.probes()?, "started");
    let pages = Pages {
        readiness: Readiness::default(),
        metrics: Arc::clone(&metrics),
    };
    tokio::spawn(face.serve(pages, kube.clone(), CancellationToken::new()));
    let cx = Arc::new(context(&config, kube::Client::try_from(kube)?, metrics)?);
    let control_planes = Arc::new(ControlPlanes::default());
    let controller = EndpointController {
        control_planes: Arc::clone(&control_planes),
        allowed: config.allow_scopes.as_ref().map(ScopesFile::allowed),
    };
    let runner = Arc::new(Runner::new(controller, Arc::clone(&cx), Controller::Endpoint));
    let (_again, never) = tokio::sync::watch::channel(());
    let scope = Scope {
        namespace: config.namespace.clone(),
        concurrency: config.concurrency.get(),
        stop: CancellationToken::new(),
        again: never,
        health: Arc::new(WatchHealth::new(Arc::clone(&cx.metrics))),
    };
    tokio::join!(
        watch::control_planes(cx, config.azure.cloud_name, scope.clone()),
        watch::endpoints(runner, scope, control_planes, |_| {})
    );
    Ok(())
}

/// `run --NAME=VALUE …`
fn given() -> Result<Given> {
    let mut given = Given::default();
    for argument in std::env::args().skip(2) {
        let flag = argument.strip_prefix("--").and_then(|flag| flag.split_once('='));
        let (name, value) = flag.with_context(|| argument.clone())?;
        let Some(setting) = SETTINGS.iter().find(|setting| setting.flag == name) else {
            bail!("no setting {name}")
        };
        given.set(setting, [value.to_owned()]);
    }
    Ok(given)
}

fn context(config: &Config, kube: kube::Client, metrics: Arc<Metrics>) -> Result<Context> {
    let http = config.azure.http.client()?;
    let cloud = &config.azure.cloud;
    let tokens = TokenCache::new(config.azure.credential.clone(), cloud, http.clone());
    let transport = Arc::new(Defective(HttpsTransport::new(http, cloud, Arc::new(tokens))));
    let endpoint = cloud.endpoint().clone();
    Ok(Context {
        role: Role::Cpo,
        events: Recorder::new(kube.clone(), Role::Cpo, "defective", Arc::clone(&metrics)),
        kube,
        stated: Stated::default(),
        failures: Failures::default(),
        arm: Client::new(transport, endpoint, Arc::new(Alone), metrics.clone()),
        memory: Arc::new(Memory::new(config.resync, config.record_resync)),
        inventory: Inventory::default(),
        metrics,
        served: Served::everything(),
        resync: config.resync,
    })
}
