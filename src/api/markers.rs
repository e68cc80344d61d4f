//! Finalizers, annotations and labels: the names that both roles share with each other and with HyperShift.

pub mod aws;
pub mod capz;

/// Role `ho`'s finalizer on the custom resource.
pub const HO_FINALIZER: &str = "hypershift.openshift.io/azure-pls-cleanup";
/// Role `cpo`'s finalizer on the custom resource.
pub const CPO_FINALIZER: &str = "hypershift.openshift.io/azure-private-link-service";
/// Role `cpo`'s finalizer on the HostedControlPlane.
pub const HCP_FINALIZER: &str = "hypershift.openshift.io/azure-pls-endpoint-cleanup";

/// On the custom resource and the HostedControlPlane: the HostedCluster, `<namespace>/<name>`.
pub const CLUSTER_ANNOTATION: &str = "hypershift.openshift.io/cluster";
/// On a Service, exactly [`INTERNAL_LOAD_BALANCER_VALUE`] when its load balancer is internal.
pub const INTERNAL_LOAD_BALANCER_ANNOTATION: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// The one value of [`INTERNAL_LOAD_BALANCER_ANNOTATION`] that counts.
pub const INTERNAL_LOAD_BALANCER_VALUE: &str = "true";

/// What role `ho` is about to create (JSON), written before its first write to the cloud.
pub const HO_INTENT: &str = "hyperlink.hypershift.openshift.io/ho-intent";
/// What role `cpo` is about to create (JSON), written before its first write to the cloud.
pub const CPO_INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
/// `<uid>/<role>/<reason>`: abandons a custom resource under deletion although the cloud denies access.
pub const ABANDON: &str = "hyperlink.hypershift.openshift.io/abandon";
/// Lets role `ho` replace a Private Link Service that another control plane operator is connected to.
pub const ALLOW_REPLACE: &str = "hyperlink.hypershift.openshift.io/allow-replace";

/// On the HostedCluster: the UID of the namespace kube-system of the management cluster that it came from. The Private
/// Link Services of its name that were created there are adopted.
pub const ADOPT_FROM: &str = "hyperlink.hypershift.openshift.io/adopt-from";

/// The annotations of the custom resource that are read; a change of any other one is ignored.
pub const READ_ANNOTATIONS: [&str; 5] = [CLUSTER_ANNOTATION, HO_INTENT, CPO_INTENT, ABANDON, ALLOW_REPLACE];

/// The annotations of HostedClusters and HostedControlPlanes whose change causes a reconcile.
pub const READ_CLUSTER_ANNOTATIONS: [&str; 2] = [CLUSTER_ANNOTATION, ADOPT_FROM];

/// On a Service that publishes a host name of a private cluster: exactly [`EXTERNAL_VALUE`].
pub const EXTERNAL_LABEL: &str = "hypershift.openshift.io/azure-pls-external-private-svc";
/// The value of [`EXTERNAL_LABEL`].
pub const EXTERNAL_VALUE: &str = "true";
/// On a Service: the public host name that external-dns publishes for it.
pub const EXTERNAL_HOST_ANNOTATION: &str = "external-dns.alpha.kubernetes.io/hostname";

/// The Service, and so the custom resource, that carries the cluster's internal names.
pub const PRIVATE_ROUTER: &str = "private-router";
/// The Service, and so the custom resource, of OAuth when a load balancer of its own publishes it.
pub const OAUTH: &str = "oauth-openshift";
/// The Services that get a custom resource of the same name.
pub const SERVICES: [&str; 2] = [PRIVATE_ROUTER, OAUTH];
