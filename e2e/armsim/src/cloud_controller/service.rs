//! What a Kubernetes Service asks of the cloud, and what the cloud writes back. Pure: decides names, patches and which Services count.

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

/// The annotation that makes a load balancer internal
/// (<https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/#loadbalancer-annotations>).
pub(crate) const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// The finalizer by which Kubernetes' service controllers guard what they made
/// (<https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/#garbage-collecting-load-balancers>).
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// Azure cuts names of load balancers, and of frontends after them, at this length.
const FRONTEND_NAME_MAX: usize = 32;

/// What is to be done about a Service.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Desired {
    /// A frontend with an address.
    Frontend,
    /// What this controller made is to be deleted: the Service is being deleted, or asks for something else now.
    Nothing,
    /// This controller never made anything for it.
    Ignore,
}

/// Reads what the Service asks for.
pub(crate) fn desired(service: &Service) -> Desired {
    if service.metadata.deletion_timestamp.is_none() && asks(service) {
        Desired::Frontend
    } else if has_finalizer(service) {
        Desired::Nothing
    } else {
        Desired::Ignore
    }
}

fn asks(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    let balanced =
        spec.is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none());
    let annotation = service
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(INTERNAL));
    balanced && annotation.map(String::as_str) == Some("true")
}

fn has_finalizer(service: &Service) -> bool {
    finalizers(service).any(|name| name == FINALIZER)
}

fn finalizers(service: &Service) -> impl Iterator<Item = &str> {
    service.metadata.finalizers.iter().flatten().map(String::as_str)
}

/// The frontend's name as Azure's cloud provider gives it: `a` and the Service's UID without dashes, cut at 32.
pub(crate) fn frontend_name(uid: &str) -> String {
    format!("a{uid}")
        .chars()
        .filter(|letter| *letter != '-')
        .take(FRONTEND_NAME_MAX)
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
pub(crate) fn status_patch(service: &Service, address: Option<&str>) -> Option<Value> {
    let shown: Vec<Option<&str>> = (service.status.iter())
        .filter_map(|status| status.load_balancer.as_ref()?.ingress.as_ref())
        .flatten()
        .map(|ingress| ingress.ip.as_deref())
        .collect();
    let desired_ips: Vec<Option<&str>> = address.map(Some).into_iter().collect();
    if shown == desired_ips {
        return None;
    }
    let ingress: Option<Vec<Value>> = address.map(|ip| vec![json!({"ip": ip})]);
    Some(json!({"status": {"loadBalancer": {"ingress": ingress}}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(change: impl FnOnce(&mut Value)) -> Service {
        let mut value = json!({"metadata": {"name": "private-router", "uid": "0a1b2c3d-1111-2222-3333-444455556666", "resourceVersion": "7",
            "annotations": {INTERNAL: "true"}}, "spec": {"type": "LoadBalancer"}});
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn internal_load_balancer_service_gets_a_frontend() {
        assert_eq!(desired(&service(|_| {})), Desired::Frontend);
        assert_eq!(
            desired(&service(|s| s["metadata"]["annotations"][INTERNAL] = json!("false"))),
            Desired::Ignore
        );
        assert_eq!(
            desired(&service(|s| s["metadata"]["annotations"] = json!(null))),
            Desired::Ignore
        );
        assert_eq!(
            desired(&service(|s| s["spec"]["type"] = json!("ClusterIP"))),
            Desired::Ignore
        );
        assert_eq!(
            desired(&service(|s| s["spec"]["loadBalancerClass"] = json!("example.com/other"))),
            Desired::Ignore
        );
    }

    #[test]
    fn deleted_or_changed_service_loses_a_frontend_it_had() {
        let deleting = |s: &mut Value| s["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(desired(&service(deleting)), Desired::Ignore);
        let finalizer = |s: &mut Value| s["metadata"]["finalizers"] = json!([FINALIZER]);
        assert_eq!(
            desired(&service(|s| {
                deleting(s);
                finalizer(s)
            })),
            Desired::Nothing
        );
        assert_eq!(
            desired(&service(|s| {
                s["spec"]["type"] = json!("ClusterIP");
                finalizer(s)
            })),
            Desired::Nothing
        );
    }

    #[test]
    fn frontend_is_named_as_the_cloud_provider_names_it() {
        let name = frontend_name("0a1b2c3d-1111-2222-3333-444455556666");
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
        let empty = service(|_| {});
        assert_eq!(status_patch(&empty, None), None);
        assert_eq!(
            status_patch(&empty, Some("10.0.0.4")),
            Some(json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.4"}]}}}))
        );
        let shown = service(|s| s["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.4"}]}}));
        assert_eq!(status_patch(&shown, Some("10.0.0.4")), None);
        assert!(status_patch(&shown, Some("10.0.0.5")).is_some());
        assert_eq!(
            status_patch(&shown, None),
            Some(json!({"status": {"loadBalancer": {"ingress": null}}}))
        );
    }
}
