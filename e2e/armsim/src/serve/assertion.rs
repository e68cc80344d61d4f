//! Client assertions: tokens that a client signs, or that somebody else signs for it, in place of a secret. Pure.

use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use serde::Deserialize;
use webpki::{EndEntityCert, KeyUsage};

use super::entra::EntraError;
use super::jwt::{Jwt, JwtError};
use crate::{Federated, Principal};

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMany,
    exp: f64,
    nbf: Option<f64>,
    jti: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn contains(&self, expected: &str) -> bool {
        match self {
            Self::One(one) => one == expected,
            Self::Many(many) => many.iter().any(|one| one == expected),
        }
    }

    fn joined(&self) -> String {
        match self {
            Self::One(one) => one.clone(),
            Self::Many(many) => many.join(", "),
        }
    }
}

/// Whether an assertion proves the principal: by a certificate where it names the client as its own issuer, else as a
/// federated identity. `endpoints` are the audiences of assertions by certificate.
pub(super) fn proves(
    assertion: &str,
    principal: &Principal,
    endpoints: &[String],
    real: Timestamp,
) -> Result<(), EntraError> {
    let jwt = Jwt::parse(assertion).map_err(|_| malformed())?;
    let claims: Claims = jwt.claims().map_err(|_| malformed())?;
    if claims.iss.eq_ignore_ascii_case(&principal.client_id) {
        by_certificate(&jwt, &claims, principal, endpoints, real)
    } else {
        federated(&jwt, &claims, &principal.federated, real)
    }
}

fn malformed() -> EntraError {
    EntraError::request(50027, "The client assertion is not a valid JSON Web Token.")
}

/// Subject, audience, times and id, then the certificate by its thumbprint, its own times, and the signature
/// (<https://learn.microsoft.com/entra/identity-platform/certificate-credentials>).
fn by_certificate(
    jwt: &Jwt<'_>,
    claims: &Claims,
    principal: &Principal,
    endpoints: &[String],
    real: Timestamp,
) -> Result<(), EntraError> {
    if !claims.sub.eq_ignore_ascii_case(&principal.client_id) {
        let message = "Client assertion application identifier doesn't match 'client_id' parameter.";
        return Err(EntraError::client(700_021, message));
    }
    if !endpoints.iter().any(|endpoint| claims.aud.contains(endpoint)) {
        let message = "Client assertion audience claim does not match Realm issuer.";
        return Err(EntraError::client(700_023, message));
    }
    in_time(claims, real)?;
    if claims.jti.as_ref().is_none_or(String::is_empty) {
        return Err(malformed());
    }
    let Some(certificate) = principal.certificates().find(|der| jwt.is_signed_by(der)) else {
        let message = format!(
            "The certificate with identifier used to sign the client assertion is not registered on application. [Reason - The key was not found., Please visit the Azure Portal, Graph Explorer or directly use MS Graph to see configured keys for app Id '{}'.]",
            principal.client_id
        );
        return Err(EntraError::client(700_027, message));
    };
    if !is_valid(&certificate, real) {
        let message = "The provided certificate is not within its specified validity window.";
        return Err(EntraError::client(1_000_502, message));
    }
    jwt.verify_by_certificate(&certificate)
        .map_err(|error| unsigned(&error))
}

/// Whether a certificate's own times hold. Nobody has to vouch for it: it is registered itself.
fn is_valid(certificate: &CertificateDer<'_>, real: Timestamp) -> bool {
    let seconds = u64::try_from(real.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let Ok(certificate) = EndEntityCert::try_from(certificate) else {
        return false;
    };
    let verified = certificate.verify_for_usage(&[], &[], &[], now, KeyUsage::client_auth(), None, None);
    !matches!(
        verified,
        Err(webpki::Error::CertExpired { .. } | webpki::Error::CertNotValidYet { .. })
    )
}

/// Issuer, subject and audience compare case-sensitively, in this order; then the times, then the signature.
fn federated(jwt: &Jwt<'_>, claims: &Claims, identities: &[Federated], real: Timestamp) -> Result<(), EntraError> {
    let no_match = |code, what: &str, value: &str| {
        Err(EntraError::client(
            code,
            format!("No matching federated identity record found for presented assertion {what} '{value}'."),
        ))
    };
    let by_issuer: Vec<_> = identities
        .iter()
        .filter(|identity| identity.issuer == claims.iss)
        .collect();
    if by_issuer.is_empty() {
        return no_match(700_211, "issuer", &claims.iss);
    }
    let by_subject: Vec<_> = by_issuer
        .into_iter()
        .filter(|identity| identity.subject == claims.sub)
        .collect();
    if by_subject.is_empty() {
        return no_match(700_213, "subject", &claims.sub);
    }
    let Some(identity) = by_subject
        .iter()
        .find(|identity| claims.aud.contains(&identity.audience))
    else {
        return no_match(700_212, "audience", &claims.aud.joined());
    };
    in_time(claims, real)?;
    jwt.verify(&identity.jwks).map_err(|error| unsigned(&error))
}

fn in_time(claims: &Claims, real: Timestamp) -> Result<(), EntraError> {
    #[allow(
        clippy::cast_precision_loss,
        reason = "Unix seconds fit a double for the next hundred million years"
    )]
    let now = real.as_second() as f64;
    if claims.exp <= now || claims.nbf.is_some_and(|nbf| nbf > now + 300.0) {
        let message = format!("Client assertion is not within its valid time range. Current time: {real}.");
        return Err(EntraError::client(700_024, message));
    }
    Ok(())
}

fn unsigned(error: &JwtError) -> EntraError {
    EntraError::client(
        700_027,
        format!("Client assertion failed signature validation: {error}."),
    )
}
