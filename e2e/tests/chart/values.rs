//! Which values the chart accepts: the examples pass lint, wrong ones are refused with the path and the reason, and the
//! README describes each.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::helm::{Helm, chart};
use e2e::repository;
use e2e::run_dir::RunDir;
use rstest::rstest;
use serde_json::Value;

/// The right values that every refused set has otherwise.
pub(super) const RIGHT: [&str; 5] = [
    "role=ho",
    "image.repository=registry.example.com/hyperlink",
    "azure.clientId=66666666-6666-4666-8666-666666666666",
    "settings.subscription=33333333-3333-4333-8333-333333333333",
    "settings.resourceGroup=management",
];

pub(super) fn render(values: &[&str]) -> Result<String> {
    let chart = chart();
    let mut arguments = vec!["template", "release", chart.to_str().context("the path")?];
    for value in values {
        let is_json = value.contains(['[', '{']);
        arguments.extend([if is_json { "--set-json" } else { "--set" }, value]);
    }
    Helm::new(None)?.run(&arguments)
}

#[test]
fn examples_are_accepted_by_lint() {
    let run = || {
        let helm = Helm::new(None)?;
        let mut count = 0;
        for entry in std::fs::read_dir(chart().join("examples"))? {
            let file = entry?.path();
            let chart = chart();
            let set = "image.repository=registry.example.com/hyperlink";
            helm.run(&[
                "lint",
                "--strict",
                &chart.to_string_lossy(),
                "--set",
                set,
                "--values",
                &file.to_string_lossy(),
            ])
            .with_context(|| file.display().to_string())?;
            count += 1;
        }
        ensure!(count == 10, "{count} examples");
        render(&RIGHT).map(drop)
    };
    run().unwrap();
}

#[rstest]
#[case::no_role("role=", "at '/role': value must be one of 'ho', 'cpo', 'ho,cpo'")]
#[case::unknown_role("role=hco", "at '/role': value must be one of 'ho', 'cpo', 'ho,cpo'")]
#[case::no_image("image.repository=", "at '/image/repository': '' does not match pattern")]
#[case::digest_without_algorithm("image.digest=0123", "at '/image/digest': '0123' does not match pattern")]
#[case::misspelt("replica=3", "at '': additional properties 'replica' not allowed")]
#[case::misspelt_below(
    "settings.resyncInterval=5m",
    "at '/settings': additional properties 'resyncInterval' not allowed"
)]
#[case::no_shard("shards=0", "at '/shards': minimum: got 0, want 1")]
#[case::fewer_replicas_than_none("replicas=-1", "at '/replicas': minimum: got -1, want 0")]
#[case::image_with_its_tag(
    "image.repository=registry.example.com:5000/hyperlink:0.1.0",
    "at '/image/repository': 'registry.example.com:5000/hyperlink:0.1.0' does not match pattern"
)]
#[case::no_pod_may_be_away(
    "podDisruptionBudget.maxUnavailable=0",
    "at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1"
)]
#[case::text_for_a_number("replicas=two", "at '/replicas': got string, want integer")]
#[case::number_for_a_duration("settings.resync=300", "at '/settings/resync': got number, want string")]
#[case::duration_without_a_unit("settings.resync=soon", "at '/settings/resync': 'soon' does not match pattern")]
#[case::no_time_at_all("settings.resync=0s", "at '/settings/resync': '0s' does not match pattern")]
#[case::minutes_before_hours(
    "settings.recordResync=30m1h",
    "at '/settings/recordResync': '30m1h' does not match pattern"
)]
#[case::more_than_a_week("settings.resync=9999h", "at '/settings/resync': 9999h is longer than a week")]
#[case::lease_shorter_than_its_deadline(
    "settings.leaseDuration=5s",
    "at '/settings/leaseRenewDeadline': 10s must be shorter than leaseDuration, 5s"
)]
#[case::lease_tried_too_late(
    "settings.leaseRetry=10s",
    "at '/settings/leaseRetry': 10s must be shorter than leaseRenewDeadline, 10s"
)]
#[case::lease_of_half_a_second(
    "settings.leaseDuration=500ms",
    "at '/settings/leaseDuration': '500ms' does not match pattern"
)]
#[case::name_for_a_client_id(
    "azure.clientId=hyperlink",
    "at '/azure/clientId': 'hyperlink' does not match pattern"
)]
#[case::no_client_id("azure.clientId=", "at '/azure/clientId': minLength: got 0, want 1")]
#[case::no_secret("azure.credential=secret-file", "at '/azure/secret/name': minLength: got 0, want 1")]
#[case::unknown_credential("azure.credential=password", "at '/azure/credential': value must be one of")]
#[case::token_file_without_a_tenant("azure.tokenFile=/token", "at '/azure/tenantId': minLength: got 0, want 1")]
#[case::no_resource_group("settings.resourceGroup=", "at '/settings/resourceGroup': minLength: got 0, want 1")]
#[case::no_subscription("settings.subscription=", "at '/settings/subscription': minLength: got 0, want 1")]
#[case::plain_endpoint(
    "settings.armEndpoint=http://management.example.com",
    "at '/settings/armEndpoint': 'http://management.example.com' does not match pattern"
)]
#[case::endpoint_without_an_audience(
    "settings.armEndpoint=https://management.example.com",
    "at '/settings/audience': minLength: got 0, want 1"
)]
#[case::large_nat_subnet(
    "settings.natPrefixLength=16",
    "at '/settings/natPrefixLength': minimum: got 16, want 24"
)]
#[case::address_that_is_none(
    "settings.natAddressPool=300.1.2.3/16",
    "at '/settings/natAddressPool': '300.1.2.3/16' does not match pattern"
)]
#[case::address_for_a_network(
    "settings.natAddressPool=10.1.2.3/16",
    "at '/settings/natAddressPool': 10.1.2.3/16 is an address in a network; write the network"
)]
#[case::network_without_room(
    "settings.natAddressPool=10.1.0.0/29",
    "at '/settings/natAddressPool': 10.1.0.0/29 has no room for a subnet of natPrefixLength 28"
)]
#[case::group_that_ends_with_a_dot(
    "settings.resourceGroup=management.",
    "at '/settings/resourceGroup': 'management.' does not match pattern"
)]
#[case::subscription_by_name(
    r#"settings.alsoManage=["/subscriptions/prod"]"#,
    "at '/settings/alsoManage/0': '/subscriptions/prod' does not match pattern"
)]
#[case::cpo_for_all_without_scopes("role=cpo", "at '/allowScopes/hostedClusters': minItems: got 0, want 1")]
#[case::scope_that_is_none(
    r#"allowScopes.hostedClusters=[{"namespace":"clusters","scopes":["management"]}]"#,
    "at '/allowScopes/hostedClusters/0/scopes/0': 'management' does not match pattern"
)]
#[case::scopes_for_nobody(
    r#"allowScopes.hostedClusters=[{"scopes":[]}]"#,
    "at '/allowScopes/hostedClusters/0': missing property 'namespace'"
)]
#[case::management_scope_without_a_cluster(
    r#"managementScopes=[{"subscription":"33333333-3333-4333-8333-333333333333","resourceGroup":"b"}]"#,
    "at '/managementScopes/0': missing property 'hostedClusters'"
)]
#[case::management_scope_without_a_group(
    r#"managementScopes=[{"subscription":"33333333-3333-4333-8333-333333333333","hostedClusters":[{"namespace":"a"}]}]"#,
    "at '/managementScopes/0': missing property 'resourceGroup'"
)]
#[case::management_scopes_of_the_guest_side(
    r#"role=cpo allowScopes={"configMap":"scopes"},managementScopes=[{"subscription":"33333333-3333-4333-8333-333333333333","resourceGroup":"b","hostedClusterLabels":{"a":"b"}}]"#,
    "at '/managementScopes': maxItems: got 1, want 0"
)]
#[case::excluded_in_the_file_of_another_role(
    r#"allowScopes.excludeNamespaces=["clusters-red"]"#,
    "at '/allowScopes/excludeNamespaces': maxItems: got 1, want 0"
)]
#[case::excluded_beside_a_file_of_ones_own(
    r#"role="cpo",allowScopes={"configMap":"scopes","excludeNamespaces":["clusters-red"]}"#,
    "at '/allowScopes/excludeNamespaces': maxItems: got 1, want 0"
)]
#[case::only_namespace_is_excluded(
    r#"namespace="clusters-red",settings.excludeNamespace=["clusters-red"]"#,
    "at '/namespace': clusters-red is excluded, and the release is for it alone"
)]
#[case::unknown_platform(
    "settings.platform=gcp",
    "at '/settings/platform': value must be one of 'azure', 'aws'"
)]
#[case::aws_without_a_credentials_file("settings.platform=aws", "at '/aws/secret/name': minLength: got 0, want 1")]
#[case::two_credentials_files_of_aws(
    "settings.platform=aws aws.secret.name=aws settings.awsCredentialsFile=/etc/aws/credentials",
    "at '/aws/secret/name': maxLength: got 3, want 0"
)]
#[case::guest_side_of_many_clusters_on_aws_without_scopes(
    "role=cpo settings.platform=aws aws.secret.name=aws",
    "at '/allowScopes/hostedClusters': minItems: got 0, want 1"
)]
#[case::scopes_of_no_cloud(
    r#"allowScopes.hostedClusters=[{"namespace":"clusters"}]"#,
    "at '/allowScopes/hostedClusters/0': missing property 'aws'"
)]
#[case::scopes_on_aws_for_clusters_without_names(
    r#"allowScopes.hostedClusters=[{"namespace":"clusters","aws":{"roleARN":"arn:aws:iam::444455556666:role/a","vpcIDs":[],"hostedZoneIDs":[]}}]"#,
    "at '/allowScopes/hostedClusters/0': properties 'names' required, if 'aws' exists"
)]
#[case::user_for_a_role_on_aws(
    r#"allowScopes.hostedClusters=[{"namespace":"clusters","names":["a"],"aws":{"roleARN":"arn:aws:iam::444455556666:user/a","vpcIDs":[],"hostedZoneIDs":[]}}]"#,
    "at '/allowScopes/hostedClusters/0/aws/roleARN': 'arn:aws:iam::444455556666:user/a' does not match pattern"
)]
#[case::definition_of_azure_for_aws(
    "settings.platform=aws aws.secret.name=aws crds.install=true",
    "at '/crds/install': value must be false"
)]
#[case::zone_for_a_region(
    "settings.awsRegion=us-east-1a",
    "at '/settings/awsRegion': 'us-east-1a' does not match"
)]
#[case::plain_endpoint_of_aws(
    "settings.awsEndpointEc2=http://ec2.example.com",
    "at '/settings/awsEndpointEc2': 'http://ec2.example.com' does not match pattern"
)]
#[case::flag_with_a_number_that_a_value_gives(
    r#"extraArgs=["--aws-endpoint-route53=https://route53.example.com"]"#,
    "at '/extraArgs/0': --aws-endpoint-route53 is for the value settings.awsEndpointRoute53 to say"
)]
#[case::namespace_in_upper_case("namespace=Clusters", "at '/namespace': 'Clusters' does not match pattern")]
#[case::monitor_of_nothing(
    "metrics.serviceMonitor.enabled=true",
    "at '/metrics/serviceMonitor/enabled': value must be false"
)]
#[case::alerts_that_lead_nowhere(
    "metrics.prometheusRule.enabled=true",
    "at '/metrics/runbookUrl': minLength: got 0, want 1"
)]
#[case::dashboard_that_leads_nowhere(
    "metrics.dashboard.enabled=true",
    "at '/metrics/runbookUrl': minLength: got 0, want 1"
)]
#[case::port_of_the_probes(
    r#"metrics={"enabled":true,"port":8081,"readers":[]}"#,
    "at '/metrics/port': 8081 is the port of the probes"
)]
#[case::second_role_without_its_rights(
    r#"extraArgs=["--role=cpo"]"#,
    "at '/extraArgs/0': --role is for the value role to say"
)]
#[case::flag_that_a_value_gives(
    r#"extraArgs=["--lease-namespace=x","--resync=3m"]"#,
    "at '/extraArgs/1': --resync is for the value settings.resync to say"
)]
#[case::metrics_beside_the_chart(
    r#"extraArgs=["--metrics-bind=0.0.0.0:8080"]"#,
    "at '/extraArgs/0': --metrics-bind is for the value metrics to say"
)]
#[case::argument_that_is_no_flag(r#"extraArgs=["run"]"#, "at '/extraArgs/0': 'run' does not match pattern")]
#[case::variable_without_a_name(r#"extraEnv=[{"value":"x"}]"#, "at '/extraEnv/0': missing property 'name'")]
fn wrong_value_is_refused_with_its_path_and_the_reason(#[case] wrong: &str, #[case] reason: &str) {
    let wrong: Vec<&str> = wrong.split(' ').collect();
    let refused = render(&[&RIGHT[..], &wrong].concat());
    let error = format!("{:#}", refused.expect_err("it is taken"));
    assert!(error.contains(reason), "{error}");
}

#[rstest]
#[case::replicas("replicas=0")]
#[case::image_on_a_port("image.repository=localhost:5000/hyperlink")]
#[case::times_of_openshift(
    r#"settings={"leaseDuration":"137s","leaseRenewDeadline":"107s","leaseRetry":"26s","resync":"1h30m","recordResync":"168h"}"#
)]
#[case::smallest_pool("settings.natAddressPool=10.1.2.16/28")]
#[case::group_as_azure_may_spell_it(
    r#"settings.alsoManage=["/subscriptions/33333333-3333-4333-8333-333333333333/resourcegroups/Größe/"]"#
)]
#[case::scopes_in_any_case_and_names_with_dots(
    r#"allowScopes.hostedClusters=[{"namespace":"clusters","names":["a.b-c"],"scopes":["/Subscriptions/33333333-3333-4333-8333-333333333333/resourcegroups/A/providers/microsoft.network/virtualnetworks/V"]}]"#
)]
#[case::management_scopes_alone(
    r#"settings={"resourceGroup":"","subscription":""},managementScopes=[{"subscription":"33333333-3333-4333-8333-333333333333","resourceGroup":"b","hostedClusterLabels":{"a":"b"}}]"#
)]
#[case::flag_that_no_value_gives(r#"extraArgs=["--lease-namespace=x"]"#)]
#[case::aws_without_a_value_of_azure(
    r#"azure.clientId="",settings={"platform":"aws","subscription":"","resourceGroup":"","awsRegion":"us-gov-west-1"},aws={"secret":{"name":"aws"}}"#
)]
fn right_value_is_taken(#[case] right: &str) {
    let role = if right.starts_with("allowScopes") {
        "role=cpo"
    } else {
        "role=ho"
    };
    let rendered = render(&[&RIGHT[..], &[role, right]].concat());
    rendered.unwrap_or_else(|error| panic!("{error:#}"));
}

/// The chart's values with their defaults.
pub(super) fn defaults() -> Result<Value> {
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(
        chart().join("values.yaml"),
    )?)?)
}

#[test]
fn every_value_is_in_the_schema_and_the_readme_and_no_other() {
    let run = || {
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(chart().join("values.schema.json"))?)?;
        let mut values = BTreeSet::new();
        compare(&defaults()?, &schema, String::new(), &mut values)?;
        let readme = std::fs::read_to_string(chart().join("README.md"))?;
        let (_, table) = readme
            .split_once("| Key | Type | Default | Description |")
            .context("no table")?;
        let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let description = cells.get(3).map_or("", |cell| cell.trim_end_matches('|').trim());
            (cells.first().copied().unwrap_or_default().to_owned(), description.len())
        });
        for (value, words) in rows {
            ensure!(words > 5, "nothing is said of {value}");
            ensure!(values.remove(&value), "{value} is no value");
        }
        ensure!(values.is_empty(), "not in the README: {values:?}");
        Ok(())
    };
    run().unwrap_or_else(|error: anyhow::Error| panic!("{error:#}"));
}

/// What no case has: the alerts and the dashboard are files of their own.
const MONITORED: &str = r#"{"role": "ho", "azure": {"clientId": "66666666-6666-4666-8666-666666666666"},
    "settings": {"subscription": "33333333-3333-4333-8333-333333333333", "resourceGroup": "management"},
    "metrics": {
        "runbookUrl": "https://wiki.example.com",
        "prometheusRule": {"enabled": true, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": true, "labels": {"grafana": "ours"}, "annotations": {"folder": "network"}}}}"#;

#[test]
fn every_value_of_some_case_makes_a_difference() {
    let run = || {
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(chart().join("values.schema.json"))?)?;
        let mut idle = BTreeSet::new();
        compare(&defaults()?, &schema, String::new(), &mut idle)?;
        let mut cases = vec![MONITORED.to_owned()];
        for directory in [chart().join("examples"), repository().join("e2e/tests/chart/cases")] {
            for entry in std::fs::read_dir(directory)? {
                cases.push(std::fs::read_to_string(entry?.path())?);
            }
        }
        let dir = RunDir::new("values")?;
        for case in cases {
            let mut values: Value = serde_saphyr::from_str(&case)?;
            if values.pointer("/image/repository").is_none() {
                values["image"]["repository"] = "registry.example.com/hyperlink".into();
            }
            let whole = rendered(&dir, &values)?;
            idle.retain(|path| match without(&values, path) {
                Some(fewer) => rendered(&dir, &fewer).is_ok_and(|text| text == whole),
                None => true,
            });
        }
        ensure!(idle.is_empty(), "in no case, or without effect there: {idle:?}");
        Ok(())
    };
    run().unwrap_or_else(|error: anyhow::Error| panic!("{error:#}"));
}

/// These values without the one at `path`; none if it is not among them.
fn without(values: &Value, path: &str) -> Option<Value> {
    let mut fewer = values.clone();
    let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut object = &mut fewer;
    for part in above.split('.').filter(|part| !part.is_empty()) {
        object = object.get_mut(part)?;
    }
    object.as_object_mut()?.remove(name)?;
    Some(fewer)
}

fn rendered(dir: &RunDir, values: &Value) -> Result<String> {
    let (chart, file) = (chart(), dir.path().join("values.json"));
    std::fs::write(&file, values.to_string())?;
    let (chart, file) = (chart.to_string_lossy(), file.to_string_lossy());
    Helm::new(None)?.run(&["template", "release", &chart, "--values", &file])
}

/// Collects the paths where the schema goes no deeper.
fn compare(value: &Value, schema: &Value, path: String, leaves: &mut BTreeSet<String>) -> Result<()> {
    let Some(known) = schema["properties"]
        .as_object()
        .filter(|_| schema["additionalProperties"] == false)
    else {
        leaves.insert(path);
        return Ok(());
    };
    let given = value.as_object().with_context(|| format!("{path} is no object"))?;
    // `global` is Helm's own.
    let known: BTreeSet<&String> = known.keys().filter(|name| *name != "global").collect();
    let given_names: BTreeSet<&String> = given.keys().collect();
    // What Kubernetes defines is a leaf, though the schema may know its parts.
    if path == "resources" {
        leaves.insert(path);
        return Ok(());
    }
    let others: Vec<_> = known.symmetric_difference(&given_names).collect();
    ensure!(others.is_empty(), "{path}: {others:?}");
    for (name, below) in given {
        let dot = if path.is_empty() { "" } else { "." };
        compare(below, &schema["properties"][name], format!("{path}{dot}{name}"), leaves)?;
    }
    Ok(())
}
