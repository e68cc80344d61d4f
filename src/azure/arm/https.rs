//! The one HTTPS client for ARM and the authority. Sets time limits, proxy and trusted certificates; reads no
//! environment.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, NoProxy, Proxy};
use rustls::CertificateError;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// The settings of the client.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The roles that the process runs, for the user agent: `ho`, `cpo` or `ho,cpo`.
    pub role: String,
    /// PEM certificates to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// The proxy for https requests.
    pub proxy: ProxySettings,
    /// The limit for a connection with its TLS handshake.
    pub connect_timeout: Duration,
    /// The limit for a whole request, from connecting to the end of the answer.
    pub total_timeout: Duration,
}

/// The proxy for https requests. Requests by http (instance metadata, loopback) always go direct.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    /// As in `HTTPS_PROXY`; may hold a password.
    pub https_proxy: Option<SecretString>,
    /// As in `NO_PROXY`: names with their subdomains, addresses, networks, `*`; separated by commas.
    pub no_proxy: Option<String>,
}

/// Why no client can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpSettingsError {
    /// The CA file cannot be read, or holds no certificate.
    #[error("the CA file {} {why}", path.display())]
    CaFile {
        /// The path as it was configured.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The proxy's URL cannot be used. It is not shown, because it may hold a password.
    #[error("the https proxy is not an http or https URL")]
    Proxy,
    /// The client cannot be built. Mostly the system has no CA certificates and none are configured.
    #[error("no HTTPS client: {0}")]
    Client(String),
}

impl HttpSettings {
    /// The usual limits, the system's CAs, no proxy.
    pub fn new(role: &str) -> Self {
        Self {
            role: role.to_owned(),
            ca_file: None,
            proxy: ProxySettings::default(),
            connect_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(60),
        }
    }

    /// Builds the client. A process needs only one: it keeps the connections open.
    pub fn client(&self) -> Result<reqwest::Client, HttpSettingsError> {
        self.builder()?.build().map_err(|error| {
            let cause = error.source().map(ToString::to_string);
            HttpSettingsError::Client(cause.unwrap_or_else(|| "unusable settings".into()))
        })
    }

    /// A builder of the client.
    ///
    /// # Errors
    /// The CA file or the proxy cannot be used.
    pub fn builder(&self) -> Result<reqwest::ClientBuilder, HttpSettingsError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(format!("hyperlink/{} ({})", env!("CARGO_PKG_VERSION"), self.role))
            .tls_backend_rustls()
            .tls_certs_merge(self.certificates()?)
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .timeout(self.total_timeout)
            .pool_max_idle_per_host(4)
            .pool_idle_timeout(Duration::from_secs(60))
            // One HTTP/2 connection carries everything: a dead one must be noticed before each request on it has timed
            // out.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(10))
            .no_proxy();
        if let Some(proxy) = self.proxy.parse()? {
            builder = builder.proxy(proxy);
        }
        Ok(builder)
    }

    fn certificates(&self) -> Result<Vec<Certificate>, HttpSettingsError> {
        let Some(path) = &self.ca_file else {
            return Ok(Vec::new());
        };
        let pem = match std::fs::read(path) {
            Ok(pem) => pem,
            Err(error) => return Err(refused_file(path, format!("cannot be read: {}", error.kind()))),
        };
        match Certificate::from_pem_bundle(&pem) {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(refused_file(path, "holds no PEM certificate".into())),
        }
    }
}

impl ProxySettings {
    fn parse(&self) -> Result<Option<Proxy>, HttpSettingsError> {
        let given = self.https_proxy.as_ref().map(ExposeSecret::expose_secret);
        let Some(given) = given.filter(|given| !given.is_empty()) else {
            return Ok(None);
        };
        // `host:port` alone means http, as everywhere.
        let url = if given.contains("://") {
            Url::parse(given)
        } else {
            Url::parse(&format!("http://{given}"))
        };
        let url = url.ok().filter(is_usable_proxy).ok_or(HttpSettingsError::Proxy)?;
        let except = self.no_proxy.as_deref().unwrap_or_default();
        // To reqwest, `*` does not cover addresses.
        if except.split(',').any(|part| part.trim() == "*") {
            return Ok(None);
        }
        let proxy = Proxy::https(url).map_err(|_| HttpSettingsError::Proxy)?;
        Ok(Some(proxy.no_proxy(NoProxy::from_string(except))))
    }
}

fn refused_file(path: &Path, why: String) -> HttpSettingsError {
    HttpSettingsError::CaFile {
        path: path.to_owned(),
        why,
    }
}

fn is_usable_proxy(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// Why a request got no answer: a stable text without addresses.
pub(super) fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut cause = error.source();
    while let Some(current) = cause {
        let io = current.downcast_ref::<io::Error>();
        let known = current
            .downcast_ref::<rustls::Error>()
            .map(tls_cause)
            .or_else(|| connector_cause(&current.to_string()))
            .map(String::from)
            .or_else(|| io.and_then(io_cause));
        if let Some(known) = known {
            return known;
        }
        // An io::Error leaves out what it wraps when asked for its source.
        cause = match io.and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => current.source(),
        };
    }
    if error.is_connect() {
        "could not connect".into()
    } else {
        "the connection broke".into()
    }
}

/// The cause by hyper-util's text: it does not export these error types, but their texts are constants.
fn connector_cause(text: &str) -> Option<&'static str> {
    match text {
        "dns error" => Some("the host name cannot be resolved"),
        "tunnel error: unsuccessful" => Some("the proxy refused to connect"),
        "tunnel error: proxy authorization required" => Some("the proxy asks for credentials"),
        _ if text.starts_with("tunnel error") => Some("the proxy cannot be used"),
        _ => None,
    }
}

/// The cause of an I/O error, if the system names it: other errors have no stable text.
fn io_cause(error: &io::Error) -> Option<String> {
    let named = error.get_ref().is_none() && error.kind() != io::ErrorKind::Other;
    named.then(|| error.kind().to_string())
}

fn tls_cause(error: &rustls::Error) -> &'static str {
    use CertificateError as Certificate;
    let rustls::Error::InvalidCertificate(certificate) = error else {
        return "the TLS handshake failed";
    };
    match certificate {
        // A new CA under the name of an old one shows as a bad signature.
        Certificate::UnknownIssuer | Certificate::BadSignature => {
            "the server's certificate comes from an unknown authority"
        }
        Certificate::Expired | Certificate::ExpiredContext { .. } => "the server's certificate has expired",
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
            "the server's certificate is for another name"
        }
        _ => "the server's certificate is not acceptable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut HttpSettings)) -> HttpSettingsError {
        let mut settings = HttpSettings::new("ho");
        change(&mut settings);
        settings.client().unwrap_err()
    }

    #[rstest::rstest]
    #[case("socks5://user:hunter2@proxy:1080")]
    #[case("http://")]
    #[case("http://proxy:notaport")]
    fn unusable_proxy_is_refused_and_not_shown(#[case] proxy: &str) {
        let error = refused(|settings| settings.proxy.https_proxy = Some(proxy.into()));
        assert_eq!(error, HttpSettingsError::Proxy);
    }

    #[test]
    fn password_of_the_proxy_does_not_show_in_debug() {
        let mut settings = HttpSettings::new("ho");
        settings.proxy.https_proxy = Some("http://user:hunter2@proxy:3128".into());
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn ca_file_without_a_certificate_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = refused(|settings| settings.ca_file = Some(file.path().into()));
        assert!(error.to_string().ends_with("holds no PEM certificate"), "{error}");
        let error = refused(|settings| settings.ca_file = Some("/nowhere/ca.pem".into()));
        assert_eq!(
            error.to_string(),
            "the CA file /nowhere/ca.pem cannot be read: entity not found"
        );
    }
}
