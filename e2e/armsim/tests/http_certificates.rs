//! Assertions that a client signs with the key of its certificate, over real sockets
//! (<https://learn.microsoft.com/entra/identity-platform/certificate-credentials>).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_support;

use aws_lc_rs::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest},
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64},
};
use http_support::*;
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd};
use rstest::rstest;
use serde_json::{Value, json};

struct Client {
    key: RsaKeyPair,
    der: Vec<u8>,
    pem: String,
}

impl Client {
    fn new() -> Self {
        Self::with(CertificateParams::default())
    }

    /// With a certificate that is valid in these years.
    fn valid(years: [i32; 2]) -> Self {
        let mut params = CertificateParams::default();
        [params.not_before, params.not_after] = years.map(|year| date_time_ymd(year, 1, 1));
        Self::with(params)
    }

    fn with(params: CertificateParams) -> Self {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            key: RsaKeyPair::from_pkcs8(&key.serialize_der()).unwrap(),
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
        }
    }

    /// The header as MSAL writes it: for Python and .NET, and for Go.
    fn header(&self, alg: &str) -> Value {
        let (one, other) = (digest(&SHA256, &self.der), digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.der));
        match alg {
            "PS256" => json!({"alg": alg, "x5t#S256": BASE64_STANDARD.encode(one)}),
            _ => json!({"alg": alg, "x5t": BASE64.encode(other)}),
        }
    }

    /// RS256 with the thumbprint that is not of SHA-1, in the alphabet of URLs.
    fn modern_header(&self) -> Value {
        json!({"alg": "RS256", "typ": "JWT", "x5t#S256": BASE64.encode(digest(&SHA256, &self.der))})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
        let padding: &dyn aws_lc_rs::signature::RsaEncoding = match header["alg"].as_str() {
            Some("PS256") => &RSA_PSS_SHA256,
            _ => &RSA_PKCS1_SHA256,
        };
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key
            .sign(padding, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .unwrap();
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

fn claims(server: &TestServer) -> Value {
    let now = jiff::Timestamp::now().as_second();
    let endpoint = format!("{}/{TENANT}/oauth2/v2.0/token", server.armsim.authority);
    json!({"iss": CLIENT, "sub": CLIENT, "aud": endpoint, "exp": now + 600, "nbf": now - 5, "jti": "one"})
}

async fn registered(client: &Client) -> TestServer {
    let mut seed = small_seed();
    let principal = seed["tenants"][0]["principals"][0].as_object_mut().unwrap();
    principal.remove("secret");
    principal.insert("certificates".into(), json!([client.pem]));
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

#[rstest]
#[case::of_python_and_net("RS256")]
#[case::of_go("PS256")]
#[tokio::test]
async fn registered_certificate_is_a_credential(#[case] alg: &str) {
    let client = Client::new();
    let server = registered(&client).await;
    let (status, answer) = exchange(&server, &client.sign(&client.header(alg), &claims(&server))).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn sha256_thumbprint_is_accepted_with_rs256() {
    let client = Client::new();
    let server = registered(&client).await;
    let (status, answer) = exchange(&server, &client.sign(&client.modern_header(), &claims(&server))).await;
    assert_eq!(status, 200, "{answer}");
}

#[rstest]
#[case::endpoint("/oauth2/v2.0/token")]
#[case::endpoint_of_version_1("/oauth2/token")]
#[case::issuer("/v2.0")]
#[case::authority("")]
#[case::authority_with_a_slash("/")]
#[tokio::test]
async fn audience_is_the_endpoint_or_the_authority(#[case] path: &str) {
    let client = Client::new();
    let server = registered(&client).await;
    let mut claims = claims(&server);
    claims["aud"] = json!(format!("{}/{TENANT}{path}", server.armsim.authority));
    let (status, answer) = exchange(&server, &client.sign(&client.modern_header(), &claims)).await;
    assert_eq!(status, 200, "{answer}");
}

#[rstest]
#[case::over([2000, 2001])]
#[case::yet_to_come([4000, 4001])]
#[tokio::test]
async fn certificate_outside_its_own_times_is_refused(#[case] years: [i32; 2]) {
    let client = Client::valid(years);
    let server = registered(&client).await;
    let (status, answer) = exchange(&server, &client.sign(&client.modern_header(), &claims(&server))).await;
    assert_eq!(
        (status, &answer["error_codes"][0]),
        (401, &json!(1_000_502)),
        "{answer}"
    );
}

#[tokio::test]
async fn assertion_without_an_id_is_refused() {
    let client = Client::new();
    let server = registered(&client).await;
    for id in [json!(null), json!("")] {
        let mut claims = claims(&server);
        claims["jti"] = id;
        let (status, answer) = exchange(&server, &client.sign(&client.modern_header(), &claims)).await;
        assert_eq!((status, &answer["error_codes"][0]), (400, &json!(50027)), "{answer}");
    }
}

#[tokio::test]
async fn every_registered_certificate_counts() {
    let (old, new) = (Client::new(), Client::new());
    let mut seed = small_seed();
    let key = KeyPair::generate().unwrap().serialize_pem();
    // The second as a client keeps it: with its key.
    seed["tenants"][0]["principals"][0]["certificates"] = json!([old.pem, format!("{key}{}", new.pem)]);
    let server = start_with(Default::default(), Some(seed)).await;
    for client in [&old, &new] {
        let (status, answer) = exchange(&server, &client.sign(&client.modern_header(), &claims(&server))).await;
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test]
async fn seed_with_an_unreadable_certificate_is_refused() {
    let server = start().await;
    for pem in ["PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let mut seed = small_seed();
        seed["tenants"][0]["principals"][0]["certificates"] = json!([pem]);
        let (status, answer) = server.control(reqwest::Method::PUT, "/seed", Some(seed)).await;
        assert_eq!(status, 400);
        assert!(answer["error"].as_str().unwrap().contains(CLIENT), "{answer}");
    }
}

#[rstest]
#[case::subject(json!({"sub": "another"}), 700_021)]
#[case::audience(json!({"aud": "https://another.example/token"}), 700_023)]
#[case::audience_of_another_tenant(json!({"aud": "https://localhost/other/oauth2/v2.0/token"}), 700_023)]
#[case::expired(json!({"exp": 1}), 700_024)]
#[case::not_yet(json!({"nbf": 4_000_000_000_u64}), 700_024)]
#[tokio::test]
async fn claim_that_does_not_match_is_refused(#[case] change: Value, #[case] code: u32) {
    let client = Client::new();
    let server = registered(&client).await;
    let mut claims = claims(&server);
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let (status, answer) = exchange(&server, &client.sign(&client.header("PS256"), &claims)).await;
    assert_eq!((status, &answer["error_codes"][0]), (401, &json!(code)));
}

#[tokio::test]
async fn signature_by_another_key_is_refused() {
    let (client, thief) = (Client::new(), Client::new());
    let server = registered(&client).await;
    for alg in ["RS256", "PS256"] {
        let unknown = thief.sign(&thief.header(alg), &claims(&server));
        let stolen = thief.sign(&client.header(alg), &claims(&server));
        for assertion in [unknown, stolen] {
            let (status, answer) = exchange(&server, &assertion).await;
            assert_eq!((status, &answer["error_codes"][0]), (401, &json!(700_027)));
        }
    }
}

#[tokio::test]
async fn header_without_a_thumbprint_is_refused() {
    let client = Client::new();
    let server = registered(&client).await;
    let (status, answer) = exchange(&server, &client.sign(&json!({"alg": "PS256"}), &claims(&server))).await;
    assert_eq!((status, &answer["error_codes"][0]), (401, &json!(700_027)));
}
