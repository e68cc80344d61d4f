use rstest::rstest;

use super::*;

#[rstest]
#[case::nothing("")]
#[case::neither_of_both("{}")]
#[case::list("[]")]
#[case::unknown_key("hostedClusters: []\nallow: all")]
#[case::unknown_key_of_an_entry("hostedClusters: [{namespace: a, scopes: [], scope: x}]")]
#[case::cut_off("hostedClusters: [{namespace: a, scopes: [")]
#[case::no_cloud("hostedClusters: [{namespace: a}]")]
#[case::domains_without_scopes(
    "hostedClusters: [{namespace: a, names: [b], baseDomains: [example.com], aws: {roleARN: 'arn:aws:iam::444455556666:role/a', vpcIDs: [], hostedZoneIDs: []}}]"
)]
#[case::aws_without_names(
    "hostedClusters: [{namespace: a, aws: {roleARN: 'arn:aws:iam::444455556666:role/a', vpcIDs: [], hostedZoneIDs: []}}]"
)]
#[case::no_namespace("hostedClusters: [{scopes: []}]")]
#[case::empty_namespace("hostedClusters: [{namespace: '', scopes: []}]")]
#[case::no_names("hostedClusters: [{namespace: a, names: [], scopes: []}]")]
#[case::empty_name("hostedClusters: [{namespace: a, names: [''], scopes: []}]")]
#[case::no_scope("hostedClusters: [{namespace: a, scopes: [guest]}]")]
#[case::no_subscription("hostedClusters: [{namespace: a, scopes: [], additionalAllowedSubscriptions: ['']}]")]
#[case::no_domain("hostedClusters: [{namespace: a, scopes: [], baseDomains: ['']}]")]
#[case::wildcard_for_a_domain("hostedClusters: [{namespace: a, scopes: [], baseDomains: ['*.example.com']}]")]
#[case::twice("hostedClusters: [{namespace: a, scopes: []}, {namespace: a, scopes: []}]")]
#[case::excluded_without_a_name("excludeNamespaces: ['']")]
#[case::hosted_cluster_is_excluded("excludeNamespaces: [clusters/red]")]
#[case::excluded_in_upper_case("excludeNamespaces: [Clusters-Red]")]
#[case::excluded_with_a_blank("excludeNamespaces: ['clusters-red ']")]
#[case::name_twice("hostedClusters: [{namespace: a, names: [b, b], scopes: []}]")]
fn damaged_file_allows_nothing_because_it_is_not_taken(#[case] text: &str) {
    assert!(AllowedScopes::parse(text).is_err());
}

#[rstest]
#[case::unknown_field("hostedClusters:\n- namespace: a\n  scopes: []\n  scope: []\n", "line 4, column 3")]
#[case::number_for_a_name("hostedClusters:\n- namespace: 12\n  scopes: []\n", "line 2, column 14")]
#[case::truth_for_a_name("hostedClusters:\n- namespace: true\n  scopes: []\n", "line 2, column 14")]
#[case::cut_off("hostedClusters:\n- {namespace: a, scopes: [", "line 2, column 26")]
fn error_names_line_and_column_on_one_line(#[case] text: &str, #[case] position: &str) {
    let error = AllowedScopes::parse(text).unwrap_err().to_string();
    assert!(error.contains(position) && error.lines().count() == 1, "{error}");
}

#[rstest]
#[case::unknown_field("{hostedClusters: [], \"a\\nb\": 1}")]
#[case::names_twice("hostedClusters: [{namespace: a, names: [\"b\\nc\", \"b\\nc\"], scopes: []}]")]
fn error_stays_one_line_where_it_quotes_the_file(#[case] text: &str) {
    let error = AllowedScopes::parse(text).unwrap_err().to_string();
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn word_that_was_a_truth_in_old_yaml_is_a_name() {
    let file = AllowedScopes::parse("hostedClusters: [{namespace: on, names: [y, no], scopes: []}]").unwrap();
    assert_eq!(file.entries(), 2);
}

#[test]
fn yaml_and_json_say_the_same() {
    let yaml = "hostedClusters:\n- namespace: a\n  names: [b, c]\n  scopes:\n  - /subscriptions/s\n";
    let json = r#"{"hostedClusters": [{"namespace": "a", "names": ["b", "c"], "scopes": ["/subscriptions/S"]}]}"#;
    let read = AllowedScopes::parse(yaml).unwrap();
    assert_eq!(read, AllowedScopes::parse(json).unwrap());
    assert_eq!(read.entries(), 2);
}

#[test]
fn namespaces_are_excluded_by_their_whole_names() {
    let file = AllowedScopes::parse("excludeNamespaces: [clusters-a, clusters-a]").unwrap();
    assert_eq!((file.entries(), file.excluded()), (0, 1));
    assert!(file.excludes("clusters-a") && !file.excludes("clusters") && !file.excludes("clusters-ab"));
}

#[test]
fn entry_may_be_for_either_cloud_or_for_both() {
    let aws = "aws: {roleARN: 'arn:aws:iam::444455556666:role/a', vpcIDs: [], hostedZoneIDs: []}";
    let text = format!(
        "hostedClusters: [{{namespace: a, scopes: []}}, {{namespace: b, names: [x], {aws}}}, {{namespace: c, names: [x], scopes: [], {aws}}}]"
    );
    let file = AllowedScopes::parse(&text).unwrap();
    let of = |namespace: &str| {
        let entry = file.entry(namespace).unwrap();
        (entry.azure.is_some(), entry.aws.is_some())
    };
    assert_eq!(
        ["a-x", "b-x", "c-x"].map(of),
        [(true, false), (false, true), (true, true)]
    );
}
