use jiff::Timestamp;

use super::*;

fn session(token: Option<&str>) -> Session {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    Session::new("AKIDEXAMPLE", secret.into(), token.map(Into::into))
}

fn signed(mut request: Request<Bytes>, session: &Session, service: &str, region: &str, time: &str) -> Request<Bytes> {
    let time = time.parse::<Timestamp>().unwrap().into();
    sign(&mut request, session, SigningScope { service, region, time }).unwrap();
    request
}

fn authorization(request: &Request<Bytes>) -> &str {
    request.headers()["authorization"].to_str().unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::builder().uri(url).body(Bytes::new()).unwrap()
}

#[test]
fn documented_example_has_its_documented_signature() {
    // From the example of a signed GET request in AWS's documentation of Signature Version 4.
    let mut request = get("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8");
    request.headers_mut().insert("content-type", kind);
    let request = signed(request, &session(None), "iam", "us-east-1", "2015-08-30T12:36:00Z");
    assert_eq!(
        authorization(&request),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date, \
         Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
}

// The signatures below were calculated by AWS's SDK for Python.

#[test]
fn form_and_session_token_are_signed() {
    let request = Request::post("https://ec2.eu-west-1.amazonaws.com/")
        .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
        .body(Bytes::from_static(
            b"Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=subnet-1",
        ))
        .unwrap();
    let session = session(Some("tok/en=="));
    let request = signed(request, &session, "ec2", "eu-west-1", "2026-03-01T12:00:00Z");
    assert_eq!(request.headers()["x-amz-security-token"], "tok/en==");
    assert_eq!(request.headers()["x-amz-date"], "20260301T120000Z");
    assert_eq!(
        authorization(&request),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260301/eu-west-1/ec2/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, \
         Signature=ebd86c0d4f2e9d2fb7ddc5a01cec4a56e49da42d9b6d723fc535690d1d24bc58"
    );
    assert!(!format!("{request:?}").contains("tok/en"));
}

#[test]
fn query_with_an_asterisk_is_signed_in_any_order() {
    let request =
        get("https://route53.amazonaws.com/2013-04-01/hostedzone/Z1/rrset?name=%2A.apps%20x&maxitems=300&type=CNAME");
    let session = session(Some("tok/en=="));
    let request = signed(request, &session, "route53", "us-east-1", "2026-03-01T12:00:00Z");
    assert!(
        authorization(&request).ends_with("Signature=fa9a3115814829fb5151b391d097273f439ff029314b3b1910a2be5ce30a8392"),
        "{}",
        authorization(&request)
    );
}

#[test]
fn port_is_part_of_the_signed_host() {
    let request = get("https://127.0.0.1:4566/2013-04-01/hostedzone?maxitems=1");
    let request = signed(request, &session(None), "route53", "us-east-1", "2026-03-01T12:00:00Z");
    assert!(
        authorization(&request).ends_with("Signature=bf6eee563d40daef329f1049ca3429475314cb67245d4cd4e62b822ee391e324"),
        "{}",
        authorization(&request)
    );
}
