//! Regions and the partitions that they are in. Decides which regions can be configured at all.

use std::fmt;

/// A group of regions with accounts, ARNs and host names of its own.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partition {
    /// `aws`: the regions that most accounts are in.
    Aws,
    /// `aws-cn`: the regions in China.
    China,
    /// `aws-us-gov`: the regions of GovCloud (US).
    UsGov,
}

impl Partition {
    /// The partition's name, as in ARNs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::China => "aws-cn",
            Self::UsGov => "aws-us-gov",
        }
    }

    /// The end of the host names of its services, without a leading dot.
    pub fn dns_suffix(self) -> &'static str {
        match self {
            Self::Aws | Self::UsGov => "amazonaws.com",
            Self::China => "amazonaws.com.cn",
        }
    }
}

/// A region of a partition that Hyperlink knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Region {
    name: String,
    partition: Partition,
}

/// Why a text is not a region that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a region of the partitions aws, aws-cn or aws-us-gov, such as us-east-1")]
pub struct RegionError(String);

impl Region {
    /// Parses a region's name. It becomes part of host names, so nothing else is accepted.
    ///
    /// # Errors
    /// The text is no region's name, or the region is in a partition that is not served: `aws-iso` and its like,
    /// `aws-eusc`.
    pub fn parse(name: &str) -> Result<Self, RegionError> {
        let parts: Vec<&str> = name.split('-').collect();
        let partition = match parts.as_slice() {
            ["cn", direction, number] if is_word(direction) && is_number(number) => Partition::China,
            ["us", "gov", direction, number] if is_word(direction) && is_number(number) => Partition::UsGov,
            [area, direction, number]
                if area.len() == 2 && is_word(area) && is_word(direction) && is_number(number) =>
            {
                Partition::Aws
            }
            _ => return Err(RegionError(name.chars().take(64).collect())),
        };
        Ok(Self {
            name: name.to_owned(),
            partition,
        })
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The partition that it is in.
    pub fn partition(&self) -> Partition {
        self.partition
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn is_word(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_number(text: &str) -> bool {
    (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("us-east-1", Partition::Aws)]
    #[case("ap-southeast-7", Partition::Aws)]
    #[case("mx-central-1", Partition::Aws)]
    #[case("cn-northwest-1", Partition::China)]
    #[case("us-gov-west-1", Partition::UsGov)]
    fn partition_follows_from_the_name(#[case] name: &str, #[case] partition: Partition) {
        let region = Region::parse(name).unwrap();
        assert_eq!((region.name(), region.partition()), (name, partition));
    }

    #[rstest]
    #[case("")]
    #[case("us-iso-east-1")]
    #[case("us-isob-east-1")]
    #[case("eusc-de-east-1")]
    #[case("aws-global")]
    #[case("us-east-1.evil.example#")]
    #[case("us-east-1@evil.example")]
    #[case("us-east-1/")]
    #[case("US-EAST-1")]
    #[case("us-east-1a")]
    #[case("us-east-100")]
    fn what_is_no_region_of_these_is_refused(#[case] name: &str) {
        let error = Region::parse(name).unwrap_err();
        assert!(error.to_string().contains("aws-us-gov"), "{error}");
    }
}
