//! A server with a small simulated Azure, and a client that calls it over real sockets.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

#[path = "../spec_support/mod.rs"]
pub mod spec_support;

use armsim::{Options, Server};
use reqwest::{Certificate, Client, Method, Response};
use serde_json::{Value, json};

pub const TENANT: &str = "11111111-1111-1111-1111-111111111111";
pub const CLIENT: &str = "22222222-2222-2222-2222-222222222222";
pub const SECRET: &str = "not-a-secret";
pub const SUBSCRIPTION: &str = "33333333-3333-3333-3333-333333333333";
pub const GROUP: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg";
pub const VNET: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet";
pub const ARM_SCOPE: &str = "https://management.core.windows.net//.default";

pub struct TestServer {
    pub armsim: Server,
    pub client: Client,
}

/// The seed of these tests: one tenant, one principal that may do everything, a resource group and a VNet.
pub fn small_seed() -> Value {
    json!({
        "tenants": [{"id": TENANT, "principals": [{"client_id": CLIENT, "object_id": "44444444-4444-4444-4444-444444444444", "secret": SECRET}]}],
        "subscriptions": [{"id": SUBSCRIPTION, "tenant": TENANT}],
        "roles": [{"object_id": "44444444-4444-4444-4444-444444444444", "scope": format!("/subscriptions/{SUBSCRIPTION}"), "actions": ["*"]}],
        "resources": [
            {"id": GROUP, "location": "westus2"},
            {"id": VNET, "location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
        ],
    })
}

pub async fn start_with(options: Options, seed: Option<Value>) -> TestServer {
    let armsim = Server::start(options).await.unwrap();
    armsim.with_azure(|azure, _| spec_support::check(azure));
    let ca = Certificate::from_pem(armsim.ca_pem.as_bytes()).unwrap();
    let client = Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
    let server = TestServer { armsim, client };
    if let Some(seed) = seed {
        let answer = server.control(Method::PUT, "/seed", Some(seed)).await;
        assert_eq!(answer, (200, json!({})));
    }
    server
}

pub async fn start() -> TestServer {
    start_with(Options::default(), Some(small_seed())).await
}

impl TestServer {
    /// Status and JSON of a control call.
    pub async fn control(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.armsim.control));
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        status_and_json(request.body(body).send().await.unwrap()).await
    }

    /// Status and JSON of a token request.
    pub async fn token_request(&self, tenant: &str, form: &[(&str, &str)]) -> (u16, Value) {
        let url = format!("{}/{tenant}/oauth2/v2.0/token", self.armsim.authority);
        status_and_json(self.client.post(url).form(form).send().await.unwrap()).await
    }

    /// A token for the seeded principal.
    pub async fn token(&self, scope: &str) -> String {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", CLIENT),
            ("client_secret", SECRET),
            ("scope", scope),
        ];
        let (status, body) = self.token_request(TENANT, &form).await;
        assert_eq!(status, 200, "{body}");
        body["access_token"].as_str().unwrap().to_owned()
    }

    /// An ARM call with a token.
    pub fn arm(&self, method: Method, path: &str, token: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.armsim.arm))
            .bearer_auth(token)
    }

    /// GET of the seeded resource group.
    pub async fn get_group(&self, token: &str) -> Response {
        self.arm(Method::GET, &format!("{GROUP}?api-version=2024-07-01"), token)
            .send()
            .await
            .unwrap()
    }

    /// PUT of a subnet that is not there yet.
    pub fn put_subnet(&self, name: &str, prefix: &str, token: &str) -> reqwest::RequestBuilder {
        let path = format!("{VNET}/subnets/{name}?api-version=2024-05-01");
        self.arm(Method::PUT, &path, token)
            .json(&json!({"properties": {"addressPrefix": prefix}}))
    }

    /// Whether the subnet exists, by the control API.
    pub async fn has_subnet(&self, name: &str) -> bool {
        let (status, list) = self
            .control(Method::GET, &format!("/resources?prefix={VNET}/subnets/{name}"), None)
            .await;
        assert_eq!(status, 200, "{list}");
        !list.as_array().unwrap().is_empty()
    }

    /// Puts one fault rule in force.
    pub async fn fault(&self, matches: Value, action: Value) {
        let answer = self
            .control(Method::PUT, "/faults", Some(json!([{"match": matches, "do": action}])))
            .await;
        assert_eq!(answer, (200, json!({})));
    }

    /// The journal's entries.
    pub async fn journal(&self, query: &str) -> Vec<Value> {
        let (status, list) = self.control(Method::GET, &format!("/journal{query}"), None).await;
        assert_eq!(status, 200, "{list}");
        list.as_array().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.armsim.with_azure(|azure, _| spec_support::kept(azure));
    }
}

pub async fn status_and_json(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")),
    )
}

/// A TLS connection of its own, for what no HTTP client would send.
pub async fn connect(server: &TestServer) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(server.armsim.ca_pem.as_bytes()).unwrap())
        .unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let address = server.armsim.arm.strip_prefix("https://").unwrap();
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    connector
        .connect(ServerName::try_from("localhost").unwrap(), socket)
        .await
        .unwrap()
}

/// The README's blocks in a language, in order, without their indentation.
pub fn readme_blocks(language: &str) -> Vec<String> {
    let unindented = |line: &'static str| line.strip_prefix("   ").unwrap_or(line);
    include_str!("../../README.md")
        .split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|block| block.lines().map(unindented).collect::<Vec<_>>().join("\n"))
        .collect()
}
