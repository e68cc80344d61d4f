//! The services, and which one a request is for.

use serde::{Deserialize, Serialize};

/// A service of AWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    Ec2,
    Elbv2,
    Route53,
    Sts,
}

impl Service {
    /// As credential scopes and IAM actions name it.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Elbv2 => "elasticloadbalancing",
            Self::Route53 => "route53",
            Self::Sts => "sts",
        }
    }

    pub(crate) fn named(prefix: &str) -> Option<Self> {
        let all = [Self::Ec2, Self::Elbv2, Self::Route53, Self::Sts];
        all.into_iter().find(|service| service.prefix() == prefix)
    }

    /// Its API version.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::Elbv2 => "2015-12-01",
            Self::Route53 => "2013-04-01",
            Self::Sts => "2011-06-15",
        }
    }
}
