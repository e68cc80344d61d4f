//! The ARN of an IAM role.

use std::fmt;

use crate::region::Partition;

/// The ARN of an IAM role: `arn:PARTITION:iam::ACCOUNT:role/PATH/NAME`.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleArn {
    text: String,
    partition: Partition,
    account: String,
}

/// A text is not the ARN of a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the ARN of a role")]
pub struct InvalidRoleArn(String);

/// The longest ARN of a role.
const MAX_ARN: usize = 2_048;

impl RoleArn {
    /// Parses an ARN.
    ///
    /// # Errors
    /// The text is not the ARN of a role in one of the partitions that Hyperlink serves.
    pub fn parse(text: &str) -> Result<Self, InvalidRoleArn> {
        let refused = || {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
            InvalidRoleArn(shown)
        };
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", partition, "iam", "", account, resource] = parts.as_slice() else {
            return Err(refused());
        };
        let partition = [Partition::Aws, Partition::China, Partition::UsGov]
            .into_iter()
            .find(|known| known.name() == *partition)
            .ok_or_else(refused)?;
        let path = resource.strip_prefix("role/").ok_or_else(refused)?;
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let usable = |c: char| c.is_ascii_alphanumeric() || "+=,.@_/-".contains(c);
        let is_path = path.chars().all(usable) && path.split('/').all(|segment| !segment.is_empty());
        if text.len() > MAX_ARN || !is_account || !is_path {
            return Err(refused());
        }
        Ok(Self {
            text: text.to_owned(),
            partition,
            account: (*account).to_owned(),
        })
    }

    /// The ARN as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The account that the role is in.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The partition that the role is in.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The ARN without the role's path, as endpoint services name allowed principals.
    pub fn principal(&self) -> String {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        format!("arn:{}:iam::{}:role/{name}", self.partition.name(), self.account)
    }
}

impl fmt::Display for RoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn path_of_a_role_is_no_part_of_its_principal() {
        let role = RoleArn::parse("arn:aws-us-gov:iam::123456789012:role/a/b/cpo").unwrap();
        assert_eq!((role.account(), role.partition()), ("123456789012", Partition::UsGov));
        assert_eq!(role.principal(), "arn:aws-us-gov:iam::123456789012:role/cpo");
    }

    #[rstest]
    #[case("")]
    #[case("cpo")]
    #[case("arn:aws:iam::123456789012:user/cpo")]
    #[case("arn:aws:iam::12345:role/cpo")]
    #[case("arn:aws:iam::123456789012:role/")]
    #[case("arn:aws:iam::123456789012:role/a//b")]
    #[case("arn:aws:iam::123456789012:role/a b")]
    #[case("arn:aws-iso:iam::123456789012:role/a")]
    #[case("arn:aws:sts::123456789012:assumed-role/a/b")]
    #[case("arn:aws:iam:us-east-1:123456789012:role/a")]
    fn what_is_no_role_is_refused(#[case] text: &str) {
        let error = RoleArn::parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("{text:?} is not the ARN of a role"));
    }
}
