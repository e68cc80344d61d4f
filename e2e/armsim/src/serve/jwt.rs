//! Compact JSON Web Signatures: parts, RS256 and ES256 verification against a JWKS or a PEM public key,
//! RS256 and PS256 against a certificate, RS256 signing.
//! Decides whether a signature is right; what the claims must say is for the callers.

use aws_lc_rs::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest},
    encoding::AsDer as _,
    rand::SystemRandom,
    rsa::{KeySize, PublicKeyComponents},
    signature::{
        ECDSA_P256_SHA256_FIXED, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RSA_PSS_2048_8192_SHA256,
        RsaKeyPair, UnparsedPublicKey,
    },
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use webpki::EndEntityCert;

/// Why a token is not what it claims to be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum JwtError {
    /// Not three base64url parts with JSON in the first two.
    #[error("not a JSON Web Token")]
    Malformed,
    /// None that the kind of key takes.
    #[error("unsupported algorithm")]
    Algorithm,
    /// No key of the set verifies it.
    #[error("signature does not verify")]
    Signature,
}

/// A token in its parts, not verified.
pub(crate) struct Jwt<'a> {
    header: Header,
    signed: &'a [u8],
    signature: Vec<u8>,
    payload: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    x5t: Option<String>,
    #[serde(rename = "x5t#S256")]
    x5t_s256: Option<String>,
}

impl<'a> Jwt<'a> {
    pub(crate) fn parse(token: &'a str) -> Result<Self, JwtError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwtError::Malformed)?;
        let header = serde_json::from_slice(&decode(header)?).map_err(|_| JwtError::Malformed)?;
        Ok(Self {
            header,
            signed: signed.as_bytes(),
            signature: decode(signature)?,
            payload: decode(payload)?,
        })
    }

    /// The claims as the token has them, whether or not the signature holds.
    pub(crate) fn claims<T: DeserializeOwned>(&self) -> Result<T, JwtError> {
        serde_json::from_slice(&self.payload).map_err(|_| JwtError::Malformed)
    }

    /// Verifies the signature with a JWKS (`{"keys":[…]}`), one JWK, or a PEM public key. Keys with another `kid` than the token's do not count.
    pub(crate) fn verify(&self, keys: &Value) -> Result<(), JwtError> {
        if !matches!(self.header.alg.as_str(), "RS256" | "ES256") {
            return Err(JwtError::Algorithm);
        }
        let verified = match keys {
            Value::String(pem) => pem_der(pem).is_some_and(|der| self.verify_bytes(&der)),
            Value::Object(set) => match set.get("keys") {
                Some(Value::Array(keys)) => keys.iter().any(|key| self.verify_jwk(key)),
                _ => self.verify_jwk(keys),
            },
            _ => false,
        };
        if verified { Ok(()) } else { Err(JwtError::Signature) }
    }

    /// Whether the header names this certificate (DER) by its thumbprint. MSAL for Go writes it in the alphabet with `+`
    /// and `/`.
    pub(crate) fn is_signed_by(&self, certificate: &[u8]) -> bool {
        let named = |print: &Option<String>, algorithm| {
            let print = print
                .as_ref()
                .map(|print| print.trim_end_matches('=').replace('+', "-").replace('/', "_"));
            let own = digest(algorithm, certificate);
            print.is_some_and(|print| print == BASE64_URL_SAFE_NO_PAD.encode(own.as_ref()))
        };
        named(&self.header.x5t_s256, &SHA256) || named(&self.header.x5t, &SHA1_FOR_LEGACY_USE_ONLY)
    }

    /// Verifies the signature with the RSA key of a certificate (DER).
    pub(crate) fn verify_by_certificate(&self, certificate: &CertificateDer<'_>) -> Result<(), JwtError> {
        let algorithm = match self.header.alg.as_str() {
            "PS256" => &RSA_PSS_2048_8192_SHA256,
            "RS256" => &RSA_PKCS1_2048_8192_SHA256,
            _ => return Err(JwtError::Algorithm),
        };
        let certificate = EndEntityCert::try_from(certificate).map_err(|_| JwtError::Signature)?;
        UnparsedPublicKey::new(algorithm, certificate.subject_public_key_info())
            .verify(self.signed, &self.signature)
            .map_err(|_| JwtError::Signature)
    }

    fn verify_jwk(&self, key: &Value) -> bool {
        if let (Some(token_kid), Some(kid)) = (&self.header.kid, text(key, "kid"))
            && token_kid != kid
        {
            return false;
        }
        let part = |name| text(key, name).and_then(|value| decode(value.trim_end_matches('=')).ok());
        match (self.header.alg.as_str(), text(key, "kty")) {
            ("RS256", Some("RSA")) => {
                let (Some(n), Some(e)) = (part("n"), part("e")) else {
                    return false;
                };
                PublicKeyComponents {
                    n: unpadded(&n),
                    e: unpadded(&e),
                }
                .verify(&RSA_PKCS1_2048_8192_SHA256, self.signed, &self.signature)
                .is_ok()
            }
            ("ES256", Some("EC")) if text(key, "crv") == Some("P-256") => {
                let (Some(x), Some(y)) = (part("x"), part("y")) else {
                    return false;
                };
                self.verify_bytes(&[&[4], x.as_slice(), &y].concat())
            }
            _ => false,
        }
    }

    fn verify_bytes(&self, key: &[u8]) -> bool {
        if self.header.alg == "RS256" {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key)
                .verify(self.signed, &self.signature)
                .is_ok()
        } else {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
                .verify(self.signed, &self.signature)
                .is_ok()
        }
    }
}

/// An RS256 key that signs tokens.
pub(crate) struct SigningKey {
    pair: RsaKeyPair,
}

impl SigningKey {
    /// A new key; `None` when the system gives no randomness. It takes a tenth of a second.
    pub(crate) fn generate() -> Option<Self> {
        RsaKeyPair::generate(KeySize::Rsa2048).ok().map(|pair| Self { pair })
    }

    /// A key from PKCS#8 DER.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        RsaKeyPair::from_pkcs8(der).ok().map(|pair| Self { pair })
    }

    /// The key as PKCS#8 DER.
    pub(crate) fn to_pkcs8(&self) -> Option<Vec<u8>> {
        self.pair.as_der().ok().map(|der| der.as_ref().to_vec())
    }

    /// The public half as a JWKS.
    pub(crate) fn jwks(&self) -> Value {
        // PKCS#1 DER ends with the modulus and, in five bytes, the integer 65537.
        let der = self.pair.public_key().as_ref();
        let rest = der.len().saturating_sub(5);
        let modulus = &der[rest.saturating_sub(self.pair.public_modulus_len())..rest];
        json!({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid(), "x5t": self.kid(),
            "n": BASE64_URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB"}]})
    }

    fn kid(&self) -> String {
        let digest = digest(&SHA256, self.pair.public_key().as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(&digest.as_ref()[..20])
    }

    /// A signed token; `None` when signing fails.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"typ": "JWT", "alg": "RS256", "kid": self.kid(), "x5t": self.kid()});
        let signed = format!(
            "{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(header.to_string()),
            BASE64_URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .ok()?;
        Some(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Malformed)
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Big-endian integers of a JWK may carry leading zeros; the verifier accepts none.
fn unpadded(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// The bytes of a PEM text with one block.
fn pem_der(pem: &str) -> Option<Vec<u8>> {
    let body: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    BASE64_STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

    use super::*;

    #[test]
    fn rs256_verifies_with_jwks_jwk_and_pem() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"sub": "one"})).unwrap();
        let jwt = Jwt::parse(&token).unwrap();
        let jwk = key.jwks()["keys"][0].clone();
        assert_eq!(jwt.verify(&json!({"keys": [{"kty": "EC"}, jwk]})), Ok(()));
        let mut nameless = jwk.clone();
        nameless["kid"].take();
        assert_eq!(jwt.verify(&nameless), Ok(()));
        let der = key.pair.public_key().as_der().unwrap();
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            BASE64_STANDARD.encode(der.as_ref())
        );
        assert_eq!(jwt.verify(&json!(pem)), Ok(()));
        let mut renamed = jwk.clone();
        renamed["kid"] = json!("b");
        assert_eq!(
            jwt.verify(&json!({"keys": [renamed]})),
            Err(JwtError::Signature),
            "another kid does not count"
        );
        let mut other = SigningKey::generate().unwrap().jwks();
        other["keys"][0]["kid"] = jwk["kid"].clone();
        assert_eq!(jwt.verify(&other), Err(JwtError::Signature));
    }

    #[test]
    fn es256_verifies_with_a_jwk() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let parts = [r#"{"alg":"ES256"}"#, r#"{"sub":"one"}"#].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let signed = parts.join(".");
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        let token = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        let point = pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": BASE64_URL_SAFE_NO_PAD.encode(x), "y": BASE64_URL_SAFE_NO_PAD.encode(y)});
        assert_eq!(Jwt::parse(&token).unwrap().verify(&jwk), Ok(()));
        assert_eq!(
            Jwt::parse(&token)
                .unwrap()
                .verify(&SigningKey::generate().unwrap().jwks()),
            Err(JwtError::Signature)
        );
    }

    #[test]
    fn key_survives_being_saved_and_a_changed_claim_does_not() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"sub": "one"})).unwrap();
        let kept = SigningKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(Jwt::parse(&token).unwrap().verify(&kept.jwks()), Ok(()));
        let parts: Vec<&str> = token.split('.').collect();
        let forged = [parts[0], &BASE64_URL_SAFE_NO_PAD.encode(r#"{"sub":"two"}"#), parts[2]].join(".");
        assert_eq!(
            Jwt::parse(&forged).unwrap().verify(&key.jwks()),
            Err(JwtError::Signature)
        );
    }

    #[test]
    fn unsigned_and_broken_tokens_are_refused() {
        let none = format!(
            "{}.{}.",
            BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
            BASE64_URL_SAFE_NO_PAD.encode("{}")
        );
        assert_eq!(
            Jwt::parse(&none)
                .unwrap()
                .verify(&SigningKey::generate().unwrap().jwks()),
            Err(JwtError::Algorithm)
        );
        for broken in ["", "a", "a.b", "a.b.c", "....", "e30.e30"] {
            assert!(Jwt::parse(broken).is_err(), "{broken}");
        }
    }
}
