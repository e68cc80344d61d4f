//! The names that role `capz` has on objects of Cluster API: the reference's, so that clusters can go over to Hyperlink
//! and back, and Hyperlink's own.

/// On an AzureCluster: its entries in other AzureClusters are removed before it is gone.
pub const FINALIZER: &str = "azure-private-endpoint-operator.giantswarm.io/azurecluster";
/// On the AzureCluster of a workload cluster: the address at which the management cluster reaches its API server.
pub const API_SERVER_ADDRESS: &str = "azure-private-endpoint-operator.giantswarm.io/private-link-apiserver-ip";
/// On the AzureCluster of a workload cluster: the address at which it reaches the management cluster's gateway.
pub const GATEWAY_ADDRESS: &str = "azure-private-endpoint-operator.giantswarm.io/private-link-mc-ingress-ip";
/// On the AzureCluster of the management cluster: which workload cluster each entry is for (JSON).
pub const LEDGER: &str = "hyperlink.hypershift.openshift.io/capz-endpoints";
/// The longest ledger that is written, in bytes. All annotations of an object together may have 256 KiB.
/// Source: <https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations>
pub const LONGEST_LEDGER: usize = 200 * 1024;

/// On the AzureCluster of the management cluster: the private endpoints whose entries were removed, which may still be in
/// Azure, each with the time of that (JSON).
pub const DROPPED_ENDPOINTS: &str = "hyperlink.hypershift.openshift.io/capz-dropped-endpoints";
/// The most bytes of the ledger and of these together.
pub const LONGEST_RECORDS: usize = 220 * 1024;

/// The most links of a cluster that are served; a load balancer has 8 Private Link Services at most.
pub const MOST_LINKS: usize = 16;

/// On objects of Cluster API: its controllers leave the object alone.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// On a KubeadmControlPlane that this role has paused: for which gates.
pub const PAUSED_HERE: &str = "hyperlink.hypershift.openshift.io/capz-paused";

/// The condition of the AzureCluster that the role writes.
pub const CONDITION: &str = "GSPrivateLinksReady";
/// The condition by which CAPZ shows that it has made the Private Link Services of a cluster.
pub const LINKS_READY: &str = "PrivateLinksReady";

/// On a Cluster: its ProviderConfig is deleted before it is gone.
pub const PROVIDER_CONFIG_FINALIZER: &str = "azure.giantswarm.io/providerconfig";
/// On a ProviderConfig: the Cluster that it is for, as `namespace/name/uid`.
pub const PROVIDER_CONFIG_HOLDER: &str = "hyperlink.hypershift.openshift.io/capz-cluster";
/// On an object of the Azure Service Operator: the Secret with its credentials.
pub const ASO_CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
