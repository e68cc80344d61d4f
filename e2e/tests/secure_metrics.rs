//! Metrics beyond loopback, with a real API server: served by TLS, and only to accounts that it allows to read them.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pki::Authority;
use e2e::{TestEnv, eventually, roles, scenario};
use reqwest::Certificate;

const SOON: Duration = Duration::from_secs(60);

/// The certificate files that the process uses; a test replaces them by those of another authority.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    /// Writes a certificate of a new authority into a new directory; also returns a client that trusts only that
    /// authority.
    fn new() -> Result<(Self, reqwest::Client)> {
        let files = Self {
            dir: tempfile::tempdir()?,
        };
        let client = files.replace()?;
        Ok((files, client))
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_string_lossy().into_owned()
    }

    /// Replaces the certificate by one of a new authority; returns a client that trusts only that authority.
    fn replace(&self) -> Result<reqwest::Client> {
        let dir = tempfile::tempdir()?;
        let authority = Authority::new(dir.path())?;
        let signed = authority.sign("metrics", &["localhost"])?;
        std::fs::copy(signed.certificate, self.path("tls.crt"))?;
        std::fs::copy(signed.key, self.path("tls.key"))?;
        let trusted = Certificate::from_pem(authority.pem().as_bytes())?;
        // Each scrape opens a new connection, and so gets the current certificate.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0);
        Ok(client.tls_certs_only([trusted]).build()?)
    }
}

async fn scrape(hyperlink: &Hyperlink, client: &reqwest::Client, token: Option<&str>) -> Result<(u16, String)> {
    let request = client.get(format!("https://{}/metrics", hyperlink.metrics_address()));
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = request.send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

async fn is_refused(
    hyperlink: &Hyperlink,
    client: &reqwest::Client,
    token: Option<&str>,
    status: u16,
    why: &str,
) -> Result<()> {
    let (observed, text) = scrape(hyperlink, client, token).await?;
    ensure!(
        observed == status && text.contains(why),
        "{observed} {text}, not {status} {why}"
    );
    Ok(())
}

#[test]
fn secure_metrics_are_for_those_whom_the_api_server_allows() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let control_plane = test_env.control_plane();
        let (files, client) = Files::new()?;
        let (certificate, key) = (files.path("tls.crt"), files.path("tls.key"));
        let flags = [
            ("metrics-secure", "true"),
            ("metrics-cert-file", &certificate),
            ("metrics-key-file", &key),
            ("probe-bind", "127.0.0.1:0"),
        ];
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &flags).await?;
        let reader = roles::metrics_reader(control_plane, "prometheus").await?;

        // The rights of the process itself are missing: every scrape is refused, and the probes still work.
        is_refused(&cpo, &client, Some(&reader), 503, "does not say who may read metrics").await?;
        cpo.ready(SOON).await?;
        roles::install_metrics(control_plane, "cpo").await?;
        eventually("the reader may read", SOON, || async {
            let (status, text) = scrape(&cpo, &client, Some(&reader)).await?;
            ensure!(
                status == 200 && text.contains("hyperlink_build_info"),
                "{status} {text}"
            );
            Ok(())
        })
        .await?;

        control_plane.service_account(roles::NAMESPACE, "somebody").await?;
        let somebody = control_plane.token(roles::NAMESPACE, "somebody", None).await?;
        let elsewhere = control_plane
            .token(roles::NAMESPACE, "prometheus", Some("elsewhere"))
            .await?;
        is_refused(&cpo, &client, None, 401, "a bearer token is needed").await?;
        is_refused(&cpo, &client, Some("forged"), 401, "a bearer token is needed").await?;
        is_refused(&cpo, &client, Some(&elsewhere), 401, "a bearer token is needed").await?;
        is_refused(&cpo, &client, Some(&somebody), 403, "get /metrics is not allowed").await?;

        // Plain HTTP is not answered, a client does not trust just any certificate, and the probes keep their own port.
        ensure!(cpo.page("/metrics").await.is_err(), "plain HTTP is answered");
        let (_, stranger) = Files::new()?;
        ensure!(
            scrape(&cpo, &stranger, Some(&reader)).await.is_err(),
            "any certificate is trusted"
        );
        ensure!(cpo.page("/livez").await?.0 == 200 && cpo.page("/readyz").await?.0 == 200);

        let renewed = files.replace()?;
        eventually("the new certificate is shown", SOON, || async {
            let (status, _) = scrape(&cpo, &renewed, Some(&reader)).await?;
            ensure!(status == 200, "{status}");
            Ok(())
        })
        .await?;
        ensure!(
            scrape(&cpo, &client, Some(&reader)).await.is_err(),
            "the old certificate is still shown"
        );
        cpo.stop().await
    });
}
