//! The token that makes a repeated create answer with its first result.

/// With the same token and parameters EC2 answers a create with its first result.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html>
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientToken(String);

impl ClientToken {
    /// The longest token, in characters.
    pub const MAX: usize = 64;

    /// The token of this text; none if EC2 takes no such token: an empty or longer one, or one that is not ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let usable = (1..=Self::MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        usable.then(|| Self(text.to_owned()))
    }

    /// The token of a hash, in hexadecimal digits.
    pub fn of_digest(digest: [u8; 32]) -> Self {
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The token's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_a_hash_is_one_that_ec2_takes() {
        let token = ClientToken::of_digest([0xa5; 32]);
        assert_eq!(token.as_str(), "a5".repeat(32));
        assert_eq!(ClientToken::new(token.as_str()), Some(token));
    }

    #[test]
    fn text_that_ec2_does_not_take_is_no_token() {
        for text in ["", "a b", "ü", &"a".repeat(65)] {
            assert_eq!(ClientToken::new(text), None, "{text}");
        }
    }
}
