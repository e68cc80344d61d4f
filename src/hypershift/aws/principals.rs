//! Who may connect to a cluster's endpoint service. Pure.

use std::collections::BTreeSet;

use super::ids::is_account;
use crate::api::Reason;
use crate::api::hypershift::AwsPlatform;
use crate::aws::role_arn::RoleArn;
use crate::hypershift::problem::Problem;

/// The most additional principals that HyperShift's definition allows.
const MAX_ADDITIONAL: usize = 25;
/// The longest principal: the ARN of a role with its path.
const MAX_LENGTH: usize = 2048;
/// The most bytes of somebody's text that a complaint repeats.
const MAX_SHOWN: usize = 100;

/// Every identity in AWS.
const EVERYBODY: &str = "*";

/// The principals that an endpoint service should allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredPrincipals {
    /// Their ARNs. All others are removed.
    pub arns: BTreeSet<String>,
    /// What cannot be used, or is dangerous, in words for an Event.
    pub complaints: Vec<String>,
}

/// The principals of a cluster: the role of its control plane operator and the additional ones. Of these, what AWS
/// would refuse is left out, because it refuses the others of the call with it.
///
/// # Errors
/// There is no such role: without it the cluster's own endpoint could not connect.
pub fn desired(aws: &AwsPlatform) -> Result<DesiredPrincipals, Problem> {
    let role = aws.roles_ref.control_plane_operator_arn.as_deref().unwrap_or_default();
    let usable = Some(role).filter(|role| is_principal(role));
    let role = usable.and_then(|role| RoleArn::parse(role).ok()).ok_or_else(|| {
        let text = "platform.aws.rolesRef.controlPlaneOperatorARN is not the ARN of a role";
        Problem::new(Reason::InvalidSpec, text)
    })?;
    let mut found = DesiredPrincipals {
        arns: BTreeSet::from([role.principal()]),
        complaints: Vec::new(),
    };
    for principal in aws.additional_allowed_principals.iter().take(MAX_ADDITIONAL) {
        found.add(principal);
    }
    let more = aws.additional_allowed_principals.len().saturating_sub(MAX_ADDITIONAL);
    if more > 0 {
        let text = format!("additionalAllowedPrincipals: {more} beyond {MAX_ADDITIONAL} are left out");
        found.complaints.push(text);
    }
    Ok(found)
}

impl DesiredPrincipals {
    /// Whether everybody in AWS may connect.
    pub fn allow_everybody(&self) -> bool {
        self.arns.contains(EVERYBODY)
    }

    fn add(&mut self, principal: &str) {
        if principal == EVERYBODY {
            let text = "additionalAllowedPrincipals: * lets every account of AWS connect";
            self.complaints.push(text.to_owned());
        } else if !is_principal(principal) {
            let shown = &principal[..principal.floor_char_boundary(MAX_SHOWN)];
            let text = format!("additionalAllowedPrincipals: {shown:?} is not the ARN of a principal, it is left out");
            self.complaints.push(text);
            return;
        }
        self.arns.insert(principal.to_owned());
    }
}

/// Whether this is the ARN of an account, a role, a user or a session.
///
/// Format: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-arns>
fn is_principal(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let ["arn", partition, service, "", account, resource] = parts.as_slice() else {
        return false;
    };
    let kind = resource.split_once('/').filter(|(_, name)| !name.is_empty());
    let is_known = match (*service, kind) {
        ("iam", None) => *resource == "root",
        ("iam", Some((kind, _))) => ["role", "user"].contains(&kind),
        ("sts", Some((kind, _))) => ["assumed-role", "federated-user"].contains(&kind),
        _ => false,
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+=,.@_/-".contains(c);
    let is_partition = partition.starts_with("aws") && partition.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    is_known && is_partition && is_account(account) && resource.chars().all(allowed) && text.len() <= MAX_LENGTH
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::hypershift::RolesRef;

    const ROLE: &str = "arn:aws-us-gov:iam::111122223333:role/a/b/cpo";
    const PRINCIPAL: &str = "arn:aws-us-gov:iam::111122223333:role/cpo";

    fn platform(role: Option<&str>, additional: &[&str]) -> AwsPlatform {
        AwsPlatform {
            roles_ref: RolesRef {
                control_plane_operator_arn: role.map(str::to_owned),
            },
            additional_allowed_principals: additional.iter().map(|arn| (*arn).to_owned()).collect(),
            ..AwsPlatform::default()
        }
    }

    fn arns(additional: &[&str]) -> (Vec<String>, usize) {
        let found = desired(&platform(Some(ROLE), additional)).unwrap();
        (found.arns.into_iter().collect(), found.complaints.len())
    }

    #[test]
    fn role_is_allowed_without_its_path() {
        assert_eq!(arns(&[]), (vec![PRINCIPAL.to_owned()], 0));
    }

    #[test]
    fn additional_principals_are_allowed_as_given() {
        let root = "arn:aws:iam::444455556666:root";
        let shared = "arn:aws:iam::444455556666:role/p/shared";
        assert_eq!(
            arns(&[shared, root, root]),
            (vec![PRINCIPAL.into(), shared.into(), root.into()], 0)
        );
    }

    #[rstest]
    #[case::none(None)]
    #[case::empty(Some(""))]
    #[case::user(Some("arn:aws:iam::111122223333:user/cpo"))]
    #[case::account(Some("arn:aws:iam::1111:role/cpo"))]
    #[case::everybody(Some("*"))]
    #[case::line_break(Some("arn:aws:iam::111122223333:role/c\npo"))]
    fn cluster_without_a_usable_role_has_a_problem(#[case] role: Option<&str>) {
        let problem = desired(&platform(role, &["*"])).unwrap_err();
        assert_eq!(problem.reason, Reason::InvalidSpec);
    }

    #[rstest]
    #[case::empty("")]
    #[case::name("cpo")]
    #[case::account("444455556666")]
    #[case::bucket("arn:aws:s3:::bucket")]
    #[case::region("arn:aws:iam:us-east-1:444455556666:root")]
    #[case::short_account("arn:aws:iam::4444:root")]
    #[case::group("arn:aws:iam::444455556666:group/x")]
    #[case::no_name("arn:aws:iam::444455556666:role/")]
    #[case::wildcard("arn:aws:iam::444455556666:role/*")]
    #[case::other_partition("arn:gcp:iam::444455556666:root")]
    #[case::control("arn:aws:iam::444455556666:role/a\u{0}b")]
    fn malformed_principal_does_not_fail_the_others(#[case] malformed: &str) {
        let root = "arn:aws:iam::444455556666:root";
        assert_eq!(arns(&[malformed, root]), (vec![PRINCIPAL.into(), root.into()], 1));
    }

    #[test]
    fn everybody_is_allowed_and_reported() {
        let found = desired(&platform(Some(ROLE), &["*"])).unwrap();
        assert!(found.allow_everybody() && found.complaints.len() == 1, "{found:?}");
        assert!(!desired(&platform(Some(ROLE), &[])).unwrap().allow_everybody());
    }

    #[test]
    fn principals_beyond_the_bound_are_left_out() {
        let many: Vec<String> = (0..27)
            .map(|n| format!("arn:aws:iam::444455556666:role/r{n:02}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (found, complaints) = arns(&many);
        assert_eq!((found.len(), complaints), (26, 1));
    }

    #[test]
    fn long_junk_is_cut_in_a_complaint() {
        let found = desired(&platform(Some(ROLE), &[&"ü".repeat(100_000)])).unwrap();
        assert!(found.complaints[0].len() < 300);
    }
}
