use rstest::rstest;
use serde_json::json;

use super::*;
use crate::api::Status;
use crate::aws::api::error::AwsError;
use crate::aws::cloud::Observed;
use crate::aws::slot::Slot;
use crate::controllers::endpoint_service::plan::build;
use crate::controllers::endpoint_service::samples::{
    NAME, PRINCIPAL, SERVICE_NAME, Sample, account, endpoint_service, load_balancer, service,
};
use crate::engine::failure::Class;

fn reported(sample: &Sample) -> Report {
    let decision = build(sample.basis()).unwrap();
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    after_build(&sample.cr, &decision, &outcomes)
}

#[test]
fn ready_service_is_reported_as_hypershift_does() {
    let report = reported(&Sample::ready());
    let [condition] = report.conditions.as_slice() else {
        panic!("{report:?}")
    };
    assert_eq!((condition.status, condition.reason), (Status::True, Reason::AWSSuccess));
    assert_eq!((condition.message.as_str(), condition.observed_generation), ("", None));
    assert_eq!(json!(report.fields), json!({"endpointServiceName": SERVICE_NAME}));
}

#[test]
fn service_is_published_only_when_the_role_may_connect() {
    let mut sample = Sample::ready();
    let slot = Slot::allowed_principals(&service());
    sample.observes(
        slot,
        Observed::WriteFailed(AwsError::own(Class::Denied, "UnauthorizedOperation")),
    );
    let report = reported(&sample);
    assert_eq!(report.conditions[0].reason, Reason::PrincipalsFailed);
    assert!(report.fields.is_empty(), "what was published stays");
}

#[rstest]
#[case::own_role_is_there(&[PRINCIPAL], json!({"endpointServiceName": SERVICE_NAME}))]
#[case::nobody_is_there(&[], json!({}))]
#[case::somebody_who_was_deleted(&["AROA1234567890EXAMPLE"], json!({}))]
fn service_is_published_though_a_principal_is_refused(#[case] shown: &[&str], #[case] fields: Value) {
    let mut sample = Sample::ready();
    let further = "arn:aws:iam::444455556666:role/missing".to_owned();
    sample.inputs.principals.as_mut().unwrap().arns.insert(further);
    sample.shows(
        Slot::allowed_principals(&service()),
        json!({"AllowedPrincipals": shown}),
    );
    let decision = build(sample.basis()).unwrap();
    let refused = |step: &Step| match step.kind {
        Kind::AllowedPrincipals => Outcome::Failed(AwsError::own(Class::Invalid, "InvalidPrincipal")),
        _ => Outcome::Nothing,
    };
    let outcomes: Vec<_> = decision.steps.iter().map(refused).collect();
    let report = after_build(&sample.cr, &decision, &outcomes);
    assert_eq!(report.conditions[0].reason, Reason::PrincipalsFailed);
    assert_eq!(Value::Object(report.fields), fields);
}

#[rstest]
#[case::absent(Observed::Absent)]
#[case::foreign(Observed::Found({
    let mut body = endpoint_service(NAME);
    body["Tags"] = json!({"hypershift.openshift.io/cluster-id": "another"});
    body
}))]
fn name_of_a_foreign_service_is_removed(#[case] observed: Observed) {
    let mut sample = Sample::ready();
    sample.observes(service(), observed);
    let balancer = Slot::load_balancer(&account(), NAME);
    sample.shows(balancer, load_balancer("active"));
    assert_eq!(json!(reported(&sample).fields), json!({"endpointServiceName": null}));
}

#[test]
fn name_stays_while_aws_cannot_be_read() {
    let mut sample = Sample::ready();
    sample.observes(service(), Observed::ReadFailed(AwsError::own(Class::Down, "X")));
    let balancer = Slot::load_balancer(&account(), NAME);
    sample.observes(balancer, Observed::ReadFailed(AwsError::own(Class::Down, "X")));
    let report = reported(&sample);
    assert!(report.fields.is_empty());
    assert_eq!(report.conditions[0].status, Status::False);
}
