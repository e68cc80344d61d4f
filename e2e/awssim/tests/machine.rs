//! The machine's metadata service: a token first, then the session of the machine's role.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use awssim::{Options, Seed, Server};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use support::*;

const MACHINE_ROLE: &str = "arn:aws:iam::222222222222:role/machines/worker";
const TOKEN: &str = "/latest/api/token";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
const CREDENTIALS: &str = "/latest/meta-data/iam/security-credentials/worker";

/// A seed whose machine has a role, which may do one thing: assume another one.
fn with_machine(seed: &mut Value) {
    let assume = json!([{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]);
    let roles = seed["accounts"][1]["roles"].as_array_mut().unwrap();
    roles[0]["trusted"] = json!([MACHINE_ROLE]);
    roles.push(json!({"name": "worker", "path": "/machines/", "policies": [{"Statement": assume}]}));
    seed["machine_role"] = json!(MACHINE_ROLE);
}

/// The status and body of an answer to a request with at most one header.
fn ask(aws: &mut TestAws, method: Method, path: &str, header: Option<(&'static str, &str)>) -> (u16, String) {
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        headers.insert(name, value.parse().unwrap());
    }
    let answer = aws.aws.machine_metadata(aws.now, (&method, path), &headers);
    let body = String::from_utf8(answer.body().to_vec()).unwrap();
    (answer.status().as_u16(), body)
}

fn token(aws: &mut TestAws, seconds: &str) -> (u16, String) {
    let header = ("x-aws-ec2-metadata-token-ttl-seconds", seconds);
    ask(aws, Method::PUT, TOKEN, Some(header))
}

fn get(aws: &mut TestAws, path: &str, token: &str) -> (u16, String) {
    ask(aws, Method::GET, path, Some(("x-aws-ec2-metadata-token", token)))
}

/// The keys of the machine's session.
fn machine(aws: &mut TestAws) -> Keys {
    let (_, token) = token(aws, "300");
    let (status, body) = get(aws, CREDENTIALS, &token);
    assert_eq!(status, 200);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["Code"], &body["Type"]), (&json!("Success"), &json!("AWS-HMAC")));
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    Keys {
        id: text("AccessKeyId"),
        secret: text("SecretAccessKey"),
        token: Some(text("Token")),
    }
}

#[test]
fn session_of_the_machine_assumes_the_role_that_trusts_it() {
    let mut aws = TestAws::with(with_machine);
    let keys = machine(&mut aws);
    let identity = aws.call(&keys, "sts", "GetCallerIdentity", &[]).ok();
    let arn = "arn:aws:sts::222222222222:assumed-role/worker/i-0123456789abcdef0";
    assert_eq!(identity.value("Arn"), arn);
    assert_eq!(aws.ec2(&keys, "DescribeVpcs", &[]).code(), "UnauthorizedOperation");
    let role = [
        ("RoleArn", "arn:aws:iam::222222222222:role/a/b/cpo"),
        ("RoleSessionName", "one"),
    ];
    aws.call(&keys, "sts", "AssumeRole", &role).ok();
    assert_eq!(aws.call(&consumer(), "sts", "AssumeRole", &role).code(), "AccessDenied");
}

#[test]
fn metadata_is_given_to_a_valid_token_alone() {
    let mut aws = TestAws::with(with_machine);
    assert_eq!(ask(&mut aws, Method::GET, ROLES, None).0, 401, "version 1");
    assert_eq!(get(&mut aws, ROLES, "guessed").0, 401);
    assert_eq!(ask(&mut aws, Method::PUT, TOKEN, None).0, 400, "without a life");
    for life in ["0", "21601", "long"] {
        assert_eq!(token(&mut aws, life).0, 400, "{life}");
    }
    assert_eq!(ask(&mut aws, Method::GET, TOKEN, None).0, 405);
    let (_, token) = token(&mut aws, "60");
    assert_eq!(get(&mut aws, ROLES, &token), (200, "worker".to_owned()));
    assert_eq!(get(&mut aws, &format!("{ROLES}other"), &token).0, 404);
    assert_eq!(get(&mut aws, "/latest/user-data", &token).0, 404);
    aws.advance(60.0);
    assert_eq!(get(&mut aws, ROLES, &token).0, 401, "its life is over");
}

#[test]
fn session_of_the_machine_is_the_same_until_shortly_before_its_end() {
    let mut aws = TestAws::with(with_machine);
    let first = machine(&mut aws).id;
    aws.advance(21_299.0);
    assert_eq!(machine(&mut aws).id, first);
    aws.advance(1.0);
    let second = machine(&mut aws);
    assert_ne!(second.id, first);
    aws.advance(301.0);
    aws.call(&second, "sts", "GetCallerIdentity", &[]).ok();
}

#[test]
fn machine_without_a_role_has_no_session() {
    let mut aws = TestAws::default();
    let (_, token) = token(&mut aws, "300");
    assert_eq!(get(&mut aws, ROLES, &token).0, 404);
    let mut seed = seed();
    seed["machine_role"] = json!(MACHINE_ROLE);
    let seed = Seed::parse(seed.to_string().as_bytes()).unwrap();
    let refused = aws.aws.seed(aws.now, seed).unwrap_err().to_string();
    assert!(refused.contains("no account has this role"), "{refused}");
}

#[tokio::test]
async fn metadata_is_at_the_control_address() {
    let server = Server::start(Options::default()).await.unwrap();
    let mut seed = seed();
    with_machine(&mut seed);
    let seed = Seed::parse(seed.to_string().as_bytes()).unwrap();
    server.with_aws(|aws, now| aws.seed(now, seed)).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = |path: &str| format!("{}{path}", server.control);
    let refused = client.get(url(ROLES)).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let asked = client
        .put(url(TOKEN))
        .header("x-aws-ec2-metadata-token-ttl-seconds", "300");
    let token = asked.send().await.unwrap().text().await.unwrap();
    let asked = client.get(url(ROLES)).header("x-aws-ec2-metadata-token", token);
    assert_eq!(asked.send().await.unwrap().text().await.unwrap(), "worker");
}
