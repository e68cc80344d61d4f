//! The platforms whose hosted clusters are served.

use serde::Serialize;

/// A platform on which hosted clusters run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Microsoft Azure.
    Azure,
    /// Amazon Web Services.
    Aws,
}

impl Platform {
    /// Every platform, in order.
    pub const ALL: [Self; 2] = [Self::Azure, Self::Aws];

    /// The flag's value, the metric label, the word in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::Aws => "aws",
        }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no platform.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown platform {0:?}: use {words}", words = Platform::ALL.map(Platform::as_str).join(" or "))]
pub struct UnknownPlatform(String);

impl std::str::FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|platform| platform.as_str() == word);
        found.ok_or_else(|| UnknownPlatform(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_is_read_back_from_its_word() {
        for platform in Platform::ALL {
            assert_eq!(platform.to_string().parse(), Ok(platform));
        }
        let error = "AWS".parse::<Platform>().unwrap_err();
        assert_eq!(error.to_string(), "unknown platform \"AWS\": use azure or aws");
    }
}
