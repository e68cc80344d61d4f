//! The test certificate authority and the server certificate for `127.0.0.1`, `localhost` and what else is asked for. Clients must trust the CA explicitly;
//! nothing here weakens a client's verification.

use std::{io::Write as _, net::IpAddr, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The test CA could not be made or read.
    #[error("test CA: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS refused the certificate.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A CA and the TLS settings of a server whose certificate it signed.
pub struct Tls {
    /// The CA's certificate, PEM.
    pub ca_pem: String,
    /// HTTP/1.1 only, aws-lc-rs only.
    pub server: Arc<ServerConfig>,
}

impl Tls {
    /// With a directory, writes `ca.pem` and `ca-key.pem` there and reuses them at the next start, so that clients that trust the CA
    /// survive a restart of the server. `name` is the common name of the server's certificate, and the start of the CA's.
    ///
    /// # Errors
    /// A directory that cannot be read or written, a key in it that is none.
    pub fn new(name: &str, dir: Option<&Path>, listen: IpAddr, more: &[String]) -> Result<Self, TlsError> {
        let key = match dir {
            Some(dir) => kept_key(&dir.join("ca-key.pem"))?,
            None => KeyPair::generate()?,
        };
        let params = ca_params(name);
        let ca_pem = match dir.map(|dir| dir.join("ca.pem")) {
            Some(path) if path.exists() => std::fs::read_to_string(path)?,
            Some(path) => {
                let pem = params.self_signed(&key)?.pem();
                std::fs::write(path, &pem)?;
                pem
            }
            None => params.self_signed(&key)?.pem(),
        };
        let server = server_config(name, &Issuer::new(params, key), listen, more)?;
        Ok(Self {
            ca_pem,
            server: Arc::new(server),
        })
    }
}

fn kept_key(path: &Path) -> Result<KeyPair, TlsError> {
    if path.exists() {
        return Ok(KeyPair::from_pem(&std::fs::read_to_string(path)?)?);
    }
    let key = KeyPair::generate()?;
    write_private(path, key.serialize_pem().as_bytes())?;
    // A CA certificate of an earlier key would not verify what this key signs.
    let stale = path.with_file_name("ca.pem");
    if stale.exists() {
        std::fs::remove_file(stale)?;
    }
    Ok(key)
}

/// Writes a file that only its owner may read.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = named(&format!("{name} test CA"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2049, 1, 1);
    params
}

fn server_config(
    name: &str,
    issuer: &Issuer<'_, KeyPair>,
    listen: IpAddr,
    more: &[String],
) -> Result<ServerConfig, TlsError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let listen = listen.to_string();
    if !names.contains(&listen) {
        names.push(listen);
    }
    names.extend_from_slice(more);
    let key = KeyPair::generate()?;
    let mut params = named(name);
    params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate: CertificateDer<'static> = params.signed_by(&key, issuer)?.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn ca_is_reused_from_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let first = Tls::new("sim", Some(dir.path()), loopback, &[]).unwrap().ca_pem;
        assert_eq!(Tls::new("sim", Some(dir.path()), loopback, &[]).unwrap().ca_pem, first);
        let mode = std::fs::metadata(dir.path().join("ca-key.pem"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(dir.path().join("ca-key.pem")).unwrap();
        assert_ne!(Tls::new("sim", Some(dir.path()), loopback, &[]).unwrap().ca_pem, first);
    }
}
