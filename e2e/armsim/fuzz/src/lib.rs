//! What each fuzz target does with its bytes: every one ends in calls to the simulated Azure, and in the laws.
//!
//! Only panics are findings: broken laws panic too. The simulator's own tests run the same functions over `seeds/`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a finding is a panic")]

#[path = "../../tests/laws_support/mod.rs"]
mod laws_support;
mod mutate;

use armsim::clock::{Clock, ClockChange};
use armsim::{Preset, Seed, SimulatedAzure, Tenant, parse_faults};
use bytes::Bytes;
use http::{Request, Uri};
use jiff::SignedDuration;
use laws_support::body;
use laws_support::cloud::{Mode, SUBSCRIPTIONS};
use laws_support::run::Run;
use laws_support::step::{Step, What};
use mutate::{Input, mutate};
use serde_json::{Value, json};

thread_local! {
    /// A run whose simulated Azure has something of every type.
    static FURNISHED: Run = {
        let mut run = Run::new(Preset::Fast, Mode::default());
        // A network security group, a service, an endpoint of it, a link, a record set.
        for act in [74, 95, 120, 163, 175] {
            hold(run.step(&Step::from([act, 0, 0, 0, 0, 0, 0, 0, 0])));
            hold(run.step(&Step::wait_of(100)));
        }
        run.forget();
        run
    };
}

fn furnished() -> Run {
    FURNISHED.with(Run::clone)
}

fn hold(law: Result<(), String>) {
    if let Err(broken) = law {
        panic!("{broken}");
    }
}

/// A request; if it can be one at all, its answer is one of ARM's.
fn try_request(run: &mut Run, method: &str, uri: &str, content_type: Option<&str>, body: Bytes) {
    let Ok(uri) = Uri::try_from(uri) else { return };
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    let Ok(request) = request.body(body) else { return };
    let got = run.send(&request, 0).unwrap_or_else(|broken| panic!("{broken}"));
    let code = got.body["error"]["code"].as_str().or(got.body["code"].as_str());
    assert!(
        got.status < 400 || method == "HEAD" || code.is_some(),
        "{} {}",
        got.status,
        got.body
    );
    hold(run.laws());
}

/// Words that paths and queries are made of.
const WORDS: [&str; 48] = [
    "/subscriptions",
    "/aaaaaaaa-0000-4000-8000-000000000001",
    "/resourceGroups",
    "/rg0",
    "/providers",
    "/Microsoft.Network",
    "/virtualNetworks",
    "/v0",
    "/subnets",
    "/s0",
    "/privateLinkServices",
    "/p0",
    "/privateEndpointConnections",
    "/privateEndpoints",
    "/e0",
    "/loadBalancers",
    "/l0",
    "/frontendIPConfigurations",
    "/f0",
    "/networkInterfaces",
    "/privateDnsZones",
    "/z0.com",
    "/A",
    "/ALL",
    "/%40",
    "/virtualNetworkLinks",
    "/k0",
    "/locations",
    "/westus2",
    "/operations",
    "/operationResults",
    "/privateDnsOperationStatuses",
    "/checkPrivateLinkServiceVisibility",
    "/Microsoft.Resources",
    "/permissions",
    "/register",
    "/%2f",
    "/%",
    "//",
    "/..",
    "/\u{e9}",
    "?api-version=2024-05-01",
    "&api-version=2024-06-01",
    "&$top=1",
    "&$skipToken=x",
    "&$expand=networkInterfaces",
    "?",
    "/tagNames",
];
const METHODS: [&str; 8] = ["GET", "PUT", "PATCH", "DELETE", "POST", "HEAD", "OPTIONS", "BREW"];

/// Method, path and query.
pub fn request(data: &[u8]) {
    let mut input = Input(data);
    let method = METHODS[usize::from(input.byte()) % METHODS.len()];
    let path = match input.byte() % 2 {
        0 => String::from_utf8_lossy(input.0).into_owned(),
        _ => input
            .0
            .iter()
            .map(|byte| WORDS[usize::from(*byte) % WORDS.len()])
            .collect(),
    };
    let mut run = furnished();
    let body = Bytes::from_static(b"{\"location\":\"westus2\"}");
    try_request(
        &mut run,
        method,
        &format!("https://arm.test/{}", path.trim_start_matches('/')),
        Some("application/json"),
        body,
    );
}

const KINDS: [What; 13] = [
    What::Group,
    What::Vnet,
    What::Subnet,
    What::SecurityGroup,
    What::Balancer,
    What::Nic,
    What::Service,
    What::Connection,
    What::Endpoint,
    What::ZoneGroup,
    What::Zone,
    What::Link,
    What::Record,
];

/// A valid body of some type with some of it changed, or cut, or replaced; then what it led to.
pub fn body(data: &[u8]) {
    let mut input = Input(data);
    let (what, form) = (KINDS[usize::from(input.byte()) % KINDS.len()], input.byte());
    let mut step = [0; 9];
    step[2..8].fill_with(|| input.byte());
    let step = Step::from(step);
    let mut run = furnished();
    let mut sent = body::put(what, &step, &run.view);
    let text = match form % 4 {
        0 => Bytes::copy_from_slice(input.0),
        1 => Bytes::from(sent.to_string()).slice(..usize::from(input.byte()).min(sent.to_string().len())),
        _ => {
            mutate(&mut sent, &mut input);
            Bytes::from(sent.to_string())
        }
    };
    let method = ["PUT", "PUT", "PATCH", "POST"][usize::from(form >> 2) % 4];
    let content_type = if form & 0xc0 == 0xc0 {
        "text/plain"
    } else {
        "application/json; charset=utf-8"
    };
    let path = run.path(what, &step);
    let uri = format!("https://arm.test{path}?api-version=2024-06-01");
    try_request(&mut run, method, &uri, Some(content_type), text);
    try_request(&mut run, "GET", &uri, None, Bytes::new());
    run.now += SignedDuration::from_hours(1);
    hold(run.laws());
    try_request(&mut run, "DELETE", &uri, None, Bytes::new());
    run.now += SignedDuration::from_hours(1);
    hold(run.laws());
}

/// Seeds, fault rules, resources and the clock, as the control API takes them.
pub fn control(data: &[u8]) {
    let mut input = Input(data);
    let (form, raw) = (input.byte(), input.byte() % 4 == 0);
    let mut run = furnished();
    let mut json = |mut valid: Value| {
        if raw {
            return input.0.to_vec();
        }
        mutate(&mut valid, &mut input);
        valid.to_string().into_bytes()
    };
    match form % 4 {
        0 => {
            let Ok(seed) = Seed::parse(&json(laws_support::cloud::seed(Mode::default()))) else {
                return;
            };
            let _ = run.azure.seed(run.now, seed);
        }
        1 => {
            let valid = json!([{"match": {"method": "PUT", "path": "/subnets/", "from": 1, "times": 2}, "do": {
                "status": 409, "code": "C", "headers": {"x": "y"}, "body": {}, "drop": "after", "operation": "fail",
                "operation_error": {"code": "C", "message": "m"}, "poll_url": "https://x/", "page_loop": true, "content_length": 3}}]);
            let Ok(rules) = parse_faults(&json(valid)) else { return };
            run.azure.set_faults(rules);
        }
        2 => {
            let number = usize::from(input.byte()) % run.view.len();
            let (id, mut shown) = run
                .view
                .iter()
                .nth(number)
                .map(|(id, shown)| (id.clone(), shown.clone()))
                .unwrap();
            mutate(&mut shown, &mut input);
            let _ = run.azure.put_resource(run.now, &id, shown);
        }
        _ => {
            let change =
                serde_json::from_slice::<ClockChange>(&json(json!({"advance_s": 1e3, "freeze": true, "speed": 2.0})));
            let mut clock = Clock::default();
            if change.is_ok_and(|change| clock.apply(&change).is_ok()) {
                run.now = clock.now();
            }
        }
    }
    aftermath(run);
}

/// What must hold after any control call: the simulated Azure can be called, asked, saved and loaded.
fn aftermath(mut run: Run) {
    let subnet = format!(
        "/subscriptions/{}/resourceGroups/rg0/providers/Microsoft.Network/virtualNetworks/v0/subnets/s0",
        SUBSCRIPTIONS[0]
    );
    for method in ["PUT", "GET", "DELETE"] {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://arm.test{subnet}?api-version=2024-05-01"))
            .header("content-type", "application/json")
            .body(Bytes::from_static(
                b"{\"properties\":{\"addressPrefix\":\"10.0.0.0/24\"}}",
            ));
        let _ = run
            .azure
            .handle(run.now, &laws_support::cloud::caller(0), &request.unwrap());
        run.now = run.now.saturating_add(SignedDuration::from_hours(1)).unwrap_or(run.now);
    }
    let shown = run.azure.resources(run.now, "");
    let vnet = subnet.split("/subnets/").next().unwrap_or_default();
    let _ = run.azure.reachable(run.now, vnet, "a.z0.com");
    let mut loaded: SimulatedAzure = serde_json::from_str(&serde_json::to_string(&run.azure).unwrap()).unwrap();
    assert_eq!(loaded.resources(run.now, ""), shown);
}

/// Token requests: forms, credentials, assertions and the keys that these are checked with.
pub fn login(data: &[u8]) {
    use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
    let mut input = Input(data);
    let (raw, path) = (input.byte(), input.byte());
    let mut keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": "AAAA", "y": "AAAA"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}]});
    let mut claims = json!({"iss": "i", "sub": "s", "aud": "a", "exp": 4_000_000_000_u64, "nbf": 0, "iat": 0});
    let mut header = json!({"alg": if raw & 2 == 0 { "ES256" } else { "RS256" }, "kid": "k"});
    for part in [&mut keys, &mut claims, &mut header] {
        mutate(part, &mut input);
    }
    let tenants: Vec<Tenant> = serde_json::from_value(
        json!([{"id": "t", "principals": [{"client_id": "c", "object_id": "o", "secret": "s",
        "federated": [{"issuer": "i", "subject": "s", "audience": "a", "jwks": keys}]}]}]),
    )
    .unwrap();
    let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let assertion = match raw % 2 {
        0 => format!(
            "{}.{}.{}",
            part(header.to_string().as_bytes()),
            part(claims.to_string().as_bytes()),
            part(input.0)
        ),
        _ => String::from_utf8_lossy(input.0).into_owned(),
    };
    let assertion: String = assertion.chars().filter(|letter| !"&%+=".contains(*letter)).collect();
    let form = match raw & 4 {
        0 => format!(
            "grant_type=client_credentials&client_id=c&scope=https://management.azure.com/.default&client_assertion={assertion}\
             &client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        )
        .into_bytes(),
        _ => input.0.to_vec(),
    };
    let path = [
        "/t/oauth2/v2.0/token",
        "/t/discovery/v2.0/keys",
        "/x/v2.0/.well-known/openid-configuration",
    ][usize::from(path) % 3];
    let method = if path.ends_with("token") { "POST" } else { "GET" };
    let request = Request::builder()
        .method(method)
        .uri(format!("https://arm.test{path}"))
        .body(Bytes::from(form))
        .unwrap();
    let answer = armsim::login(&tenants, &request);
    assert!(answer.is_some_and(|answer| answer.status().as_u16() < 500));
}

/// Recordings, as `armsim replay` takes them: both recorders' forms, some of them changed, and any text.
pub fn cassette(data: &[u8]) {
    let mut input = Input(data);
    let form = input.byte();
    let zone = format!(
        "https://management.azure.com/subscriptions/{}/resourceGroups/rg/providers/Microsoft.Network/privateDnsZones/z.com?api-version=2024-06-01",
        SUBSCRIPTIONS[0]
    );
    let headers =
        json!({"Content-Type": ["application/json"], "Date": ["Mon, 05 Jan 2026 10:00:00 GMT"], "Etag": ["x"]});
    let mut recording = match form % 3 {
        0 => json!({"interactions": [
            {"request": {"method": "PUT", "url": zone, "headers": headers, "body": "{\"location\":\"global\"}"}, "response": {"code": 202, "headers": headers, "body": "{}"}},
            {"request": {"method": "GET", "url": zone, "headers": {}, "body": ""}, "response": {"code": 200, "headers": headers, "body": "{\"name\":\"z.com\"}"}},
        ]}),
        1 => json!({"interactions": [
            {"request": {"method": "GET", "uri": zone, "headers": headers, "body": null},
             "response": {"status": {"code": 404, "message": "Not Found"}, "headers": headers, "body": {"string": "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}"}}},
        ]}),
        _ => json!({"Entries": [
            {"RequestUri": zone, "RequestMethod": "DELETE", "RequestHeaders": {}, "RequestBody": "", "ResponseHeaders": headers, "ResponseBody": "", "StatusCode": 204},
        ]}),
    };
    let text = match form / 3 % 2 {
        0 => {
            mutate(&mut recording, &mut input);
            recording.to_string()
        }
        _ => String::from_utf8_lossy(input.0).into_owned(),
    };
    let _ = armsim::replay::replay("fuzzed", &text, &mut armsim::replay::Explained::default());
}

/// A sequence of calls, nine bytes each, after two that choose the mode.
pub fn sequence(data: &[u8]) {
    let mut input = Input(data);
    let mode = Mode::of([input.byte(), input.byte()]);
    let mut run = Run::new(Preset::Fast, mode);
    for bytes in input.0.as_chunks::<9>().0.iter().take(60) {
        hold(run.step(&Step::from(*bytes)));
    }
    hold(run.end());
}
