//! Access tokens of the simulated Entra: issued signed, judged as ARM judges them. Life is counted in real time.
//! The claims follow <https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference> (version 1.0 tokens).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::jwt::{Jwt, SigningKey};

/// Verified tokens that are remembered, so that a busy client costs one signature check and not one per call.
const REMEMBERED: usize = 1024;

/// Who a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) tenant: String,
    pub(crate) client_id: String,
    pub(crate) object_id: String,
}

/// How long tokens live and how far the issuer's clock is off; both in real seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenTimes {
    pub(crate) life_s: i64,
    pub(crate) skew_s: i64,
}

/// A token as the endpoints hand it out.
pub(crate) struct AccessToken {
    pub(crate) token: String,
    pub(crate) expires_in_s: i64,
    /// Unix seconds.
    pub(crate) expires_on: i64,
}

/// What is wrong with a bearer token, in the order in which it is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Invalid,
    NotYetValid,
    Expired { at: i64 },
    Audience { got: String },
}

/// Issues access tokens and judges them; both with one key.
pub(crate) struct TokenIssuer {
    key: Arc<SigningKey>,
    verified: Mutex<HashMap<String, Claims>>,
}

#[derive(Clone, Deserialize)]
struct Claims {
    aud: String,
    nbf: i64,
    exp: i64,
    appid: String,
    oid: String,
    tid: String,
}

impl TokenIssuer {
    pub(crate) fn new(key: Arc<SigningKey>) -> Self {
        Self {
            key,
            verified: Mutex::default(),
        }
    }

    /// The key, to be kept over a restart.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The public key as a JWKS.
    pub(crate) fn jwks(&self) -> Value {
        self.key.jwks()
    }

    /// Signs a token for one audience; `None` when signing fails.
    pub(crate) fn issue(
        &self,
        subject: &Subject,
        audience: &str,
        times: TokenTimes,
        real: Timestamp,
    ) -> Option<AccessToken> {
        let issued = real.as_second().saturating_add(times.skew_s);
        let expires_on = issued.saturating_add(times.life_s);
        let token = self.key.sign(&json!({
            "aud": audience, "iss": format!("https://sts.windows.net/{}/", subject.tenant), "iat": issued, "nbf": issued, "exp": expires_on,
            "appid": subject.client_id, "appidacr": "1", "idtyp": "app", "oid": subject.object_id, "sub": subject.object_id, "tid": subject.tenant,
            "uti": Uuid::new_v4().simple().to_string(), "ver": "1.0",
        }))?;
        Some(AccessToken {
            token,
            expires_in_s: times.life_s,
            expires_on,
        })
    }

    /// Accepts a token that this key signed, that is valid now (five minutes of clock skew towards the future are forgiven) and
    /// that is for one of the audiences.
    pub(crate) fn judge(&self, token: &str, audiences: &[String], real: Timestamp) -> Result<Subject, Refusal> {
        let claims = self.verified_claims(token)?;
        let now = real.as_second();
        if claims.nbf > now.saturating_add(300) {
            return Err(Refusal::NotYetValid);
        }
        if claims.exp <= now {
            return Err(Refusal::Expired { at: claims.exp });
        }
        if !audiences.contains(&claims.aud) {
            return Err(Refusal::Audience { got: claims.aud });
        }
        Ok(Subject {
            tenant: claims.tid,
            client_id: claims.appid,
            object_id: claims.oid,
        })
    }

    fn verified_claims(&self, token: &str) -> Result<Claims, Refusal> {
        if let Some(claims) = self.verified.lock().unwrap_or_else(PoisonError::into_inner).get(token) {
            return Ok(claims.clone());
        }
        let jwt = Jwt::parse(token).map_err(|_| Refusal::Invalid)?;
        jwt.verify(&self.key.jwks()).map_err(|_| Refusal::Invalid)?;
        let claims: Claims = jwt.claims().map_err(|_| Refusal::Invalid)?;
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(token.to_owned(), claims.clone());
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: &str = "https://management.azure.com";

    fn subject() -> Subject {
        Subject {
            tenant: "t".into(),
            client_id: "c".into(),
            object_id: "o".into(),
        }
    }

    fn judged(audience: &str, times: TokenTimes, later_s: i64) -> Result<Subject, Refusal> {
        let issuer = TokenIssuer::new(Arc::new(SigningKey::generate().unwrap()));
        let real = Timestamp::from_second(1_800_000_000).unwrap();
        let token = issuer.issue(&subject(), audience, times, real).unwrap().token;
        issuer.judge(
            &token,
            &[ARM.to_owned()],
            Timestamp::from_second(real.as_second() + later_s).unwrap(),
        )
    }

    #[test]
    fn token_is_good_until_its_last_second() {
        let times = TokenTimes { life_s: 60, skew_s: 0 };
        assert_eq!(judged(ARM, times, 59), Ok(subject()));
        assert_eq!(judged(ARM, times, 60), Err(Refusal::Expired { at: 1_800_000_060 }));
    }

    #[test]
    fn token_of_a_clock_far_ahead_is_not_valid_yet() {
        assert_eq!(
            judged(
                ARM,
                TokenTimes {
                    life_s: 3599,
                    skew_s: 300
                },
                0
            ),
            Ok(subject())
        );
        assert_eq!(
            judged(
                ARM,
                TokenTimes {
                    life_s: 3599,
                    skew_s: 301
                },
                0
            ),
            Err(Refusal::NotYetValid)
        );
    }

    #[test]
    fn token_for_another_audience_or_of_another_key_is_refused() {
        let times = TokenTimes { life_s: 60, skew_s: 0 };
        assert_eq!(
            judged("https://vault.azure.net", times, 0),
            Err(Refusal::Audience {
                got: "https://vault.azure.net".into()
            })
        );
        let issuer = || TokenIssuer::new(Arc::new(SigningKey::generate().unwrap()));
        let token = issuer()
            .issue(&subject(), ARM, times, Timestamp::UNIX_EPOCH)
            .unwrap()
            .token;
        assert_eq!(
            issuer().judge(&token, &[ARM.to_owned()], Timestamp::UNIX_EPOCH),
            Err(Refusal::Invalid)
        );
    }
}
