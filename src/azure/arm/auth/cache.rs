//! One token for all callers.
//!
//! It stands in front of azure_identity because that one's cache renews only when 300 s are left, fails while the old
//! token is still good, and lets every caller wait behind one lock.

use std::time::Duration;

use async_trait::async_trait;
use hyperlink_engine::credential_cache::{CredentialCache, CredentialState, Renewable};

use crate::arm::auth::credential::Credential;
use crate::arm::auth::{AuthError, AzureCloud, CredentialSource, Token, TokenSource};

/// The state of the token, for metrics and readiness.
pub type TokenState = CredentialState<AuthError>;

impl Renewable for Token {
    type Error = AuthError;
    const NOT_RENEWED: &'static str = "no new token";

    /// Half to three quarters of its life.
    fn renewed_after(life: Duration, chance: f64) -> Duration {
        life.mul_f64(0.5 + 0.25 * chance)
    }

    fn unreachable(why: String) -> AuthError {
        AuthError::Unreachable(why)
    }
}

/// The tokens of one identity for one cloud. Clones share everything.
#[derive(Clone)]
pub struct TokenCache(CredentialCache<Token>);

impl TokenCache {
    /// Makes an empty cache; requests nothing yet. `http` carries the requests to the authority; it must not follow
    /// redirects.
    pub fn new(source: CredentialSource, cloud: &AzureCloud, http: reqwest::Client) -> Self {
        Self(CredentialCache::new(Credential::new(source, cloud, http)))
    }

    /// Age of the token and the last failure, for metrics and readiness.
    pub fn state(&self) -> TokenState {
        self.0.state()
    }

    /// Keeps a valid token at hand for as long as this future is polled, see [`CredentialCache::keep`].
    pub async fn keep(&self, on_token: impl Fn(Result<TokenState, AuthError>)) {
        self.0.keep(on_token).await;
    }
}

#[async_trait]
impl TokenSource for TokenCache {
    async fn token(&self) -> Result<Token, AuthError> {
        self.0.current().await.map(|token| Token::clone(&token))
    }

    fn invalidate(&self, refused: &Token) {
        self.0.invalidate(|held| held == refused);
    }
}

#[cfg(test)]
mod tests {
    use hyperlink_engine::credential_cache::{Issued, Issuer};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[rstest::rstest]
    #[case(0.0, HOUR / 2)]
    #[case(1.0, HOUR / 4 * 3)]
    fn token_is_renewed_between_half_and_three_quarters_of_its_life(#[case] chance: f64, #[case] used: Duration) {
        assert_eq!(Token::renewed_after(HOUR, chance), used);
    }

    /// Issues the same token each time.
    struct Same;

    #[async_trait]
    impl Issuer<Token> for Same {
        async fn issue(&self) -> Result<Issued<Token>, AuthError> {
            Ok(Issued {
                credential: Token::new("same")?,
                life: Some(HOUR),
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_that_arm_refuses_is_known_by_its_text() {
        let cache = TokenCache(CredentialCache::new(Same));
        let minute = Duration::from_secs(60);
        cache.token().await.unwrap();
        tokio::time::advance(minute).await;
        cache.invalidate(&Token::new("another").unwrap());
        assert_eq!(cache.state().age, Some(minute));
        cache.invalidate(&Token::new("same").unwrap());
        let refused = cache.state();
        assert_eq!((refused.age, refused.left), (None, Some(Duration::ZERO)));
        assert_eq!(cache.token().await, Token::new("same"));
    }
}
