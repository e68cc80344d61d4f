//! The metrics of clusters of Cluster API on Azure.

use super::*;
use crate::api::capi::IdentityType;
use crate::capz::reason::Reason;

fn cluster(name: &str, reason: Option<Reason>, age: u64) -> ObservedCluster {
    ObservedCluster {
        namespace: "org".into(),
        name: name.into(),
        is_ready: reason.is_none(),
        reason,
        age: Duration::from_secs(age),
    }
}

/// A fleet in which everything is there once.
pub(super) fn fleet() -> ObservedFleet {
    ObservedFleet {
        entries: ObservedEntries {
            desired: 3,
            present: 2,
            unclaimed: 1,
        },
        left_behind: 4,
        clusters: vec![
            cluster("ready", None, 5),
            cluster("waits", Some(Reason::LinksNotReady), 60),
        ],
        identities: BTreeMap::from([((IdentityType::UserAssignedMsi, IdentityResult::Denied), 1)]),
    }
}

fn lines(metrics: &Metrics) -> Vec<String> {
    let text = metrics.render().unwrap();
    let own = text.lines().filter(|line| line.starts_with("hyperlink_capz_"));
    own.map(str::to_owned).collect()
}

#[test]
fn process_without_the_role_shows_no_clusters() {
    let shown = lines(&metrics());
    let others = shown.iter().filter(|line| !line.contains("_writes_total"));
    assert_eq!(others.count(), 0, "{shown:?}");
}

#[test]
fn clusters_entries_and_identities_are_counted() {
    let metrics = metrics();
    metrics.observe_fleet_with(fleet);
    metrics.management_cluster_written(ManagementWrite::Conflict);
    for line in [
        r#"hyperlink_capz_entries{state="desired"} 3"#,
        r#"hyperlink_capz_entries{state="present"} 2"#,
        r#"hyperlink_capz_entries{state="unclaimed"} 1"#,
        "hyperlink_capz_left_behind_endpoints 4",
        r#"hyperlink_capz_clusters{reason="Ready"} 1"#,
        r#"hyperlink_capz_clusters{reason="LinksNotReady"} 1"#,
        r#"hyperlink_capz_cluster_not_ready_age_seconds{cluster_namespace="org",name="waits",reason="LinksNotReady"} 60"#,
        r#"hyperlink_capz_identities{type="UserAssignedMSI",result="denied"} 1"#,
        r#"hyperlink_capz_management_cluster_writes_total{result="conflict"} 1"#,
        r#"hyperlink_capz_management_cluster_writes_total{result="written"} 0"#,
    ] {
        assert_sample(&metrics, line);
    }
}

#[test]
fn clusters_of_one_namespace_take_no_series_of_another() {
    let metrics = metrics();
    metrics.observe_fleet_with(|| {
        let junk = (0..100).map(|number| cluster(&format!("junk-{number}"), Some(Reason::NotOurs), number));
        let mut other = cluster("other", Some(Reason::NotOurs), 1);
        other.namespace = "neighbour".into();
        let clusters = junk.chain([other]).collect();
        ObservedFleet {
            clusters,
            ..ObservedFleet::default()
        }
    });
    let shown = lines(&metrics);
    let named: Vec<_> = shown.iter().filter(|line| line.contains("name=")).collect();
    assert_eq!(named.len(), 33);
    assert!(named.iter().any(|line| line.contains("neighbour")));
    assert!(named.iter().any(|line| line.contains("junk-99")) && !named.iter().any(|line| line.contains("junk-9\"")));
}
