//! The settings of `hyperlink run` and `hyperlink plan`, one field each: flag, variable, default and help.
//!
//! A help text ends with the unit, and with the default in words where the default is no value. `parse` adds default
//! values and variables.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, ValueEnum, value_parser};
use ipnet::Ipv4Net;

use super::value::{self, duration, namespace};
use crate::api::{Platform, Role};
use crate::azure::arm::id::{ResourceId, SubscriptionId};
use crate::azure::arm::scope::AzureScope;
use crate::hypershift::aws::load_balancer_name::NlbMatch;
use crate::hypershift::azure::management_scopes::ManagementScopes;
use crate::hypershift::azure::names::FrontendMatch;
use crate::hypershift::shard::Shard;
use crate::scopes_file::ScopesFile;
use crate::telemetry;

/// The settings of `hyperlink run`. Its display orders put each flag where it belongs in the help.
#[derive(Debug, Clone, Parser)]
pub struct RunSettings {
    /// What `hyperlink plan` has too.
    #[command(flatten)]
    pub shared: PlanSettings,
    /// Which part of all clusters this process serves, where several processes share them: cpo by the guest's
    /// subscription, ho by that of the management scope. Processes with another N, or without it, wait until those with
    /// this N have ended. [unit: K/N: 1/3, 2/3, 3/3]
    #[arg(
        long,
        env = "HYPERLINK_SHARD",
        value_name = "K/N",
        default_value = "1/1",
        display_order = 3
    )]
    pub(super) shard: Shard,
    /// How many objects each controller reconciles at once: at most 4 of one namespace, and 16 of one subscription.
    /// [unit: reconciles at once, per controller]
    #[arg(long, env = "HYPERLINK_CONCURRENCY", value_name = "NUMBER")]
    #[arg(default_value = "64", display_order = 9, value_parser = value_parser!(u16).range(1..))]
    pub(super) concurrency: u16,
    #[command(flatten, next_display_order = 20)]
    pub(super) endpoints: Endpoints,
    #[command(flatten)]
    pub(super) leader_election: LeaderElection,
}

/// The settings of `hyperlink plan`, all of which `hyperlink run` has too.
#[derive(Debug, Clone, Parser)]
pub struct PlanSettings {
    #[command(flatten)]
    pub(super) scope: ScopeSettings,
    #[command(flatten, next_display_order = 10)]
    pub(super) intervals: Intervals,
    #[command(flatten, next_display_order = 40)]
    pub(super) connections: Connections,
    #[command(flatten)]
    pub(super) ho: Ho,
    #[command(flatten)]
    pub(super) aws: AwsSettings,
    #[command(flatten)]
    pub(super) capz: CapzSettings,
    /// Format and filter of the log.
    #[command(flatten)]
    pub log: Log,
}

/// The roles, and the control planes that they serve.
#[derive(Debug, Clone, Args)]
pub struct ScopeSettings {
    /// What this process builds: ho the management side (load balancer lookup, NAT subnet, Private Link Service), cpo
    /// the guest side (Private Endpoint, private DNS), capz private endpoints for clusters made by Cluster API on Azure.
    /// May be repeated. [unit: ho or cpo, or both; or capz] [default: none; required]
    #[arg(long = "role", env = "HYPERLINK_ROLE", value_name = "ROLE")]
    #[arg(value_parser = value::role, value_delimiter = ',')]
    pub(super) roles: Vec<Role>,
    /// The platforms whose hosted clusters this process serves. May be repeated. [unit: azure or aws, or both]
    #[arg(
        long = "platform",
        env = "HYPERLINK_PLATFORM",
        value_name = "PLATFORM",
        default_value = "azure"
    )]
    #[arg(value_parser = value::platform, value_delimiter = ',')]
    pub(super) platforms: Vec<Platform>,
    /// Serve only this namespace. [unit: Kubernetes namespace] [default: all namespaces]
    #[arg(long, env = "HYPERLINK_NAMESPACE", value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Namespaces of control planes that other processes serve. The file of --allow-scopes can exclude more without a
    /// restart. May be repeated. [unit: Kubernetes namespaces] [default: none]
    #[arg(long = "exclude-namespace", env = "HYPERLINK_EXCLUDE_NAMESPACE", value_name = "NAME")]
    #[arg(value_parser = namespace, value_delimiter = ',')]
    pub exclude_namespaces: Vec<String>,
    /// Which parts of Azure and AWS each HostedCluster's control plane may use, and by which roles on AWS. All others
    /// are refused. The file is read again when it changes. [unit: path of a YAML or JSON file] [default: none; required for role cpo without --namespace]
    #[arg(long, env = "HYPERLINK_ALLOW_SCOPES", value_name = "FILE", value_parser = value::scopes_file)]
    pub allow_scopes: Option<ScopesFile>,
}

/// How often Azure is compared with what should exist there.
#[derive(Debug, Clone, Args)]
pub struct Intervals {
    /// How often everything except DNS records and links is compared with Azure. [unit: duration: 90s, 5m, 1h30m]
    #[arg(long, env = "HYPERLINK_RESYNC", value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub resync: Duration,
    /// How often DNS records are compared with Azure, and in every sixth round links. Those that somebody removes while the
    /// process leads are found within --resync.
    /// [unit: duration: 90s, 5m, 1h30m]
    #[arg(long, env = "HYPERLINK_RECORD_RESYNC", value_name = "DURATION")]
    #[arg(value_parser = duration, default_value = "45m")]
    pub record_resync: Duration,
}

/// Where probes and metrics are served.
#[derive(Debug, Clone, Args)]
pub(super) struct Endpoints {
    /// Where /livez and /readyz are served, as plain HTTP and without a token, as kubelets ask. In a pod, use
    /// 0.0.0.0:8081. /metrics is not served there. [unit: IP address:port] [default: that of --metrics-bind]
    #[arg(long, env = "HYPERLINK_PROBE_BIND", value_name = "ADDRESS", value_parser = value::address)]
    pub(super) probe_bind: Option<SocketAddr>,
    /// Where /metrics is served: as plain HTTP on loopback, elsewhere only with --metrics-secure. [unit: IP
    /// address:port]
    #[arg(long, env = "HYPERLINK_METRICS_BIND", value_name = "ADDRESS", value_parser = value::address)]
    #[arg(default_value = "127.0.0.1:8080")]
    pub(super) metrics_bind: SocketAddr,
    /// Whether --metrics-bind uses TLS, and serves /metrics only to bearers of a token whom the API server allows to
    /// get that path. Hyperlink needs role-metrics.yaml for it, and the scraper role-metrics-reader.yaml. [unit: true
    /// or false]
    #[arg(long, env = "HYPERLINK_METRICS_SECURE", value_name = "BOOLEAN", action = ArgAction::Set)]
    #[arg(default_value = "false")]
    pub(super) metrics_secure: bool,
    /// The certificate for --metrics-secure. It is read again when it changes. [unit: path of a PEM file] [default: a
    /// self-signed certificate]
    #[arg(long, env = "HYPERLINK_METRICS_CERT_FILE", value_name = "FILE")]
    pub(super) metrics_cert_file: Option<PathBuf>,
    /// The private key of --metrics-cert-file. It is read again when it changes. [unit: path of a PEM file] [default:
    /// none; required with --metrics-cert-file]
    #[arg(long, env = "HYPERLINK_METRICS_KEY_FILE", value_name = "FILE")]
    pub(super) metrics_key_file: Option<PathBuf>,
}

/// How a process becomes the leader, and how long it stays the leader.
#[derive(Debug, Clone, Args)]
pub(super) struct LeaderElection {
    /// How long a lease lasts that is not renewed. [unit: duration in whole seconds: 15s, 2m17s]
    #[arg(long, env = "HYPERLINK_LEASE_DURATION", value_name = "DURATION")]
    #[arg(default_value = "15s", value_parser = value::whole_seconds)]
    pub(super) lease_duration: Duration,
    /// A leader stops leading when it could not renew the lease for this long. Shorter than --lease-duration. [unit:
    /// duration: 90s, 5m, 1h30m]
    #[arg(long, env = "HYPERLINK_LEASE_RENEW_DEADLINE", value_name = "DURATION")]
    #[arg(default_value = "10s", value_parser = duration)]
    pub(super) lease_renew_deadline: Duration,
    /// How often a process renews the lease or tries to get it. Shorter than --lease-renew-deadline. [unit: duration:
    /// 90s, 5m, 1h30m]
    #[arg(long, env = "HYPERLINK_LEASE_RETRY", value_name = "DURATION", value_parser = duration, default_value = "2s")]
    pub(super) lease_retry: Duration,
    /// Where the lease is kept. [unit: Kubernetes namespace] [default: POD_NAMESPACE, else the service account's
    /// namespace, else --namespace]
    #[arg(long, env = "HYPERLINK_LEASE_NAMESPACE", value_name = "NAME", value_parser = namespace)]
    pub(super) lease_namespace: Option<String>,
}

/// How the API server and Azure are reached.
#[derive(Debug, Clone, Args)]
pub(super) struct Connections {
    /// How to reach the Kubernetes API server. [unit: path] [default: ~/.kube/config if there is one, else the cluster
    /// that the pod runs in]
    #[arg(long, env = "KUBECONFIG", value_name = "FILE", value_parser = value::readable_file)]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The Azure cloud. [unit: AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; or, with its addresses,
    /// AzureGermanCloud, AzureBleuCloud or AzureStackCloud]
    #[arg(long, env = "AZURE_CLOUD_NAME", value_name = "NAME", value_parser = value::cloud)]
    #[arg(default_value = "AzurePublicCloud")]
    pub(super) cloud: &'static str,
    /// Azure Resource Manager. No other host ever gets a token for it. [unit: https://host or https://host:port; http
    /// on loopback only] [default: that of --cloud]
    #[arg(long, env = "HYPERLINK_ARM_ENDPOINT", value_name = "URL")]
    pub(super) arm_endpoint: Option<String>,
    /// Where tokens are issued. [unit: https://host or https://host:port] [default: that of --cloud]
    #[arg(long, env = "AZURE_AUTHORITY_HOST", value_name = "URL")]
    pub(super) authority: Option<String>,
    /// Whom tokens are for. Required with an --arm-endpoint that is not that of --cloud. [unit: resource that tokens
    /// are for] [default: that of --cloud]
    #[arg(long, env = "HYPERLINK_AUDIENCE", value_name = "URL")]
    pub(super) audience: Option<String>,
    /// Certificate authorities that are trusted for --arm-endpoint and --authority in addition to the system's. [unit:
    /// path of a PEM file] [default: none]
    #[arg(long, env = "HYPERLINK_CA_FILE", value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// How Hyperlink proves its identity to Azure. secret-file reads AZURE_CREDENTIALS_FILE. workload-identity needs
    /// AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE; HyperShift chooses it by AZURE_PLS_CLIENT_ID.
    /// managed-identity uses AZURE_CLIENT_ID if it is set. azure-cli is for development. [unit: secret-file,
    /// workload-identity, managed-identity or azure-cli] [default: workload-identity or secret-file, whichever the
    /// environment describes]
    #[arg(long, env = "HYPERLINK_CREDENTIAL", value_name = "KIND")]
    pub(super) credential: Option<CredentialKind>,
}

/// How the process proves its identity to Azure.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum CredentialKind {
    SecretFile,
    WorkloadIdentity,
    ManagedIdentity,
    AzureCli,
}

/// What only role `ho` uses.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Ho {
    /// Subscription of the management cluster's load balancers and Private Link Services. Required for role ho without
    /// --management-scopes. [unit: UUID] [default: subscriptionId of AZURE_CREDENTIALS_FILE]
    #[arg(long, env = "AZURE_SUBSCRIPTION_ID", value_name = "ID", value_parser = value::subscription)]
    pub(super) subscription: Option<SubscriptionId>,
    /// Resource group of the management cluster's load balancers and Private Link Services. [unit: resource group]
    /// [default: none; required for role ho without --management-scopes]
    #[arg(long, env = "AZURE_RESOURCE_GROUP", value_name = "NAME", value_parser = value::resource_group)]
    pub(super) resource_group: Option<String>,
    /// Which HostedClusters have their load balancers and Private Link Services in another subscription or resource
    /// group. All others have them where --subscription and --resource-group say. It is read once, at the start. [unit:
    /// path of a YAML or JSON file] [default: none; all have them there]
    #[arg(long, env = "HYPERLINK_MANAGEMENT_SCOPES", value_name = "FILE", value_parser = value::management_scopes)]
    pub(super) management_scopes: Option<ManagementScopes>,
    /// A further ARM scope, used before, in which role ho may change and delete the resources that it owns. If the
    /// scope is a group of the subscription, ho also searches it for load balancers, before the whole subscription. May
    /// be repeated. [unit: /subscriptions/ID[/resourceGroups/NAME]] [default: none]
    #[arg(long, env = "HYPERLINK_ALSO_MANAGE", value_name = "SCOPE")]
    #[arg(value_parser = value::scope, value_delimiter = ',')]
    pub also_manage: Vec<AzureScope>,
    /// Size of the NAT subnets that role ho creates. [unit: prefix length, 24 to 28]
    #[arg(long, env = "HYPERLINK_NAT_PREFIX_LENGTH", value_name = "BITS", default_value = "28")]
    // Azure takes five addresses of each subnet.
    #[arg(value_parser = value_parser!(u8).range(24..=28))]
    pub nat_prefix_length: u8,
    /// Where role ho takes NAT subnets from. [unit: IPv4 network: 10.1.0.0/16] [default: the top of the VNet's address
    /// space]
    #[arg(long, env = "HYPERLINK_NAT_ADDRESS_POOL", value_name = "CIDR", value_parser = value::network)]
    pub nat_address_pool: Option<Ipv4Net>,
    /// One NAT subnet for all clusters whose load balancer is in its network and whose HostedCluster names no NAT
    /// subnet. Role ho uses this subnet and never changes it. A Private Link Service in another subnet stays there.
    /// [unit: ARM id of a subnet of a management scope's subscription] [default: none; each cluster gets a NAT subnet]
    #[arg(long, env = "HYPERLINK_NAT_SUBNET_ID", value_name = "ID", value_parser = value::subnet)]
    pub nat_subnet_id: Option<ResourceId>,
    /// How role ho recognises the load balancer frontend of a Service: by the name that Azure's cloud provider gives
    /// it, or, for other providers, by its address alone. Use address only where no tenant can choose the address of a
    /// Service (spec.loadBalancerIP). [unit: name or address]
    #[arg(long, env = "HYPERLINK_FRONTEND_MATCH", value_name = "RULE", value_parser = value::frontend_match)]
    #[arg(default_value = "name")]
    pub frontend_match: FrontendMatch,
    /// Whether role ho aggregates the conditions of the custom resources on their HostedCluster, on each platform. Switch
    /// it on only where HyperShift's operator does not: HyperShift's own does so by itself, for each cluster on AWS and
    /// on Azure. Needs role-ho-aggregate.yaml. [unit: true or false]
    #[arg(long, env = "HYPERLINK_AGGREGATE_CONDITIONS", value_name = "BOOLEAN", action = ArgAction::Set)]
    #[arg(default_value = "false")]
    pub aggregate_conditions: bool,
}

/// What only platform `aws` uses.
#[derive(Debug, Clone, Args)]
pub(super) struct AwsSettings {
    /// The region of the management cluster and of the hosted clusters on AWS. [unit: region: us-east-1] [default: that
    /// of --aws-credentials-file]
    #[arg(long, env = "AWS_REGION", value_name = "REGION")]
    pub(super) aws_region: Option<String>,
    /// Of this file the profile default is the identity on AWS: keys, or a role with a web identity token file or with
    /// the instance's own role. It is read again when it changes. [unit: path of an INI file] [default: none; required
    /// for platform aws]
    #[arg(long, env = "AWS_SHARED_CREDENTIALS_FILE", value_name = "FILE")]
    pub(super) aws_credentials_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) endpoints: AwsEndpoints,
    /// How role ho recognises the load balancer of a Service on AWS: by the name that Kubernetes' own cloud provider
    /// derives from the Service's UID, or, for the AWS Load Balancer Controller, by the host name that the Service
    /// reports. Use hostname only where no tenant can write the status of a Service. [unit: uid or hostname]
    #[arg(long, env = "HYPERLINK_NLB_MATCH", value_name = "RULE", value_parser = value::nlb_match)]
    #[arg(default_value = "uid")]
    pub(super) nlb_match: NlbMatch,
}

/// Origins in place of AWS's own. Requests and sessions go nowhere else.
#[derive(Debug, Clone, Args)]
pub(super) struct AwsEndpoints {
    /// EC2. [unit: https://host or https://host:port; http on loopback only] [default: that of --aws-region]
    #[arg(long, env = "AWS_ENDPOINT_URL_EC2", value_name = "URL")]
    pub(super) aws_endpoint_ec2: Option<String>,
    /// Elastic Load Balancing. [unit: as --aws-endpoint-ec2] [default: that of --aws-region]
    #[arg(long, env = "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", value_name = "URL")]
    pub(super) aws_endpoint_elb: Option<String>,
    /// Route 53. [unit: as --aws-endpoint-ec2] [default: that of --aws-region's partition]
    #[arg(long, env = "AWS_ENDPOINT_URL_ROUTE_53", value_name = "URL")]
    pub(super) aws_endpoint_route53: Option<String>,
    /// The Security Token Service. [unit: as --aws-endpoint-ec2] [default: that of --aws-region]
    #[arg(long, env = "AWS_ENDPOINT_URL_STS", value_name = "URL")]
    pub(super) aws_endpoint_sts: Option<String>,
    /// The instance metadata service. [unit: http://host or http://host:port, of a link-local or loopback address]
    /// [default: http://169.254.169.254]
    #[arg(long, env = "AWS_EC2_METADATA_SERVICE_ENDPOINT", value_name = "URL")]
    pub(super) aws_endpoint_imds: Option<String>,
}

/// What only role `capz` uses.
#[derive(Debug, Clone, Args)]
pub(super) struct CapzSettings {
    /// The AzureCluster of the management cluster, to and from which role capz makes private paths. [unit: Kubernetes
    /// name] [default: none; required for role capz]
    #[arg(long, env = "HYPERLINK_MANAGEMENT_CLUSTER_NAME", value_name = "NAME", value_parser = value::object_name)]
    pub(super) management_cluster_name: Option<String>,
    /// The namespace of that AzureCluster. [unit: Kubernetes namespace] [default: none; required for role capz]
    #[arg(long, env = "HYPERLINK_MANAGEMENT_CLUSTER_NAMESPACE", value_name = "NAME", value_parser = namespace)]
    pub(super) management_cluster_namespace: Option<String>,
    /// The conditions of an AzureCluster for which a new KubeadmControlPlane waits where the management cluster is private.
    /// It is paused until they are True. May be repeated. [unit: condition types] [default: none; no control plane waits]
    #[arg(
        long = "azure-cluster-gates",
        env = "HYPERLINK_AZURE_CLUSTER_GATES",
        value_name = "TYPE",
        value_delimiter = ','
    )]
    pub(super) azure_cluster_gates: Vec<String>,
    /// Delete the PrivateEndpoint of the Azure Service Operator after its entry was removed from the management cluster's
    /// AzureCluster, where CAPZ leaves it. Needs role-capz-delete.yaml. [unit: true or false]
    #[arg(long, env = "HYPERLINK_DELETE_DROPPED_ENDPOINTS", value_name = "BOOLEAN", action = ArgAction::Set)]
    #[arg(default_value = "false")]
    pub(super) delete_dropped_endpoints: bool,
}

/// Format and filter of the log.
#[derive(Debug, Clone, Args)]
pub struct Log {
    /// Format of the log on standard error. [unit: text or json]
    #[arg(long = "log-format", env = value::LOG_FORMAT, value_name = "FORMAT", value_parser = value::log_format)]
    #[arg(default_value = "text")]
    pub format: telemetry::Format,
    /// What is logged. [unit: level, or directives such as info,hyperlink=debug]
    #[arg(long = "log-level", env = "HYPERLINK_LOG_LEVEL", value_name = "FILTER", value_parser = value::log_filter)]
    #[arg(default_value = "info")]
    pub filter: String,
}
