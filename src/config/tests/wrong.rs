//! Wrong settings: values that clap refuses, and settings that contradict each other.

use super::*;

#[rstest]
#[case("concurrency", "0", ": 0 is not in 1..=65535")]
#[case("resync", "5", ": not a duration: write 90s, 5m or 1h30m")]
#[case("resync", "-5m", ": not a duration: write 90s, 5m or 1h30m")]
#[case("record-resync", "0s", ": must be longer than nothing")]
#[case("record-resync", "400h", ": longer than a week")]
#[case(
    "metrics-bind",
    "localhost:80",
    ": not an IP address with a port, such as 127.0.0.1:8080"
)]
#[case("probe-bind", ":8081", ": not an IP address with a port, such as 127.0.0.1:8080")]
#[case("metrics-secure", "yes", "\n  [possible values: true, false]")]
#[case("lease-duration", "1500ms", ": must be whole seconds")]
#[case("namespace", "No Such", ": not the name of a namespace")]
#[case("namespace", "", ": not the name of a namespace")]
#[case("allow-scopes", "/nowhere", ": it cannot be read: entity not found")]
#[case("management-scopes", "/nowhere", ": it cannot be read: entity not found")]
#[case("shard", "3/2", ": not a shard: write K/N, with K from 1 to N and N up to 1000")]
#[case("exclude-namespace", "clusters/red", ": not the name of a namespace")]
#[case("kubeconfig", "/nowhere", ": it cannot be read: entity not found")]
#[case(
    "cloud",
    "AzureMoonCloud",
    ": unknown cloud \"AzureMoonCloud\"; use AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud, or give endpoint, authority and audience"
)]
#[case(
    "credential",
    "guess",
    "\n  [possible values: secret-file, workload-identity, managed-identity, azure-cli]"
)]
#[case("subscription", "prod", ": not the id of a subscription, a UUID")]
#[case("resource-group", "a/b", ": not the name of a resource group")]
#[case(
    "also-manage",
    "/subscriptions/prod",
    ": not a scope: write /subscriptions/ID or /subscriptions/ID/resourceGroups/NAME"
)]
#[case("nat-prefix-length", "29", ": 29 is not in 24..=28")]
#[case("nat-address-pool", "10.1.0.0", ": not an IPv4 network, such as 10.1.0.0/16")]
#[case(
    "nat-address-pool",
    "10.1.2.3/16",
    ": an address in a network; write the network, 10.1.0.0/16"
)]
#[case("nat-subnet-id", "nat", ": not the ARM id of a subnet")]
#[case("frontend-match", "port", ": unknown rule: use name or address")]
#[case("log-format", "xml", ": unknown format: use text or json")]
#[case(
    "log-level",
    ",",
    ": not a log filter: write error, warn, info, debug, trace or target=level, with commas between"
)]
#[case(
    "log-level",
    "hyperlink=loud",
    ": not a log filter: write error, warn, info, debug, trace or target=level, with commas between"
)]
#[case(
    "log-level",
    "info, hyperlink=debug",
    ": not a log filter: write error, warn, info, debug, trace or target=level, with commas between"
)]
#[case(
    "log-level",
    "hyperlink[reconcile]=debug",
    ": not a log filter: write error, warn, info, debug, trace or target=level, with commas between"
)]
fn value_of_another_type_is_refused(#[case] flag: &str, #[case] value: &str, #[case] why: &str) {
    let [error] = &ho(&[(flag, value)]).unwrap_err()[..] else {
        panic!("more than one problem")
    };
    let start = format!("error: invalid value '{value}' for '--{flag} <");
    let rest = error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}"));
    let (_, rest) = rest.split_once("> (or ").unwrap();
    let (_, rest) = rest.split_once(")'").unwrap();
    assert_eq!(rest, why);
}

#[rstest]
#[case(&[("metrics-bind", "0.0.0.0:8080")], "--metrics-bind 0.0.0.0:8080 is not on loopback: metrics are served there only with --metrics-secure true; --probe-bind serves the probes alone")]
#[case(&[("metrics-cert-file", "/tls.crt"), ("metrics-key-file", "/tls.key")], "--metrics-secure (or HYPERLINK_METRICS_SECURE) is missing; a certificate is of no use without it")]
#[case(&[("metrics-secure", "true"), ("metrics-cert-file", "/tls.crt")], "--metrics-key-file (or HYPERLINK_METRICS_KEY_FILE) is missing; certificate and key go together")]
#[case(&[("metrics-secure", "true"), ("metrics-cert-file", "/nowhere"), ("metrics-key-file", "/nowhere")], "--metrics-cert-file: /nowhere cannot be read: entity not found")]
#[case(&[("lease-duration", "10s")], "--lease-renew-deadline (10s) must be shorter than --lease-duration (10s)")]
#[case(&[("lease-retry", "11s")], "--lease-retry (11s) must be shorter than --lease-renew-deadline (10s)")]
#[case(&[("shard", "1/2"), ("namespace", "clusters-a")], "--shard splits the clusters of all namespaces; it does not go with --namespace")]
#[case(&[("namespace", "clusters-a"), ("exclude-namespace", "clusters-b,clusters-a")], "the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes")]
#[case(&[("namespace", "clusters-red")], "the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes")]
#[case(&[("ca-file", "/nowhere")], "the CA file /nowhere cannot be read: entity not found")]
#[case(&[("arm-endpoint", "http://management.azure.com"), ("audience", "https://x")], "--arm-endpoint (or HYPERLINK_ARM_ENDPOINT): the ARM endpoint http://management.azure.com/ is plain http; use https (http is for loopback only)")]
#[case(&[("arm-endpoint", "https://arm.example")], "--audience (or HYPERLINK_AUDIENCE) is missing: https://arm.example/ is not the ARM endpoint of AzurePublicCloud")]
#[case(&[("arm-endpoint", "arm.example"), ("audience", "https://x")], "--arm-endpoint (or HYPERLINK_ARM_ENDPOINT): the ARM endpoint \"arm.example\" is not a URL of the form https://host[:port]")]
#[case(&[("arm-endpoint", "https://me:hunter2@arm.example"), ("audience", "https://x")], "--arm-endpoint (or HYPERLINK_ARM_ENDPOINT): the ARM endpoint \"\" is not a URL of the form https://host[:port]")]
#[case(&[("authority", "http://127.0.0.1:1")], "--authority (or AZURE_AUTHORITY_HOST): the authority http://127.0.0.1:1/ is plain http; use https")]
#[case(&[("audience", "a b")], r#"--audience (or HYPERLINK_AUDIENCE): the audience "a b" is not usable; give the resource that tokens are for, such as https://management.core.windows.net/"#)]
#[case(&[("credential", "secret-file")], "AZURE_CREDENTIALS_FILE is missing; credential secret-file needs it")]
#[case(&[("nat-subnet-id", "/subscriptions/x/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nat")],
    "--nat-subnet-id is in no subscription of --subscription and --management-scopes")]
#[case(&[("nat-address-pool", "10.1.0.0/27"), ("nat-prefix-length", "26")], "--nat-address-pool 10.1.0.0/27 has no room for a NAT subnet of --nat-prefix-length 26")]
fn one_wrong_setting_is_one_problem(#[case] line: &[(&str, &str)], #[case] problem: &str) {
    assert_eq!(ho(line).unwrap_err(), [problem]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let environment = Environment::of(&[("HYPERLINK_NAT_ADDRESS_POOL", "10.1.0.0/29")]);
    let line = [("role", "ho,cpo"), ("lease-retry", "1m")];
    let settings: RunSettings = parsed(&line, &environment).unwrap();
    assert_eq!(
        settings.resolve(&environment).unwrap_err().to_string(),
        "cannot start, 7 problems with the settings:\n  \
         --allow-scopes (or HYPERLINK_ALLOW_SCOPES) is missing; role cpo needs it, or --namespace\n  \
         --lease-retry (60s) must be shorter than --lease-renew-deadline (10s)\n  \
         --lease-namespace (or HYPERLINK_LEASE_NAMESPACE) is missing, and neither POD_NAMESPACE nor a service account nor --namespace tells where the lease is kept\n  \
         no credential: set AZURE_CREDENTIALS_FILE, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE, or choose with --credential (or HYPERLINK_CREDENTIAL)\n  \
         --subscription (or AZURE_SUBSCRIPTION_ID) is missing; role ho needs it\n  \
         --resource-group (or AZURE_RESOURCE_GROUP) is missing; role ho needs it\n  \
         --nat-address-pool 10.1.0.0/29 has no room for a NAT subnet of --nat-prefix-length 28"
    );
}
