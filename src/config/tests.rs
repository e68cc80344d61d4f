//! Tables of good and bad settings.

use std::io::Write;

use rstest::rstest;
use tempfile::NamedTempFile;

use super::*;

const SUBSCRIPTION: &str = "11111111-2222-3333-4444-555555555555";

fn flags(line: &[(&str, &str)]) -> Given {
    let mut given = Given::default();
    for setting in SETTINGS {
        let values = line.iter().filter(|(flag, _)| *flag == setting.flag);
        let values: Vec<String> = values.map(|(_, value)| (*value).to_owned()).collect();
        if !values.is_empty() {
            given.set(setting, values);
        }
    }
    for (flag, _) in line {
        assert!(SETTINGS.iter().any(|setting| setting.flag == *flag), "{flag}");
    }
    given
}

/// What the cpo role finds in HyperShift's Deployment.
const CPO: [(&str, &str); 4] = [
    ("AZURE_CLIENT_ID", "client"),
    ("AZURE_TENANT_ID", "tenant"),
    ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/token"),
    ("POD_NAMESPACE", "clusters-one"),
];

/// The same with what the ho role needs besides.
const HO: [(&str, &str); 7] = [
    ("AZURE_CLIENT_ID", "client"),
    ("AZURE_TENANT_ID", "tenant"),
    ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/token"),
    ("AZURE_PLS_CLIENT_ID", "client"),
    ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
    ("AZURE_RESOURCE_GROUP", "management"),
    ("POD_NAMESPACE", "hypershift"),
];

fn cpo(line: &[(&str, &str)]) -> Result<Config, Problems> {
    let line = [&[("role", "cpo")], line].concat();
    resolve(&flags(&line), &Environment::of(&CPO))
}

fn ho(line: &[(&str, &str)]) -> Result<Config, Problems> {
    let line = [&[("role", "ho")], line].concat();
    resolve(&flags(&line), &Environment::of(&HO))
}

fn credentials_file(subscription: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    write!(
        file,
        "subscriptionId: {subscription:?}\nclientId: c\nclientSecret: hunter2\ntenantId: t\n"
    )
    .unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

#[test]
fn defaults_are_those_of_the_help() {
    let config = ho(&[]).unwrap();
    assert_eq!(config.roles, BTreeSet::from([Role::Ho]));
    assert_eq!(config.namespace, None);
    assert_eq!(config.concurrency.get(), 64);
    assert_eq!(config.resync, Duration::from_secs(300));
    assert_eq!(config.record_resync, Duration::from_secs(2700));
    assert_eq!(config.metrics_bind, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(config.kubeconfig, None);
    assert_eq!(
        config.lease.unwrap(),
        Lease {
            namespace: "hypershift".into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            candidate: "hyperlink".into(),
        }
    );
    assert_eq!(config.azure.cloud_name, "AzurePublicCloud");
    assert_eq!(config.azure.cloud, Cloud::public());
    assert_eq!(
        config.management,
        Some(Management {
            subscription: SUBSCRIPTION.into(),
            resource_group: "management".into(),
            also_manage: vec![],
            nat_prefix_length: 28,
            nat_address_pool: None,
            frontend_match: FrontendMatch::Name,
        })
    );
    assert_eq!(config.log.format, telemetry::Format::Text);
}

#[test]
fn hypershifts_operator_environment_with_workload_identity_is_enough() {
    let config = ho(&[]).unwrap();
    assert_eq!(
        config.azure.credential,
        CredentialSource::WorkloadIdentity {
            tenant: "tenant".into(),
            client: "client".into(),
            token_file: "/var/run/secrets/token".into(),
        }
    );
}

#[test]
fn hypershifts_operator_environment_with_a_credentials_file_is_enough() {
    let file = credentials_file(SUBSCRIPTION);
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("AZURE_PLS_CLIENT_ID", ""),
    ]);
    let environment = environment.in_namespace("hypershift");
    let config = resolve(&flags(&[("role", "ho")]), &environment).unwrap();
    let CredentialSource::SecretFile { path: taken } = &config.azure.credential else {
        panic!("{:?}", config.azure.credential);
    };
    assert_eq!(taken, file.path());
    assert_eq!(config.management.clone().unwrap().subscription, SUBSCRIPTION);
    assert_eq!(config.lease.as_ref().unwrap().namespace, "hypershift");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_given_subscription_goes_before_that_of_the_credentials_file() {
    let file = credentials_file("99999999-2222-3333-4444-555555555555");
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
        ("POD_NAMESPACE", "hypershift"),
    ]);
    let config = resolve(&flags(&[("role", "ho")]), &environment).unwrap();
    assert_eq!(config.management.unwrap().subscription, SUBSCRIPTION);
}

#[test]
fn control_plane_operators_environment_is_enough() {
    let config = cpo(&[]).unwrap();
    assert_eq!(config.roles, BTreeSet::from([Role::Cpo]));
    assert!(matches!(
        config.azure.credential,
        CredentialSource::WorkloadIdentity { .. }
    ));
    assert_eq!(config.management, None);
    assert_eq!(config.azure.http.role, "cpo");
}

#[rstest]
#[case::repeated(&[("role", "ho"), ("role", "cpo")])]
#[case::with_a_comma(&[("role", "cpo, ho")])]
#[case::twice_the_same(&[("role", "ho,cpo,ho")])]
fn both_roles_in_one_process(#[case] line: &[(&str, &str)]) {
    let config = resolve(&flags(line), &Environment::of(&HO)).unwrap();
    assert_eq!(config.roles, BTreeSet::from(Role::ALL));
    assert!(config.management.is_some());
}

#[test]
fn a_flag_goes_before_its_variable_and_an_empty_variable_counts_as_none() {
    let mut variables = CPO.to_vec();
    variables.extend([
        ("HYPERLINK_ROLE", "cpo"),
        ("HYPERLINK_RESYNC", "1m"),
        ("HYPERLINK_NAMESPACE", " "),
    ]);
    let given = flags(&[("resync", "5s")]);
    let config = resolve(&given, &Environment::of(&variables)).unwrap();
    assert_eq!(config.resync, Duration::from_secs(5));
    assert_eq!(config.namespace, None);
    let config = resolve(&Given::default(), &Environment::of(&variables)).unwrap();
    assert_eq!(config.resync, Duration::from_secs(60));
}

#[test]
fn plan_leads_nobody_and_takes_the_management_side_where_its_group_is_given() {
    let roles = |line: &[(&str, &str)], variables: &[(&str, &str)]| {
        let config = resolve_for_plan(&flags(line), &Environment::of(variables)).unwrap();
        assert_eq!(config.lease, None);
        Vec::from_iter(config.roles)
    };
    // Neither of these says where a lease is.
    assert_eq!(roles(&[], &CPO[..3]), [Role::Cpo]);
    assert_eq!(roles(&[], &HO[..6]), [Role::Ho, Role::Cpo]);
    assert_eq!(roles(&[("role", "ho")], &HO[..6]), [Role::Ho]);
    let given = flags(&[("role", "ho")]);
    let problems = resolve_for_plan(&given, &Environment::of(&CPO)).unwrap_err();
    assert!(problems.to_string().contains("--resource-group"), "{problems}");
}

#[rstest]
#[case::own_flag(&[("lease-namespace", "leases"), ("namespace", "scope")], "leases")]
#[case::pod_namespace(&[("namespace", "scope")], "clusters-one")]
fn lease_namespace_in_a_pod(#[case] line: &[(&str, &str)], #[case] expected: &str) {
    assert_eq!(cpo(line).unwrap().lease.unwrap().namespace, expected);
}

#[test]
fn lease_namespace_outside_a_pod_is_the_scope_or_must_be_given() {
    let environment = Environment::of(&[]);
    let line = [("role", "cpo"), ("credential", "azure-cli")];
    let problems = resolve(&flags(&line), &environment).unwrap_err();
    assert_eq!(problems.all().len(), 1);
    assert!(problems.all()[0].starts_with("--lease-namespace"), "{problems}");
    let line = [&line[..], &[("namespace", "scope")]].concat();
    let config = resolve(&flags(&line), &environment).unwrap();
    assert_eq!(config.lease.as_ref().unwrap().namespace, "scope");
    assert_eq!(config.azure.credential, CredentialSource::AzureCli);
}

#[test]
fn managed_identity_by_choice_takes_the_client_id_if_there_is_one() {
    let config = cpo(&[("credential", "managed-identity")]).unwrap();
    let expected = CredentialSource::ManagedIdentity {
        client_id: Some("client".into()),
    };
    assert_eq!(config.azure.credential, expected);
}

#[test]
fn a_cloud_by_its_addresses() {
    let config = cpo(&[
        ("arm-endpoint", "http://127.0.0.1:4000"),
        ("authority", "https://127.0.0.1:4001"),
        ("audience", "https://management.example"),
    ])
    .unwrap();
    assert_eq!(config.azure.cloud.endpoint().as_str(), "http://127.0.0.1:4000/");
    assert_eq!(config.azure.cloud.authority().as_str(), "https://127.0.0.1:4001/");
    assert_eq!(config.azure.cloud.audience(), "https://management.example");
}

#[test]
fn a_cloud_by_its_name_in_any_case_and_with_its_own_endpoint_needs_no_audience() {
    let line = [
        ("cloud", "azurechinacloud"),
        ("arm-endpoint", "https://management.chinacloudapi.cn"),
    ];
    let config = cpo(&line).unwrap();
    assert_eq!(config.azure.cloud_name, "AzureChinaCloud");
    assert_eq!(config.azure.cloud, Cloud::china());
}

#[test]
fn everything_that_the_management_side_can_be_told() {
    let scope = format!("/SUBSCRIPTIONS/{SUBSCRIPTION}/resourcegroups/old.group");
    let config = ho(&[
        ("also-manage", &scope),
        ("also-manage", &format!("/subscriptions/{SUBSCRIPTION}/")),
        ("nat-prefix-length", "24"),
        ("nat-address-pool", "10.1.0.0/16"),
        ("frontend-match", "address"),
        ("log-format", "json"),
        ("log-level", "debug,kube_runtime=info"),
    ])
    .unwrap();
    let management = config.management.unwrap();
    assert_eq!(
        management.also_manage,
        [scope, format!("/subscriptions/{SUBSCRIPTION}")]
    );
    assert_eq!(management.nat_prefix_length, 24);
    assert_eq!(management.nat_address_pool, Some("10.1.0.0/16".parse().unwrap()));
    assert_eq!(management.frontend_match, FrontendMatch::Address);
    assert_eq!(config.log.format, telemetry::Format::Json);
}

#[rstest]
#[case(&[("concurrency", "0")], r#"--concurrency: "0" is not a number from 1 to 65535"#)]
#[case(&[("resync", "5")], r#"--resync: "5" is not a duration: write 90s, 5m or 1h30m"#)]
#[case(&[("resync", "-5m")], r#"--resync: "-5m" is not a duration: write 90s, 5m or 1h30m"#)]
#[case(&[("record-resync", "0s")], r#"--record-resync: "0s" must be longer than nothing"#)]
#[case(&[("record-resync", "400h")], r#"--record-resync: "400h" is longer than a week"#)]
#[case(&[("metrics-bind", "localhost:80")], r#"--metrics-bind: "localhost:80" is not an IP address with a port, such as 127.0.0.1:8080"#)]
#[case(&[("lease-duration", "1500ms"), ("lease-renew-deadline", "1s"), ("lease-retry", "1ms")], r#"--lease-duration: "1500ms" must be whole seconds"#)]
#[case(&[("lease-duration", "10s")], "--lease-renew-deadline (10s) must be shorter than --lease-duration (10s)")]
#[case(&[("lease-retry", "11s")], "--lease-retry (11s) must be shorter than --lease-renew-deadline (10s)")]
#[case(&[("namespace", "No Such")], r#"--namespace: "No Such" is not the name of a namespace"#)]
#[case(&[("kubeconfig", "/nowhere")], "--kubeconfig: /nowhere cannot be read: entity not found")]
#[case(&[("ca-file", "/nowhere")], "the CA file /nowhere cannot be read: entity not found")]
#[case(&[("cloud", "AzureStackCloud")], "--cloud: unknown cloud \"AzureStackCloud\"; use AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud, or give endpoint, authority and audience")]
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
#[case(&[("nat-address-pool", "10.1.0.0/27"), ("nat-prefix-length", "26")], "--nat-address-pool 10.1.0.0/27 has no room for a NAT subnet of --nat-prefix-length 26")]
#[case(&[("frontend-match", "port")], r#"--frontend-match: unknown rule "port": use name or address"#)]
#[case(&[("log-format", "xml")], r#"--log-format: unknown format "xml": use text or json"#)]
#[case(&[("log-level", "hyperlink=loud")], r#"--log-level: "hyperlink=loud" is not a log filter: write error, warn, info, debug, trace or target=level, with commas between"#)]
fn one_wrong_setting_is_one_problem(#[case] line: &[(&str, &str)], #[case] problem: &str) {
    assert_eq!(ho(line).unwrap_err().all(), [problem]);
}

#[rstest]
#[case::operators_switch_and_file("ho", &[("AZURE_PLS_CLIENT_ID", "client")], "AZURE_PLS_CLIENT_ID")]
#[case::control_planes_token_and_file("cpo", &[("AZURE_FEDERATED_TOKEN_FILE", "/t")], "AZURE_FEDERATED_TOKEN_FILE")]
#[case::both_roles("ho,cpo", &[("AZURE_FEDERATED_TOKEN_FILE", "/t")], "AZURE_FEDERATED_TOKEN_FILE")]
fn two_credentials_are_refused(#[case] role: &str, #[case] other: &[(&str, &str)], #[case] named: &str) {
    let file = credentials_file(SUBSCRIPTION);
    let variables = [
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("POD_NAMESPACE", "hypershift"),
        other[0],
    ];
    let problems = resolve(&flags(&[("role", role)]), &Environment::of(&variables)).unwrap_err();
    let expected = format!(
        "two credentials: AZURE_CREDENTIALS_FILE and {named} are both set; unset one or choose with --credential (or HYPERLINK_CREDENTIAL)"
    );
    assert_eq!(problems.all(), [expected]);
    let line = [("role", role), ("credential", "secret-file")];
    assert!(resolve(&flags(&line), &Environment::of(&variables)).is_ok());
}

#[test]
fn the_operator_with_a_file_ignores_a_token_that_a_webhook_injected() {
    let file = credentials_file(SUBSCRIPTION);
    let variables = [
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("POD_NAMESPACE", "hypershift"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/t"),
    ];
    let config = resolve(&flags(&[("role", "ho")]), &Environment::of(&variables)).unwrap();
    assert!(matches!(config.azure.credential, CredentialSource::SecretFile { .. }));
}

#[test]
fn a_credentials_file_that_is_no_use_is_the_only_problem_and_does_not_show_its_secret() {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "clientSecret: [hunter2]").unwrap();
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("POD_NAMESPACE", "hypershift"),
    ]);
    let problems = resolve(&flags(&[("role", "ho")]), &environment).unwrap_err();
    assert_eq!(problems.all().len(), 1, "{problems}");
    assert!(problems.all()[0].starts_with("AZURE_CREDENTIALS_FILE: "), "{problems}");
    assert!(!problems.to_string().contains("hunter2"), "{problems}");
}

#[test]
fn a_half_described_workload_identity_names_what_is_missing() {
    let environment = Environment::of(&[("AZURE_PLS_CLIENT_ID", "x"), ("POD_NAMESPACE", "x")]);
    let problems = resolve(&flags(&[("role", "cpo")]), &environment).unwrap_err();
    let needs = "is missing; credential workload-identity needs it";
    assert_eq!(
        problems.all(),
        [
            format!("AZURE_CLIENT_ID {needs}"),
            format!("AZURE_TENANT_ID {needs}"),
            format!("AZURE_FEDERATED_TOKEN_FILE {needs}"),
        ]
    );
}

#[test]
fn a_proxy_is_taken_along_and_a_wrong_one_is_refused_without_showing_its_password() {
    let with = |proxy| {
        let variables: [(&str, &str); 6] = [
            CPO[0],
            CPO[1],
            CPO[2],
            CPO[3],
            ("https_proxy", proxy),
            ("NO_PROXY", "10.0.0.0/8"),
        ];
        resolve(&flags(&[("role", "cpo")]), &Environment::of(&variables))
    };
    let config = with("http://me:hunter2@proxy.example:3128").unwrap();
    assert!(config.azure.http.proxy.https_proxy.is_some());
    assert_eq!(config.azure.http.proxy.no_proxy.as_deref(), Some("10.0.0.0/8"));
    assert!(!format!("{config:?}").contains("hunter2"));
    let problems = with("ftp://me:hunter2@proxy.example").unwrap_err();
    assert_eq!(problems.all(), ["the https proxy is not an http or https URL"]);
}

#[test]
fn all_problems_are_told_at_once() {
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
