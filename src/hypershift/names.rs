//! The names that HyperShift derives on every cloud, and those that Kubernetes takes. Pure.

use crate::api::ClusterRef;

/// Whether a namespace can have this name, a DNS label.
pub fn is_namespace(text: &str) -> bool {
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let length = (1..=63).contains(&text.len());
    length && text.chars().all(label) && !text.starts_with('-') && !text.ends_with('-')
}

/// The namespace in which HyperShift runs the control plane of a HostedCluster.
pub fn control_plane_namespace(cluster: &ClusterRef) -> String {
    format!("{}-{}", cluster.namespace, cluster.name.replace('.', "-"))
}

/// Whether an object of Kubernetes can have this name, so that it may stand in the path of a request.
pub fn is_object_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = [name.chars().next(), name.chars().last()];
    name.len() <= 253
        && name.chars().all(allowed)
        && ends.iter().all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
}

/// The name of the internal zone, whose names only the guest knows.
pub fn internal_zone(cluster: &str) -> String {
    format!("{cluster}.hypershift.local")
}

/// The names of the internal zone's records.
pub const INTERNAL_RECORDS: [&str; 2] = ["api", "*.apps"];

/// The cluster whose internal zone has this name.
pub fn cluster_of_internal_zone(zone: &str) -> Option<&str> {
    zone.strip_suffix(".hypershift.local")
}

/// The name that a cloud provider gives the load balancer of a Service, from the Service's UID.
/// (`DefaultLoadBalancerName` of k8s.io/cloud-provider)
pub fn load_balancer(service_uid: &str) -> String {
    format!("a{}", service_uid.replace('-', "")).chars().take(32).collect()
}

/// Whether a cluster of this name can have its control plane in this namespace.
pub fn fits_namespace(cluster: &str, namespace: &str) -> bool {
    let before = namespace.strip_suffix(&cluster.replace('.', "-"));
    !cluster.is_empty() && before.is_some_and(|before| before.len() > 1 && before.ends_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_of_a_cluster_name_become_dashes_in_its_namespace() {
        let cluster = ClusterRef {
            namespace: "clusters".into(),
            name: "a.b".into(),
        };
        assert_eq!(control_plane_namespace(&cluster), "clusters-a-b");
    }

    #[test]
    fn cluster_fits_only_the_namespace_of_its_control_plane() {
        assert!(fits_namespace("example", "clusters-example") && fits_namespace("a.b", "clusters-a-b"));
        for namespace in ["example", "-example", "clusters-other", "clustersexample"] {
            assert!(!fits_namespace("example", namespace), "{namespace}");
        }
        assert!(!fits_namespace("", "clusters-"));
        assert_eq!(cluster_of_internal_zone(&internal_zone("a.b")), Some("a.b"));
    }

    #[test]
    fn name_that_leads_elsewhere_in_a_path_is_no_name() {
        assert!(["a", "a.b-c", "0"].into_iter().all(is_object_name));
        let long = "a".repeat(254);
        for name in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "../a",
            "a?watch=true",
            "A",
            "ä",
            "a.",
            "-a",
            &long,
        ] {
            assert!(!is_object_name(name), "{name}");
        }
    }

    #[test]
    fn load_balancer_name_is_cut_at_32() {
        assert_eq!(
            load_balancer("5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11"),
            "a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1"
        );
    }
}
