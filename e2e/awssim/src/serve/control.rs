//! The control calls of tests, over plain HTTP on loopback: seed, read, change and break the simulated AWS.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, Method, Response, StatusCode, Uri},
    response::{Html, IntoResponse},
    routing::{any, delete, get, post, put},
};
use serde::Deserialize;
use serde_json::{Value, json};
use simulator::clock::{Clock, ClockChange};
use simulator::control::{Answered, Refused, bad, done, parse, query};
use simulator::page::{Page, Table};

use super::Shared;
use crate::{KubernetesService, Question, Seed, parse_faults};

type SharedState = State<Arc<Shared>>;

/// All control calls.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let calls = Router::new()
        .route("/", get(index))
        .route("/seed", put(seed))
        .route("/resources", get(list_resources))
        .route("/resources/{*id}", put(put_resource).delete(delete_resource))
        .route("/load-balancers/{*arn}", delete(delete_load_balancer))
        .route("/services", put(put_service).delete(delete_service))
        .route("/journal", get(read_journal).delete(clear_journal))
        .route("/faults", put(put_faults).delete(clear_faults))
        .route("/reachable", get(reachable))
        .route("/clock", post(change_clock))
        .route("/latest/{*path}", any(machine_metadata));
    simulator::control::router(calls, shared)
}

async fn seed(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let seed = Seed::parse(&body).map_err(bad)?;
    let clock = Clock::default();
    let mut simulation = shared.lock();
    simulation.aws.seed(clock.now(), seed).map_err(bad)?;
    simulation.clock = clock;
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourcesQuery {
    #[serde(default)]
    prefix: String,
}

async fn list_resources(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ResourcesQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(simulation.aws.resources(now, &asked.prefix)))
}

/// Calls and resources that the page shows at most.
const CALLS: usize = 100;
const RESOURCES: usize = 200;

async fn index(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ResourcesQuery = query(&uri)?;
    let prefix = asked.prefix.trim();
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let resources = simulation.aws.resources(now, prefix);
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in &resources {
        // `arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1`
        let kind = resource["id"]
            .as_str()
            .and_then(|arn| arn.split(':').nth(5)?.split('/').next());
        *types.entry(kind.unwrap_or_default()).or_default() += 1;
    }
    let kinds = types.len();
    let types = types
        .iter()
        .map(|(name, count)| json!({"type": name, "resources": count}));
    let journal = simulation.aws.journal(0);
    let tables = [
        Table::new(
            "Last calls",
            &["seq", "time", "path", "region", "principal", "status", "code", "query"],
            journal.iter().rev().take(CALLS),
            journal.len(),
        ),
        Table::new("Types", &["type", "resources"], types, kinds),
        Table::new(
            "Resources",
            &["id", "state", "tags"],
            resources.iter().take(RESOURCES),
            resources.len(),
        ),
    ];
    let subtitle = format!("Simulated time {now}, HTTPS address {}", shared.aws);
    let page = Page {
        name: "awssim",
        subtitle: &subtitle,
        prefix,
        ids_begin: "arn:aws:ec2:…",
        tables: &tables,
    };
    Ok(Html(page.render()))
}

async fn put_resource(State(shared): SharedState, Path(id): Path<String>, body: Bytes) -> Answered<impl IntoResponse> {
    let resource: Value = parse(&body)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(
        simulation.aws.put_resource(now, &id, resource).map_err(bad)?,
    ))
}

async fn delete_resource(State(shared): SharedState, Path(id): Path<String>) -> Answered<impl IntoResponse> {
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    match simulation.aws.delete_resource(now, &id) {
        true => Ok(done()),
        false => Err(Refused(StatusCode::NOT_FOUND, format!("no resource {id}"))),
    }
}

async fn delete_load_balancer(State(shared): SharedState, Path(arn): Path<String>) -> Answered<impl IntoResponse> {
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let deleted = simulation.aws.delete_load_balancer(now, &arn);
    match deleted.map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))? {
        true => Ok(done()),
        false => Err(Refused(StatusCode::NOT_FOUND, format!("no load balancer {arn}"))),
    }
}

async fn put_service(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let service: KubernetesService = parse(&body)?;
    shared.lock().aws.put_service(service);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceQuery {
    load_balancer: String,
}

async fn delete_service(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ServiceQuery = query(&uri)?;
    shared.lock().aws.delete_service(&asked.load_balancer);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    #[serde(default)]
    since: u64,
}

async fn read_journal(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: JournalQuery = query(&uri)?;
    let simulation = shared.lock();
    Ok(axum::Json(json!(simulation.aws.journal(asked.since))))
}

async fn clear_journal(State(shared): SharedState) -> impl IntoResponse {
    shared.lock().aws.clear_journal();
    done()
}

async fn put_faults(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let rules = parse_faults(&body).map_err(bad)?;
    shared.lock().aws.set_faults(rules);
    Ok(done())
}

async fn clear_faults(State(shared): SharedState) -> impl IntoResponse {
    shared.lock().aws.clear_faults();
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachableQuery {
    vpc: String,
    name: String,
    from: Option<Ipv4Addr>,
    port: Option<u16>,
}

async fn reachable(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ReachableQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let question = Question {
        vpc: &asked.vpc,
        name: &asked.name,
        from: asked.from,
        port: asked.port,
    };
    Ok(axum::Json(simulation.aws.reachable(now, &question)))
}

async fn machine_metadata(State(shared): SharedState, method: Method, uri: Uri, headers: HeaderMap) -> Response<Body> {
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let asked = (&method, uri.path());
    simulation.aws.machine_metadata(now, asked, &headers).map(Body::from)
}

async fn change_clock(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let change: ClockChange = parse(&body)?;
    let mut simulation = shared.lock();
    simulation.clock.apply(&change).map_err(bad)?;
    Ok(axum::Json(simulation.clock.read()))
}
