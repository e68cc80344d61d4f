use std::sync::atomic::Ordering;
use std::time::Duration;

use rstest::rstest;

use super::*;
use crate::api::clock::tests::headers;
use crate::api::error::UNEXPECTED_ANSWER;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::wire::form::Form;

const SUBNETS: &str = "<DescribeSubnetsResponse><subnetSet/></DescribeSubnetsResponse>";

fn request(action: Action) -> ServiceRequest {
    ServiceRequest::query(action, &Form::default())
}

async fn describe(sample: &Sample) -> Result<(), AwsError> {
    let request = request(Action::DescribeSubnets);
    sample.client.read(reconcile(), request, |_| Ok(())).await
}

async fn create(sample: &Sample) -> Result<(), WriteError<AwsError>> {
    let request = request(Action::CreateVpcEndpoint);
    sample.client.write(reconcile(), request, |_| Ok(())).await
}

fn failed(error: WriteError<AwsError>) -> AwsError {
    match error {
        WriteError::Failed(error) => error,
        WriteError::NotLeading => panic!("the gate is open"),
    }
}

#[tokio::test]
async fn write_is_not_sent_when_the_gate_is_shut() {
    let sample = Sample::answering("<CreateVpcEndpointResponse/>");
    assert_eq!(create(&sample).await, Ok(()));
    sample.gate.0.store(false, Ordering::SeqCst);
    assert_eq!(create(&sample).await, Err(WriteError::NotLeading));
    assert_eq!(sample.aws.requests().len(), 1);
}

#[tokio::test]
async fn read_is_sent_also_when_the_gate_is_shut() {
    let sample = Sample::answering(SUBNETS);
    sample.gate.0.store(false, Ordering::SeqCst);
    assert_eq!(describe(&sample).await, Ok(()));
}

#[tokio::test]
async fn expired_session_is_renewed_once() {
    let sample = Sample::new([refusal(400, "ExpiredToken"), answer(200, SUBNETS)]);
    assert_eq!(describe(&sample).await, Ok(()));
    let id = |request| sample.aws.header(request, "authorization").unwrap();
    assert!(id(0).contains("AKIA1/") && id(1).contains("AKIA2/"), "{}", id(1));
}

#[tokio::test]
async fn session_that_is_refused_again_is_denied() {
    let sample = Sample::new([refusal(400, "RequestExpired")]);
    let error = describe(&sample).await.unwrap_err();
    assert_eq!((error.class, sample.aws.requests().len()), (Class::Denied, 2));
}

#[tokio::test]
async fn missing_policy_is_no_reason_for_a_new_session() {
    let sample = Sample::new([refusal(403, "UnauthorizedOperation")]);
    let error = failed(create(&sample).await.unwrap_err());
    assert_eq!((error.class, sample.aws.requests().len()), (Class::Denied, 1));
}

#[tokio::test]
async fn gate_is_asked_again_before_a_second_try() {
    let sample = Sample::new([refusal(400, "ExpiredToken")]);
    sample.gate.0.store(false, Ordering::SeqCst);
    let session = sample.client.session().await.unwrap();
    let write = request(Action::CreateTags);
    let sent = sample.client.send(&write, &session, |_| Ok(()));
    assert!(matches!(sent.await, Err(WriteError::NotLeading)));
    assert_eq!(sample.aws.requests().len(), 0);
}

#[rstest]
#[case::skewed("RequestTimeTooSkewed", 3_600, true)]
#[case::behind("SignatureDoesNotMatch", -3_600, true)]
#[case::right_time("SignatureDoesNotMatch", 0, false)]
#[case::absurd_time("RequestTimeTooSkewed", 999_999, false)]
#[case::other_cause("AccessDenied", 3_600, false)]
#[tokio::test]
async fn request_is_signed_again_with_the_time_of_aws(#[case] code: &str, #[case] ahead: i64, #[case] again: bool) {
    let mut refused = refusal(403, code).unwrap();
    *refused.headers_mut() = headers(ahead);
    let sample = Sample::new([Ok(refused), answer(200, SUBNETS)]);
    assert_eq!(describe(&sample).await.is_ok(), again);
    assert_eq!(sample.aws.requests().len(), if again { 2 } else { 1 });
    let stamp = |request| sample.aws.header(request, "x-amz-date").unwrap();
    if again {
        assert_ne!(stamp(0)[..11], stamp(1)[..11], "another hour");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_action_is_not_sent_again_before_its_time() {
    let sample = Sample::new([
        refusal(503, "RequestLimitExceeded"),
        answer(200, "<CreateVpcEndpointResponse/>"),
    ]);
    let error = failed(create(&sample).await.unwrap_err());
    assert_eq!(
        (error.class, error.code.as_str()),
        (Class::Throttled, "RequestLimitExceeded")
    );
    let wait = error.delay(1);
    assert!(
        (Duration::from_secs(30)..=Duration::from_secs(60)).contains(&wait),
        "{wait:?}"
    );
    let held = failed(create(&sample).await.unwrap_err());
    assert_eq!((held.code.as_str(), held.status), (WAITING_FOR_THROTTLING, 0));
    assert_eq!(sample.aws.requests().len(), 1);
    assert_eq!(*sample.calls.1.lock().unwrap(), [Action::CreateVpcEndpoint]);
    tokio::time::advance(held.delay(1)).await;
    assert_eq!(create(&sample).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn other_actions_go_on_while_one_is_throttled() {
    let sample = Sample::new([refusal(503, "RequestLimitExceeded"), answer(200, SUBNETS)]);
    create(&sample).await.unwrap_err();
    assert_eq!(describe(&sample).await, Ok(()));
}

#[rstest]
#[case::html_page("<html><head/><body>Welcome</body></html>")]
#[case::cut("<DescribeSubnetsResponse><subnetSet>")]
#[case::nothing("")]
#[case::answer_of_another_action("<DescribeVpcsResponse/>")]
#[tokio::test]
async fn body_of_200_that_is_no_answer_is_no_success(#[case] body: &str) {
    let sample = Sample::answering(body);
    let error = describe(&sample).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (Class::Down, UNEXPECTED_ANSWER));
}

#[tokio::test]
async fn each_call_is_counted_with_its_class() {
    let sample = Sample::new([refusal(400, "InvalidSubnetID.NotFound"), answer(200, SUBNETS)]);
    let error = describe(&sample).await.unwrap_err();
    assert_eq!(error.class, Class::Gone);
    describe(&sample).await.unwrap();
    let calls = sample.calls.0.lock().unwrap();
    let observed: Vec<_> = calls
        .iter()
        .map(|call| (call.action, call.status, call.class))
        .collect();
    assert_eq!(
        observed,
        [
            (Action::DescribeSubnets, 400, Some(Class::Gone)),
            (Action::DescribeSubnets, 200, None)
        ]
    );
}
