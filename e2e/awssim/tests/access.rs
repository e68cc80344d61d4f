//! Who may do what: signatures, sessions, web identities, policies, accounts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};
use support::*;

const ISSUER: &str = "https://issuer.example/one";

/// An issuer's key.
struct Issuer(RsaKeyPair);

impl Issuer {
    fn new() -> Self {
        Self(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn jwks(&self) -> Value {
        // RSAPublicKey in DER: of 2048 bits, modulus and exponent are always at these places.
        let der = self.0.public_key().as_ref();
        assert_eq!(der.len(), 270);
        let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let (n, e) = (&der[9..265], &der[267..270]);
        json!({"keys": [{"kty": "RSA", "kid": "k", "alg": "RS256", "n": part(n), "e": part(e)}]})
    }

    fn token(&self, subject: &str, expires: i64) -> String {
        let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({"alg": "RS256", "kid": "k"}));
        let body = part(json!({"iss": ISSUER, "sub": subject, "aud": ["openshift"], "exp": expires}));
        let signed = format!("{head}.{body}");
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

fn session(answer: &Answered) -> Keys {
    Keys {
        id: answer.value("AccessKeyId"),
        secret: answer.value("SecretAccessKey"),
        token: Some(answer.value("SessionToken")),
    }
}

fn assume(aws: &mut TestAws, keys: &Keys) -> Answered {
    aws.call(
        keys,
        "sts",
        "AssumeRole",
        &[
            ("RoleArn", "arn:aws:iam::222222222222:role/a/b/cpo"),
            ("RoleSessionName", "one"),
        ],
    )
}

#[test]
fn session_of_a_role_works_until_it_expires() {
    let mut aws = TestAws::default();
    let answer = assume(&mut aws, &consumer()).ok();
    assert_eq!(
        answer.value("Arn"),
        "arn:aws:sts::222222222222:assumed-role/cpo/one",
        "without the role's path"
    );
    let keys = session(&answer);
    let identity = aws.call(&keys, "sts", "GetCallerIdentity", &[]).ok();
    assert_eq!(identity.value("Account"), CONSUMER);
    aws.ec2(&keys, "DescribeVpcs", &[]).ok();
    let without_token = Keys {
        token: None,
        ..keys.clone()
    };
    assert_eq!(aws.ec2(&without_token, "DescribeVpcs", &[]).code(), "AuthFailure");
    aws.advance(3599.0);
    aws.ec2(&keys, "DescribeVpcs", &[]).ok();
    aws.advance(1.0);
    assert_eq!(aws.ec2(&keys, "DescribeVpcs", &[]).code(), "RequestExpired");
    let zones = aws.route53(&keys, "GET", "hostedzone", "");
    assert_eq!((zones.status, zones.code().as_str()), (403, "ExpiredToken"));
}

#[test]
fn role_with_a_path_connects_by_its_arn_without_it() {
    let mut aws = TestAws::default();
    let keys = session(&assume(&mut aws, &consumer()).ok());
    let service = aws.service();
    let permit = |aws: &mut TestAws, add: &str, remove: &str| {
        let params = [
            ("ServiceId", service.as_str()),
            ("AddAllowedPrincipals.1", add),
            ("RemoveAllowedPrincipals.1", remove),
        ];
        aws.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &params)
            .ok();
    };
    let name = format!("com.amazonaws.vpce.us-east-1.{service}");
    let create = [
        ("VpcEndpointType", "Interface"),
        ("VpcId", VPC),
        ("ServiceName", name.as_str()),
    ];
    let with_path = "arn:aws:iam::222222222222:role/a/b/cpo";
    permit(&mut aws, with_path, "arn:aws:iam::222222222222:root");
    assert_eq!(
        aws.ec2(&keys, "CreateVpcEndpoint", &create).code(),
        "InvalidServiceName"
    );
    permit(&mut aws, ROLE, with_path);
    aws.ec2(&keys, "CreateVpcEndpoint", &create).ok();
}

#[test]
fn role_is_assumed_only_by_whom_it_trusts() {
    let mut aws = TestAws::default();
    let answer = assume(&mut aws, &provider());
    assert_eq!((answer.status, answer.code().as_str()), (403, "AccessDenied"));
    let unknown = [
        ("RoleArn", "arn:aws:iam::222222222222:role/none"),
        ("RoleSessionName", "one"),
    ];
    assert_eq!(
        aws.call(&consumer(), "sts", "AssumeRole", &unknown).code(),
        "AccessDenied"
    );
    let long = [
        ("RoleArn", "arn:aws:iam::222222222222:role/a/b/cpo"),
        ("RoleSessionName", "one"),
        ("DurationSeconds", "3601"),
    ];
    assert_eq!(
        aws.call(&consumer(), "sts", "AssumeRole", &long).code(),
        "ValidationError"
    );
}

#[test]
fn web_identity_is_verified() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    let jwks = issuer.jwks();
    let mut aws = TestAws::with(|seed| {
        let account = &mut seed["accounts"][1];
        account["oidc_providers"] = json!([{"issuer": ISSUER, "jwks": jwks}]);
        account["roles"][0]["web_identities"] = json!([{"issuer": ISSUER, "subject": "cpo", "audience": "openshift"}]);
    });
    let expires = aws.now.as_second() + 600;
    let call = |aws: &mut TestAws, token: &str| {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15")])
            .extend_pairs([
                ("RoleArn", "arn:aws:iam::222222222222:role/a/b/cpo"),
                ("RoleSessionName", "one"),
            ])
            .append_pair("WebIdentityToken", token)
            .finish();
        let request = http::Request::post("https://sts.us-east-1.amazonaws.com/")
            .body(form.into())
            .unwrap();
        aws.send(&request)
    };
    let good = call(&mut aws, &issuer.token("cpo", expires)).ok();
    aws.ec2(&session(&good), "DescribeSubnets", &[]).ok();
    assert_eq!(
        call(&mut aws, &issuer.token("somebody", expires)).code(),
        "AccessDenied"
    );
    assert_eq!(
        call(&mut aws, &other.token("cpo", expires)).code(),
        "InvalidIdentityToken"
    );
    assert_eq!(call(&mut aws, "no.token.atall").code(), "InvalidIdentityToken");
    let expired = aws.now.as_second();
    assert_eq!(
        call(&mut aws, &issuer.token("cpo", expired)).code(),
        "ExpiredTokenException"
    );
    assert!(
        !aws.aws.journal(0)[0].query.contains("Token"),
        "tokens are not journaled"
    );
}

#[test]
fn signature_is_for_one_body_service_region_and_time() {
    let mut aws = TestAws::default();
    let mut request = aws.query(&provider(), "ec2", "DescribeVpcs", &[]);
    *request.body_mut() = "Action=DescribeSubnets&Version=2016-11-15".into();
    assert_eq!(aws.send(&request).code(), "AuthFailure");
    let uri = "https://ec2.us-east-1.amazonaws.com/";
    let body = "Action=GetCallerIdentity&Version=2011-06-15".to_owned();
    let elsewhere = signed(&provider(), ("sts", REGION), aws.now, "POST", uri, body);
    assert_eq!(
        aws.send(&elsewhere).code(),
        "SignatureDoesNotMatch",
        "signed for STS, sent to EC2"
    );
    let uri = "https://route53.amazonaws.com/2013-04-01/hostedzone";
    let region = signed(
        &consumer(),
        ("route53", "eu-west-1"),
        aws.now,
        "GET",
        uri,
        String::new(),
    );
    assert_eq!(aws.send(&region).code(), "SignatureDoesNotMatch");
    let old = aws.query(&provider(), "ec2", "DescribeVpcs", &[]);
    aws.advance(300.0);
    aws.send(&old).ok();
    aws.advance(1.0);
    assert_eq!(aws.send(&old).code(), "RequestExpired");
}

#[test]
fn signature_by_real_time_is_good_while_simulated_time_runs_ahead() {
    let mut aws = TestAws::default();
    let request = aws.query(&consumer(), "ec2", "DescribeVpcs", &[]);
    aws.advance(1800.0);
    aws.aws.set_callers_behind(SignedDuration::from_mins(30));
    aws.send(&request).ok();
    aws.aws.set_callers_behind(SignedDuration::from_mins(20));
    assert_eq!(aws.send(&request).code(), "RequestExpired");
}

#[test]
fn other_partition_has_a_region_of_its_own_for_route_53() {
    let mut aws = TestAws::with(|seed| {
        let mut account = seed["accounts"][1].clone();
        account["id"] = json!("333333333333");
        account["partition"] = json!("aws-us-gov");
        account["users"][0]["access_key_id"] = json!("AKIAGOV");
        account["users"][0]["secret_access_key"] = json!("secret of AKIAGOV");
        seed["accounts"].as_array_mut().unwrap().push(account);
    });
    let uri = "https://route53.us-gov.amazonaws.com/2013-04-01/hostedzone";
    let list = |region: &str, now| signed(&keys("AKIAGOV"), ("route53", region), now, "GET", uri, String::new());
    let (own, public) = (list("us-gov-west-1", aws.now), list("us-east-1", aws.now));
    assert!(
        aws.send(&own).ok().values("Id").is_empty(),
        "zones of other accounts are not listed"
    );
    assert_eq!(aws.send(&public).code(), "SignatureDoesNotMatch");
    let identity = aws.call(&keys("AKIAGOV"), "sts", "GetCallerIdentity", &[]).ok();
    assert_eq!(identity.value("Arn"), "arn:aws-us-gov:iam::333333333333:user/cpo");
}

#[test]
fn unsigned_call_is_refused() {
    let mut aws = TestAws::default();
    let uri = "https://sts.us-east-1.amazonaws.com/";
    let body = "Action=GetCallerIdentity&Version=2011-06-15";
    let request = http::Request::post(uri).body(body.into()).unwrap();
    let answer = aws.send(&request);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "MissingAuthenticationToken")
    );
}

#[test]
fn policy_of_one_zone_opens_no_other() {
    let mut aws = TestAws::with(|seed| {
        let zone = "arn:aws:route53:::hostedzone/Z0000000000000000001";
        seed["accounts"][1]["users"][0]["policies"] = json!([{"Statement": [
            {"Effect": "Allow", "Action": "route53:ListHostedZones", "Resource": "*"},
            {"Effect": "Allow", "Action": ["route53:ListResourceRecordSets"], "Resource": [zone]}]}]);
    });
    aws.route53(&consumer(), "GET", "hostedzone", "").ok();
    aws.route53(&consumer(), "GET", &format!("hostedzone/{ZONE}/rrset"), "")
        .ok();
    let denied = aws.route53(&consumer(), "GET", &format!("hostedzone/{ZONE}"), "");
    assert_eq!((denied.status, denied.code().as_str()), (403, "AccessDenied"));
    let other = aws.route53(&consumer(), "GET", "hostedzone/Z2/rrset", "");
    assert_eq!(other.code(), "AccessDenied", "not NoSuchHostedZone");
    assert_eq!(
        aws.change(&[("CREATE", "a.one.hypershift.local", 1, "x")]).code(),
        "AccessDenied"
    );
}

#[test]
fn tags_in_a_create_need_the_right_to_tag() {
    let mut aws = TestAws::with(|seed| {
        seed["accounts"][1]["users"][0]["policies"] = json!([{"Statement": [
            {"Effect": "Allow", "Action": ["ec2:CreateSecurityGroup"], "Resource": "*"}]}]);
    });
    let plain = [("GroupName", "one"), ("GroupDescription", "d"), ("VpcId", VPC)];
    let tags = [
        ("TagSpecification.1.ResourceType", "security-group"),
        ("TagSpecification.1.Tag.1.Key", "k"),
        ("TagSpecification.1.Tag.1.Value", "v"),
    ];
    let answer = aws.ec2(&consumer(), "CreateSecurityGroup", &[plain.as_slice(), &tags].concat());
    assert_eq!(answer.code(), "UnauthorizedOperation");
    aws.ec2(&consumer(), "CreateSecurityGroup", &plain).ok();
}

#[test]
fn right_to_tag_in_a_create_is_none_to_tag_later() {
    let mut aws = TestAws::with(|seed| {
        let in_create = json!({"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}});
        seed["accounts"][1]["users"][0]["policies"] = json!([{"Statement": [
            {"Effect": "Allow", "Action": "ec2:CreateSecurityGroup", "Resource": "*"},
            {"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "*", "Condition": in_create}]}]);
    });
    let tagged = [
        ("GroupName", "one"),
        ("GroupDescription", "d"),
        ("VpcId", VPC),
        ("TagSpecification.1.ResourceType", "security-group"),
        ("TagSpecification.1.Tag.1.Key", "k"),
        ("TagSpecification.1.Tag.1.Value", "v"),
    ];
    let group = aws
        .ec2(&consumer(), "CreateSecurityGroup", &tagged)
        .ok()
        .value("groupId");
    let later = [
        ("ResourceId.1", group.as_str()),
        ("Tag.1.Key", "k"),
        ("Tag.1.Value", "w"),
    ];
    let answer = aws.ec2(&consumer(), "CreateTags", &later);
    assert_eq!((answer.status, answer.code().as_str()), (403, "UnauthorizedOperation"));
}

#[test]
fn shared_subnet_is_used_by_another_account() {
    let subnet = format!("arn:aws:ec2:{REGION}:{CONSUMER}:subnet/{}", SUBNETS[0]);
    let mut aws = TestAws::with(|seed| {
        for resource in seed["resources"].as_array_mut().unwrap() {
            if resource["id"] == json!(subnet) {
                resource["shared_with"] = json!([PROVIDER]);
            }
        }
    });
    let shown = aws
        .ec2(&provider(), "DescribeSubnets", &[("SubnetId.1", SUBNETS[0])])
        .ok();
    assert_eq!(shown.value("ownerId"), CONSUMER);
    let own = aws
        .ec2(&consumer(), "DescribeSubnets", &[("SubnetId.1", SUBNETS[0])])
        .ok();
    assert_eq!(shown.value("availabilityZoneId"), own.value("availabilityZoneId"));
    assert_ne!(
        shown.value("availabilityZone"),
        own.value("availabilityZone"),
        "names differ between accounts"
    );
    let other = aws.ec2(&provider(), "DescribeSubnets", &[("SubnetId.1", SUBNETS[1])]);
    assert_eq!(other.code(), "InvalidSubnetID.NotFound");
}
