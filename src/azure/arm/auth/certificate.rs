//! The assertion by which the owner of a certificate proves who it is: a JWT, signed with the certificate's key.
//!
//! Source: <https://learn.microsoft.com/entra/identity-platform/certificate-credentials>. azure_identity's own credential
//! for certificates needs OpenSSL.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::Signer;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::arm::auth::AuthError;

/// How long an assertion is valid. Each request for a token has a new one.
const LIFE: Duration = Duration::from_secs(600);

/// An assertion of `client` for the token endpoint `audience`, signed with the key in `pem`.
///
/// # Errors
/// There is no certificate or no RSA key in `pem`.
pub(super) fn assertion(
    pem: &SecretString,
    client: &str,
    audience: &str,
    now: SystemTime,
) -> Result<SecretString, AuthError> {
    let (certificate, signer) = parsed(pem)?;
    let thumbprint = URL_SAFE_NO_PAD.encode(Sha256::digest(&certificate));
    let header = json!({"alg": "RS256", "typ": "JWT", "x5t#S256": thumbprint});
    let begin = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let claims = json!({"aud": audience, "iss": client, "sub": client, "jti": Uuid::new_v4().to_string(), "nbf": begin,
        "iat": begin, "exp": begin + LIFE.as_secs()});
    let text = format!("{}.{}", encoded(&header), encoded(&claims));
    let signature = signer
        .sign(text.as_bytes())
        .map_err(|_| unusable("a key that does not sign"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}

/// Whether a client can prove itself by what is in `pem`.
///
/// # Errors
/// There is no certificate or no RSA key in it.
pub fn check_certificate(pem: &SecretString) -> Result<(), AuthError> {
    parsed(pem).map(drop)
}

fn parsed(pem: &SecretString) -> Result<(CertificateDer<'static>, Box<dyn Signer>), AuthError> {
    let pem = pem.expose_secret().as_bytes();
    let certificate = CertificateDer::from_pem_slice(pem).map_err(|_| unusable("no certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| unusable("no private key without a password"))?;
    let key = any_supported_type(&key).map_err(|_| unusable("a key of an unknown type"))?;
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
    let signer = signer.ok_or_else(|| unusable("a key that is not of RSA"))?;
    Ok((certificate, signer))
}

fn encoded(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

fn unusable(has: &str) -> AuthError {
    AuthError::Misconfigured(format!(
        "the client certificate has {has}; give certificate and RSA key as PEM"
    ))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256};
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::alg_id;

    use super::*;

    const AUDIENCE: &str = "https://login.example/t/oauth2/v2.0/token";

    fn rsa() -> (String, KeyPair) {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
        (format!("{}{}", key.serialize_pem(), certificate.pem()), key)
    }

    fn decoded(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn assertion_is_signed_and_names_the_certificate() {
        let (pem, key) = rsa();
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let text = assertion(&pem.clone().into(), "client", AUDIENCE, now).unwrap();
        let parts: Vec<_> = text.expose_secret().split('.').collect();
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let thumbprint = URL_SAFE_NO_PAD.encode(Sha256::digest(&certificate));
        assert_eq!(
            decoded(parts[0]),
            json!({"alg": "RS256", "typ": "JWT", "x5t#S256": thumbprint})
        );
        let claims = decoded(parts[1]);
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("client"), &json!("client"), &json!(AUDIENCE))
        );
        assert_eq!((&claims["nbf"], &claims["exp"]), (&json!(1_000_000), &json!(1_000_600)));
        let algorithms = default_provider().signature_verification_algorithms;
        let verifier = algorithms.all.iter().find(|one| {
            one.signature_alg_id() == alg_id::RSA_PKCS1_SHA256 && one.public_key_alg_id() == alg_id::RSA_ENCRYPTION
        });
        let (signature, signed) = (
            URL_SAFE_NO_PAD.decode(parts[2]).unwrap(),
            format!("{}.{}", parts[0], parts[1]),
        );
        let public = key.public_key_raw();
        assert!(
            verifier
                .unwrap()
                .verify_signature(public, signed.as_bytes(), &signature)
                .is_ok()
        );
    }

    #[test]
    fn what_is_no_certificate_with_a_key_is_refused_unseen() {
        let (pem, _) = rsa();
        let half = pem.split("-----BEGIN CERTIFICATE").next().unwrap().to_owned();
        let elliptic = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(Vec::new())
            .unwrap()
            .self_signed(&elliptic)
            .unwrap();
        let other = format!("{}{}", elliptic.serialize_pem(), certificate.pem());
        assert!(check_certificate(&pem.into()).is_ok());
        for text in ["hunter2".to_owned(), half, certificate.pem(), other] {
            assert!(check_certificate(&text.clone().into()).is_err());
            let error = assertion(&text.into(), "c", AUDIENCE, UNIX_EPOCH)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("the client certificate has "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
