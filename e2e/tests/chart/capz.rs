//! Which values role `capz` takes, and which it leaves to the other roles.

use anyhow::Result;
use rstest::rstest;
use serde_json::{Value, json};

use crate::values::{RIGHT, render};

/// The right values that every set of role `capz` has otherwise.
const OF_CAPZ: [&str; 4] = [
    "role=capz",
    "image.repository=registry.example.com/hyperlink",
    "capz.managementCluster.name=example",
    "capz.managementCluster.namespace=org-example",
];

const OF_OTHERS: &str = "role capz does not take it: it is of roles ho and cpo";
const OF_IDENTITIES: &str = "role capz does not take it: each AzureClusterIdentity says it for its clusters";

#[rstest]
#[case::no_name(
    "capz.managementCluster.name=",
    "at '/capz/managementCluster/name': minLength: got 0, want 1"
)]
#[case::no_namespace(
    "capz.managementCluster.namespace=",
    "at '/capz/managementCluster/namespace': minLength: got 0, want 1"
)]
#[case::another_role_too(r"role=capz\,ho", "at '/role': value must be one of 'ho', 'cpo', 'ho,cpo', 'capz'")]
#[case::several_gates_in_one(
    r#"capz.gates=["VNetReady,SubnetsReady"]"#,
    "at '/capz/gates/0': 'VNetReady,SubnetsReady' does not match pattern"
)]
#[case::gate_twice(
    r#"capz.gates=["VNetReady","VNetReady"]"#,
    "at '/capz/gates': items at 0 and 1 are equal"
)]
#[case::namespace_of_identities_in_upper_case(
    r#"capz.identityNamespaces=["Org"]"#,
    "at '/capz/identityNamespaces/0': 'Org' does not match pattern"
)]
#[case::flag_of_dropped_endpoints(
    r#"extraArgs=["--delete-dropped-endpoints=true"]"#,
    "at '/extraArgs/0': --delete-dropped-endpoints is for the value capz.deleteDroppedEndpoints to say"
)]
#[case::shards(
    "shards=2",
    "at '/shards': role capz does not take it: one process decides for all clusters"
)]
#[case::another_cloud(
    "settings.platform=aws aws.secret.name=aws",
    "at '/aws/secret/name': role capz does not take it: it is of roles ho and cpo"
)]
#[case::another_cloud_too(
    r#"settings={"platform":"azure,aws","awsCredentialsFile":"/etc/aws"}"#,
    "at '/settings/platform': role capz does not take it: its clusters are on Azure"
)]
#[case::flag_of_the_management_cluster(
    r#"extraArgs=["--management-cluster-name=other"]"#,
    "at '/extraArgs/0': --management-cluster-name is for the value capz.managementCluster.name to say"
)]
#[case::flag_of_the_gates(
    r#"extraArgs=["--azure-cluster-gates=VNetReady"]"#,
    "at '/extraArgs/0': --azure-cluster-gates is for the value capz.gates to say"
)]
fn wrong_value_is_refused_for_capz(#[case] wrong: &str, #[case] reason: &str) {
    refused(&[&OF_CAPZ[..], &separate(wrong)].concat(), reason);
}

#[rstest]
#[case::file_with_a_secret("azure.credential=secret-file azure.secret.name=azure", "/azure/credential")]
#[case::machines_identity("azure.credential=managed-identity", "/azure/credential")]
#[case::client("azure.clientId=66666666-6666-4666-8666-666666666666", "/azure/clientId")]
#[case::tenant("azure.tenantId=66666666-6666-4666-8666-666666666666", "/azure/tenantId")]
#[case::secret_alone("azure.secret.name=azure", "/azure/secret/name")]
fn credential_is_left_to_each_identity(#[case] wrong: &str, #[case] path: &str) {
    refused(
        &[&OF_CAPZ[..], &separate(wrong)].concat(),
        &format!("at '{path}': {OF_IDENTITIES}"),
    );
}

#[rstest]
#[case::management_scopes(
    r#"managementScopes=[{"subscription":"33333333-3333-4333-8333-333333333333","resourceGroup":"b","hostedClusterLabels":{"a":"b"}}]"#,
    "/managementScopes"
)]
#[case::allowed_scopes(
    r#"allowScopes.hostedClusters=[{"namespace":"a","scopes":[]}]"#,
    "/allowScopes/hostedClusters"
)]
#[case::file_of_allowed_scopes("allowScopes.configMap=scopes", "/allowScopes/configMap")]
#[case::definition("crds.install=true", "/crds/install")]
#[case::token_for_aws("aws.tokenAudience=openshift", "/aws/tokenAudience")]
#[case::machine_on_aws("aws.instanceMetadata=true", "/aws/instanceMetadata")]
#[case::subscription(
    "settings.subscription=33333333-3333-4333-8333-333333333333",
    "/settings/subscription"
)]
#[case::resource_group("settings.resourceGroup=management", "/settings/resourceGroup")]
#[case::excluded_namespace(r#"settings.excludeNamespace=["org-a"]"#, "/settings/excludeNamespace")]
#[case::records("settings.recordResync=5m", "/settings/recordResync")]
#[case::nat_subnets("settings.natPrefixLength=27", "/settings/natPrefixLength")]
#[case::frontends("settings.frontendMatch=address", "/settings/frontendMatch")]
#[case::sums_of_conditions("settings.aggregateConditions=true", "/settings/aggregateConditions")]
#[case::region("settings.awsRegion=us-east-1", "/settings/awsRegion")]
#[case::load_balancers_on_aws("settings.nlbMatch=hostname", "/settings/nlbMatch")]
fn value_of_other_roles_is_refused_for_capz(#[case] wrong: &str, #[case] path: &str) {
    refused(
        &[&OF_CAPZ[..], &separate(wrong)].concat(),
        &format!("at '{path}': {OF_OTHERS}"),
    );
}

#[rstest]
#[case::name("capz.managementCluster.name=example", "/capz/managementCluster/name")]
#[case::namespace("capz.managementCluster.namespace=org", "/capz/managementCluster/namespace")]
#[case::gates(r#"capz.gates=["VNetReady"]"#, "/capz/gates")]
#[case::identities(r#"capz.identityNamespaces=["org"]"#, "/capz/identityNamespaces")]
#[case::machines_identity("capz.instanceMetadata=true", "/capz/instanceMetadata")]
fn value_of_capz_is_refused_for_other_roles(#[case] wrong: &str, #[case] path: &str) {
    let reason = format!("at '{path}': role ho does not take it: it is of role capz");
    refused(&[&RIGHT[..], &[wrong]].concat(), &reason);
}

#[rstest]
#[case::all_clusters("replicas=1")]
#[case::token_that_the_webhook_does_not_bring("azure.tokenFile=/var/run/secrets/azure/token")]
#[case::condition_with_a_domain(r#"capz.gates=["example.com/Network-Ready"]"#)]
#[case::name_with_dots("capz.managementCluster.name=mc.example")]
#[case::times("settings.resync=10m settings.leaseDuration=30s")]
fn right_value_is_taken_for_capz(#[case] right: &str) {
    let rendered = render(&[&OF_CAPZ[..], &separate(right)].concat());
    rendered.unwrap_or_else(|error| panic!("{error:#}"));
}

/// What the clusters of HyperShift need is of no use here, and rights to pause are for gates alone.
#[rstest]
#[case::without_gates("capz.gates=[]", false)]
#[case::with_gates(r#"capz.gates=["VNetReady"]"#, true)]
fn kinds_of_capz_are_rendered_and_no_other(#[case] gates: &str, #[case] pauses: bool) -> Result<()> {
    let rendered = render(&[&OF_CAPZ[..], &[gates]].concat())?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered)?;
    let mut kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    kinds.sort_unstable();
    let expected = [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "FlowSchema",
        "FlowSchema",
        "Lease",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ];
    assert_eq!(kinds, expected);
    assert!(!rendered.contains("hostNetwork"), "{rendered}");
    assert_eq!(rendered.contains("kubeadmcontrolplanes"), pauses, "{rendered}");
    Ok(())
}

#[test]
fn secrets_are_read_by_name_where_identities_are() -> Result<()> {
    let rendered = render(&[&OF_CAPZ[..], &[r#"capz.identityNamespaces=["org-a"]"#]].concat())?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered)?;
    let rules = objects.iter().flat_map(|object| {
        let rules = object["rules"].as_array().into_iter().flatten();
        rules.map(move |rule| (object, rule))
    });
    let mut readers = Vec::new();
    for (object, rule) in rules {
        let has = |field: &str, text: &str| rule[field].as_array().is_some_and(|all| all.contains(&json!(text)));
        assert!(
            !has("verbs", "update") && !has("verbs", "*") && !has("resources", "*"),
            "{rule}"
        );
        if has("resources", "secrets") {
            readers.push(json!([object["kind"], object["metadata"]["namespace"], rule["verbs"]]));
        }
    }
    assert_eq!(readers, [json!(["Role", "org-a", ["get"]])]);
    Ok(())
}

fn separate(values: &str) -> Vec<&str> {
    values.split(' ').collect()
}

fn refused(values: &[&str], reason: &str) {
    let error = render(values).err().map(|error| format!("{error:#}"));
    assert!(error.as_ref().is_some_and(|text| text.contains(reason)), "{error:?}");
}
