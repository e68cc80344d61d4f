//! Answers that nobody expects: any body is an answer, or an error of bounded size, for every call.

use futures::FutureExt;
use hyperlink_engine::client::WriteError;
use proptest::prelude::*;

use crate::api::error::AwsError;
use crate::api::sample::{Sample, answer, reconcile};
use crate::ec2::{Ec2, EndpointChanges, Selection, filter};
use crate::elbv2::LoadBalancing;
use crate::route53::Route53;

/// An answer with what any of the calls reads; `ROOT` stands for the name of the action.
const ANSWER: &str = "<ROOTResponse><requestId>r</requestId><serviceConfigurationSet><item><serviceId>s</serviceId>\
    <serviceName>n</serviceName><serviceState>Available</serviceState><acceptanceRequired>false</acceptanceRequired>\
    <tagSet><item><key>k</key><value>v</value></item></tagSet></item></serviceConfigurationSet><vpcEndpointSet><item>\
    <vpcEndpointId>e</vpcEndpointId><state>available</state><groupSet><item><groupId>g</groupId></item></groupSet>\
    <dnsEntrySet><item><dnsName>d</dnsName></item></dnsEntrySet></item></vpcEndpointSet><securityGroupInfo><item>\
    <groupId>g</groupId><groupName>n</groupName><ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>1</fromPort>\
    <toPort>2</toPort><ipRanges><item><cidrIp>c</cidrIp></item></ipRanges></item></ipPermissions></item>\
    </securityGroupInfo><unsuccessful><item><error><code>X</code></error></item></unsuccessful><return>true</return>\
    <DescribeLoadBalancersResult><LoadBalancers><member><LoadBalancerArn>a</LoadBalancerArn><LoadBalancerName>n\
    </LoadBalancerName><State><Code>active</Code></State></member></LoadBalancers></DescribeLoadBalancersResult>\
    <HostedZones><HostedZone><Id>Z</Id><Name>n.</Name><Config><PrivateZone>true</PrivateZone></Config></HostedZone>\
    </HostedZones><ResourceRecordSets><ResourceRecordSet><Name>\\052.n.</Name><Type>A</Type><TTL>1</TTL>\
    </ResourceRecordSet>\
    </ResourceRecordSets><IsTruncated>false</IsTruncated></ROOTResponse>";

/// An error, as most services show it.
const ERROR: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>it is not allowed, \
    because nobody has allowed it, and whoever wants to know more is told so at length, as here, in a sentence that \
    goes on and on until somebody who is patient has read it to its end, which is about here</Message>\
    </Error><RequestId>r</RequestId></ErrorResponse>";

/// What is done to the answer: something is put in, cut out or cut off at a place.
#[derive(Debug, Clone)]
enum Damage {
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = prop_oneof![
        prop::sample::select(vec![
            "<item>",
            "</item>",
            "<nextToken>t</nextToken>",
            "&#0;",
            "&#10;",
            "&x;",
            "<!DOCTYPE x>",
            "-1"
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop_oneof![
        (any::<usize>(), pieces).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (any::<usize>(), 1_usize..60).prop_map(|(at, length)| Damage::Remove(at, length)),
        any::<usize>().prop_map(Damage::Cut),
    ]
}

fn damaged(mut body: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let length = body.len() + 1;
        match damage {
            Damage::Insert(at, piece) => drop(body.splice(at % length..at % length, piece.iter().copied())),
            Damage::Remove(at, count) => drop(body.drain(at % length..(at % length + count).min(body.len()))),
            Damage::Cut(at) => body.truncate(at % length),
        }
    }
    body
}

/// Whether an error is one that a condition and the log can show.
fn is_bounded(error: &AwsError) -> bool {
    let shown = format!("{error}{}", error.text);
    !error.code.trim().is_empty() && shown.chars().count() < 600 && !shown.contains(char::is_control)
}

fn written<T>(result: Result<T, WriteError<AwsError>>) -> Option<AwsError> {
    match result {
        Err(WriteError::Failed(error)) => Some(error),
        Ok(_) | Err(WriteError::NotLeading) => None,
    }
}

/// The errors of all calls, if each is answered by this body under its own name.
async fn errors(status: u16, damages: &[Damage]) -> Vec<AwsError> {
    let sample = |action: &str| {
        let mut response = answer(status, "").unwrap();
        let body = match status {
            200 | 204 => ANSWER.replace("ROOT", action),
            _ => ERROR.to_owned(),
        };
        *response.body_mut() = damaged(body.into_bytes(), damages).into();
        Sample::new([Ok(response)]).client
    };
    let all = Selection::Filters(vec![filter("vpc-id", "v")]);
    let services = Ec2(sample("DescribeVpcEndpointServiceConfigurations"));
    let endpoints = Ec2(sample("DescribeVpcEndpoints"));
    let groups = Ec2(sample("DescribeSecurityGroups"));
    let deletes = Ec2(sample("DeleteVpcEndpoints"));
    let changes = Ec2(sample("ModifyVpcEndpoint"));
    let balancers = LoadBalancing(sample("DescribeLoadBalancers"));
    let zones = Route53(sample("ListHostedZones"));
    let records = Route53(sample("ListResourceRecordSets"));
    let found = [
        services.endpoint_services(reconcile(), &all).await.err(),
        endpoints.endpoints(reconcile(), &all).await.err(),
        groups.security_groups(reconcile(), &all).await.err(),
        written(deletes.delete_endpoint(reconcile(), "e").await),
        written(
            changes
                .modify_endpoint(reconcile(), "e", &EndpointChanges::default())
                .await,
        ),
        balancers.all(reconcile()).await.err(),
        zones.hosted_zones(reconcile()).await.err(),
        records.records(reconcile(), "Z").await.err(),
    ];
    found.into_iter().flatten().collect()
}

#[test]
fn undamaged_answer_is_read_by_every_call() {
    let errors = errors(200, &[]).now_or_never().unwrap();
    // The one that reports an item.
    assert_eq!(
        errors.iter().map(|error| error.code.as_str()).collect::<Vec<_>>(),
        ["X"]
    );
}

proptest! {
    #[test]
    fn damaged_answer_is_an_answer_or_a_bounded_error(
        status in prop::sample::select(vec![200_u16, 204, 301, 400, 403, 404, 503]),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let errors = errors(status, &damages).now_or_never().unwrap();
        for error in errors {
            prop_assert!(is_bounded(&error), "{error:?}");
        }
    }
}
