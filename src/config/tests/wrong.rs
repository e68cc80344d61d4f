//! Wrong settings, and the problems that are reported.

use super::*;

#[rstest]
#[case(&[("concurrency", "0")], r#"--concurrency: "0" is not a number from 1 to 65535"#)]
#[case(&[("resync", "5")], r#"--resync: "5" is not a duration: write 90s, 5m or 1h30m"#)]
#[case(&[("resync", "-5m")], r#"--resync: "-5m" is not a duration: write 90s, 5m or 1h30m"#)]
#[case(&[("record-resync", "0s")], r#"--record-resync: "0s" must be longer than nothing"#)]
#[case(&[("record-resync", "400h")], r#"--record-resync: "400h" is longer than a week"#)]
#[case(&[("metrics-bind", "localhost:80")], r#"--metrics-bind: "localhost:80" is not an IP address with a port, such as 127.0.0.1:8080"#)]
#[case(&[("metrics-bind", "0.0.0.0:8080")], "--metrics-bind 0.0.0.0:8080 is not on loopback: metrics are served there only with --metrics-secure true; --probe-bind serves the probes alone")]
#[case(&[("probe-bind", ":8081")], r#"--probe-bind: ":8081" is not an IP address with a port, such as 127.0.0.1:8080"#)]
#[case(&[("metrics-secure", "yes")], "--metrics-secure: use true or false")]
#[case(&[("metrics-cert-file", "/tls.crt"), ("metrics-key-file", "/tls.key")], "--metrics-secure (or HYPERLINK_METRICS_SECURE) is missing; a certificate is of no use without it")]
#[case(&[("metrics-secure", "true"), ("metrics-cert-file", "/tls.crt")], "--metrics-key-file (or HYPERLINK_METRICS_KEY_FILE) is missing; certificate and key go together")]
#[case(&[("metrics-secure", "true"), ("metrics-cert-file", "/nowhere"), ("metrics-key-file", "/nowhere")], "--metrics-cert-file: /nowhere cannot be read: entity not found")]
#[case(&[("lease-duration", "1500ms"), ("lease-renew-deadline", "1s"), ("lease-retry", "1ms")], r#"--lease-duration: "1500ms" must be whole seconds"#)]
#[case(&[("lease-duration", "10s")], "--lease-renew-deadline (10s) must be shorter than --lease-duration (10s)")]
#[case(&[("lease-retry", "11s")], "--lease-retry (11s) must be shorter than --lease-renew-deadline (10s)")]
#[case(&[("namespace", "No Such")], r#"--namespace: "No Such" is not the name of a namespace"#)]
#[case(&[("allow-scopes", "/nowhere")], "--allow-scopes: /nowhere: it cannot be read: entity not found")]
#[case(&[("namespace", "clusters-a"), ("exclude-namespace", "clusters-b,clusters-a")], "the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes")]
#[case(&[("namespace", "clusters-red")], "the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes")]
#[case(&[("exclude-namespace", "clusters/red")], r#"--exclude-namespace: "clusters/red" is not the name of a namespace"#)]
#[case(&[("kubeconfig", "/nowhere")], "--kubeconfig: /nowhere cannot be read: entity not found")]
#[case(&[("ca-file", "/nowhere")], "the CA file /nowhere cannot be read: entity not found")]
#[case(&[("cloud", "AzureMoonCloud")], "--cloud: unknown cloud \"AzureMoonCloud\"; use AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud, or give endpoint, authority and audience")]
#[case(&[("arm-endpoint", "http://management.azure.com"), ("audience", "https://x")], "--arm-endpoint: the ARM endpoint http://management.azure.com/ is plain http; use https (http is for loopback only)")]
#[case(&[("arm-endpoint", "https://arm.example")], "--audience (or HYPERLINK_AUDIENCE) is missing: https://arm.example/ is not the ARM endpoint of AzurePublicCloud")]
#[case(&[("arm-endpoint", "arm.example"), ("audience", "https://x")], "--arm-endpoint: the ARM endpoint \"arm.example\" is not a URL of the form https://host[:port]")]
#[case(&[("authority", "http://127.0.0.1:1")], "--authority: the authority http://127.0.0.1:1/ is plain http; use https")]
#[case(&[("credential", "guess")], "--credential: unknown credential \"guess\": use secret-file, workload-identity, managed-identity or azure-cli")]
#[case(&[("credential", "secret-file")], "AZURE_CREDENTIALS_FILE is missing; credential secret-file needs it")]
#[case(&[("subscription", "prod")], r#"--subscription: "prod" is not the id of a subscription, a UUID"#)]
#[case(&[("resource-group", "a/b")], r#"--resource-group: "a/b" is not the name of a resource group"#)]
#[case(&[("also-manage", "/subscriptions/prod")], r#"--also-manage: "/subscriptions/prod" is not a scope: write /subscriptions/ID or /subscriptions/ID/resourceGroups/NAME"#)]
#[case(&[("nat-prefix-length", "29")], r#"--nat-prefix-length: "29" is not a prefix length from 24 to 28"#)]
#[case(&[("nat-address-pool", "10.1.0.0")], r#"--nat-address-pool: "10.1.0.0" is not an IPv4 network, such as 10.1.0.0/16"#)]
#[case(&[("nat-address-pool", "10.1.2.3/16")], "--nat-address-pool: 10.1.2.3/16 is an address in 10.1.0.0/16; write the network")]
#[case(&[("nat-subnet-id", "nat")], r#"--nat-subnet-id: "nat" is not the ARM id of a subnet"#)]
#[case(&[("nat-subnet-id", "/subscriptions/x/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nat")],
    "--nat-subnet-id is not in --subscription")]
#[case(&[("nat-address-pool", "10.1.0.0/27"), ("nat-prefix-length", "26")], "--nat-address-pool 10.1.0.0/27 has no room for a NAT subnet of --nat-prefix-length 26")]
#[case(&[("frontend-match", "port")], r#"--frontend-match: unknown rule "port": use name or address"#)]
#[case(&[("log-format", "xml")], r#"--log-format: unknown format "xml": use text or json"#)]
#[case(&[("log-level", "hyperlink=loud")], r#"--log-level: "hyperlink=loud" is not a log filter: write error, warn, info, debug, trace or target=level, with commas between"#)]
fn one_wrong_setting_is_one_problem(#[case] line: &[(&str, &str)], #[case] problem: &str) {
    assert_eq!(ho(line).unwrap_err().all(), [problem]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let environment = Environment::of(&[("HYPERLINK_RESYNC", "soon")]);
    let line = [("role", "ho,cpu"), ("nat-prefix-length", "30"), ("lease-retry", "1m")];
    let problems = resolve(&flags(&line), &environment).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "cannot start, 8 problems with the settings:\n  \
         --role: unknown role \"cpu\": use ho or cpo\n  \
         HYPERLINK_RESYNC: \"soon\" is not a duration: write 90s, 5m or 1h30m\n  \
         --lease-retry (60s) must be shorter than --lease-renew-deadline (10s)\n  \
         --lease-namespace (or HYPERLINK_LEASE_NAMESPACE) is missing, and neither POD_NAMESPACE nor a service account nor --namespace tells where the lease is kept\n  \
         no credential: set AZURE_CREDENTIALS_FILE, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE, or choose with --credential (or HYPERLINK_CREDENTIAL)\n  \
         --subscription (or AZURE_SUBSCRIPTION_ID) is missing; role ho needs it\n  \
         --resource-group (or AZURE_RESOURCE_GROUP) is missing; role ho needs it\n  \
         --nat-prefix-length: \"30\" is not a prefix length from 24 to 28"
    );
}
