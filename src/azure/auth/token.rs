//! A bearer token, and the trait of whoever hands them out.

use async_trait::async_trait;
use http::HeaderValue;

use super::AuthError;

/// A bearer token, ready to be sent. Never shown by `Debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// Wraps the token's text, without `Bearer`.
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

/// Hands out tokens for one scope. Cheap to ask before every request.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// A token that is valid now.
    async fn token(&self) -> Result<Token, AuthError>;

    /// ARM answered 401 to this token: it is not handed out again, unless it is brand new.
    fn invalidate(&self, refused: &Token);
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
