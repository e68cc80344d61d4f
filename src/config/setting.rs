//! Every setting of `hyperlink run` and `hyperlink plan`: its flag, its environment variable, its unit, its default and
//! its help. The command line, the reader and the messages share this table.

/// One setting: a row of [`SETTINGS`].
#[derive(Debug)]
pub struct Setting {
    /// The flag without its dashes; also the setting's key.
    pub flag: &'static str,
    /// The environment variable that is read when the flag is not given.
    pub variable: &'static str,
    /// The placeholder of the value in `--help`.
    pub value: &'static str,
    /// The unit or form of the value.
    pub unit: &'static str,
    /// What applies when it is not given.
    pub default: Fallback,
    /// Whether it takes several values: the flag repeated, or one text with commas.
    pub list: bool,
    /// What it does, in one or two sentences.
    pub help: &'static str,
}

/// What applies when a setting is not given.
#[derive(Debug)]
pub enum Fallback {
    /// This value applies.
    Value(&'static str),
    /// What these words describe.
    Words(&'static str),
}

const DURATION: &str = "duration: 90s, 5m, 1h30m";

macro_rules! settings {
    ($($name:ident = $flag:literal, $variable:literal, $value:literal [$unit:expr], $default:expr, $list:literal, $help:literal;)*) => {
        $(pub(super) const $name: Setting = Setting {
            flag: $flag, variable: $variable, value: $value, unit: $unit, default: $default, list: $list, help: $help,
        };)*

        /// All settings, in the order of the help.
        pub const SETTINGS: &[&Setting] = &[$(&$name,)*];
    };
}

use Fallback::{Value, Words};

settings! {
    ROLE = "role", "HYPERLINK_ROLE", "ROLE" ["ho or cpo, or both"], Words("none; required"), true,
        "What this process does: ho is the management side (load balancer look-up, NAT subnet, Private Link Service), cpo the guest side (Private Endpoint, private DNS).";
    NAMESPACE = "namespace", "HYPERLINK_NAMESPACE", "NAME" ["Kubernetes namespace"], Words("all namespaces"), false,
        "Serve this namespace only.";
    EXCLUDE_NAMESPACE = "exclude-namespace", "HYPERLINK_EXCLUDE_NAMESPACE", "NAME" ["Kubernetes namespaces"], Words("none"), true,
        "Namespaces of control planes that are left to processes of their own. The file of --allow-scopes may exclude more, without a restart.";
    ALLOW_SCOPES = "allow-scopes", "HYPERLINK_ALLOW_SCOPES", "FILE" ["path of a YAML or JSON file"], Words("none; required for role cpo without --namespace"), false,
        "Which parts of Azure the control planes may use, by HostedCluster; all others are refused. Read again when it changes.";
    CONCURRENCY = "concurrency", "HYPERLINK_CONCURRENCY", "NUMBER" ["reconciles at once, per controller"], Value("64"), false,
        "How many objects are worked on at once.";
    RESYNC = "resync", "HYPERLINK_RESYNC", "DURATION" [DURATION], Value("5m"), false,
        "How often everything but DNS records and links is compared with Azure.";
    RECORD_RESYNC = "record-resync", "HYPERLINK_RECORD_RESYNC", "DURATION" [DURATION], Value("45m"), false,
        "How often DNS records and links are compared with Azure.";
    PROBE_BIND = "probe-bind", "HYPERLINK_PROBE_BIND", "ADDRESS" ["IP address:port"], Words("that of --metrics-bind"), false,
        "Where /livez and /readyz are served, as plain HTTP and without a token, as kubelets ask; in a pod 0.0.0.0:8081. /metrics is not there.";
    METRICS_BIND = "metrics-bind", "HYPERLINK_METRICS_BIND", "ADDRESS" ["IP address:port"], Value("127.0.0.1:8080"), false,
        "Where /metrics is served: as plain HTTP on loopback, elsewhere only with --metrics-secure.";
    METRICS_SECURE = "metrics-secure", "HYPERLINK_METRICS_SECURE", "BOOLEAN" ["true or false"], Value("false"), false,
        "Whether --metrics-bind is served by TLS, and /metrics only to bearers of a token whom the API server allows to get that path. Needs role-metrics.yaml; role-metrics-reader.yaml is for who scrapes.";
    METRICS_CERT_FILE = "metrics-cert-file", "HYPERLINK_METRICS_CERT_FILE", "FILE" ["path of a PEM file"], Words("a self-signed certificate"), false,
        "The certificate for --metrics-secure. Read again when it changes.";
    METRICS_KEY_FILE = "metrics-key-file", "HYPERLINK_METRICS_KEY_FILE", "FILE" ["path of a PEM file"], Words("none; required with --metrics-cert-file"), false,
        "The private key of --metrics-cert-file. Read again when it changes.";
    LEASE_DURATION = "lease-duration", "HYPERLINK_LEASE_DURATION", "DURATION" ["duration in whole seconds: 15s, 2m17s"], Value("15s"), false,
        "How long a lease lasts that is not renewed.";
    LEASE_RENEW_DEADLINE = "lease-renew-deadline", "HYPERLINK_LEASE_RENEW_DEADLINE", "DURATION" [DURATION], Value("10s"), false,
        "A leader that could not renew for this long stops leading. Shorter than --lease-duration.";
    LEASE_RETRY = "lease-retry", "HYPERLINK_LEASE_RETRY", "DURATION" [DURATION], Value("2s"), false,
        "How often the lease is renewed or tried. Shorter than --lease-renew-deadline.";
    LEASE_NAMESPACE = "lease-namespace", "HYPERLINK_LEASE_NAMESPACE", "NAME" ["Kubernetes namespace"], Words("POD_NAMESPACE, else the service account's namespace, else --namespace"), false,
        "Where the lease is kept.";
    KUBECONFIG = "kubeconfig", "KUBECONFIG", "FILE" ["path"], Words("~/.kube/config if there is one, else the cluster that the pod runs in"), false,
        "How to reach the Kubernetes API server.";
    CLOUD = "cloud", "AZURE_CLOUD_NAME", "NAME" ["AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; or, with its addresses, AzureGermanCloud, AzureBleuCloud or AzureStackCloud"], Value("AzurePublicCloud"), false,
        "The Azure cloud.";
    ARM_ENDPOINT = "arm-endpoint", "HYPERLINK_ARM_ENDPOINT", "URL" ["https://host[:port]; http on loopback only"], Words("that of --cloud"), false,
        "Azure Resource Manager. The only host that ever gets a token for it.";
    AUTHORITY = "authority", "AZURE_AUTHORITY_HOST", "URL" ["https://host[:port]"], Words("that of --cloud"), false,
        "Where tokens are issued.";
    AUDIENCE = "audience", "HYPERLINK_AUDIENCE", "URL" ["resource that tokens are for"], Words("that of --cloud"), false,
        "Whom tokens are for. Required with an --arm-endpoint that is not that of --cloud.";
    CA_FILE = "ca-file", "HYPERLINK_CA_FILE", "FILE" ["path of a PEM file"], Words("none"), false,
        "Certificate authorities trusted for --arm-endpoint and --authority beside the system's.";
    CREDENTIAL = "credential", "HYPERLINK_CREDENTIAL", "KIND" ["secret-file, workload-identity, managed-identity or azure-cli"], Words("workload-identity or secret-file, whichever the environment describes"), false,
        "How to prove who we are. secret-file reads AZURE_CREDENTIALS_FILE; workload-identity needs AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE, and is HyperShift's choice when AZURE_PLS_CLIENT_ID is set; managed-identity takes AZURE_CLIENT_ID if set; azure-cli is for development.";
    SUBSCRIPTION = "subscription", "AZURE_SUBSCRIPTION_ID", "ID" ["UUID"], Words("subscriptionId of AZURE_CREDENTIALS_FILE"), false,
        "Subscription of the management cluster's load balancers and Private Link Services. Required for role ho.";
    RESOURCE_GROUP = "resource-group", "AZURE_RESOURCE_GROUP", "NAME" ["resource group"], Words("none; required for role ho"), false,
        "Resource group of the management cluster's load balancers and Private Link Services.";
    ALSO_MANAGE = "also-manage", "HYPERLINK_ALSO_MANAGE", "SCOPE" ["/subscriptions/ID[/resourceGroups/NAME]"], Words("none"), true,
        "A further ARM scope in which role ho may change and delete what is ours: groups used before. In a group of the subscription it also looks for load balancers, before it asks the whole subscription.";
    NAT_PREFIX_LENGTH = "nat-prefix-length", "HYPERLINK_NAT_PREFIX_LENGTH", "BITS" ["prefix length, 24 to 28"], Value("28"), false,
        "Size of the NAT subnets that role ho makes.";
    NAT_ADDRESS_POOL = "nat-address-pool", "HYPERLINK_NAT_ADDRESS_POOL", "CIDR" ["IPv4 network: 10.1.0.0/16"], Words("the top of the VNet's address space"), false,
        "Where role ho takes NAT subnets from.";
    NAT_SUBNET_ID = "nat-subnet-id", "HYPERLINK_NAT_SUBNET_ID", "ID" ["ARM id of a subnet of --subscription"], Words("none; each cluster gets a NAT subnet"), false,
        "One NAT subnet for all clusters whose load balancer is in its network and whose HostedCluster gives none. Role ho uses it and never writes it. A service that stands in another subnet stays there.";
    FRONTEND_MATCH = "frontend-match", "HYPERLINK_FRONTEND_MATCH", "RULE" ["name or address"], Value("name"), false,
        "How role ho recognises a Service's load balancer frontend: by the name that the cloud provider gives it, or by address alone for other providers. By address only where no tenant can choose a Service's address (spec.loadBalancerIP).";
    AGGREGATE_CONDITIONS = "aggregate-conditions", "HYPERLINK_AGGREGATE_CONDITIONS", "BOOLEAN" ["true or false"], Value("false"), false,
        "Whether role ho sums up the conditions of custom resources on their HostedCluster, where HyperShift's operator does not. Needs role-ho-aggregate.yaml.";
    LOG_FORMAT = "log-format", "HYPERLINK_LOG_FORMAT", "FORMAT" ["text or json"], Value("text"), false,
        "Form of the log on standard error.";
    LOG_LEVEL = "log-level", "HYPERLINK_LOG_LEVEL", "FILTER" ["level, or directives such as info,hyperlink::azure=debug"], Value("info"), false,
        "What is logged.";
}

/// The settings of processes that lead and serve, which `hyperlink plan` does not have.
const OF_RUN_ALONE: [&str; 10] = [
    CONCURRENCY.flag,
    PROBE_BIND.flag,
    METRICS_BIND.flag,
    METRICS_SECURE.flag,
    METRICS_CERT_FILE.flag,
    METRICS_KEY_FILE.flag,
    LEASE_DURATION.flag,
    LEASE_RENEW_DEADLINE.flag,
    LEASE_RETRY.flag,
    LEASE_NAMESPACE.flag,
];

/// The settings of `hyperlink plan`.
pub fn settings_of_plan() -> impl Iterator<Item = &'static Setting> {
    SETTINGS
        .iter()
        .copied()
        .filter(|setting| !OF_RUN_ALONE.contains(&setting.flag))
}
