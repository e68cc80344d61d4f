//! Tables of good and bad settings.

use std::io::Write;

use std::time::Duration;

use clap::Parser;
use rstest::rstest;
use tempfile::NamedTempFile;

use super::*;
use crate::azure::arm::auth::{AzureCloud, CredentialSource};
use crate::azure::arm::id::SubscriptionId;
use crate::azure::arm::scope::AzureScope;
use crate::hypershift::azure::management_scopes::{ManagementScope, ManagementScopes};
use crate::hypershift::azure::names::FrontendMatch;
use crate::runtime::leader::LeaseTimes;
use crate::telemetry::Format;

mod aws;
mod azure;
mod capz;
mod credentials;
mod wrong;

const SUBSCRIPTION: &str = "11111111-2222-3333-4444-555555555555";

fn parsed<P: Parser>(line: &[(&str, &str)], environment: &Environment) -> Result<P, Vec<String>> {
    let flags = line.iter().map(|(flag, value)| format!("--{flag}={value}"));
    let parsed = parse(std::iter::once("hyperlink".to_owned()).chain(flags), environment);
    parsed.map_err(|error| vec![error.to_string().split("\n\n").next().unwrap().to_owned()])
}

/// The configuration of `hyperlink run`, or what is wrong: clap's first paragraph, or all problems.
fn resolve(line: &[(&str, &str)], environment: &Environment) -> Result<Config, Vec<String>> {
    let settings: RunSettings = parsed(line, environment)?;
    settings.resolve(environment).map_err(|problems| problems.0)
}

fn resolve_for_plan(line: &[(&str, &str)], environment: &Environment) -> Result<Config, Vec<String>> {
    let settings: PlanSettings = parsed(line, environment)?;
    settings.resolve(environment).map_err(|problems| problems.0)
}

/// The documented file of allowed scopes.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/allow-scopes.yaml");

/// The variables of role `cpo` in HyperShift's Deployment, and the operator's file.
const CPO: [(&str, &str); 5] = [
    ("AZURE_CLIENT_ID", "client"),
    ("AZURE_TENANT_ID", "tenant"),
    ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/token"),
    ("POD_NAMESPACE", "clusters-one"),
    ("HYPERLINK_ALLOW_SCOPES", EXAMPLE),
];

/// The variables of [`CPO`], and those that role `ho` needs besides.
const HO: [(&str, &str); 8] = [
    ("AZURE_CLIENT_ID", "client"),
    ("AZURE_TENANT_ID", "tenant"),
    ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/token"),
    ("AZURE_PLS_CLIENT_ID", "client"),
    ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
    ("AZURE_RESOURCE_GROUP", "management"),
    ("POD_NAMESPACE", "hypershift"),
    ("HYPERLINK_ALLOW_SCOPES", EXAMPLE),
];

fn cpo(line: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let line = [&[("role", "cpo")], line].concat();
    resolve(&line, &Environment::of(&CPO))
}

fn ho(line: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let line = [&[("role", "ho")], line].concat();
    resolve(&line, &Environment::of(&HO))
}

fn azure(config: &Config) -> Azure {
    config.azure.clone().unwrap()
}

fn credential(config: &Config) -> CredentialSource {
    azure(config).credential.unwrap()
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
    assert_eq!(config.scope.namespace, None);
    assert_eq!(azure(&config).cloud_name, "AzurePublicCloud");
    assert_eq!(azure(&config).cloud, AzureCloud::public());
    let run = config.run.unwrap();
    assert_eq!(run.concurrency, 64);
    assert_eq!(config.intervals.resync, Duration::from_secs(300));
    assert_eq!(config.intervals.record_resync, Duration::from_secs(2700));
    assert_eq!(run.serving.metrics, "127.0.0.1:8080".parse().unwrap());
    assert!(run.serving.probes.is_none() && run.serving.secure.is_none());
    assert_eq!(config.kubeconfig, None);
    assert_eq!(
        run.lease,
        Lease {
            namespace: "hypershift".into(),
            times: LeaseTimes {
                duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry: Duration::from_secs(2),
            },
            candidate: "hyperlink".into(),
        }
    );
    assert_eq!(
        config.management,
        Some(Management {
            scopes: ManagementScopes::default().with_default(ManagementScope {
                subscription: SubscriptionId::parse(SUBSCRIPTION).unwrap(),
                resource_group: "management".into(),
            }),
            ho: Ho {
                subscription: Some(SubscriptionId::parse(SUBSCRIPTION).unwrap()),
                resource_group: Some("management".into()),
                management_scopes: None,
                also_manage: vec![],
                nat_prefix_length: 28,
                nat_address_pool: None,
                nat_subnet_id: None,
                frontend_match: FrontendMatch::Name,
                aggregate_conditions: false,
            },
        })
    );
    assert_eq!(config.log.format, Format::Text);
}

#[rstest]
#[case::repeated(&[("role", "ho"), ("role", "cpo")])]
#[case::with_a_comma(&[("role", "cpo, ho")])]
#[case::twice_the_same(&[("role", "ho,cpo,ho")])]
fn both_roles_in_one_process(#[case] line: &[(&str, &str)]) {
    let config = resolve(line, &Environment::of(&HO)).unwrap();
    assert_eq!(config.roles, BTreeSet::from([Role::Ho, Role::Cpo]));
    assert!(config.management.is_some());
}

#[test]
fn flag_precedes_its_variable_and_an_empty_variable_is_none() {
    let mut variables = CPO.to_vec();
    variables.extend([
        ("HYPERLINK_ROLE", "cpo"),
        ("HYPERLINK_RESYNC", "1m"),
        ("HYPERLINK_NAMESPACE", " "),
    ]);
    let config = resolve(&[("resync", "5s")], &Environment::of(&variables)).unwrap();
    assert_eq!(config.intervals.resync, Duration::from_secs(5));
    assert_eq!(config.scope.namespace, None);
    let config = resolve(&[], &Environment::of(&variables)).unwrap();
    assert_eq!(config.intervals.resync, Duration::from_secs(60));
}

#[test]
fn list_in_a_variable_has_commas_and_gives_way_to_its_flag() {
    let variables = [&CPO[..], &[("HYPERLINK_EXCLUDE_NAMESPACE", "a, b,\n")]].concat();
    let config = resolve(&[("role", "cpo")], &Environment::of(&variables)).unwrap();
    assert_eq!(config.scope.exclude_namespaces, ["a", "b"]);
    let line = [
        ("role", "cpo"),
        ("exclude-namespace", "c"),
        ("exclude-namespace", "d, e"),
    ];
    let config = resolve(&line, &Environment::of(&variables)).unwrap();
    assert_eq!(config.scope.exclude_namespaces, ["c", "d", "e"]);
}

#[test]
fn plan_leads_nobody_and_includes_ho_where_its_group_is_set() {
    let roles = |line: &[(&str, &str)], variables: &[(&str, &str)]| {
        let config = resolve_for_plan(line, &Environment::of(variables)).unwrap();
        assert!(config.run.is_none());
        Vec::from_iter(config.roles)
    };
    // Neither of these says where a lease is.
    assert_eq!(roles(&[], &CPO[..3]), [Role::Cpo]);
    assert_eq!(roles(&[], &HO[..6]), [Role::Ho, Role::Cpo]);
    assert_eq!(roles(&[("role", "ho")], &HO[..6]), [Role::Ho]);
    let problems = resolve_for_plan(&[("role", "ho")], &Environment::of(&CPO)).unwrap_err();
    assert!(problems[1].starts_with("--resource-group"), "{problems:?}");
}

#[rstest]
#[case::cpo("cpo")]
#[case::both_roles("ho,cpo")]
fn guest_side_of_many_namespaces_needs_the_allowed_scopes(#[case] role: &str) {
    let variables: Vec<_> = HO
        .into_iter()
        .filter(|(name, _)| *name != "HYPERLINK_ALLOW_SCOPES")
        .collect();
    let environment = Environment::of(&variables);
    let resolved = |line: &[(&str, &str)]| resolve(&[&[("role", role)], line].concat(), &environment);
    assert_eq!(
        resolved(&[]).unwrap_err(),
        ["--allow-scopes (or HYPERLINK_ALLOW_SCOPES) is missing; role cpo needs it, or --namespace"]
    );
    assert!(
        resolved(&[("namespace", "clusters-one")])
            .unwrap()
            .scope
            .allow_scopes
            .is_none()
    );
    let config = resolved(&[("allow-scopes", EXAMPLE)]).unwrap();
    assert_eq!(config.scope.allow_scopes.unwrap().allowed().borrow().entries(), 4);
    // Narrower still: that namespace, and only what the file allows to it.
    let both = resolved(&[("allow-scopes", EXAMPLE), ("namespace", "clusters-one")]);
    assert!(both.unwrap().scope.allow_scopes.is_some());
}

#[test]
fn management_side_of_many_namespaces_needs_no_allowed_scopes() {
    let variables: Vec<_> = HO
        .into_iter()
        .filter(|(name, _)| *name != "HYPERLINK_ALLOW_SCOPES")
        .collect();
    let config = resolve(&[("role", "ho")], &Environment::of(&variables)).unwrap();
    assert!(config.scope.allow_scopes.is_none());
}

#[rstest]
#[case::on_loopback("127.0.0.1:8443")]
#[case::on_every_address("0.0.0.0:8443")]
#[case::on_every_address_of_both_kinds("[::]:8443")]
fn secure_metrics_make_a_certificate_of_their_own(#[case] address: &str) {
    let line = [
        ("metrics-bind", address),
        ("metrics-secure", "true"),
        ("probe-bind", "0.0.0.0:8081"),
    ];
    let serving = ho(&line).unwrap().run.unwrap().serving;
    assert_eq!(serving.metrics, address.parse().unwrap());
    assert_eq!(serving.probes, Some("0.0.0.0:8081".parse().unwrap()));
    assert!(serving.secure.is_some());
}

#[test]
fn plain_metrics_may_be_on_any_loopback_address() {
    for address in ["127.0.0.1:0", "127.8.8.8:80", "[::1]:80"] {
        let run = ho(&[("metrics-bind", address)]).unwrap().run;
        assert!(run.unwrap().serving.secure.is_none());
    }
}

#[rstest]
#[case::own_flag(&[("lease-namespace", "leases"), ("namespace", "scope")], "leases")]
#[case::pod_namespace(&[("namespace", "scope")], "clusters-one")]
fn lease_namespace_in_a_pod(#[case] line: &[(&str, &str)], #[case] expected: &str) {
    assert_eq!(cpo(line).unwrap().run.unwrap().lease.namespace, expected);
}

#[test]
fn lease_namespace_outside_a_pod_is_the_scope_or_must_be_given() {
    let environment = Environment::of(&[]);
    let line = [("role", "cpo"), ("credential", "azure-cli"), ("allow-scopes", EXAMPLE)];
    let problems = resolve(&line, &environment).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("--lease-namespace"), "{problems:?}");
    let line = [&line[..], &[("namespace", "scope")]].concat();
    let config = resolve(&line, &environment).unwrap();
    assert_eq!(credential(&config), CredentialSource::AzureCli);
    assert_eq!(config.run.unwrap().lease.namespace, "scope");
}

#[test]
fn documented_management_scopes_are_beside_those_of_the_flags() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/management-scopes.yaml");
    let config = resolve(&[("role", "ho"), ("management-scopes", file)], &Environment::of(&HO)).unwrap();
    let groups = config.management.unwrap().scopes.all();
    let groups: Vec<&str> = groups.iter().map(|scope| scope.resource_group.as_str()).collect();
    assert_eq!(groups, ["management", "mgmt-gold", "mgmt-b", "mgmt-old"]);
}
