//! Namespace and name of an object; for one, the reference from a custom resource to its HostedCluster.

/// Namespace and name of a HostedCluster, or of another object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterRef {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// The annotation does not name a HostedCluster.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("annotation hypershift.openshift.io/cluster must be <namespace>/<name>")]
pub struct InvalidClusterRef;

impl std::str::FromStr for ClusterRef {
    type Err = InvalidClusterRef;

    /// Splits at the first `/`; both parts must be non-empty. A further `/` stays in the name,
    /// where no object can match it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(ClusterRef {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(InvalidClusterRef),
        }
    }
}

impl std::fmt::Display for ClusterRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_and_name_are_split_at_the_first_slash() {
        let found: ClusterRef = "clusters/example".parse().unwrap();
        assert_eq!((found.namespace.as_str(), found.name.as_str()), ("clusters", "example"));
        assert_eq!(found.to_string(), "clusters/example");

        let found: ClusterRef = "clusters/a/b".parse().unwrap();
        assert_eq!((found.namespace.as_str(), found.name.as_str()), ("clusters", "a/b"));
    }

    #[test]
    fn a_missing_part_is_refused() {
        for text in ["", "/", "clusters", "clusters/", "/example", "//a"] {
            assert_eq!(text.parse::<ClusterRef>(), Err(InvalidClusterRef), "{text:?}");
        }
    }
}
