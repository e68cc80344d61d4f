//! The roles, a file each. Several may share one custom resource, whose file says what each of them writes there. A new
//! role is its file with a `SPEC`, which a `mod` names, and a line in the registry below; what it runs is in
//! `crate::roles`.

use serde::Serialize;

use super::condition::ConditionType;

pub mod capz;
pub mod cpo;
pub mod ho;

/// All that is asked about a role outside its controllers.
#[derive(Debug)]
pub struct RoleSpec {
    /// The flag's value, the metric label, the word in logs.
    pub word: &'static str,
    /// The annotation on the custom resource in which it records what it is about to create.
    pub intent_annotation: &'static str,
    /// The field manager of its server-side applies.
    pub field_manager: &'static str,
    /// The field manager of the controller whose place it takes, if it takes one.
    pub replaces: Option<&'static str>,
}

/// What one role writes on one custom resource.
#[derive(Debug)]
pub struct RolePart {
    /// The role.
    pub role: Role,
    /// The finalizer that it keeps there.
    pub finalizer: &'static str,
    /// The conditions that only this role writes.
    pub conditions: &'static [ConditionType],
    /// The one of them that sums up those of all roles, if one does.
    pub summary: Option<ConditionType>,
    /// The fields of the status that only this role writes.
    pub status_fields: &'static [&'static str],
    /// The fields of the status that other roles write and this one reads.
    pub read_fields: &'static [&'static str],
    /// Those of its own with the ids of what it deletes.
    pub deleted_resources: &'static [&'static str],
    /// What a person has to know of resources that it abandons; the end of a sentence.
    pub abandoned: &'static str,
}

macro_rules! roles {
    ($($role:ident => $file:ident,)+) => {
        /// What a process is responsible for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Role {
            $(
                #[doc = concat!("See [`", stringify!($file), "`].")]
                $role,
            )+
        }

        impl Role {
            /// Every role, in order.
            pub const ALL: [Role; [$(Role::$role),+].len()] = [$(Role::$role),+];

            /// All that is asked about the role.
            pub fn spec(self) -> &'static RoleSpec {
                match self {
                    $(Role::$role => &$file::SPEC,)+
                }
            }
        }
    };
}

roles! {
    Ho => ho,
    Cpo => cpo,
    Capz => capz,
}

impl Role {
    /// The flag's value, the metric label, the word in logs.
    pub fn as_str(self) -> &'static str {
        self.spec().word
    }

    /// The annotation on the custom resource in which this role records what it is about to create.
    pub fn intent_annotation(self) -> &'static str {
        self.spec().intent_annotation
    }

    /// The field manager of this role's server-side applies.
    pub fn field_manager(self) -> &'static str {
        self.spec().field_manager
    }

    /// The words of all roles, for a message.
    pub fn words() -> String {
        Role::ALL.map(Role::as_str).join(" or ")
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no role.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown role {0:?}: use {words}", words = Role::words())]
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
