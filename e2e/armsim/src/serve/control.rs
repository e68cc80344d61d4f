//! The control API: tests and tools seed the simulated Azure, read it, change it behind everybody's back, and break it.
//! JSON is taken strictly: an unknown key is refused by name. Also hosts the managed identities' endpoints, which are
//! plain HTTP in Azure too.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::{get, post, put},
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use simulator::{
    clock::{Clock, ClockChange},
    control::{Answered, Refused, bad, done, parse, query},
    page::{Page, Table},
};

use super::{
    Shared, Simulation, fault, http_json,
    identity::{self, Form, IdentityQuery},
    token_requests::TokenRequests,
    token_times,
};
use crate::{Answer, Role, Seed, Service, parse_faults};

type SharedState = State<Arc<Shared>>;

/// All control calls.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let calls = Router::new()
        .route("/", get(index))
        .route("/seed", put(seed))
        .route("/resources", get(list_resources))
        .route("/resources/{*id}", put(put_resource).delete(delete_resource))
        .route("/services", put(put_service).delete(delete_service))
        .route("/roles", put(put_roles))
        .route("/tokens", get(read_token_requests))
        .route("/journal", get(read_journal).delete(clear_journal))
        .route("/violations", get(read_violations))
        .route("/faults", put(put_faults).delete(clear_faults))
        .route("/reachable", get(reachable))
        .route("/clock", post(change_clock))
        .route("/msi/token", get(app_service_identity))
        .route("/metadata/identity/oauth2/token", get(metadata_identity));
    simulator::control::router(calls, shared)
}

async fn seed(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let seed = Seed::parse(&body).map_err(bad)?;
    let clock = Clock::default();
    let mut simulation = shared.lock();
    simulation.azure.seed(clock.now(), seed).map_err(bad)?;
    simulation.clock = clock;
    simulation.token_requests = TokenRequests::default();
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourcesQuery {
    prefix: Option<String>,
}

async fn list_resources(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ResourcesQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(
        simulation
            .azure
            .resources(now, asked.prefix.as_deref().unwrap_or_default()),
    ))
}

async fn put_resource(State(shared): SharedState, Path(id): Path<String>, body: Bytes) -> Answered<impl IntoResponse> {
    let resource: Value = parse(&body)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    let stored = simulation
        .azure
        .put_resource(now, &format!("/{id}"), resource)
        .map_err(bad)?;
    Ok(axum::Json(stored))
}

async fn delete_resource(State(shared): SharedState, Path(id): Path<String>) -> Answered<impl IntoResponse> {
    let id = format!("/{id}");
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    match simulation.azure.delete_resource(now, &id).map_err(bad)? {
        true => Ok(done()),
        false => Err(Refused(StatusCode::NOT_FOUND, format!("no resource {id}"))),
    }
}

async fn put_service(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let service: Service = parse(&body)?;
    shared.lock().azure.put_service(service);
    Ok(done())
}

async fn put_roles(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let roles: Vec<Role> = parse(&body)?;
    shared.lock().azure.set_roles(roles);
    Ok(done())
}

async fn read_token_requests(State(shared): SharedState) -> impl IntoResponse {
    axum::Json(shared.lock().token_requests.all())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontendName {
    load_balancer: String,
    frontend: String,
}

async fn delete_service(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let FrontendName {
        load_balancer,
        frontend,
    } = query(&uri)?;
    shared.lock().azure.delete_service(&load_balancer, &frontend);
    Ok(done())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    since: Option<u64>,
}

async fn read_journal(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: JournalQuery = query(&uri)?;
    let simulation = shared.lock();
    Ok(axum::Json(json!(simulation.azure.journal(asked.since.unwrap_or(0)))))
}

async fn read_violations(State(shared): SharedState) -> impl IntoResponse {
    let simulation = shared.lock();
    let azure = &simulation.azure;
    axum::Json(json!({"violations": azure.violations(), "tally": azure.spec_tally()}))
}

async fn clear_journal(State(shared): SharedState) -> impl IntoResponse {
    shared.lock().azure.clear_journal();
    done()
}

async fn put_faults(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let rules = parse_faults(&body).map_err(bad)?;
    shared.lock().azure.set_faults(rules);
    Ok(done())
}

async fn clear_faults(State(shared): SharedState) -> impl IntoResponse {
    shared.lock().azure.clear_faults();
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReachableQuery {
    vnet: String,
    name: String,
}

async fn reachable(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ReachableQuery = query(&uri)?;
    let mut simulation = shared.lock();
    let now = simulation.clock.now();
    Ok(axum::Json(simulation.azure.reachable(now, &asked.vnet, &asked.name)))
}

async fn change_clock(State(shared): SharedState, body: Bytes) -> Answered<impl IntoResponse> {
    let change: ClockChange = parse(&body)?;
    let mut simulation = shared.lock();
    simulation.clock.apply(&change).map_err(bad)?;
    Ok(axum::Json(simulation.clock.read()))
}

async fn app_service_identity(State(shared): SharedState, request: axum::extract::Request) -> Response {
    identity_token(&shared, Form::AppService, &request)
}

async fn metadata_identity(State(shared): SharedState, request: axum::extract::Request) -> Response {
    identity_token(&shared, Form::Metadata, &request)
}

fn identity_token(shared: &Shared, form: Form, request: &axum::extract::Request) -> Response {
    let uri = request.uri();
    let query = axum::extract::Query::<IdentityQuery>::try_from_uri(uri)
        .map(|query| query.0)
        .unwrap_or_default();
    let mut simulation = shared.lock();
    let azure = &mut simulation.azure;
    let client_id = query.subject(azure.tenants()).map(|subject| subject.client_id);
    let fault = azure.fault(request.method().as_str(), uri.path(), client_id.as_deref());
    let answer = || {
        let refuse = |status: u16, error: &str, message: &str| {
            let body = form.error(status, error, message);
            http_json(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), &body)
        };
        let decided = identity::decide(form, &query, request.headers(), azure.tenants(), &shared.audiences);
        let (subject, resource) = match decided {
            Ok(decided) => decided,
            Err(error) => return refuse(error.status, error.error, &error.message),
        };
        let times = token_times(azure);
        match shared.issuer.issue(&subject, &resource, times, Timestamp::now()) {
            Some(token) => http_json(StatusCode::OK, &form.token(&token, &subject, &resource)),
            None => refuse(500, "server_error", "The service could not sign a token."),
        }
    };
    let refusal = |status, error: &str, message: &str| form.error(status, error, message);
    let Answer { response, wire } = fault::disturb(fault, refusal, answer);
    let mut response = response.map(axum::body::Body::from);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(wire);
    response
}

/// Calls and resources that the page shows at most.
const CALLS: usize = 100;
const RESOURCES: usize = 200;

async fn index(State(shared): SharedState, uri: Uri) -> Answered<impl IntoResponse> {
    let asked: ResourcesQuery = query(&uri)?;
    let prefix = asked.prefix.as_deref().unwrap_or_default().trim();
    let mut simulation = shared.lock();
    let Simulation { azure, clock, .. } = &mut *simulation;
    let now = clock.now();
    let resources = azure.listing(now, prefix);
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in &resources {
        *types.entry(&resource.resource_type).or_default() += 1;
    }
    let operations = azure.operations_in_flight(now);
    let journal = azure.journal(0);
    let tables = [
        Table::new(
            "Operations in flight",
            &["name", "resource", "started", "ends", "id"],
            operations.iter().take(RESOURCES),
            operations.len(),
        ),
        Table::new(
            "Last calls",
            &[
                "seq",
                "time",
                "method",
                "path",
                "api_version",
                "principal",
                "status",
                "code",
            ],
            journal.iter().rev().take(CALLS),
            journal.len(),
        ),
        Table::new(
            "Types",
            &["type", "resources"],
            types
                .iter()
                .map(|(name, count)| json!({"type": name, "resources": count})),
            types.len(),
        ),
        Table::new(
            "Resources",
            &["id", "resource_type", "state"],
            resources.iter().take(RESOURCES),
            resources.len(),
        ),
    ];
    let subtitle = format!("Simulated time {now}, HTTPS address {}", shared.arm);
    let page = Page {
        name: "armsim",
        subtitle: &subtitle,
        prefix,
        ids_begin: "/subscriptions/…",
        tables: &tables,
    };
    Ok(Html(page.render()))
}
