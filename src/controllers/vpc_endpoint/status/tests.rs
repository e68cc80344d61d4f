use kube::ResourceExt;
use rstest::rstest;

use super::*;
use crate::api::Status;
use crate::aws::api::error::AwsError;
use crate::aws::cloud::Observed;
use crate::controllers::vpc_endpoint::plan::build;
use crate::controllers::vpc_endpoint::samples::{
    ENDPOINT, GROUP, SERVICE, Sample, ZONE, endpoint, endpoint_slot, group_slot, records_slot,
};
use crate::engine::failure::Class;

fn reported(sample: &Sample) -> Report {
    let decision = build(sample.basis()).unwrap();
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    after_build(&sample.cr, &decision, &outcomes)
}

#[test]
fn ready_endpoint_is_reported_as_hypershift_does() {
    let report = reported(&Sample::ready());
    let [condition] = report.conditions.as_slice() else {
        panic!("{report:?}")
    };
    assert_eq!((condition.status, condition.reason), (Status::True, Reason::AWSSuccess));
    assert_eq!((condition.message.as_str(), condition.observed_generation), ("", None));
    let expected = json!({"endpointID": ENDPOINT, "securityGroupID": GROUP, "dnsZoneID": ZONE,
        "dnsNames": ["*.apps.example.hypershift.local", "api.example.hypershift.local"]});
    assert_eq!(json!(report.fields), expected);
}

#[rstest]
#[case::pending("pending", Reason::Provisioning)]
#[case::not_accepted("pendingAcceptance", Reason::EndpointNotAccepted)]
#[case::rejected("rejected", Reason::EndpointRejected)]
fn endpoint_that_carries_nothing_is_not_available(#[case] state: &str, #[case] expected: Reason) {
    let mut sample = Sample::ready();
    sample.shows(endpoint_slot(SERVICE), endpoint(state));
    let condition = &reported(&sample).conditions[0];
    assert_eq!((condition.status, condition.reason), (Status::False, expected));
}

#[test]
fn endpoint_without_its_records_is_not_available() {
    let mut sample = Sample::ready();
    let denied = AwsError::own(Class::Denied, "AccessDenied");
    sample.observes(records_slot(ZONE), Observed::WriteFailed(denied));
    let report = reported(&sample);
    assert_eq!(report.conditions[0].reason, Reason::RecordsFailed);
    assert!(!report.fields.contains_key("dnsNames"));
}

#[rstest]
#[case::shown(&["api.example.hypershift.local"], Some(Value::Null))]
#[case::not_shown(&[], None)]
fn names_that_have_no_record_any_more_are_not_shown(#[case] shown: &[&str], #[case] expected: Option<Value>) {
    let mut sample = Sample::ready();
    sample.cr.status.as_mut().unwrap().dns_names = shown.iter().map(ToString::to_string).collect();
    let mut decision = build(sample.basis()).unwrap();
    decision.steps.retain(|step| step.kind != Kind::Records);
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&sample.cr, &decision, &outcomes);
    assert_eq!(report.fields.get("dnsNames"), expected.as_ref());
    assert_eq!(report.conditions[0].status, Status::True);
}

#[test]
fn names_stay_while_their_zone_is_not_found() {
    let mut sample = Sample::ready();
    sample.cr.annotations_mut().clear();
    sample.cr.status.as_mut().unwrap().dns_zone_id = None;
    sample.cr.status.as_mut().unwrap().dns_names = vec!["api.example.hypershift.local".to_owned()];
    sample.has_zones(&[]);
    let report = reported(&sample);
    assert_eq!(report.conditions[0].reason, Reason::HostedZoneNotFound);
    assert!(!report.fields.contains_key("dnsNames"), "{report:?}");
}

#[test]
fn ids_stay_while_aws_cannot_be_read() {
    let mut sample = Sample::ready();
    for slot in [group_slot(), endpoint_slot(SERVICE)] {
        sample.observes(slot, Observed::ReadFailed(AwsError::own(Class::Down, "X")));
    }
    assert!(reported(&sample).fields.is_empty());
}
