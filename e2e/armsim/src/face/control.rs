//! The control face: tests and tools seed the world, read it, change it behind everybody's back, and break it. JSON is taken strictly: an unknown
//! key is refused by name. Also hosts the managed identity's endpoint, which is plain HTTP in Azure too.

use std::{future::IntoFuture as _, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::{get, post, put},
};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    Shared, Simulation,
    identity::{self, IdentityQuery},
    page::{self, Table, cell},
    token_times,
};
use crate::{
    Seed, Service,
    clock::{Clock, ClockChange},
    parse_faults,
};

/// What running calls get to end in when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// A seed for hundreds of clusters fits.
const MAX_BODY: usize = 64 * 1024 * 1024;

type Face = State<Arc<Shared>>;

/// A refusal in words.
struct Refused(StatusCode, String);

type Answered<T> = Result<T, Refused>;

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, axum::Json(json!({"error": self.1}))).into_response()
    }
}

fn bad(message: impl ToString) -> Refused {
    Refused(StatusCode::BAD_REQUEST, message.to_string())
}

/// Serves until told to stop.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let graceful = stop.clone();
    let served = axum::serve(listener, router(shared))
        .with_graceful_shutdown(async move { graceful.cancelled().await })
        .into_future();
    tokio::select! {
        ended = served => if let Err(error) = ended {
            tracing::error!(%error, "control face ended");
        },
        () = async { stop.cancelled().await; tokio::time::sleep(GRACE).await } => {}
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/seed", put(seed))
        .route("/resources", get(list_resources))
        .route("/resources/{*id}", put(put_resource).delete(delete_resource))
        .route("/services", put(put_service).delete(delete_service))
        .route("/journal", get(read_journal).delete(clear_journal))
        .route("/violations", get(read_violations))
        .route("/faults", put(put_faults).delete(clear_faults))
        .route("/reachable", get(reachable))
        .route("/clock", post(change_clock))
        .route("/msi/token", get(identity_token))
        .fallback(
            |uri: Uri| async move { Refused(StatusCode::NOT_FOUND, format!("no such control call: {}", uri.path())) },
        )
        .method_not_allowed_fallback(|uri: Uri| async move {
            Refused(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{} does not take this method", uri.path()),
            )
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared)
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Answered<T> {
    serde_json::from_slice(body).map_err(bad)
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Answered<T> {
    axum::extract::Query::try_from_uri(uri)
        .map(|query| query.0)
        .map_err(|error| bad(error.body_text()))
}

fn done() -> axum::Json<Value> {
    axum::Json(json!({}))
}

async fn seed(State(shared): Face, body: Bytes) -> Answered<impl IntoResponse> {
    let seed = Seed::parse(&body).map_err(bad)?;
    let clock = Clock::default();
    let mut simulation = shared.lock();
    simulation.world.seed(clock.now(), seed).map_err(bad)?;
    simulation.clock = clock;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourcesQuery {
    prefix: Option<String>,
}

async fn list_resources(State(shared): Face, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ResourcesQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(
        simulation
            .world
            .resources(now, asked.prefix.as_deref().unwrap_or_default()),
    ))
}

async fn put_resource(State(shared): Face, Path(id): Path<String>, body: Bytes) -> Answered<impl IntoResponse> {
    let resource: Value = parse(&body)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let stored = simulation
        .world
        .put_resource(now, &format!("/{id}"), resource)
        .map_err(bad)?;
    Ok(axum::Json(stored))
}

async fn delete_resource(State(shared): Face, Path(id): Path<String>) -> Answered<impl IntoResponse> {
    let id = format!("/{id}");
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    match simulation.world.delete_resource(now, &id).map_err(bad)? {
        true => Ok(done()),
        false => Err(Refused(StatusCode::NOT_FOUND, format!("no resource {id}"))),
    }
}

async fn put_service(State(shared): Face, body: Bytes) -> Answered<impl IntoResponse> {
    let service: Service = parse(&body)?;
    shared.lock().world.put_service(service);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontendName {
    load_balancer: String,
    frontend: String,
}

async fn delete_service(State(shared): Face, uri: Uri) -> Answered<impl IntoResponse> {
    let FrontendName {
        load_balancer,
        frontend,
    } = query(&uri)?;
    shared.lock().world.delete_service(&load_balancer, &frontend);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    since: Option<u64>,
}

async fn read_journal(State(shared): Face, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: JournalQuery = query(&uri)?;
    let simulation = shared.lock();
    Ok(axum::Json(json!(simulation.world.journal(asked.since.unwrap_or(0)))))
}

async fn read_violations(State(shared): Face) -> impl IntoResponse {
    let simulation = shared.lock();
    let world = &simulation.world;
    axum::Json(json!({"violations": world.violations(), "tally": world.spec_tally()}))
}

async fn clear_journal(State(shared): Face) -> impl IntoResponse {
    shared.lock().world.clear_journal();
    done()
}

async fn put_faults(State(shared): Face, body: Bytes) -> Answered<impl IntoResponse> {
    let rules = parse_faults(&body).map_err(bad)?;
    shared.lock().world.set_faults(rules);
    Ok(done())
}

async fn clear_faults(State(shared): Face) -> impl IntoResponse {
    shared.lock().world.clear_faults();
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachableQuery {
    vnet: String,
    name: String,
}

async fn reachable(State(shared): Face, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ReachableQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(simulation.world.reachable(now, &asked.vnet, &asked.name)))
}

async fn change_clock(State(shared): Face, body: Bytes) -> Answered<impl IntoResponse> {
    let change: ClockChange = parse(&body)?;
    let mut simulation = shared.lock();
    simulation.clock.apply(&change).map_err(bad)?;
    Ok(axum::Json(simulation.clock.read()))
}

async fn identity_token(State(shared): Face, uri: Uri, headers: HeaderMap) -> Response {
    let query = axum::extract::Query::<IdentityQuery>::try_from_uri(&uri)
        .map(|query| query.0)
        .unwrap_or_default();
    let secret = headers.get("x-identity-header").and_then(|value| value.to_str().ok());
    let simulation = shared.lock();
    let world = &simulation.world;
    let refuse = |status: u16, message: &str| {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        (
            status,
            axum::Json(json!({"statusCode": status.as_u16(), "message": message})),
        )
            .into_response()
    };
    let (subject, resource) = match identity::decide(&query, secret, world.tenants(), &shared.audiences) {
        Ok(decided) => decided,
        Err(error) => return refuse(error.status, &error.message),
    };
    let Some(token) = shared
        .issuer
        .issue(&subject, &resource, token_times(world), Timestamp::now())
    else {
        return refuse(500, "The service could not sign a token.");
    };
    let body = json!({"access_token": token.token, "expires_on": token.expires_on.to_string(), "resource": resource,
        "token_type": "Bearer", "client_id": subject.client_id});
    ([(header::CACHE_CONTROL, "no-store")], axum::Json(body)).into_response()
}

async fn index(State(shared): Face) -> impl IntoResponse {
    let mut simulation = shared.lock();
    let Simulation { world, clock } = &mut *simulation;
    let now = clock.now();
    let resources = world.resources(now, "");
    let operations: Vec<Value> = world
        .operations_in_flight(now)
        .iter()
        .map(|operation| json!(operation))
        .collect();
    let journal: Vec<Value> = world.journal(0).iter().map(|call| json!(call)).collect();
    let tables = [
        table(
            "Operations in flight",
            &["name", "resource", "started", "ends", "id"],
            operations.iter(),
            operations.len(),
        ),
        table(
            "Last calls",
            &["seq", "time", "method", "path", "principal", "status", "code"],
            journal.iter().rev(),
            journal.len(),
        ),
        table(
            "Resources",
            &["id", "type", "properties/provisioningState"],
            resources.iter(),
            resources.len(),
        ),
    ];
    Html(page::render(
        &format!("Simulated time {now}, HTTPS address {}", shared.arm),
        &tables,
    ))
}

fn table<'v>(
    title: &'static str,
    columns: &'static [&'static str],
    rows: impl Iterator<Item = &'v Value>,
    total: usize,
) -> Table {
    let row = |value: &Value| {
        columns
            .iter()
            .map(|column| cell(value, &format!("/{column}")))
            .collect()
    };
    Table {
        title,
        total,
        columns,
        rows: rows.take(page::ROWS).map(row).collect(),
    }
}
