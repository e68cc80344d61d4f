//! Why there is no token, in texts that do not change from one attempt to the next.
//!
//! Entra's texts carry trace ids and timestamps: only their codes leave this module.

use serde::Deserialize;

/// Why no token could be obtained. Holds no secret; equal causes give equal texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The token endpoint does not accept the identity.
    #[error("the token endpoint refused the credential ({code}); {advice}")]
    Refused {
        /// `AADSTS…`, else OAuth's error code, else the HTTP status.
        code: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The token endpoint gave no usable answer; trying again may help.
    #[error("no token from the token endpoint: {0}")]
    Unreachable(String),
    /// What was configured cannot work: files, ids.
    #[error("{0}")]
    Misconfigured(String),
}

/// What to do about the codes that are common when an identity is set up.
/// Source: <https://learn.microsoft.com/entra/identity-platform/reference-error-codes>
const ADVICE: [(u64, &str); 14] = [
    (7_000_215, "check the client secret"),
    (7_000_222, "the client secret has expired; make a new one"),
    (7_000_112, "the application is disabled; enable it"),
    (700_016, "check the client id and the tenant"),
    (90_002, "check the tenant id"),
    (900_023, "check the tenant id"),
    (500_011, "check the audience, and that it exists in the tenant"),
    (70_021, FEDERATION),
    (700_211, FEDERATION),
    (700_212, FEDERATION),
    (700_213, FEDERATION),
    (
        700_024,
        "the federated token has expired; check what renews its file, and the clock",
    ),
    (700_027, FEDERATION),
    (53_003, "a conditional access policy blocks the identity"),
];

const FEDERATION: &str = "check issuer, subject and audience of the federated credential";

#[derive(Default, Deserialize)]
#[serde(default)]
struct OauthError {
    error: String,
    error_codes: Vec<u64>,
}

impl AuthError {
    /// Reads an answer of a token endpoint that is not a success. `advice` is used for codes without advice of their
    /// own.
    pub(super) fn from_answer(status: u16, body: &[u8], advice: &'static str) -> Self {
        let answer: OauthError = serde_json::from_slice(body).unwrap_or_default();
        let passing = matches!(answer.error.as_str(), "temporarily_unavailable" | "server_error");
        if passing || !matches!(status, 400 | 401 | 403) {
            return Self::Unreachable(format!("it answered {status}"));
        }
        if let Some(number) = answer.error_codes.first() {
            let known = ADVICE.iter().find(|(code, _)| code == number);
            return Self::Refused {
                code: format!("AADSTS{number}"),
                advice: known.map_or(advice, |(_, known)| known),
            };
        }
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_code = (1..=40).contains(&answer.error.len()) && answer.error.chars().all(word);
        let code = if is_code {
            answer.error
        } else {
            format!("HTTP {status}")
        };
        Self::Refused { code, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(status: u16, body: &str) -> String {
        AuthError::from_answer(status, body.as_bytes(), "check it").to_string()
    }

    #[test]
    fn wrong_secret_shows_the_code_and_nothing_that_changes() {
        let body = r#"{"error":"invalid_client","error_codes":[7000215],"timestamp":"2026-01-01 00:00:00Z","trace_id":"b2a7",
            "error_description":"AADSTS7000215: Invalid client secret provided. Trace ID: b2a7 Timestamp: 2026-01-01"}"#;
        assert_eq!(
            text(401, body),
            "the token endpoint refused the credential (AADSTS7000215); check the client secret"
        );
    }

    #[rstest::rstest]
    #[case(400, r#"{"error_codes":[123]}"#, "(AADSTS123); check it")]
    #[case(400, r#"{"error":"invalid_request"}"#, "(invalid_request); check it")]
    #[case(403, "<html>blocked, incident 5f3c</html>", "(HTTP 403); check it")]
    #[case(400, r#"{"error":"Trace 77 at 10:00"}"#, "(HTTP 400); check it")]
    fn other_refusals_keep_only_a_code(#[case] status: u16, #[case] body: &str, #[case] end: &str) {
        assert_eq!(
            text(status, body),
            format!("the token endpoint refused the credential {end}")
        );
    }

    #[rstest::rstest]
    #[case(503, "busy")]
    #[case(429, "{}")]
    #[case(302, "")]
    #[case(400, r#"{"error":"temporarily_unavailable","error_codes":[90033]}"#)]
    fn passing_trouble_is_no_refusal(#[case] status: u16, #[case] body: &str) {
        let error = AuthError::from_answer(status, body.as_bytes(), "check it");
        assert_eq!(error, AuthError::Unreachable(format!("it answered {status}")));
    }
}
