//! Namespaces that the operator excludes, because another process serves them. Nothing in a namespace can exclude it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch::Receiver;

use crate::hypershift::scopes::AllowedScopes;

/// The excluded namespaces, now and later.
#[derive(Debug, Clone, Default)]
pub struct ExcludedNamespaces {
    /// Those of `--exclude-namespace`.
    pub fixed: BTreeSet<String>,
    /// The file of allowed scopes, which may exclude more; none: there is no such file.
    pub file: Option<Receiver<Arc<AllowedScopes>>>,
}

impl ExcludedNamespaces {
    /// Whether the namespace of a control plane is excluded now.
    pub fn contains(&self, namespace: &str) -> bool {
        let in_file = |file: &Receiver<Arc<AllowedScopes>>| file.borrow().excludes(namespace);
        self.fixed.contains(namespace) || self.file.as_ref().is_some_and(in_file)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn namespace_is_excluded_by_flag_and_by_file_as_it_is_now() {
        let (file, receiver) = watch::channel(Arc::new(AllowedScopes::default()));
        let excluded = ExcludedNamespaces {
            fixed: BTreeSet::from(["a".to_owned()]),
            file: Some(receiver),
        };
        assert!(excluded.contains("a") && !excluded.contains("b"));
        let text = "{hostedClusters: [], excludeNamespaces: [b]}";
        file.send_replace(Arc::new(AllowedScopes::parse(text).unwrap()));
        assert!(excluded.contains("a") && excluded.contains("b") && !excluded.contains("c"));
        assert!(!ExcludedNamespaces::default().contains("a"));
    }
}
