//! Bearer tokens over real sockets: who gets one, and which ones ARM accepts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http_support::*;
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

async fn refused(server: &TestServer, authorization: Option<&str>) -> (u16, String, String) {
    let mut request = server
        .client
        .get(format!("{}{GROUP}?api-version=2024-07-01", server.armsim.arm));
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    let response = request.send().await.unwrap();
    let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert_eq!(response.headers()["x-ms-failure-cause"], "gateway");
    for id in [
        "x-ms-request-id",
        "x-ms-correlation-request-id",
        "x-ms-routing-request-id",
    ] {
        assert!(!response.headers()[id].is_empty(), "{id}");
    }
    let (status, body) = status_and_json(response).await;
    (status, body["error"]["code"].as_str().unwrap().to_owned(), challenge)
}

#[tokio::test]
async fn good_token_opens_arm() {
    let server = start().await;
    for scope in [
        ARM_SCOPE,
        "https://management.azure.com/.default",
        &format!("{}/.default", server.armsim.arm),
        // As MSAL for Go asks.
        "https://management.azure.com//.default openid offline_access profile",
    ] {
        let token = server.token(scope).await;
        let response = server.get_group(&token).await;
        assert_eq!(response.status(), 200, "{scope}");
    }
    let principal = server.journal("").await[0]["principal"].clone();
    assert_eq!(principal, CLIENT);
}

#[tokio::test]
async fn bad_tokens_are_refused_with_a_challenge() {
    let server = start().await;
    let (status, code, challenge) = refused(&server, None).await;
    assert_eq!((status, code.as_str()), (401, "AuthenticationFailed"));
    assert!(
        challenge.starts_with("Bearer authorization_uri=\"https://127.0.0.1:")
            && challenge.contains(&format!("/{TENANT}\", error=\"invalid_token\"")),
        "{challenge}"
    );
    assert_eq!(
        refused(&server, Some("Basic abc")).await.1,
        "AuthenticationFailedInvalidHeader"
    );
    assert_eq!(
        refused(&server, Some("Bearer abc")).await.1,
        "InvalidAuthenticationToken"
    );
    let token = server.token(ARM_SCOPE).await;
    let parts: Vec<&str> = token.split('.').collect();
    let mut claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["appid"] = json!("somebody else");
    let forged = [parts[0], &BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2]].join(".");
    assert_eq!(
        refused(&server, Some(&format!("Bearer {forged}"))).await.1,
        "InvalidAuthenticationToken"
    );
    let statuses: Vec<Value> = server
        .journal("")
        .await
        .iter()
        .map(|call| call["status"].clone())
        .collect();
    assert_eq!(statuses, [401, 401, 401, 401], "refused calls are in the journal");
}

#[tokio::test]
async fn token_for_another_audience_is_refused() {
    let server = start().await;
    let token = server.token("https://vault.azure.net/.default").await;
    assert_eq!(
        refused(&server, Some(&format!("Bearer {token}"))).await.1,
        "InvalidAuthenticationTokenAudience"
    );
}

#[tokio::test]
async fn token_dies_in_real_time_even_when_the_clock_is_frozen() {
    let mut seed = small_seed();
    seed["switches"] = json!({"token_life_s": 2});
    let server = start_with(Default::default(), Some(seed)).await;
    server
        .control(Method::POST, "/clock", Some(json!({"freeze": true})))
        .await;
    let token = server.token(ARM_SCOPE).await;
    assert_eq!(server.get_group(&token).await.status(), 200);
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    while server.get_group(&token).await.status() == 200 {
        assert!(tokio::time::Instant::now() < end, "still accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        refused(&server, Some(&format!("Bearer {token}"))).await.1,
        "ExpiredAuthenticationToken"
    );
}

#[tokio::test]
async fn a_token_comes_with_its_lifetime() {
    for (switches, life_s) in [(json!({}), 3599), (json!({"token_life_s": 600}), 600)] {
        let mut seed = small_seed();
        seed["switches"] = switches;
        let server = start_with(Default::default(), Some(seed)).await;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", CLIENT),
            ("client_secret", SECRET),
            ("scope", ARM_SCOPE),
        ];
        let (status, answer) = server.token_request(TENANT, &form).await;
        assert_eq!((status, &answer["expires_in"]), (200, &json!(life_s)), "{answer}");
    }
}

#[tokio::test]
async fn simulated_time_does_not_age_tokens() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .control(Method::POST, "/clock", Some(json!({"advance_s": 86_400})))
        .await;
    assert_eq!(server.get_group(&token).await.status(), 200);
}

#[tokio::test]
async fn token_of_a_skewed_issuer_is_not_valid_yet() {
    let mut seed = small_seed();
    seed["switches"] = json!({"token_skew_s": 3600});
    let server = start_with(Default::default(), Some(seed)).await;
    let token = server.token(ARM_SCOPE).await;
    assert_eq!(
        refused(&server, Some(&format!("Bearer {token}"))).await.1,
        "InvalidAuthenticationToken"
    );
}

#[tokio::test]
async fn token_of_another_tenant_is_refused() {
    let mut seed = small_seed();
    let other = "99999999-9999-9999-9999-999999999999";
    seed["subscriptions"][0]["tenant"] = json!(other);
    seed["tenants"].as_array_mut().unwrap().push(json!({"id": other}));
    let server = start_with(Default::default(), Some(seed)).await;
    let (status, body) = status_and_json(server.get_group(&server.token(ARM_SCOPE).await).await).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (401, &json!("InvalidAuthenticationTokenTenant"))
    );
}

#[rstest]
#[case::wrong_secret(TENANT, [("client_secret", "wrong")], 401, "invalid_client", 7_000_215)]
#[case::no_credential(TENANT, [("client_secret", "")], 401, "invalid_client", 7_000_216)]
#[case::unknown_app(TENANT, [("client_id", "55555555-5555-5555-5555-555555555555")], 400, "unauthorized_client", 700_016)]
#[case::unknown_tenant("66666666-6666-6666-6666-666666666666", [("scope", ARM_SCOPE)], 400, "invalid_request", 90002)]
#[case::unknown_resource(TENANT, [("scope", "https://unknown.example/.default")], 400, "invalid_resource", 500_011)]
#[case::scope_without_default(TENANT, [("scope", "https://management.azure.com/user")], 400, "invalid_scope", 1_002_012)]
#[case::scope_without_resource(TENANT, [("scope", "openid profile")], 400, "invalid_scope", 1_002_012)]
#[case::two_resources(TENANT, [("scope", "https://management.azure.com/.default https://graph.microsoft.com/.default")], 400, "invalid_scope", 1_002_012)]
#[case::no_scope(TENANT, [("scope", "")], 400, "invalid_request", 900_144)]
#[case::tenant_of_no_one("common", [("scope", ARM_SCOPE)], 400, "invalid_request", 50059)]
#[case::other_grant(TENANT, [("grant_type", "password")], 400, "unsupported_grant_type", 70003)]
#[tokio::test]
async fn token_request_is_refused(
    #[case] tenant: &str,
    #[case] change: [(&str, &str); 1],
    #[case] status: u16,
    #[case] error: &str,
    #[case] code: u32,
) {
    let server = start().await;
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        ("client_secret", SECRET),
        ("scope", ARM_SCOPE),
    ];
    form.retain(|(key, _)| *key != change[0].0);
    form.extend(change.iter().filter(|(_, value)| !value.is_empty()));
    let (got, body) = server.token_request(tenant, &form).await;
    assert_eq!(
        (got, body["error"].as_str(), &body["error_codes"]),
        (status, Some(error), &json!([code])),
        "{body}"
    );
    assert!(
        body["error_description"]
            .as_str()
            .unwrap()
            .starts_with(&format!("AADSTS{code}: ")),
        "{body}"
    );
    assert!(
        server.journal("").await.is_empty(),
        "token calls are not in the journal"
    );
}

#[tokio::test]
async fn discovery_documents_lead_back_to_the_host_that_was_asked() {
    let server = start().await;
    let localhost = server.armsim.arm.replace("127.0.0.1", "localhost");
    for base in [&server.armsim.arm, &localhost] {
        let get =
            async |path: &str| status_and_json(server.client.get(format!("{base}{path}")).send().await.unwrap()).await;
        let (status, config) = get(&format!("/{TENANT}/v2.0/.well-known/openid-configuration")).await;
        assert_eq!(
            (status, config["token_endpoint"].as_str()),
            (200, Some(format!("{base}/{TENANT}/oauth2/v2.0/token").as_str()))
        );
        assert_eq!(config["issuer"], format!("{base}/{TENANT}/v2.0"));
        let (status, keys) = get(&format!("/{TENANT}/discovery/v2.0/keys")).await;
        assert_eq!((status, keys["keys"][0]["kty"].as_str()), (200, Some("RSA")));
        let (status, cloud) = get("/metadata/endpoints?api-version=2022-09-01").await;
        assert_eq!(
            (status, cloud["resourceManager"].as_str()),
            (200, Some(format!("{base}/").as_str()))
        );
        assert_eq!(cloud["authentication"]["loginEndpoint"], format!("{base}/"));
        assert!(
            cloud["authentication"]["audiences"]
                .as_array()
                .unwrap()
                .contains(&json!("https://management.core.windows.net/"))
        );
    }
    let unknown = format!(
        "{}/nobody/v2.0/.well-known/openid-configuration",
        server.armsim.authority
    );
    let (status, body) = status_and_json(server.client.get(unknown).send().await.unwrap()).await;
    assert_eq!((status, &body["error_codes"]), (400, &json!([90002])));
}

#[tokio::test]
async fn description_of_the_cloud_has_the_form_of_the_version() {
    let server = start().await;
    let get = async |version: &str| {
        let url = format!("{}/metadata/endpoints{version}", server.armsim.arm);
        status_and_json(server.client.get(url).send().await.unwrap()).await.1
    };
    let newest = get("?api-version=2022-09-01").await;
    assert_eq!(newest["name"], "armsim");
    assert_eq!(get("").await, newest);
    assert_eq!(get("?api-version=2019-05-01").await, json!([newest]));
    let oldest = get("?api-version=2015-01-01").await;
    assert_eq!(oldest["authentication"], newest["authentication"]);
    assert!(
        oldest["graphEndpoint"].is_string() && oldest["galleryEndpoint"].is_string(),
        "{oldest}"
    );
}

/// A server whose only principal has neither secret nor federated subject.
async fn with_system_identity() -> TestServer {
    let mut seed = small_seed();
    seed["tenants"][0]["principals"][0]
        .as_object_mut()
        .unwrap()
        .remove("secret");
    start_with(Default::default(), Some(seed)).await
}

impl Identity {
    fn request(&self, server: &TestServer) -> reqwest::RequestBuilder {
        let url = format!(
            "{}{}&resource=https%3A%2F%2Fmanagement.azure.com%2F",
            server.armsim.control, self.url
        );
        server.client.get(url).header(self.header, "true")
    }
}

struct Identity {
    url: &'static str,
    header: &'static str,
}

const APP_SERVICE: Identity = Identity {
    url: "/msi/token?api-version=2019-08-01",
    header: "X-IDENTITY-HEADER",
};
const MACHINE: Identity = Identity {
    url: "/metadata/identity/oauth2/token?api-version=2018-02-01",
    header: "Metadata",
};

#[rstest]
#[case::app_service(APP_SERVICE, 403, "/message")]
#[case::machine(MACHINE, 400, "/error_description")]
#[tokio::test]
async fn managed_identity_token_opens_arm(#[case] identity: Identity, #[case] refusal: u16, #[case] message: &str) {
    let server = with_system_identity().await;
    let (status, body) = status_and_json(identity.request(&server).send().await.unwrap()).await;
    assert_eq!(status, 200, "{body}");
    assert!(body["expires_on"].as_str().unwrap().parse::<i64>().unwrap() > jiff::Timestamp::now().as_second() + 3000);
    assert_eq!(body["client_id"], CLIENT);
    assert_eq!(
        server.get_group(body["access_token"].as_str().unwrap()).await.status(),
        200
    );
    let without_header = format!("{}{}", server.armsim.control, identity.url);
    let (status, body) = status_and_json(server.client.get(&without_header).send().await.unwrap()).await;
    assert_eq!(status, refusal, "without the header");
    assert!(body.pointer(message).is_some(), "{body}");
}

#[rstest]
#[case::app_service(APP_SERVICE, json!({"statusCode": 429, "message": "later"}))]
#[case::machine(MACHINE, json!({"error": "slow_down", "error_description": "later"}))]
#[tokio::test]
async fn managed_identity_obeys_fault_rules(#[case] identity: Identity, #[case] refusal: Value) {
    let server = with_system_identity().await;
    let rule = async |action: Value| {
        let matches = json!({"path": "^/(msi/token|metadata/identity/oauth2/token)$", "principal": CLIENT});
        server.fault(matches, action).await;
        identity.request(&server).send().await
    };
    let refused = rule(json!({"status": 429, "code": "slow_down", "message": "later"}))
        .await
        .unwrap();
    assert_eq!(status_and_json(refused).await, (429, refusal));
    assert!(rule(json!({"drop": "after"})).await.is_err());
    assert!(rule(json!({"cut_body_at": 9})).await.unwrap().bytes().await.is_err());
    let html = rule(json!({"status": 200, "body": "<html>"})).await.unwrap();
    assert_eq!(html.text().await.unwrap(), "<html>");
    assert_eq!(identity.request(&server).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn token_endpoint_obeys_fault_rules() {
    let server = start().await;
    server
        .fault(
            json!({"path": "/oauth2/v2.0/token$", "principal": CLIENT}),
            json!({"status": 503}),
        )
        .await;
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        ("client_secret", SECRET),
        ("scope", ARM_SCOPE),
    ];
    let url = format!("{}/{TENANT}/oauth2/v2.0/token", server.armsim.authority);
    assert_eq!(server.client.post(&url).form(&form).send().await.unwrap().status(), 503);
    assert_eq!(server.client.post(&url).form(&form).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn client_that_does_not_trust_the_ca_gets_nowhere() {
    let server = start().await;
    let other = start().await;
    assert!(
        other
            .client
            .get(format!("{}/metadata/endpoints", server.armsim.arm))
            .send()
            .await
            .is_err()
    );
}
