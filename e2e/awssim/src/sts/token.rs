//! Web identity tokens: JWTs signed by RS256 with a key of the issuer's JWKS.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::Value;

use crate::wire::error::AwsError;

/// What a token says, before its signature is verified.
pub(super) struct Claims {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) audiences: Vec<String>,
    expires: i64,
    not_before: i64,
    key_id: Option<String>,
    signed: String,
    signature: Vec<u8>,
}

pub(super) fn invalid(message: &str) -> AwsError {
    AwsError::bad("InvalidIdentityToken", message)
}

fn decode(part: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

impl Claims {
    pub(super) fn read(token: &str) -> Result<Self, AwsError> {
        Self::parse(token).ok_or_else(|| invalid("The ID Token provided is not a valid JWT."))
    }

    fn parse(token: &str) -> Option<Self> {
        let parts: Vec<&str> = token.split('.').collect();
        let [head, body, signature] = parts[..] else {
            return None;
        };
        let (header, claims) = (decode(head)?, decode(body)?);
        if header["alg"] != "RS256" {
            return None;
        }
        let audiences = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            _ => return None,
        };
        Some(Self {
            issuer: claims["iss"].as_str()?.to_owned(),
            subject: claims["sub"].as_str()?.to_owned(),
            audiences,
            expires: claims["exp"].as_i64()?,
            not_before: claims["nbf"].as_i64().unwrap_or(0),
            key_id: header["kid"].as_str().map(str::to_owned),
            signed: format!("{head}.{body}"),
            signature: BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    /// # Errors
    /// A signature of none of the keys; a token that is expired or not yet valid.
    pub(super) fn verify(&self, jwks: &Value, now: Timestamp) -> Result<(), AwsError> {
        let keys = jwks["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |key: &&Value| self.key_id.is_none() || key["kid"].as_str() == self.key_id.as_deref();
        if !keys.iter().filter(named).any(|key| self.is_signed_by(key)) {
            return Err(invalid(
                "Couldn't retrieve verification key from your identity provider",
            ));
        }
        if self.expires <= now.as_second() {
            let message = "Token expired: current date/time must be before the expiration date/time";
            return Err(AwsError::bad("ExpiredTokenException", message));
        }
        if self.not_before > now.as_second() {
            return Err(invalid("The token is not valid yet"));
        }
        Ok(())
    }

    fn is_signed_by(&self, key: &Value) -> bool {
        let part = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(key[name].as_str()?).ok();
        let (Some(n), Some(e)) = (part("n"), part("e")) else {
            return false;
        };
        let key = RsaPublicKeyComponents { n, e };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, self.signed.as_bytes(), &self.signature)
            .is_ok()
    }
}
