//! The names for clusters on AWS that differ from, or come to, those in the module above.

use super::{ABANDON, CLUSTER_ANNOTATION, CPO_INTENT, HO_INTENT, PRIVATE_ROUTER};

/// Role `ho`'s finalizer on the custom resource.
pub const HO_FINALIZER: &str = "hypershift.openshift.io/hypershift-operator-finalizer";
/// Role `cpo`'s finalizer on the custom resource. There is none on the HostedControlPlane.
pub const CPO_FINALIZER: &str = "hypershift.openshift.io/control-plane-operator-finalizer";

/// On the custom resource, by role `ho`: the ids of the zones in which the endpoint service is, joined by commas.
pub const SERVICE_ZONES: &str = "hyperlink.hypershift.openshift.io/service-zones";

/// On the custom resource, by role `cpo`: the DNS name of the endpoint. The status has only the names of records.
pub const ENDPOINT_DNS_NAME: &str = "hyperlink.hypershift.openshift.io/endpoint-dns-name";

/// The annotations of the custom resource that are read; a change of any other one is ignored.
pub const READ_ANNOTATIONS: [&str; 6] = [
    CLUSTER_ANNOTATION,
    HO_INTENT,
    CPO_INTENT,
    ABANDON,
    SERVICE_ZONES,
    ENDPOINT_DNS_NAME,
];

/// The Service, and so the custom resource, of an API server that is not behind the router.
pub const KUBE_API_SERVER: &str = "kube-apiserver-private";
/// The Services that get a custom resource of the same name.
pub const SERVICES: [&str; 2] = [PRIVATE_ROUTER, KUBE_API_SERVER];

/// On a Service that publishes a host name of a private cluster: exactly [`super::EXTERNAL_VALUE`].
pub const EXTERNAL_LABEL: &str = "hypershift.openshift.io/external-private-service";

/// The ConfigMap in which Karpenter's operator lists the subnets of its nodes, in the control plane's namespace.
pub const KARPENTER_SUBNETS: &str = "karpenter-subnets";
/// The key in [`KARPENTER_SUBNETS`] whose value is a JSON list of subnet ids.
pub const KARPENTER_SUBNETS_KEY: &str = "subnetIDs";
/// The label that [`KARPENTER_SUBNETS`] has, with exactly [`KARPENTER_VALUE`].
pub const KARPENTER_LABEL: &str = "hypershift.openshift.io/managed-by";
/// The value of [`KARPENTER_LABEL`].
pub const KARPENTER_VALUE: &str = "karpenter";

/// The name that the custom resource of `private-router` had in earlier versions of HyperShift.
pub fn obsolete_router(namespace: &str) -> String {
    format!("router-{namespace}")
}
