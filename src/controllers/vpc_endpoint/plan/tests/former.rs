//! Endpoints to the endpoint services of before.

use super::*;
use crate::hypershift::aws::intent::FormerZone;

/// A path whose endpoint led to another service before.
fn with_former() -> Sample {
    let mut sample = Sample::ready();
    let recorded = CpoIntent {
        endpoint_service_names: vec![OTHER_SERVICE.to_owned(), SERVICE.to_owned()],
        ..super::super::recorded(sample.basis(), sample.guest())
    };
    sample.records_intent(&recorded);
    sample
}

fn unread() -> Observed {
    Observed::ReadFailed(AwsError::own(Class::Down, "X"))
}

#[test]
fn endpoint_of_before_is_forgotten_once_it_is_surely_gone() {
    let mut sample = with_former();
    sample.observes(endpoint_slot(OTHER_SERVICE), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(
        intent_of(&decision).endpoint_service_names.len(),
        2,
        "one read may be behind"
    );
    sample.lacks(endpoint_slot(OTHER_SERVICE));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(intent_of(&decision).endpoint_service_names, [SERVICE]);
    assert!(
        decision.forgets && decision.steps.iter().all(|step| step.ready().is_some()),
        "{decision:?}"
    );
}

/// The name of the service proves that a record there is the cluster's.
#[test]
fn service_of_before_counts_while_a_zone_of_before_does() {
    let mut sample = with_former();
    let mut recorded = super::super::recorded(sample.basis(), sample.guest());
    recorded.former_zones = vec![FormerZone {
        account: recorded.account.clone(),
        zone_id: "ZAAAAAAAA".to_owned(),
        ..FormerZone::default()
    }];
    sample.records_intent(&recorded);
    sample.lacks(endpoint_slot(OTHER_SERVICE));
    sample.shows(records_slot("ZAAAAAAAA"), records(DNS_NAME));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(intent_of(&decision).endpoint_service_names.len(), 2, "{decision:?}");
}

#[test]
fn unreadable_endpoint_of_before_stops_no_repair() {
    let mut sample = with_former();
    sample.observes(endpoint_slot(OTHER_SERVICE), unread());
    let mut drifted = endpoint("available");
    drifted["GroupIds"] = json!([]);
    sample.shows(endpoint_slot(SERVICE), drifted);
    assert_eq!(writes(&build(sample.basis()).unwrap()), [Kind::VpcEndpoint]);
}

#[test]
fn no_endpoint_is_created_beside_an_unreadable_one_of_before() {
    let mut sample = with_former();
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    sample.observes(endpoint_slot(OTHER_SERVICE), unread());
    sample.observes(endpoint_slot(SERVICE), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(writes(&decision), []);
}
