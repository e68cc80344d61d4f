use std::sync::Arc;

use rstest::rstest;

use super::*;
use crate::api::clock::tests::headers;
use crate::api::sample::{Calls, FakeAws, TestSessions, answer, connection};
use crate::role_arn::RoleArn;

const ROLE: &str = "arn:aws:iam::123456789012:role/cpo";

fn assumed(action: &str, expiration: &str) -> String {
    format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><AssumedRoleUser>\
        <Arn>a</Arn>\
         </AssumedRoleUser><Credentials><SessionToken>tok==</SessionToken><SecretAccessKey>hunter2</SecretAccessKey>\
         <Expiration>{expiration}</Expiration><AccessKeyId>ASIA1</AccessKeyId></Credentials></{action}Result>\
         <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></{action}Response>"
    )
}

async fn with_token(aws: &Arc<FakeAws>) -> Result<Issued, CredentialError> {
    let connection = connection(aws, &Arc::new(Calls::default()));
    let role = RoleArn::parse(ROLE).unwrap();
    assume_role_with_web_identity(&connection, &role, "hyperlink/cpo", &"to.k.en".into()).await
}

#[tokio::test]
async fn web_identity_is_sent_unsigned_to_sts_only() {
    let body = assumed("AssumeRoleWithWebIdentity", "2999-01-01T00:00:00Z");
    let aws = FakeAws::answering(200, &body);
    let issued = with_token(&aws).await.unwrap();
    assert_eq!(issued.credential.access_key_id(), "ASIA1");
    assert_eq!(issued.life, Some(SESSION_LIFE));
    assert_eq!(
        aws.requests(),
        [
            "POST https://sts.us-east-1.amazonaws.com/ Action=AssumeRoleWithWebIdentity&Version=2011-06-15\
          &RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fcpo&RoleSessionName=hyperlink-cpo&DurationSeconds=3600\
          &WebIdentityToken=to.k.en"
        ]
    );
    assert_eq!(aws.header(0, "authorization"), None);
    assert!(!format!("{issued:?}").contains("hunter2"));
}

#[tokio::test]
async fn role_is_assumed_with_a_signed_request() {
    let aws = FakeAws::answering(200, &assumed("AssumeRole", "2999-01-01T00:00:00Z"));
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let base = Session::new("AKIA0", "s".into(), Some("base".into()));
    let role = RoleArn::parse(ROLE).unwrap();
    let issued = assume_role(&connection, &base, &role, "x").await.unwrap();
    assert_eq!(issued.credential.token().unwrap().expose_secret(), "tok==");
    let authorization = aws.header(0, "authorization").unwrap();
    assert!(authorization.contains("Credential=AKIA0/"), "{authorization}");
    assert!(authorization.contains("/us-east-1/sts/aws4_request"), "{authorization}");
    assert_eq!(aws.header(0, "x-amz-security-token").as_deref(), Some("base"));
    assert!(
        aws.requests()[0].contains("RoleSessionName=hyperlink&"),
        "{:?}",
        aws.requests()
    );
}

#[rstest]
#[case::trust_policy(
    403,
    "AccessDenied",
    "AWS refused the identity (AccessDenied); check the trust policy of the role"
)]
#[case::old_token(
    400,
    "ExpiredTokenException",
    "AWS refused the identity (ExpiredTokenException); the token has expired; check what renews it, and the clock"
)]
#[case::provider_is_silent(400, "IDPCommunicationError", "no session: IDPCommunicationError from AWS")]
#[case::throttled(400, "Throttling", "no session: Throttling from AWS")]
#[case::down(503, "ServiceUnavailable", "no session: ServiceUnavailable from AWS")]
#[tokio::test]
async fn refusal_tells_what_to_check(#[case] status: u16, #[case] code: &str, #[case] text: &str) {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>m</Message></Error></ErrorResponse>"
    );
    let error = with_token(&FakeAws::answering(status, &body)).await.unwrap_err();
    assert_eq!(error.to_string(), text);
}

#[rstest]
#[case::html("<html/>")]
#[case::other_answer("<AssumeRoleResponse/>")]
#[case::no_credentials("<AssumeRoleWithWebIdentityResponse/>")]
#[tokio::test]
async fn answer_without_a_session_is_no_session(#[case] body: &str) {
    let error = with_token(&FakeAws::answering(200, body)).await.unwrap_err();
    assert_eq!(error.to_string(), "no session: UnexpectedAnswer from AWS");
}

#[test]
fn life_is_counted_by_the_clock_of_the_issuer() {
    let dated = |date: &str| Response::builder().header("date", date).body(Bytes::new()).unwrap();
    let answer = dated("Sun, 01 Mar 2026 12:00:00 GMT");
    let life = |expiration| life(expiration, &answer);
    assert_eq!(life("2026-03-01T12:45:00Z"), Some(Duration::from_secs(2_700)));
    assert_eq!(life("2026-03-01T11:00:00.000Z"), Some(Duration::ZERO));
    assert_eq!(life("soon"), None);
}

#[tokio::test]
async fn answer_of_error_in_200_is_the_error() {
    let body = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>";
    let aws = FakeAws::new([answer(200, body)]);
    let error = with_token(&aws).await.unwrap_err();
    assert!(matches!(error, CredentialError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn role_is_assumed_again_with_the_time_of_aws() {
    let body = "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>";
    let mut refused = answer(403, body).unwrap();
    *refused.headers_mut() = headers(7_200);
    let accepted = answer(200, &assumed("AssumeRole", "2999-01-01T00:00:00Z"));
    let aws = FakeAws::new([Ok(refused), accepted]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let base = Session::new("AKIA0", "s".into(), None);
    let role = RoleArn::parse(ROLE).unwrap();
    assert!(assume_role(&connection, &base, &role, "x").await.is_ok());
    assert_ne!(aws.header(0, "x-amz-date"), aws.header(1, "x-amz-date"));
}

const ACCOUNT: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
    <GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/ho</Arn><UserId>AIDA</UserId>\
    <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>";

/// The account that AWS answers with, and the access key that is used afterwards.
async fn account_of(aws: &Arc<FakeAws>) -> (Result<String, AwsError>, String) {
    let connection = connection(aws, &Arc::new(Calls::default()));
    let sessions = TestSessions::default();
    let account = caller_account(&connection, &sessions).await;
    let key = sessions.session().await.unwrap().access_key_id().to_owned();
    (account, key)
}

#[tokio::test]
async fn account_is_learned_by_a_signed_request() {
    let aws = FakeAws::answering(200, ACCOUNT);
    let (account, key) = account_of(&aws).await;
    assert_eq!((account.unwrap().as_str(), key.as_str()), ("123456789012", "AKIA1"));
    let request = "POST https://sts.us-east-1.amazonaws.com/ Action=GetCallerIdentity&Version=2011-06-15";
    assert_eq!(aws.requests(), [request]);
    let authorization = aws.header(0, "authorization").unwrap();
    assert!(authorization.contains("/us-east-1/sts/aws4_request"), "{authorization}");
}

#[rstest]
#[case::html("<html/>")]
#[case::other_answer("<AssumeRoleResponse/>")]
#[case::no_account("<GetCallerIdentityResponse><GetCallerIdentityResult/></GetCallerIdentityResponse>")]
#[case::arn(
    "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>arn:aws:iam</Account></GetCallerIdentityResult>\
     </GetCallerIdentityResponse>"
)]
#[tokio::test]
async fn answer_without_an_account_is_an_error(#[case] body: &str) {
    let (account, _) = account_of(&FakeAws::answering(200, body)).await;
    assert_eq!(account.unwrap_err().code, "UnexpectedAnswer");
}

#[rstest]
#[case::unknown_key("InvalidClientTokenId", "AKIA2")]
#[case::expired("ExpiredToken", "AKIA2")]
#[case::down("ServiceUnavailable", "AKIA1")]
#[tokio::test]
async fn refused_session_is_not_used_again(#[case] code: &str, #[case] next: &str) {
    let body = format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>");
    let (account, key) = account_of(&FakeAws::answering(403, &body)).await;
    assert_eq!((account.unwrap_err().code.as_str(), key.as_str()), (code, next));
}

#[tokio::test]
async fn account_is_asked_for_again_with_the_time_of_aws() {
    let body = "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>";
    let mut refused = answer(403, body).unwrap();
    *refused.headers_mut() = headers(7_200);
    let aws = FakeAws::new([Ok(refused), answer(200, ACCOUNT)]);
    assert_eq!(account_of(&aws).await.0.unwrap(), "123456789012");
    assert_ne!(aws.header(0, "x-amz-date"), aws.header(1, "x-amz-date"));
}
