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

    /// The token's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
