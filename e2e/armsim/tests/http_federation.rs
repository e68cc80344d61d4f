//! Federated assertions over real sockets: a workload's token in place of a secret.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use aws_lc_rs::{
    encoding::AsDer as _,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64},
};
use http_support::*;
use rstest::rstest;
use serde_json::{Value, json};

const ISSUER: &str = "https://issuer.example/cluster";
const SUBJECT: &str = "system:serviceaccount:hypershift:operator";
const AUDIENCE: &str = "api://AzureADTokenExchange";

struct Issuer(EcdsaKeyPair);

impl Issuer {
    fn new() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn jwks(&self) -> Value {
        let point = self.0.public_key().as_ref();
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "one", "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..])}]})
    }

    fn sign(&self, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            BASE64.encode(json!({"alg": "ES256", "kid": "one"}).to_string()),
            BASE64.encode(claims.to_string())
        );
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

fn claims() -> Value {
    let now = jiff::Timestamp::now().as_second();
    json!({"iss": ISSUER, "sub": SUBJECT, "aud": [AUDIENCE], "exp": now + 600, "nbf": now - 5, "iat": now - 5})
}

async fn federated(keys: &Value) -> TestServer {
    let mut seed = small_seed();
    let principal = seed["tenants"][0]["principals"][0].as_object_mut().unwrap();
    principal.remove("secret");
    principal.insert(
        "federated".into(),
        json!([{"issuer": ISSUER, "subject": SUBJECT, "audience": AUDIENCE, "jwks": keys}]),
    );
    start_with(Default::default(), Some(seed)).await
}

async fn exchange(server: &TestServer, assertion: &str) -> (u16, Value) {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
        ("client_assertion", assertion),
        ("scope", ARM_SCOPE),
    ];
    server.token_request(TENANT, &form).await
}

#[tokio::test]
async fn assertion_of_the_seeded_subject_is_a_credential() {
    let issuer = Issuer::new();
    let server = federated(&issuer.jwks()).await;
    let (status, body) = exchange(&server, &issuer.sign(&claims())).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        server.get_group(body["access_token"].as_str().unwrap()).await.status(),
        200
    );
    let mut one_audience = claims();
    one_audience["aud"] = json!(AUDIENCE);
    assert_eq!(
        exchange(&server, &issuer.sign(&one_audience)).await.0,
        200,
        "an audience may be a string"
    );
}

#[rstest]
#[case::issuer("iss", json!("https://issuer.example/other"), 401, 700_211)]
#[case::subject("sub", json!("system:serviceaccount:hypershift:Operator"), 401, 700_213)]
#[case::audience("aud", json!(["api://other"]), 401, 700_212)]
#[case::expired("exp", json!(1_000_000_000), 401, 700_024)]
#[case::not_yet_valid("nbf", json!(32_000_000_000_u64), 401, 700_024)]
#[case::no_expiry("exp", Value::Null, 400, 50027)]
#[tokio::test]
async fn assertion_that_claims_otherwise_is_refused(
    #[case] claim: &str,
    #[case] value: Value,
    #[case] status: u16,
    #[case] code: u32,
) {
    let issuer = Issuer::new();
    let server = federated(&issuer.jwks()).await;
    let mut changed = claims();
    changed[claim] = value;
    let (got, body) = exchange(&server, &issuer.sign(&changed)).await;
    assert_eq!((got, &body["error_codes"]), (status, &json!([code])), "{body}");
}

#[tokio::test]
async fn assertion_of_another_key_or_with_changed_claims_is_refused() {
    let issuer = Issuer::new();
    let server = federated(&issuer.jwks()).await;
    let (status, body) = exchange(&server, &Issuer::new().sign(&claims())).await;
    assert_eq!((status, &body["error_codes"]), (401, &json!([700_027])), "{body}");
    let mut other = claims();
    other["sub"] = json!("somebody");
    let (good, bad) = (issuer.sign(&claims()), issuer.sign(&other));
    let grafted = [
        bad.split('.').next().unwrap(),
        good.split('.').nth(1).unwrap(),
        bad.split('.').nth(2).unwrap(),
    ]
    .join(".");
    assert_eq!(exchange(&server, &grafted).await.1["error_codes"], json!([700_027]));
    assert_eq!(exchange(&server, "garbage").await.1["error_codes"], json!([50027]));
}

#[tokio::test]
async fn assertion_with_a_trailing_newline_is_refused() {
    let issuer = Issuer::new();
    let server = federated(&issuer.jwks()).await;
    assert_eq!(
        exchange(&server, &format!("{}\n", issuer.sign(&claims()))).await.1["error_codes"],
        json!([50027])
    );
}

#[tokio::test]
async fn issuer_may_be_known_by_a_pem_key_and_sign_with_rsa() {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = pair.public_key().as_der().unwrap();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        BASE64_STANDARD.encode(der.as_ref())
    );
    let server = federated(&json!(pem)).await;
    let sign = |claims: &Value| {
        let parts = [json!({"alg": "RS256"}), claims.clone()].map(|part| BASE64.encode(part.to_string()));
        let signed = parts.join(".");
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        )
        .unwrap();
        format!("{signed}.{}", BASE64.encode(signature))
    };
    let (status, body) = exchange(&server, &sign(&claims())).await;
    assert_eq!(status, 200, "{body}");
    let mut other = claims();
    other["aud"] = json!("api://other");
    assert_eq!(
        exchange(&server, &sign(&other)).await.1["error_codes"],
        json!([700_212])
    );
    let mine = Issuer::new();
    assert_eq!(
        exchange(&server, &mine.sign(&claims())).await.1["error_codes"],
        json!([700_027])
    );
}

#[rstest]
#[case::no_type(None, 900_144)]
#[case::other_type(Some("urn:ietf:params:oauth:client-assertion-type:saml2-bearer"), 9_002_313)]
#[tokio::test]
async fn assertion_of_another_type_is_refused(#[case] kind: Option<&str>, #[case] code: u32) {
    let issuer = Issuer::new();
    let server = federated(&issuer.jwks()).await;
    let assertion = issuer.sign(&claims());
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        ("client_assertion", &assertion),
        ("scope", ARM_SCOPE),
    ];
    form.extend(kind.map(|kind| ("client_assertion_type", kind)));
    let (status, body) = server.token_request(TENANT, &form).await;
    assert_eq!((status, &body["error_codes"]), (400, &json!([code])), "{body}");
}
