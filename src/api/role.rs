//! The two roles that share one custom resource, and the names under which each writes.

use serde::Serialize;

use super::markers;

/// Which half of the private path a process builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The part of HyperShift's operator: load balancer lookup, NAT subnet, Private Link Service.
    Ho,
    /// The part of the control plane operator: Private Endpoint, private DNS.
    Cpo,
}

impl Role {
    /// Both roles, in order.
    pub const ALL: [Role; 2] = [Role::Ho, Role::Cpo];

    /// `ho` or `cpo`: the flag's value, the metric label, the word in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Ho => "ho",
            Role::Cpo => "cpo",
        }
    }

    /// The finalizer that this role keeps on the custom resource.
    pub fn finalizer(self) -> &'static str {
        match self {
            Role::Ho => markers::HO_FINALIZER,
            Role::Cpo => markers::CPO_FINALIZER,
        }
    }

    /// The annotation on the custom resource in which this role records what it is about to create.
    pub fn intent_annotation(self) -> &'static str {
        match self {
            Role::Ho => markers::HO_INTENT,
            Role::Cpo => markers::CPO_INTENT,
        }
    }

    /// The field manager of this role's server-side applies.
    pub fn field_manager(self) -> &'static str {
        match self {
            Role::Ho => "hyperlink-ho",
            Role::Cpo => "hyperlink-cpo",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no role.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown role {0:?}: use ho or cpo")]
pub struct UnknownRole(String);

impl std::str::FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == word)
            .ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_is_read_back_from_its_word() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert_eq!("HO".parse::<Role>(), Err(UnknownRole("HO".into())));
    }
}
