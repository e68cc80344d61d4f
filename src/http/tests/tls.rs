//! Metrics over TLS: which certificate is shown, and that nothing is answered without TLS.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::tls::{TlsInfo, Version};
use reqwest::{Client, ClientBuilder};

use super::*;

fn client() -> ClientBuilder {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder().no_proxy().tls_info(true)
}

/// A client that trusts this certificate alone.
fn trusting(der: &[u8]) -> ClientBuilder {
    client().tls_certs_only([reqwest::Certificate::from_der(der).unwrap()])
}

async fn status(client: ClientBuilder, url: &str, token: Option<&str>) -> u16 {
    let request = client.build().unwrap().get(url);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn nothing_is_answered_without_tls_or_without_a_token() {
    let (http_server, stop) = bind_with(false, Some(Certificate::self_signed().unwrap())).await;
    let port = http_server.metrics().unwrap().port();
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));
    let at = |page: &str| format!("https://localhost:{port}/{page}");

    let plain = format!("http://localhost:{port}/metrics");
    client().build().unwrap().get(plain).send().await.unwrap_err();

    let anybody = client().tls_danger_accept_invalid_certs(true).build().unwrap();
    let answer = anybody.get(at("metrics")).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let shown = answer.extensions().get::<TlsInfo>().unwrap();
    // A client that is given this certificate can trust it: its dates and its name fit.
    let shown = shown.peer_certificate().unwrap().to_owned();
    for version in [Version::TLS_1_2, Version::TLS_1_3] {
        let one = trusting(&shown).tls_version_min(version).tls_version_max(version);
        assert_eq!(status(one, &at("metrics"), None).await, 401, "{version:?}");
    }
    // No API server answers who may read.
    assert_eq!(status(trusting(&shown), &at("metrics"), Some("good")).await, 503);
    assert_eq!(status(trusting(&shown), &at("livez"), None).await, 200);
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_client_after_the_handshake_is_disconnected() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (path, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    std::fs::write(&path, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (http_server, stop) = bind_with(false, Some(Certificate::from_files(&path, &key).unwrap())).await;
    let address = http_server.metrics().unwrap();
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));

    let mut trusted = rustls::RootCertStore::empty();
    trusted.add(made.cert.der().clone()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(trusted).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = "localhost".try_into().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let mut idle = connector.connect(name, stream).await.unwrap();
    // No byte arrives, only the end.
    let end = tokio::time::timeout(CLIENT_TIMEOUT * 3, idle.read_u8()).await;
    end.expect("nobody hangs up").unwrap_err();
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn chain_to_the_authority_is_shown_with_the_certificate() {
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params, KeyPair::generate().unwrap())
    };
    let (root, root_key) = authority("root");
    let trusted = root.self_signed(&root_key).unwrap();
    let (between, between_key) = authority("between");
    let middle = between.signed_by(&between_key, &Issuer::new(root, root_key)).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(between, between_key)).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let (path, key_path) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    std::fs::write(&path, leaf.pem() + &middle.pem()).unwrap();
    std::fs::write(&key_path, key.serialize_pem()).unwrap();
    let certificate = Certificate::from_files(&path, &key_path).unwrap();
    let (http_server, stop) = bind_with(false, Some(certificate)).await;
    let url = format!("https://localhost:{}/livez", http_server.metrics().unwrap().port());
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));
    assert_eq!(status(trusting(trusted.der()), &url, None).await, 200);
    stop.cancel();
    server.await.unwrap().unwrap();
}
