//! The settings of role `capz`.

use super::*;

const NAMED: [(&str, &str); 4] = [
    ("role", "capz"),
    ("management-cluster-name", "mc"),
    ("management-cluster-namespace", "org-giantswarm"),
    ("lease-namespace", "hyperlink"),
];

fn capz(line: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    resolve(&[&NAMED, line].concat(), &Environment::of(&[]))
}

#[test]
fn role_capz_needs_no_credential_of_its_own() {
    let config = capz(&[]).unwrap();
    assert_eq!(azure(&config).credential, None);
    let own = config.capz.unwrap();
    assert_eq!(
        (own.management.to_string(), own.federated_token_file),
        ("org-giantswarm/mc".to_owned(), None)
    );
    let token = Environment::of(&[("AZURE_FEDERATED_TOKEN_FILE", "/token"), ("AZURE_CLIENT_ID", "c")]);
    let own = resolve(&NAMED, &token).unwrap().capz.unwrap();
    assert_eq!(own.federated_token_file, Some("/token".into()));
}

#[test]
fn gates_are_each_named_once() {
    let config = capz(&[("azure-cluster-gates", " A ,,B,A, ")]).unwrap();
    assert_eq!(config.capz.unwrap().gates, ["A", "B"]);
}

#[test]
fn missing_management_cluster_is_one_problem() {
    let message = "--management-cluster-name (or HYPERLINK_MANAGEMENT_CLUSTER_NAME) or --management-cluster-namespace \
                   (or HYPERLINK_MANAGEMENT_CLUSTER_NAMESPACE) is missing; role capz needs both";
    for left_out in ["management-cluster-name", "management-cluster-namespace"] {
        let line: Vec<_> = NAMED.into_iter().filter(|(flag, _)| *flag != left_out).collect();
        assert_eq!(resolve(&line, &Environment::of(&[])).unwrap_err(), [message]);
    }
}

#[test]
fn role_capz_is_alone_and_for_azure() {
    let alone = "--role capz does not go with another role: it serves other clusters, with other identities";
    let both = [
        &NAMED[1..],
        &[
            ("role", "capz,ho"),
            ("resource-group", "g"),
            ("subscription", SUBSCRIPTION),
        ],
    ]
    .concat();
    assert_eq!(resolve(&both, &Environment::of(&[])).unwrap_err(), [alone]);
    let problems = capz(&[("platform", "aws"), ("aws-region", "us-east-1")]).unwrap_err();
    assert!(
        problems.contains(&"--role capz is for --platform azure alone".to_owned()),
        "{problems:?}"
    );
}
