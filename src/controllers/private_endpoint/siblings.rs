//! The other custom resources of a control plane, and which of them has what several could have. Pure.
//!
//! One of them writes each record. The zone of a base domain and its link serve all that have that base domain, whoever
//! made them; they are deleted with the last one.

use kube::ResourceExt;

use crate::api::markers::{CPO_FINALIZER, OAUTH, PRIVATE_ROUTER, SERVICES};
use crate::api::{AzurePrivateLinkService, held_by};
use crate::hypershift::azure::names;

/// Another custom resource of the same control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// The sibling's name.
    pub name: String,
    /// Its base domain.
    pub base_domain: Option<String>,
    /// Whether neither it nor the control plane is being deleted.
    pub stays: bool,
    /// Whether it has our finalizer, so that what it shares is deleted with it.
    pub held: bool,
}

impl Sibling {
    /// What `other` is to its siblings.
    pub fn of(other: &AzurePrivateLinkService, control_plane_deleting: bool) -> Self {
        Self {
            name: other.name_any(),
            base_domain: other.spec.base_domain.clone(),
            stays: other.metadata.deletion_timestamp.is_none() && !control_plane_deleting,
            held: held_by(other, CPO_FINALIZER),
        }
    }
}

/// A custom resource among its siblings.
#[derive(Debug, Clone, Copy)]
pub struct SiblingSet<'a> {
    name: &'a str,
    base_domain: Option<&'a str>,
    all: &'a [Sibling],
}

impl<'a> SiblingSet<'a> {
    /// The custom resource `name` with this base domain, and all others of its control plane.
    pub fn new(name: &'a str, base_domain: Option<&'a str>, all: &'a [Sibling]) -> Self {
        Self { name, base_domain, all }
    }

    /// Those with the same base domain, whether they stay or not.
    pub fn sharing(self) -> impl Iterator<Item = &'a Sibling> {
        let domain = self.base_domain.filter(|domain| !domain.is_empty());
        self.all
            .iter()
            .filter(move |one| domain.is_some() && one.base_domain.as_deref() == domain)
    }

    fn staying(self) -> impl Iterator<Item = &'a Sibling> {
        self.sharing().filter(|one| one.stays)
    }

    /// The names of all records that the cluster can have in the base domain's zone.
    pub fn all_records(cluster: &str) -> [String; 2] {
        [names::api_record(cluster), names::oauth_record(cluster)]
    }

    /// The names of the records that this custom resource writes there: `private-router` both, as long as no sibling
    /// that stays writes that of OAuth.
    pub fn records(self, cluster: &str) -> Vec<String> {
        let api = (self.name == PRIVATE_ROUTER).then(|| names::api_record(cluster));
        let oauth = (self.oauth_writer() == self.name).then(|| names::oauth_record(cluster));
        api.into_iter().chain(oauth).collect()
    }

    /// Of several custom resources that could, the one that writes the record of OAuth.
    fn oauth_writer(self) -> &'a str {
        let names = self.staying().map(|one| one.name.as_str()).chain([self.name]);
        let others = names.filter(|name| *name != PRIVATE_ROUTER);
        others.min_by_key(|name| (*name != OAUTH, *name)).unwrap_or(self.name)
    }

    /// The names of the records that are deleted with this custom resource while a sibling keeps using the zone. The
    /// sibling that stays takes over the record of OAuth.
    pub fn records_to_delete(self, cluster: &str) -> Vec<String> {
        let own = (self.name == PRIVATE_ROUTER).then(|| names::api_record(cluster));
        own.into_iter().collect()
    }

    /// The names of the other custom resources under which the zone's link can have been made.
    pub fn other_linkers(self) -> Vec<&'a str> {
        let mut others: Vec<&str> = SERVICES.to_vec();
        others.extend(self.sharing().map(|one| one.name.as_str()));
        others.sort_unstable();
        others.dedup();
        others.retain(|name| *name != self.name);
        others
    }

    /// Whether a sibling keeps using zone and link, and deletes them later.
    pub fn keeps(self) -> bool {
        self.staying().any(|one| one.held)
    }

    /// Whether the link is left to `private-router`, which is at work: Azure takes one link per zone and network.
    pub fn defers(self) -> bool {
        self.name != PRIVATE_ROUTER && self.staying().any(|one| one.held && one.name == PRIVATE_ROUTER)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sibling(name: &str) -> Sibling {
        Sibling {
            name: name.into(),
            base_domain: Some("example.com".into()),
            stays: true,
            held: true,
        }
    }

    fn records(name: &str, all: &[Sibling]) -> Vec<String> {
        SiblingSet::new(name, Some("example.com"), all).records("c")
    }

    #[test]
    fn private_router_has_both_names_as_long_as_it_is_alone() {
        assert_eq!(records(PRIVATE_ROUTER, &[]), ["api-c", "oauth-c"]);
        assert_eq!(records(PRIVATE_ROUTER, &[sibling(OAUTH)]), ["api-c"]);
        assert_eq!(records(OAUTH, &[sibling(PRIVATE_ROUTER)]), ["oauth-c"]);
        assert_eq!(records(OAUTH, &[]), ["oauth-c"]);
    }

    #[rstest]
    #[case::that_is_deleted(Sibling { stays: false, ..sibling(OAUTH) })]
    #[case::of_another_domain(Sibling { base_domain: Some("example.net".into()), ..sibling(OAUTH) })]
    #[case::without_a_domain(Sibling { base_domain: None, ..sibling(OAUTH) })]
    fn sibling_takes_nothing(#[case] sibling: Sibling) {
        assert_eq!(
            records(PRIVATE_ROUTER, std::slice::from_ref(&sibling)),
            ["api-c", "oauth-c"]
        );
        assert!(!SiblingSet::new(PRIVATE_ROUTER, Some("example.com"), &[sibling]).keeps());
    }

    #[test]
    fn record_of_oauth_has_one_writer_among_many() {
        let names = [PRIVATE_ROUTER, OAUTH, "by-hand"];
        let writers = names.map(|name| {
            let all: Vec<Sibling> = names
                .iter()
                .filter(|other| **other != name)
                .map(|n| sibling(n))
                .collect();
            records(name, &all).contains(&"oauth-c".to_owned())
        });
        assert_eq!(writers, [false, true, false]);
    }

    #[test]
    fn sibling_on_which_our_finalizer_does_not_stand_keeps_nothing() {
        let unheld = [Sibling {
            held: false,
            ..sibling(PRIVATE_ROUTER)
        }];
        let sibling_set = SiblingSet::new(OAUTH, Some("example.com"), &unheld);
        assert!(!sibling_set.keeps() && !sibling_set.defers());
        let held = [sibling(PRIVATE_ROUTER)];
        let sibling_set = SiblingSet::new(OAUTH, Some("example.com"), &held);
        assert!(sibling_set.keeps() && sibling_set.defers());
        assert!(!SiblingSet::new(PRIVATE_ROUTER, Some("example.com"), &[sibling(OAUTH)]).defers());
    }

    #[test]
    fn links_of_custom_resources_that_are_gone_are_known_by_name() {
        assert_eq!(
            SiblingSet::new(OAUTH, Some("example.com"), &[]).other_linkers(),
            [PRIVATE_ROUTER]
        );
        assert_eq!(
            SiblingSet::new(PRIVATE_ROUTER, Some("example.com"), &[sibling("x")]).other_linkers(),
            [OAUTH, "x"]
        );
    }
}
