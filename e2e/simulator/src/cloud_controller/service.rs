//! What a Kubernetes Service asks of the cloud, and what the cloud writes back. Pure: decides names, patches and which
//! Services count.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use serde_json::{Value, json};

/// The finalizer by which Kubernetes' service controllers guard what they made
/// (<https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/#garbage-collecting-load-balancers>).
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// What the names of all clouds' annotations begin with.
const ANNOTATIONS: &str = "service.beta.kubernetes.io/";
/// Cloud providers cut the names of load balancers at this length.
const NAME_MAX: usize = 32;

/// What is to be done about a Service.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Desired {
    /// A load balancer with an address.
    LoadBalancer,
    /// What this controller made is to be deleted: the Service is being deleted, or asks for something else now.
    Nothing,
    /// This controller never made anything for it.
    Ignore,
}

/// Reads what the Service asks for; `is_served` is whether this cloud gives it to a Service of type LoadBalancer.
pub(crate) fn desired(service: &Service, is_served: bool) -> Desired {
    if service.metadata.deletion_timestamp.is_none() && is_balanced(service) && is_served {
        Desired::LoadBalancer
    } else if has_finalizer(service) {
        Desired::Nothing
    } else {
        Desired::Ignore
    }
}

/// Whether only other clouds' annotations are on a Service; `own` is what this cloud's begin with. Where there are
/// several clouds, each would else remove what another one has made: they share the finalizer.
pub(crate) fn is_anothers(service: &Service, own: &str) -> bool {
    let names = service.metadata.annotations.iter().flatten().map(|(name, _)| name);
    let mut clouds = names.filter(|name| name.starts_with(ANNOTATIONS)).peekable();
    clouds.peek().is_some() && clouds.all(|name| !name.starts_with(own))
}

fn is_balanced(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none())
}

fn has_finalizer(service: &Service) -> bool {
    finalizers(service).any(|name| name == FINALIZER)
}

fn finalizers(service: &Service) -> impl Iterator<Item = &str> {
    service.metadata.finalizers.iter().flatten().map(String::as_str)
}

/// The name as Kubernetes' cloud providers give it: `a` and the Service's UID without dashes, cut at 32.
pub(crate) fn load_balancer_name(uid: &str) -> String {
    format!("a{uid}")
        .chars()
        .filter(|letter| *letter != '-')
        .take(NAME_MAX)
        .collect()
}

/// A merge patch, guarded by the version that was read, that adds or removes the finalizer; `None` when it is so
/// already.
pub(crate) fn finalizer_patch(service: &Service, present: bool) -> Option<Value> {
    if has_finalizer(service) == present {
        return None;
    }
    let mut names: Vec<&str> = finalizers(service).filter(|name| *name != FINALIZER).collect();
    if present {
        names.push(FINALIZER);
    }
    Some(json!({"metadata": {"resourceVersion": service.metadata.resource_version, "finalizers": names}}))
}

/// A merge patch of the status that shows this address alone (or none); `None` when it is so already.
pub(crate) fn status_patch(service: &Service, address: Option<&LoadBalancerIngress>) -> Option<Value> {
    let shown: Vec<_> = (service.status.iter())
        .filter_map(|status| status.load_balancer.as_ref()?.ingress.as_ref())
        .flatten()
        .map(|ingress| (&ingress.ip, &ingress.hostname))
        .collect();
    let desired: Vec<_> = address
        .map(|ingress| (&ingress.ip, &ingress.hostname))
        .into_iter()
        .collect();
    if shown == desired {
        return None;
    }
    let ingress = address.map(|address| vec![address]);
    Some(json!({"status": {"loadBalancer": {"ingress": ingress}}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(change: impl FnOnce(&mut Value)) -> Service {
        let mut value = json!({"metadata": {"name": "private-router", "uid": "0a1b2c3d-1111-2222-3333-444455556666", "resourceVersion": "7"},
            "spec": {"type": "LoadBalancer"}});
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn served_service_of_type_load_balancer_gets_one() {
        let typed = |kind: &'static str| move |s: &mut Value| s["spec"]["type"] = json!(kind);
        assert_eq!(desired(&service(|_| {}), true), Desired::LoadBalancer);
        assert_eq!(desired(&service(|_| {}), false), Desired::Ignore);
        assert_eq!(desired(&service(typed("ClusterIP")), true), Desired::Ignore);
        let of_others = service(|s| s["spec"]["loadBalancerClass"] = json!("example.com/other"));
        assert_eq!(desired(&of_others, true), Desired::Ignore);
    }

    #[test]
    fn deleted_or_changed_service_loses_what_it_had() {
        let deleting = |s: &mut Value| s["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(desired(&service(deleting), true), Desired::Ignore);
        let finalizer = |s: &mut Value| s["metadata"]["finalizers"] = json!([FINALIZER]);
        assert_eq!(
            desired(
                &service(|s| {
                    deleting(s);
                    finalizer(s)
                }),
                true
            ),
            Desired::Nothing
        );
        assert_eq!(
            desired(
                &service(|s| {
                    s["spec"]["type"] = json!("ClusterIP");
                    finalizer(s)
                }),
                true
            ),
            Desired::Nothing
        );
        assert_eq!(desired(&service(finalizer), false), Desired::Nothing);
    }

    #[test]
    fn service_with_annotations_of_other_clouds_alone_is_theirs() {
        const OWN: &str = "service.beta.kubernetes.io/azure-";
        let annotated = |names: &[&str]| {
            let all: Vec<_> = names.iter().map(|name| ((*name).to_owned(), json!("true"))).collect();
            let all: serde_json::Map<String, Value> = all.into_iter().collect();
            is_anothers(&service(|s| s["metadata"]["annotations"] = json!(all)), OWN)
        };
        let (own, theirs) = (
            "service.beta.kubernetes.io/azure-load-balancer-internal",
            "service.beta.kubernetes.io/aws-load-balancer-type",
        );
        assert!(annotated(&[theirs, "example.com/other"]));
        assert!(!annotated(&[own, theirs]) && !annotated(&["example.com/other"]) && !annotated(&[]));
    }

    #[test]
    fn load_balancer_is_named_as_cloud_providers_name_it() {
        let name = load_balancer_name("0a1b2c3d-1111-2222-3333-444455556666");
        assert_eq!(name, "a0a1b2c3d11112222333344445555666");
        assert_eq!(name.len(), 32);
    }

    #[test]
    fn finalizers_of_others_survive() {
        let others = service(|s| s["metadata"]["finalizers"] = json!(["other/one"]));
        let added = finalizer_patch(&others, true).unwrap();
        assert_eq!(
            added["metadata"],
            json!({"resourceVersion": "7", "finalizers": ["other/one", FINALIZER]})
        );
        assert_eq!(finalizer_patch(&others, false), None);
        let both = service(|s| s["metadata"]["finalizers"] = json!(["other/one", FINALIZER]));
        assert_eq!(finalizer_patch(&both, true), None);
        assert_eq!(
            finalizer_patch(&both, false).unwrap()["metadata"]["finalizers"],
            json!(["other/one"])
        );
    }

    #[test]
    fn status_is_written_only_when_the_address_differs() {
        let ip = |ip: &str| LoadBalancerIngress {
            ip: Some(ip.to_owned()),
            ..LoadBalancerIngress::default()
        };
        let empty = service(|_| {});
        assert_eq!(status_patch(&empty, None), None);
        assert_eq!(
            status_patch(&empty, Some(&ip("10.0.0.4"))),
            Some(json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.4"}]}}}))
        );
        let entry = json!({"ip": "10.0.0.4", "ipMode": "VIP"});
        let shown = service(|s| s["status"] = json!({"loadBalancer": {"ingress": [entry]}}));
        assert_eq!(status_patch(&shown, Some(&ip("10.0.0.4"))), None);
        assert!(status_patch(&shown, Some(&ip("10.0.0.5"))).is_some());
        let named = LoadBalancerIngress {
            hostname: Some("10.0.0.4".to_owned()),
            ..LoadBalancerIngress::default()
        };
        assert!(status_patch(&shown, Some(&named)).is_some());
        assert_eq!(
            status_patch(&shown, None),
            Some(json!({"status": {"loadBalancer": {"ingress": null}}}))
        );
    }
}
