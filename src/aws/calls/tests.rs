use hyperlink_engine::client::CloudClient;
use serde_json::json;

use super::*;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::kinds::records;
use crate::slot::Scope;

const ARN: &str = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a1b2/50dc";
const SERVICE: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-1";

pub(super) fn scope() -> Scope {
    Scope::own("123456789012", "us-east-1")
}

pub(super) fn calls(sample: &Sample) -> Calls {
    Calls::new(&sample.client)
}

/// The requests so far, each by its action and the parameters with these beginnings.
pub(super) fn sent(sample: &Sample, parameters: &[&str]) -> Vec<String> {
    let requests = sample.aws.requests();
    let shown = requests.iter().map(|request| {
        let body = request.rsplit(' ').next().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(body.as_bytes());
        let shown = pairs.filter_map(|(name, value)| {
            let is_shown = parameters.iter().any(|parameter| name.starts_with(parameter));
            (name == "Action")
                .then(|| value.to_string())
                .or(is_shown.then(|| format!("{name}={value}")))
        });
        shown.collect::<Vec<_>>().join(" ")
    });
    shown.collect()
}

fn service(id: &str, arn: &str, state: &str) -> String {
    format!(
        "<item><serviceId>{id}</serviceId><serviceName>com.amazonaws.vpce.us-east-1.{id}</serviceName><serviceState>\
         {state}</serviceState><acceptanceRequired>false</acceptanceRequired><networkLoadBalancerArnSet><item>{arn}\
         </item></networkLoadBalancerArnSet></item>"
    )
}

fn services(items: &str) -> String {
    format!(
        "<DescribeVpcEndpointServiceConfigurationsResponse><serviceConfigurationSet>{items}</serviceConfigurationSet>\
         </DescribeVpcEndpointServiceConfigurationsResponse>"
    )
}

fn endpoint(id: &str, state: &str, created: &str) -> String {
    format!(
        "<item><vpcEndpointId>{id}</vpcEndpointId><state>{state}</state><serviceName>{SERVICE}</serviceName><vpcId>\
         vpc-1</vpcId><creationTimestamp>{created}</creationTimestamp></item>"
    )
}

fn endpoints(items: &str) -> String {
    format!("<DescribeVpcEndpointsResponse><vpcEndpointSet>{items}</vpcEndpointSet></DescribeVpcEndpointsResponse>")
}

pub(super) fn done(action: &str) -> String {
    format!("<{action}Response><return>true</return></{action}Response>")
}

#[tokio::test]
async fn service_is_found_by_its_load_balancer_then_by_its_id() {
    let other = service("vpce-svc-0", &ARN.replace("a1b2", "zz"), "Available");
    let gone = service("vpce-svc-9", ARN, "Deleted");
    let own = service("vpce-svc-1", ARN, "Available");
    let sample = Sample::new([
        answer(200, &services(&format!("{other}{gone}{own}"))),
        answer(200, &services(&own)),
    ]);
    let calls = calls(&sample);
    let slot = Slot::endpoint_service(&scope(), "a1b2");
    for _ in 0..2 {
        let body = calls.get(reconcile(), Kind::EndpointService, &slot).await.unwrap();
        assert_eq!(
            (Aws::instance(&body), text(&body, "ServiceName")),
            ("vpce-svc-1", SERVICE)
        );
    }
    let action = "DescribeVpcEndpointServiceConfigurations";
    assert_eq!(
        sent(&sample, &["ServiceId"]),
        [action.to_owned(), format!("{action} ServiceId.1=vpce-svc-1")]
    );
}

#[tokio::test]
async fn recorded_service_of_another_load_balancer_is_not_shown() {
    let forged = service("vpce-svc-7", &ARN.replace("a1b2", "zz"), "Available");
    let sample = Sample::answering(&services(&forged));
    let calls = calls(&sample);
    let slot = Slot::endpoint_service(&scope(), "a1b2");
    calls.note_recorded(&slot, "vpce-svc-7");
    let error = calls.get(reconcile(), Kind::EndpointService, &slot).await.unwrap_err();
    assert_eq!(error.class, Class::Gone);
    // Nor is it asked for again.
    assert_eq!(calls.ids.known(&slot), None);
}

#[tokio::test]
async fn principals_are_read_only_of_a_service_that_was_read() {
    let sample = Sample::answering(&done("DescribeVpcEndpointServicePermissions"));
    let slot = Slot::allowed_principals(&Slot::endpoint_service(&scope(), "a1b2"));
    let read = calls(&sample).get(reconcile(), Kind::AllowedPrincipals, &slot).await;
    assert_eq!(read.unwrap_err().class, Class::Busy);
    assert!(sample.aws.requests().is_empty());
}

#[tokio::test]
async fn acceptance_set_by_hand_is_repaired_by_the_id_that_was_read() {
    let sample = Sample::answering(&done("ModifyVpcEndpointServiceConfiguration"));
    let slot = Slot::endpoint_service(&scope(), "a1b2");
    let found = json!({"Id": "vpce-svc-1", "State": "available", "AcceptanceRequired": true, "Tags": {"a": "1"}});
    let body = json!({"AcceptanceRequired": false, "Tags": {"a": "1"}});
    let target = WriteTarget {
        kind: Kind::EndpointService,
        key: &slot,
        found: Some(&found),
    };
    let put = calls(&sample)
        .put(reconcile(), target, &body, &Condition::Any)
        .await
        .unwrap();
    assert_eq!(put.shown.unwrap()["AcceptanceRequired"], json!(false));
    let expected = "ModifyVpcEndpointServiceConfiguration ServiceId=vpce-svc-1 AcceptanceRequired=false";
    assert_eq!(sent(&sample, &["ServiceId", "AcceptanceRequired"]), [expected]);
}

#[tokio::test]
async fn nothing_is_deleted_that_was_not_read() {
    let sample = Sample::answering("<unused/>");
    let calls = calls(&sample);
    let service = Slot::endpoint_service(&scope(), "a1b2");
    calls.note_recorded(&service, "vpce-svc-7");
    for slot in [
        service,
        Slot::vpc_endpoint(&scope(), "vpc-1", SERVICE),
        Slot::security_group(&scope(), "vpc-1", "x"),
    ] {
        let target = WriteTarget {
            kind: slot.kind(),
            key: &slot,
            found: None,
        };
        assert!(
            calls.delete(reconcile(), target, &Condition::Any).await.is_err(),
            "{slot}"
        );
    }
    assert!(sample.aws.requests().is_empty());
}

#[tokio::test]
async fn only_live_connections_of_the_service_are_rejected() {
    let connection = |id: &str, state: &str| {
        format!("<item><vpcEndpointId>{id}</vpcEndpointId><vpcEndpointState>{state}</vpcEndpointState></item>")
    };
    let connections = [connection("vpce-1", "Available"), connection("vpce-2", "rejected")].concat();
    let sample = Sample::new([
        answer(200, &services(&service("vpce-svc-1", ARN, "Available"))),
        answer(
            200,
            &format!(
                "<DescribeVpcEndpointConnectionsResponse><vpcEndpointConnectionSet>{connections}\
                 </vpcEndpointConnectionSet></DescribeVpcEndpointConnectionsResponse>"
            ),
        ),
        answer(
            200,
            "<RejectVpcEndpointConnectionsResponse><unsuccessful/></RejectVpcEndpointConnectionsResponse>",
        ),
    ]);
    let calls = calls(&sample);
    let service = Slot::endpoint_service(&scope(), "a1b2");
    calls.get(reconcile(), Kind::EndpointService, &service).await.unwrap();
    let slot = Slot::endpoint_connections(&service);
    let found = calls.get(reconcile(), Kind::EndpointConnections, &slot).await.unwrap();
    let target = WriteTarget {
        kind: slot.kind(),
        key: &slot,
        found: Some(&found),
    };
    calls.delete(reconcile(), target, &Condition::Any).await.unwrap();
    let expected = "RejectVpcEndpointConnections ServiceId=vpce-svc-1 VpcEndpointId.1=vpce-1";
    assert_eq!(sent(&sample, &["ServiceId", "VpcEndpointId"])[2], expected);
}

#[tokio::test]
async fn oldest_available_endpoint_is_shown_of_several() {
    let items = [
        endpoint("vpce-3", "available", "2026-01-03T00:00:00Z"),
        endpoint("vpce-1", "rejected", "2026-01-01T00:00:00Z"),
        endpoint("vpce-2", "Available", "2026-01-02T00:00:00Z"),
        endpoint("vpce-0", "deleted", "2026-01-01T00:00:00Z"),
    ];
    let sample = Sample::answering(&endpoints(&items.concat()));
    let slot = Slot::vpc_endpoint(&scope(), "vpc-1", SERVICE);
    let body = calls(&sample).get(reconcile(), Kind::VpcEndpoint, &slot).await.unwrap();
    assert_eq!(Aws::instance(&body), "vpce-2");
    assert_eq!(body["Candidates"][0]["Id"], "vpce-3");
    assert_eq!(body["Candidates"][1]["Id"], "vpce-1");
}

#[tokio::test(start_paused = true)]
async fn recorded_endpoint_that_is_unknown_to_aws_is_gone() {
    let sample = Sample::new([
        answer(200, &endpoints("")),
        refusal(400, "InvalidVpcEndpointId.NotFound"),
        answer(200, &endpoints("")),
        refusal(400, "InvalidVpcEndpointId.NotFound"),
    ]);
    let calls = calls(&sample);
    let slot = Slot::vpc_endpoint(&scope(), "vpc-1", SERVICE);
    calls.note_recorded(&slot, "vpce-7");
    let read = calls.get(reconcile(), Kind::VpcEndpoint, &slot).await;
    assert_eq!(read.unwrap_err().class, Class::Gone);
    assert!(calls.ids.known(&slot).is_some(), "one read proves little");
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    let read = calls.get(reconcile(), Kind::VpcEndpoint, &slot).await;
    assert_eq!(read.unwrap_err().class, Class::Gone);
    assert_eq!(calls.ids.known(&slot), None);
}

#[tokio::test]
async fn new_security_group_gets_its_rules_at_once() {
    let created = "<CreateSecurityGroupResponse><groupId>sg-1</groupId></CreateSecurityGroupResponse>";
    let sample = Sample::new([
        answer(200, created),
        answer(200, &done("AuthorizeSecurityGroupIngress")),
    ]);
    let slot = Slot::security_group(&scope(), "vpc-1", "x-vpce-private-router");
    let rule = json!({"Protocol": "tcp", "FromPort": 443, "ToPort": 443, "Range": "10.0.0.0/16",
        "Description": "Control plane service"});
    let body = json!({"GroupName": "x-vpce-private-router", "VpcId": "vpc-1", "Description": "d", "Tags": {},
        "Rules": [rule]});
    let target = WriteTarget {
        kind: slot.kind(),
        key: &slot,
        found: None,
    };
    let put = calls(&sample)
        .put(reconcile(), target, &body, &Condition::New)
        .await
        .unwrap();
    assert_eq!(
        (put.execution, put.shown.unwrap()["Id"].clone()),
        (Execution::Complete, json!("sg-1"))
    );
    let expected = [
        "CreateSecurityGroup GroupName=x-vpce-private-router",
        "AuthorizeSecurityGroupIngress IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/16",
    ];
    assert_eq!(
        sent(&sample, &["GroupName", "IpPermissions.1.IpRanges.1.CidrIp"]),
        expected
    );
}

#[tokio::test]
async fn group_that_a_wildcard_of_the_filter_found_is_not_the_one() {
    let item = "<item><groupId>sg-9</groupId><groupName>xab</groupName><vpcId>vpc-1</vpcId></item>";
    let body = format!(
        "<DescribeSecurityGroupsResponse><securityGroupInfo>{item}</securityGroupInfo></DescribeSecurityGroupsResponse>"
    );
    let sample = Sample::answering(&body);
    let slot = Slot::security_group(&scope(), "vpc-1", "x*");
    let read = calls(&sample).get(reconcile(), Kind::SecurityGroup, &slot).await;
    assert_eq!(read.unwrap_err().class, Class::Gone);
}

#[tokio::test]
async fn all_records_of_a_slot_are_changed_in_one_batch() {
    let changed = "<ChangeResourceRecordSetsResponse><ChangeInfo/></ChangeResourceRecordSetsResponse>";
    let sample = Sample::answering(changed);
    let slot = Slot::records(&scope(), "Z1", &["api.c.x", "*.apps.c.x"]);
    let record = json!({"Type": "CNAME", "TTL": 300, "Values": ["vpce-1.x"]});
    let body = json!({"Records": {"api.c.x": record, "*.apps.c.x": record}});
    let target = WriteTarget {
        kind: slot.kind(),
        key: &slot,
        found: None,
    };
    calls(&sample)
        .put(reconcile(), target, &body, &Condition::New)
        .await
        .unwrap();
    let requests = sample.aws.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        requests[0].matches("<Action>CREATE</Action>").count(),
        2,
        "{requests:?}"
    );
}

#[tokio::test]
async fn records_are_deleted_as_they_were_read() {
    let changed = "<ChangeResourceRecordSetsResponse><ChangeInfo/></ChangeResourceRecordSetsResponse>";
    let sample = Sample::answering(changed);
    let slot = Slot::records(&scope(), "Z1", &["api.c.x"]);
    let found = json!({"Records": {"api.c.x": {"Type": "CNAME", "TTL": 60, "Values": ["vpce-1.x."]}}});
    let target = WriteTarget {
        kind: slot.kind(),
        key: &slot,
        found: Some(&found),
    };
    calls(&sample)
        .delete(reconcile(), target, &Condition::Any)
        .await
        .unwrap();
    let request = &sample.aws.requests()[0];
    assert!(
        request.contains("<Action>DELETE</Action>") && request.contains("<TTL>60</TTL>"),
        "{request}"
    );
    assert!(request.contains("<Value>vpce-1.x.</Value>"), "{request}");
}

#[tokio::test]
async fn malformed_recorded_id_hides_no_endpoint() {
    let own = endpoint("vpce-1", "available", "2024-01-01T00:00:00Z");
    let sample = Sample::new([
        answer(200, &endpoints(&own)),
        refusal(400, "InvalidVpcEndpointId.Malformed"),
    ]);
    let calls = calls(&sample);
    let slot = Slot::vpc_endpoint(&scope(), "vpc-1", SERVICE);
    calls.note_recorded(&slot, "nonsense");
    let body = calls.get(reconcile(), Kind::VpcEndpoint, &slot).await.unwrap();
    assert_eq!(Aws::instance(&body), "vpce-1");
    assert_eq!(calls.ids.known(&slot).as_deref(), Some("vpce-1"));
}

#[tokio::test]
async fn what_a_recorded_id_does_not_show_is_searched() {
    let own = service("vpce-svc-1", ARN, "Available");
    let sample = Sample::new([
        refusal(400, "InvalidVpcEndpointServiceId.NotFound"),
        answer(200, &services(&own)),
    ]);
    let calls = calls(&sample);
    let slot = Slot::endpoint_service(&scope(), "a1b2");
    calls.note_recorded(&slot, "vpce-svc-7");
    let read = calls.get(reconcile(), Kind::EndpointService, &slot).await;
    assert!(read.is_ok(), "{read:?}: said to be gone without a search");
}

/// The other test of this shows it for an id that nobody has recorded.
#[tokio::test]
async fn principals_are_not_read_by_an_id_that_was_only_recorded() {
    let sample = Sample::answering(&done("DescribeVpcEndpointServicePermissions"));
    let service = Slot::endpoint_service(&scope(), "a1b2");
    let slot = Slot::allowed_principals(&service);
    let calls = calls(&sample);
    calls.note_recorded(&service, "vpce-svc-7");
    drop(calls.get(reconcile(), Kind::AllowedPrincipals, &slot).await);
    assert!(sample.aws.requests().is_empty(), "asked for somebody's service");
}

/// Two record sets of one name, between which a routing policy chooses: an upsert or a delete without their identifier
/// is refused for ever.
#[tokio::test]
async fn records_with_a_routing_policy_are_foreign() {
    let weighted = |id: &str| {
        format!(
            "<ResourceRecordSet><Name>api.x.</Name><Type>CNAME</Type><SetIdentifier>{id}</SetIdentifier><Weight>1\
             </Weight><TTL>300</TTL><ResourceRecords><ResourceRecord><Value>vpce-1.vpce.amazonaws.com</Value>\
             </ResourceRecord></ResourceRecords></ResourceRecordSet>"
        )
    };
    let body = format!(
        "<ListResourceRecordSetsResponse><ResourceRecordSets>{}{}</ResourceRecordSets><IsTruncated>false\
         </IsTruncated></ListResourceRecordSetsResponse>",
        weighted("a"),
        weighted("b")
    );
    let sample = Sample::answering(&body);
    let slot = Slot::records(&scope(), "Z1", &["api.x"]);
    let calls = calls(&sample);
    let body = calls.get(reconcile(), Kind::Records, &slot).await.unwrap();
    let desired = records::Records {
        slot,
        target: "vpce-2.vpce.amazonaws.com".to_owned(),
        endpoint_suffix: "vpce.amazonaws.com".to_owned(),
    };
    let owned = hyperlink_engine::resource::Owned::is_owned(&desired, &body);
    assert!(!owned, "the batch that follows is refused: {body}");
}
