use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::hypershift::intent::{read, write};

fn ho() -> HoIntent {
    HoIntent {
        account: "123456789012".into(),
        region: "us-east-1".into(),
        load_balancer: "a1b2".into(),
        former_load_balancers: vec![],
        endpoint_service_id: Some("vpce-svc-0123456789abcdef0".into()),
        nonce: "n".into(),
        ..HoIntent::of(&identity("example", "id", "example-x7k2p"))
    }
}

fn cpo() -> CpoIntent {
    CpoIntent {
        account: "123456789012".into(),
        zone_account: "210987654321".into(),
        region: "us-east-1".into(),
        vpc: "vpc-0123456789abcdef0".into(),
        endpoint_role: Some("arn:aws:iam::123456789012:role/e".into()),
        records_role: Some("arn:aws:iam::210987654321:role/r".into()),
        endpoint_service_names: vec!["com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0".into()],
        endpoint_id: Some("vpce-0123456789abcdef0".into()),
        security_group_id: Some("sg-0123456789abcdef0".into()),
        zone_id: Some("Z0123456789".into()),
        record_names: vec!["api.example.hypershift.local".into()],
        endpoint_nonce: "n".into(),
        ..CpoIntent::of(&identity("example", "id", "example-x7k2p"))
    }
}

#[test]
fn what_is_recorded_is_read_back() {
    assert_eq!(read(Some(&write(&ho()))), Some(ho()));
    assert_eq!(read(Some(&write(&cpo()))), Some(cpo()));
    assert_eq!(ho().identity(), cpo().identity());
}

#[test]
fn fields_have_the_spelling_of_the_status() {
    let keys = |intent: Value| {
        intent
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        keys(json!(ho())),
        "account cluster clusterID endpointServiceID infraID loadBalancer nonce region"
    );
    assert_eq!(
        keys(json!(cpo())),
        "account cluster clusterID dnsZoneID endpointID endpointNonce endpointRoleARN endpointServiceNames infraID \
         recordNames recordsRoleARN region securityGroupID vpc zoneAccount"
    );
}

#[test]
fn missing_and_unknown_fields_are_no_damage() {
    let text = r#"{"cluster": "example", "later": {"x": 1}}"#.to_owned();
    let ho: HoIntent = read(Some(&text)).unwrap();
    let cpo: CpoIntent = read(Some(&text)).unwrap();
    assert_eq!((ho.cluster.as_str(), cpo.cluster.as_str()), ("example", "example"));
    assert_eq!((ho.scope(), ho.service_id()), (None, None));
    assert_eq!((cpo.scope(), cpo.zone_scope(), cpo.zone_id()), (None, None, None));
    assert!(cpo.service_names().is_empty());
}

#[test]
fn damaged_intent_is_none() {
    for text in ["", "x", "7", r#"{"cluster": 7}"#, r#"{"recordNames": "api"}"#] {
        assert_eq!(read::<CpoIntent>(Some(&text.to_owned())), None, "{text}");
    }
}

#[test]
fn scope_is_of_account_and_region() {
    let scope = |account: &str| Some(Scope::own(account, "us-east-1"));
    assert_eq!(ho().scope(), scope("123456789012"));
    assert_eq!(cpo().zone_scope(), scope("210987654321"));
    let own_zone = CpoIntent {
        zone_account: String::new(),
        ..cpo()
    };
    assert_eq!(own_zone.zone_scope(), scope("123456789012"));
}

#[rstest]
#[case::account("account", json!("1234"))]
#[case::region("region", json!("us-east-1.evil.example"))]
#[case::vpc("vpc", json!("vpc-1&Action=x"))]
#[case::endpoint("endpointID", json!("sg-0123456789abcdef0"))]
#[case::group("securityGroupID", json!("*"))]
#[case::zone("dnsZoneID", json!("../Z0123456789"))]
#[case::service("endpointServiceNames", json!(["com.amazonaws.us-east-1.s3"]))]
fn forged_value_of_another_form_is_not_used(#[case] field: &str, #[case] value: Value) {
    let read = |intent: &CpoIntent| {
        [
            intent.scope().is_some(),
            intent.vpc().is_some(),
            intent.endpoint_id().is_some(),
            intent.security_group_id().is_some(),
            intent.zone_id().is_some(),
            !intent.service_names().is_empty(),
        ]
    };
    assert_eq!(read(&cpo()), [true; 6]);
    let mut forged = json!(cpo());
    forged[field] = value;
    let forged: CpoIntent = serde_json::from_value(forged).unwrap();
    assert!(read(&forged).contains(&false), "{forged:?}");
}

#[test]
fn forged_service_id_is_not_used() {
    let forged = HoIntent {
        endpoint_service_id: Some("vpce-svc-x".into()),
        ..ho()
    };
    assert_eq!((forged.service_id(), ho().service_id().is_some()), (None, true));
}

#[test]
fn token_differs_by_custom_resource_kind_and_nonce() {
    let (service, endpoint) = (Kind::EndpointService, Kind::VpcEndpoint);
    let tokens = [
        client_token("u", service, "n"),
        client_token("u", endpoint, "n"),
        client_token("u2", service, "n"),
        client_token("u", service, "n2"),
        client_token("", service, "un"),
        client_token("un", service, ""),
    ];
    let texts: BTreeSet<&str> = tokens.iter().map(ClientToken::as_str).collect();
    assert_eq!(texts.len(), tokens.len());
    assert!(texts.iter().all(|text| text.len() <= ClientToken::MAX));
    assert_eq!(client_token("u", service, "n"), tokens[0]);
    // Another text after an update would make a second resource.
    assert!(tokens[0].as_str().starts_with("b292b315afd2c7ae"), "{:?}", tokens[0]);
}

#[rstest]
#[case::first("", None, false, "")]
#[case::same_again("vpce-1", Some("vpce-1"), false, "vpce-1")]
#[case::another_before("vpce-1~3", Some("vpce-2"), true, "vpce-2")]
#[case::first_is_spent("", None, true, "~1")]
#[case::spent("vpce-1", Some("vpce-1"), true, "vpce-1~1")]
#[case::spent_again("vpce-1~1", None, true, "vpce-1~2")]
#[case::same_after_a_spent_one("vpce-1~1", Some("vpce-1"), false, "vpce-1~1")]
#[case::forged("a~b~c", None, true, "a~1")]
fn nonce_changes_with_what_was_before_and_with_a_spent_token(
    #[case] nonce: &str,
    #[case] before: Option<&str>,
    #[case] is_spent: bool,
    #[case] expected: &str,
) {
    assert_eq!(next_nonce(nonce, before, is_spent), expected);
}

#[test]
fn spent_tokens_hide_no_endpoint_of_before() {
    let mut intent = cpo();
    assert_eq!(intent.former_endpoint_id(), None);
    intent.endpoint_nonce = "vpce-0123456789abcdef1~2".into();
    assert_eq!(intent.former_endpoint_id(), Some("vpce-0123456789abcdef1"));
}
