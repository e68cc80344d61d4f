use super::*;
use crate::aws::endpoints::Service;
use crate::hypershift::aws::load_balancer_name::NlbMatch;

const KEYS: &str = "[default]\naws_access_key_id = AKIA\naws_secret_access_key = hunter2\nregion = eu-west-1\n";

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn aws(line: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let line = [&[("role", "ho"), ("platform", "aws")], line].concat();
    let variables = [&[("POD_NAMESPACE", "hypershift")], variables].concat();
    resolve(&line, &Environment::of(&variables))
}

#[test]
fn variables_of_hypershifts_operator_suffice_for_aws() {
    let file = file(KEYS);
    let variables = [
        ("AWS_SHARED_CREDENTIALS_FILE", path(&file)),
        ("AWS_REGION", "us-east-1"),
        ("AWS_SDK_LOAD_CONFIG", "true"),
    ];
    let config = aws(&[], &variables).unwrap();
    assert!(config.azure.is_none() && config.management.is_none());
    assert!(config.platforms().eq([Platform::Aws]));
    let aws = config.aws.unwrap();
    assert_eq!(aws.credentials_file, file.path());
    assert_eq!(aws.endpoints.region().name(), "us-east-1");
    assert_eq!(
        aws.endpoints.origin(Service::Ec2).as_str(),
        "https://ec2.us-east-1.amazonaws.com/"
    );
    assert_eq!(aws.nlb_match, NlbMatch::Uid);
}

#[test]
fn region_of_the_credentials_file_counts_where_none_is_given() {
    let file = file(KEYS);
    let config = aws(&[("aws-credentials-file", path(&file)), ("nlb-match", "hostname")], &[]);
    let aws = config.unwrap().aws.unwrap();
    assert_eq!(aws.endpoints.region().name(), "eu-west-1");
    assert_eq!(aws.nlb_match, NlbMatch::Hostname);
}

#[test]
fn both_platforms_in_one_process() {
    let file = file(KEYS);
    let line = [
        ("role", "ho"),
        ("platform", "azure,aws"),
        ("aws-credentials-file", path(&file)),
    ];
    let config = resolve(&line, &Environment::of(&HO)).unwrap();
    assert!(config.platforms().eq(Platform::ALL));
}

#[test]
fn origins_are_overridden_each_by_itself() {
    let file = file(KEYS);
    let line = [
        ("aws-credentials-file", path(&file)),
        ("aws-endpoint-ec2", "https://127.0.0.1:4001"),
        ("aws-endpoint-elb", "https://127.0.0.1:4002"),
        ("aws-endpoint-route53", "https://127.0.0.1:4003"),
        ("aws-endpoint-sts", "https://127.0.0.1:4004"),
    ];
    let endpoints = aws(&line, &[]).unwrap().aws.unwrap().endpoints;
    let ports = [Service::Ec2, Service::LoadBalancing, Service::Route53, Service::Sts];
    let ports = ports.map(|service| endpoints.origin(service).port());
    assert_eq!(ports, [4001, 4002, 4003, 4004].map(Some));
}

#[rstest]
#[case::no_file(&[], &["--aws-credentials-file (or AWS_SHARED_CREDENTIALS_FILE) is missing; platform aws needs it"])]
#[case::no_such_region(
    &[("aws-region", "us-moon-1x")],
    &["--aws-region (or AWS_REGION): \"us-moon-1x\" is not a region of the partitions aws, aws-cn or aws-us-gov, such as \
       us-east-1"]
)]
#[case::session_in_the_clear(
    &[("aws-endpoint-ec2", "http://ec2.example.com")],
    &["the endpoint of ec2 http://ec2.example.com/ is plain http; use https (http is for loopback only)"]
)]
fn wrong_settings_of_aws_are_named(#[case] line: &[(&str, &str)], #[case] problems: &[&str]) {
    let file = file(KEYS);
    let file = [("aws-credentials-file", path(&file))];
    let line = if line.is_empty() {
        line.to_vec()
    } else {
        [line, &file].concat()
    };
    assert_eq!(aws(&line, &[]).unwrap_err(), problems);
}

#[test]
fn file_without_a_region_needs_the_flag() {
    let file = file("[default]\naws_access_key_id = AKIA\naws_secret_access_key = hunter2\n");
    let problems = aws(&[("aws-credentials-file", path(&file))], &[]).unwrap_err();
    assert_eq!(
        problems,
        ["--aws-region (or AWS_REGION) is missing, and the credentials file names no region"]
    );
}

#[test]
fn unknown_platform_is_refused() {
    let problems = resolve(&[("role", "ho"), ("platform", "gcp")], &Environment::of(&HO)).unwrap_err();
    assert!(
        problems[0].contains("unknown platform \"gcp\": use azure or aws"),
        "{problems:?}"
    );
}

#[rstest]
#[case::on_aws("aws")]
#[case::on_both("azure,aws")]
fn guest_side_of_many_clusters_needs_the_allowed_scopes(#[case] platform: &str) {
    let file = file(KEYS);
    let resolved = |more: &[(&str, &str)]| {
        let line = [
            ("role", "cpo"),
            ("platform", platform),
            ("credential", "azure-cli"),
            ("aws-credentials-file", path(&file)),
        ];
        resolve(
            &[&line, more].concat(),
            &Environment::of(&[("POD_NAMESPACE", "hypershift")]),
        )
    };
    let missing = "--allow-scopes (or HYPERLINK_ALLOW_SCOPES) is missing; role cpo needs it, or --namespace";
    assert_eq!(resolved(&[]).unwrap_err(), [missing]);
    let config = resolved(&[("allow-scopes", EXAMPLE)]).unwrap();
    assert!(config.scope.namespace.is_none() && config.scope.allow_scopes.is_some());
}
