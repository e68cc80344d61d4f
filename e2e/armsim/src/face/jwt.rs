//! Compact JSON Web Signatures: parts, RS256 and ES256 verification against a JWKS or a PEM public key, ES256 signing.
//! Decides whether a signature is right; what the claims must say is for the callers.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
        RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    },
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Why a token is not what it claims to be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum JwtError {
    /// Not three base64url parts with JSON in the first two.
    #[error("not a JSON Web Token")]
    Malformed,
    /// Neither RS256 nor ES256.
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

    /// The claims as said, whether or not the signature holds.
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
        if verified {
            Ok(())
        } else {
            Err(JwtError::Signature)
        }
    }

    fn verify_jwk(&self, key: &Value) -> bool {
        if let (Some(wanted), Some(kid)) = (&self.header.kid, text(key, "kid"))
            && wanted != kid
        {
            return false;
        }
        let part =
            |name| text(key, name).and_then(|value| decode(value.trim_end_matches('=')).ok());
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

/// An ES256 key that signs tokens.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
}

impl SigningKey {
    /// A new key; `None` when the system gives no randomness.
    pub(crate) fn generate() -> Option<Self> {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .ok()
            .map(|pair| Self { pair })
    }

    /// A key from PKCS#8 DER.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .ok()
            .map(|pair| Self { pair })
    }

    /// The key as PKCS#8 DER.
    pub(crate) fn to_pkcs8(&self) -> Option<Vec<u8>> {
        self.pair.to_pkcs8v1().ok().map(|der| der.as_ref().to_vec())
    }

    /// The public half as a JWKS.
    pub(crate) fn jwks(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
        json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid(),
            "x": BASE64_URL_SAFE_NO_PAD.encode(x), "y": BASE64_URL_SAFE_NO_PAD.encode(y)}]})
    }

    fn kid(&self) -> String {
        let digest =
            aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, self.pair.public_key().as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(&digest.as_ref()[..12])
    }

    /// A signed token; `None` when signing fails.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"typ": "JWT", "alg": "ES256", "kid": self.kid()});
        let signed = format!(
            "{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(header.to_string()),
            BASE64_URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .ok()?;
        Some(format!(
            "{signed}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        ))
    }
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    BASE64_URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| JwtError::Malformed)
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Big-endian integers of a JWK may carry leading zeros; the verifier wants none.
fn unpadded(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

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
    use aws_lc_rs::{encoding::AsDer as _, rsa::KeySize, signature::RsaKeyPair};

    use super::*;

    fn rsa_token(pair: &RsaKeyPair, kid: Option<&str>) -> String {
        let header = json!({"alg": "RS256", "kid": kid});
        let signed = format!(
            "{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(header.to_string()),
            BASE64_URL_SAFE_NO_PAD.encode("{}")
        );
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(
            &aws_lc_rs::signature::RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        )
        .unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    fn rsa_jwk(pair: &RsaKeyPair, kid: Option<&str>) -> Value {
        // The DER form of a 2048-bit key ends with the modulus, a three-byte header, and 65537.
        let der = pair.public_key().as_der().unwrap();
        let (rest, e) = der.as_ref().split_at(der.as_ref().len() - 3);
        let n = &rest[rest.len() - 2 - 256..rest.len() - 2];
        json!({"kty": "RSA", "kid": kid, "n": BASE64_URL_SAFE_NO_PAD.encode(n), "e": BASE64_URL_SAFE_NO_PAD.encode(e)})
    }

    #[test]
    fn rs256_verifies_with_jwks_jwk_and_pem() {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let token = rsa_token(&pair, Some("a"));
        let jwt = Jwt::parse(&token).unwrap();
        assert_eq!(
            jwt.verify(&json!({"keys": [{"kty": "EC"}, rsa_jwk(&pair, Some("a"))]})),
            Ok(())
        );
        assert_eq!(jwt.verify(&rsa_jwk(&pair, None)), Ok(()));
        let der = pair.public_key().as_der().unwrap();
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            BASE64_STANDARD.encode(der.as_ref())
        );
        assert_eq!(jwt.verify(&json!(pem)), Ok(()));
        assert_eq!(
            jwt.verify(&json!({"keys": [rsa_jwk(&pair, Some("b"))]})),
            Err(JwtError::Signature),
            "another kid does not count"
        );
        let other = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        assert_eq!(
            jwt.verify(&json!({"keys": [rsa_jwk(&other, Some("a"))]})),
            Err(JwtError::Signature)
        );
    }

    #[test]
    fn es256_survives_a_round_trip_and_not_a_changed_claim() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(&json!({"sub": "one"})).unwrap();
        let kept = SigningKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(Jwt::parse(&token).unwrap().verify(&kept.jwks()), Ok(()));
        let parts: Vec<&str> = token.split('.').collect();
        let forged = [
            parts[0],
            &BASE64_URL_SAFE_NO_PAD.encode(r#"{"sub":"two"}"#),
            parts[2],
        ]
        .join(".");
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
