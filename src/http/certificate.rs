//! The certificate for metrics over TLS: from files, which are read again when they change, or self-signed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The time between two reads of the files of the metrics' certificate. A Secret's files are links that are replaced,
/// so their times say nothing.
const REREAD_INTERVAL: Duration = Duration::from_secs(5);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file is absent, or this process may not read it.
    #[error("{} cannot be read: {}", .0.display(), .1.kind())]
    Read(PathBuf, io::Error),
    /// A file is not valid PEM.
    #[error("{} is not PEM: {}", .0.display(), .1)]
    Pem(PathBuf, pem::Error),
    /// Certificate and key do not match, or are of a kind that is not supported.
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] rustls::Error),
    /// No certificate could be made.
    #[error("no certificate could be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// A certificate with its key. Clones share it, also after a change.
#[derive(Debug, Clone)]
pub struct Certificate {
    tls: Tls,
    files: Option<Files>,
}

/// The settings of TLS, which change with the certificate.
#[derive(Debug, Clone)]
struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    fn new(config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(RwLock::new(config)))
    }

    fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

#[derive(Debug, Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The contents of the files. They are compared as bytes, so that only a change is parsed.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Makes a certificate for this process alone. A client cannot tell it from another, and has to trust the network.
    ///
    /// # Errors
    ///
    /// The TLS provider cannot make a key.
    pub fn self_signed() -> Result<Self, CertificateError> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = config(vec![made.cert.into()], key)?;
        Ok(Self {
            tls: Tls::new(config),
            files: None,
        })
    }

    /// Reads PEM files for the first time: the certificate with the chain to its authority, and its private key.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let config = files.parse(&files.read()?)?;
        Ok(Self {
            tls: Tls::new(config),
            files: Some(files),
        })
    }

    /// What accepts a connection with the certificate as it is now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.tls.current().into()
    }

    /// Reads the files again and again. Contents that cannot be used change nothing. Never returns.
    pub(super) async fn follow(self) {
        let Some(files) = self.files else {
            return std::future::pending().await;
        };
        let mut loaded = None;
        let mut failure = None;
        loop {
            let reading = files.clone();
            let read = tokio::task::spawn_blocking(move || reading.read()).await;
            let read = read.unwrap_or_else(|lost| Err(CertificateError::Read(files.key.clone(), lost.into())));
            let reloaded = read.and_then(|read| files.load(read, &mut loaded, &self.tls));
            let failed = reloaded.err().map(|error| error.to_string());
            if failed != failure {
                match &failed {
                    Some(error) => {
                        tracing::warn!(error, "the certificate for metrics is no use, the last good one holds")
                    }
                    None => tracing::info!("the certificate for metrics is good again"),
                }
                failure = failed;
            }
            tokio::time::sleep(REREAD_INTERVAL).await;
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|error| CertificateError::Read(path.to_owned(), error))
}

impl Files {
    fn read(&self) -> Result<Contents, CertificateError> {
        Ok(Contents {
            certificate: read_file(&self.certificate)?,
            key: read_file(&self.key)?,
        })
    }

    fn parse(&self, read: &Contents) -> Result<Arc<ServerConfig>, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read.certificate).collect();
        let chain = chain.map_err(|error| CertificateError::Pem(self.certificate.clone(), error))?;
        let key = PrivateKeyDer::from_pem_slice(&read.key);
        let key = key.map_err(|error| CertificateError::Pem(self.key.clone(), error))?;
        config(chain, key)
    }

    /// Loads the contents, if they are new.
    fn load(&self, read: Contents, loaded: &mut Option<Contents>, tls: &Tls) -> Result<(), CertificateError> {
        if loaded.as_ref() != Some(&read) {
            tls.replace(self.parse(&read)?);
            *loaded = Some(read);
        }
        Ok(())
    }
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, CertificateError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes a new certificate and its key into files.
    fn write(dir: &Path) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (dir.join("tls.crt"), dir.join("tls.key"));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (certificate, key)
    }

    fn why(certificate: &Path, key: &Path) -> String {
        Certificate::from_files(certificate, key).unwrap_err().to_string()
    }

    #[test]
    fn files_that_are_no_certificate_are_refused_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = write(dir.path());
        Certificate::from_files(&certificate, &key).unwrap();
        let why_swapped = why(&key, &certificate);
        assert!(why_swapped.contains("tls.crt is not PEM"), "{why_swapped}");

        let other = tempfile::tempdir().unwrap();
        let (_, key_of_another) = write(other.path());
        let why_other = why(&certificate, &key_of_another);
        assert!(why_other.starts_with("the certificate cannot be used: "), "{why_other}");

        let nowhere = dir.path().join("nowhere");
        let why_missing = why(&certificate, &nowhere);
        assert!(
            why_missing.ends_with("nowhere cannot be read: entity not found"),
            "{why_missing}"
        );
    }

    #[test]
    fn new_files_are_loaded_and_damaged_ones_leave_the_last_good() {
        let dir = tempfile::tempdir().unwrap();
        let (path, key) = write(dir.path());
        let certificate = Certificate::from_files(&path, &key).unwrap();
        let files = certificate.files.clone().unwrap();
        let mut loaded = None;
        let mut reload = || {
            files
                .read()
                .and_then(|read| files.load(read, &mut loaded, &certificate.tls))
        };
        reload().unwrap();
        let first = certificate.tls.current();
        reload().unwrap();
        assert!(Arc::ptr_eq(&first, &certificate.tls.current()));

        // The key comes after the certificate: for a moment they do not go together.
        let other = tempfile::tempdir().unwrap();
        let (new, new_key) = write(other.path());
        fs::copy(&new, &path).unwrap();
        for _ in 0..2 {
            reload().unwrap_err();
            assert!(Arc::ptr_eq(&first, &certificate.tls.current()));
        }
        fs::copy(&new_key, &key).unwrap();
        reload().unwrap();
        let second = certificate.tls.current();
        assert!(!Arc::ptr_eq(&first, &second));

        write(dir.path());
        fs::copy(&new, &path).unwrap();
        reload().unwrap_err();
        fs::remove_file(&key).unwrap();
        reload().unwrap_err();
        assert!(Arc::ptr_eq(&second, &certificate.tls.current()));
    }

    #[test]
    fn self_signed_certificate_needs_no_files() {
        assert!(Certificate::self_signed().unwrap().files.is_none());
    }
}
