//! A certificate authority for one control plane, and what it signs.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_RSA_SHA256, SanType,
};

/// A certificate authority that nobody outside one test trusts.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    dir: PathBuf,
}

/// Files of a certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    /// Path of the certificate.
    pub certificate: PathBuf,
    /// Path of the private key (PKCS #8).
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority that writes into `dir`; its certificate becomes `dir/ca.pem`.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn new(dir: &Path) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "hyperlink test control plane");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key)?.pem();
        write(&dir.join("ca.pem"), &pem)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
            dir: dir.to_owned(),
        })
    }

    /// The authority's own certificate, as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Path of the authority's own certificate.
    pub fn file(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Signs a certificate for a server and client on the loopback address and under `names`.
    ///
    /// # Errors
    ///
    /// A name is not a DNS name, or a file cannot be written.
    pub fn sign(&self, common_name: &str, names: &[&str]) -> Result<KeyFiles> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        let files = KeyFiles {
            certificate: self.dir.join(format!("{common_name}.pem")),
            key: self.dir.join(format!("{common_name}.key")),
        };
        write(&files.certificate, &certificate.pem())?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }
}

/// Creates a key pair that signs tokens (RSA, as OpenShift's) and writes it as PKCS #8 and SubjectPublicKeyInfo, both
/// PEM.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_signing_key(private: &Path, public: &Path) -> Result<()> {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
    write(private, &key.serialize_pem())?;
    write(public, &key.public_key_pem())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
