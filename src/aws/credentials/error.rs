//! Why there is no session, in texts that do not change from one try to the next.

use hyperlink_engine::failure::Class;

use crate::api::error::{AwsError, NO_SESSION};

/// Why no session could be obtained. Holds no secret; equal causes give equal texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// AWS does not accept the identity.
    #[error("AWS refused the identity ({code}); {advice}")]
    Refused {
        /// AWS's code.
        code: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// No usable answer; trying again may help.
    #[error("no session: {0}")]
    Unreachable(String),
    /// What was configured cannot work: files, ARNs.
    #[error("{0}")]
    Misconfigured(String),
}

impl CredentialError {
    /// Makes an error of a call that was to give a session.
    pub(crate) fn of_call(error: &AwsError) -> Self {
        if error.class != Class::Denied && error.class != Class::Invalid {
            return Self::Unreachable(format!("{} from AWS", error.code));
        }
        let advice = match error.code.as_str() {
            "AccessDenied" => "check the trust policy of the role",
            "InvalidIdentityToken" => "check the issuer, the thumbprint and the audience of the identity provider",
            "ExpiredToken" | "ExpiredTokenException" => "the token has expired; check what renews it, and the clock",
            "IDPRejectedClaim" => "the identity provider does not know the token any more",
            "RegionDisabledException" => "enable AWS STS in the region",
            _ => "check the role's ARN and the keys",
        };
        let code = error.code.clone();
        Self::Refused { code, advice }
    }

    /// The error of a call that could not be signed for this reason.
    pub(crate) fn of_unsent_call(&self) -> AwsError {
        let class = match self {
            Self::Unreachable(_) => Class::Down,
            Self::Refused { .. } | Self::Misconfigured(_) => Class::Denied,
        };
        AwsError::own(class, NO_SESSION).with_text(&self.to_string())
    }
}
