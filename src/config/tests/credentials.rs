//! The credential for Azure, from what HyperShift puts into the environment.

use super::*;

#[test]
fn operator_environment_with_workload_identity_is_enough() {
    let config = ho(&[]).unwrap();
    assert_eq!(
        credential(&config),
        CredentialSource::WorkloadIdentity {
            tenant: "tenant".into(),
            client: "client".into(),
            token_file: "/var/run/secrets/token".into(),
        }
    );
}

#[test]
fn operators_switch_is_no_identity() {
    let mut variables = HO.to_vec();
    variables.retain(|(name, _)| *name != "AZURE_PLS_CLIENT_ID");
    variables.push(("AZURE_PLS_CLIENT_ID", "switch"));
    let config = resolve(&[("role", "ho")], &Environment::of(&variables)).unwrap();
    let CredentialSource::WorkloadIdentity { client, .. } = credential(&config) else {
        panic!("{:?}", credential(&config));
    };
    assert_eq!(client, "client");
}

#[test]
fn nothing_is_tried_that_the_environment_does_not_describe() {
    let environment = Environment::of(&[("POD_NAMESPACE", "clusters-one")]);
    let line = [("role", "cpo"), ("namespace", "clusters-one")];
    let problems = resolve(&line, &environment).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("no credential: set AZURE_CREDENTIALS_FILE"),
        "{problems:?}"
    );
}

#[test]
fn operator_environment_with_a_credentials_file_is_enough() {
    let file = credentials_file(SUBSCRIPTION);
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("AZURE_PLS_CLIENT_ID", ""),
    ]);
    let environment = Environment {
        service_account_namespace: Some("hypershift".into()),
        ..environment
    };
    let config = resolve(&[("role", "ho")], &environment).unwrap();
    let CredentialSource::SecretFile { path: used } = &credential(&config) else {
        panic!("{:?}", credential(&config));
    };
    assert_eq!(used, file.path());
    assert_eq!(
        config.management.clone().unwrap().scopes.all()[0].subscription.as_str(),
        SUBSCRIPTION
    );
    assert_eq!(config.run.as_ref().unwrap().lease.namespace, "hypershift");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn given_subscription_precedes_that_of_the_credentials_file() {
    let file = credentials_file("99999999-2222-3333-4444-555555555555");
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
        ("POD_NAMESPACE", "hypershift"),
    ]);
    let config = resolve(&[("role", "ho")], &environment).unwrap();
    assert_eq!(
        config.management.unwrap().scopes.all()[0].subscription.as_str(),
        SUBSCRIPTION
    );
}

#[test]
fn control_plane_operators_environment_is_enough() {
    let config = cpo(&[]).unwrap();
    assert_eq!(config.roles, BTreeSet::from([Role::Cpo]));
    assert!(matches!(credential(&config), CredentialSource::WorkloadIdentity { .. }));
    assert_eq!(config.management, None);
    assert_eq!(azure(&config).http.role, "cpo");
}

#[test]
fn chosen_managed_identity_uses_the_client_id_if_there_is_one() {
    let config = cpo(&[("credential", "managed-identity")]).unwrap();
    let expected = CredentialSource::ManagedIdentity {
        client_id: Some("client".into()),
    };
    assert_eq!(credential(&config), expected);
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
        ("HYPERLINK_ALLOW_SCOPES", EXAMPLE),
        other[0],
    ];
    let problems = resolve(&[("role", role)], &Environment::of(&variables)).unwrap_err();
    let expected = format!(
        "two credentials: AZURE_CREDENTIALS_FILE and {named} are both set; unset one or choose with --credential (or HYPERLINK_CREDENTIAL)"
    );
    assert_eq!(problems, [expected]);
    let line = [("role", role), ("credential", "secret-file")];
    assert!(resolve(&line, &Environment::of(&variables)).is_ok());
}

#[test]
fn operator_with_a_file_ignores_a_token_that_a_webhook_injected() {
    let file = credentials_file(SUBSCRIPTION);
    let variables = [
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("POD_NAMESPACE", "hypershift"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/t"),
    ];
    let config = resolve(&[("role", "ho")], &Environment::of(&variables)).unwrap();
    assert!(matches!(credential(&config), CredentialSource::SecretFile { .. }));
}

#[test]
fn bad_credentials_file_is_the_only_problem_and_stays_secret() {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "clientSecret: [hunter2]").unwrap();
    let environment = Environment::of(&[
        ("AZURE_CREDENTIALS_FILE", path(&file)),
        ("AZURE_RESOURCE_GROUP", "management"),
        ("POD_NAMESPACE", "hypershift"),
    ]);
    let problems = resolve(&[("role", "ho")], &environment).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("AZURE_CREDENTIALS_FILE: "), "{problems:?}");
    assert!(!problems[0].contains("hunter2"), "{problems:?}");
}

#[test]
fn a_half_described_workload_identity_names_what_is_missing() {
    let environment = Environment::of(&[("AZURE_FEDERATED_TOKEN_FILE", "/token"), ("POD_NAMESPACE", "x")]);
    let problems = resolve(&[("role", "cpo"), ("namespace", "x")], &environment).unwrap_err();
    let needs = "is missing; credential workload-identity needs it";
    assert_eq!(
        problems,
        [format!("AZURE_CLIENT_ID {needs}"), format!("AZURE_TENANT_ID {needs}")]
    );
}

#[test]
fn absent_workload_identity_names_its_webhook() {
    let environment = Environment::of(&[("AZURE_PLS_CLIENT_ID", "x"), ("POD_NAMESPACE", "x")]);
    let problems = resolve(&[("role", "cpo"), ("namespace", "x")], &environment).unwrap_err();
    assert_eq!(
        problems,
        [
            "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE are missing; credential workload-identity needs them: its webhook \
          sets them when a pod is made, so install it and make the pod anew, or set them all"
        ]
    );
}
