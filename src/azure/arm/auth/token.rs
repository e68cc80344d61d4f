//! A bearer token, and the trait of those who supply it.

use async_trait::async_trait;
use http::HeaderValue;

use crate::arm::auth::AuthError;

/// A bearer token, ready to be sent. `Debug` does not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// Wraps the token's text, without `Bearer`.
    ///
    /// # Errors
    /// The text cannot be sent in a header.
    pub fn new(secret: &str) -> Result<Self, AuthError> {
        let mut value = HeaderValue::try_from(format!("Bearer {secret}"))
            .map_err(|_| AuthError::Unreachable("its token cannot be sent in a header".into()))?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The value of the `authorization` header, marked sensitive.
    pub fn authorization(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// Supplies tokens for one scope. Cheap to call before every request.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// Returns a token that is valid now.
    async fn token(&self) -> Result<Token, AuthError>;

    /// ARM answered 401 to this token: do not return it again, unless it is brand new, or no other one can be
    /// had.
    fn invalidate(&self, refused: &Token);
}

/// The source of a process that has no identity of its own.
#[derive(Debug, Clone, Copy)]
pub struct NoIdentity;

#[async_trait]
impl TokenSource for NoIdentity {
    async fn token(&self) -> Result<Token, AuthError> {
        let message = "this process has no identity of its own in Azure";
        Err(AuthError::Misconfigured(message.to_owned()))
    }

    fn invalidate(&self, _: &Token) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_does_not_show_in_debug() {
        let token = Token::new("eyJ0").unwrap();
        assert!(!format!("{token:?}").contains("eyJ0"));
        assert!(token.authorization().is_sensitive());
    }

    #[test]
    fn token_that_breaks_the_header_is_refused() {
        assert!(Token::new("a\r\nx: y").is_err());
    }
}
