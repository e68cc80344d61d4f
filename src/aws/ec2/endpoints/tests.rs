use hyperlink_engine::client::{Execution, WriteError};
use hyperlink_engine::failure::Class;
use rstest::rstest;

use super::*;
use crate::api::sample::{Sample, reconcile, refusal};

fn ec2(sample: &Sample) -> Ec2 {
    Ec2(sample.client.clone())
}

#[tokio::test]
async fn endpoint_that_is_deleted_is_under_way() {
    let sample = Sample::answering("<DeleteVpcEndpointsResponse><unsuccessful/></DeleteVpcEndpointsResponse>");
    let sent = ec2(&sample).delete_endpoint(reconcile(), "vpce-1").await;
    assert_eq!(sent, Ok(Execution::Running));
    assert_eq!(sample.form(), "Action=DeleteVpcEndpoints & VpcEndpointId.1=vpce-1");
}

const ENDPOINT: &str = "<vpcEndpointId>vpce-1</vpcEndpointId><vpcEndpointType>Interface</vpcEndpointType><vpcId>vpc-1\
    </vpcId><serviceName>s</serviceName><state>pending</state><routeTableIdSet/><subnetIdSet><item>subnet-1</item>\
    </subnetIdSet><groupSet><item><groupId>sg-1</groupId><groupName>n</groupName></item></groupSet><dnsEntrySet><item>\
    <dnsName>vpce-1.s.us-east-1.vpce.amazonaws.com.</dnsName><hostedZoneId>Z9</hostedZoneId></item><item><dnsName>\
    vpce-1-us-east-1a.s.us-east-1.vpce.amazonaws.com</dnsName></item></dnsEntrySet><creationTimestamp>\
    2026-03-01T12:00:00.000Z</creationTimestamp><lastError><code>C</code><message>m</message></lastError>";

#[tokio::test]
async fn endpoint_is_created_as_it_is_shown() {
    let body = format!("<CreateVpcEndpointResponse><vpcEndpoint>{ENDPOINT}</vpcEndpoint></CreateVpcEndpointResponse>");
    let sample = Sample::answering(&body);
    let new = NewEndpoint {
        service_name: "s".into(),
        vpc_id: "vpc-1".into(),
        subnet_ids: vec!["subnet-1".into(), "subnet-2".into()],
        group_ids: vec!["sg-1".into()],
        client_token: ClientToken::new("t").unwrap(),
        tags: Tags::from([("k".into(), "v".into())]),
    };
    let made = ec2(&sample).create_endpoint(reconcile(), &new).await.unwrap();
    assert_eq!(
        sample.form(),
        "Action=CreateVpcEndpoint & VpcEndpointType=Interface & ServiceName=s & VpcId=vpc-1 & SubnetId.1=subnet-1 \
         & SubnetId.2=subnet-2 & SecurityGroupId.1=sg-1 & PrivateDnsEnabled=false & ClientToken=t \
         & TagSpecification.1.ResourceType=vpc-endpoint & TagSpecification.1.Tag.1.Key=k \
         & TagSpecification.1.Tag.1.Value=v"
    );
    assert_eq!((made.id.as_str(), made.state), ("vpce-1", EndpointState::Pending));
    assert_eq!(
        (made.subnet_ids, made.group_ids),
        (vec!["subnet-1".into()], vec!["sg-1".into()])
    );
    let names: Vec<_> = made.dns_entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "vpce-1.s.us-east-1.vpce.amazonaws.com",
            "vpce-1-us-east-1a.s.us-east-1.vpce.amazonaws.com"
        ]
    );
    assert_eq!(made.created.unwrap().to_string(), "2026-03-01T12:00:00Z");
    assert_eq!(made.last_error.as_deref(), Some("C"));
}

#[tokio::test]
async fn endpoints_are_read_by_id_without_a_page_size() {
    let body = format!(
        "<DescribeVpcEndpointsResponse><vpcEndpointSet><item>{ENDPOINT}</item></vpcEndpointSet>\
        </DescribeVpcEndpointsResponse>"
    );
    let sample = Sample::answering(&body);
    let found = ec2(&sample)
        .endpoints(reconcile(), &Selection::id("vpce-1"))
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(sample.form(), "Action=DescribeVpcEndpoints & VpcEndpointId.1=vpce-1");
}

#[tokio::test]
async fn no_ids_select_nothing_and_ask_nothing() {
    let sample = Sample::new([refusal(500, "InternalError")]);
    let found = ec2(&sample).endpoints(reconcile(), &Selection::Ids(Vec::new())).await;
    assert_eq!((found, sample.aws.requests().len()), (Ok(Vec::new()), 0));
}

#[rstest]
#[case("pendingAcceptance", EndpointState::PendingAcceptance)]
#[case("PendingAcceptance", EndpointState::PendingAcceptance)]
#[case("Available", EndpointState::Available)]
#[case("deleting", EndpointState::Deleting)]
#[case("Deleted", EndpointState::Deleted)]
#[case("rejected", EndpointState::Rejected)]
#[case("failed", EndpointState::Failed)]
#[case("expired", EndpointState::Expired)]
#[case("partial", EndpointState::Partial)]
#[case("Resting", EndpointState::Other("Resting".into()))]
fn case_of_a_state_is_no_matter(#[case] shown: &str, #[case] state: EndpointState) {
    assert_eq!(EndpointState::parse(shown), state);
}

#[tokio::test]
async fn endpoint_is_changed_as_named() {
    let sample = Sample::answering("<ModifyVpcEndpointResponse><return>true</return></ModifyVpcEndpointResponse>");
    let changes = EndpointChanges {
        add_subnets: vec!["subnet-2".into()],
        remove_subnets: vec!["subnet-1".into()],
        add_groups: vec!["sg-2".into()],
        remove_groups: vec!["sg-1".into()],
    };
    assert_eq!(
        ec2(&sample).modify_endpoint(reconcile(), "vpce-1", &changes).await,
        Ok(())
    );
    assert_eq!(
        sample.form(),
        "Action=ModifyVpcEndpoint & VpcEndpointId=vpce-1 & AddSubnetId.1=subnet-2 & RemoveSubnetId.1=subnet-1 \
         & AddSecurityGroupId.1=sg-2 & RemoveSecurityGroupId.1=sg-1"
    );
}

#[tokio::test]
async fn change_that_returns_false_is_no_success() {
    let sample = Sample::answering("<ModifyVpcEndpointResponse><return>false</return></ModifyVpcEndpointResponse>");
    let sent = ec2(&sample)
        .modify_endpoint(reconcile(), "vpce-1", &EndpointChanges::default())
        .await;
    assert!(matches!(sent, Err(WriteError::Failed(error)) if error.class == Class::Down));
}
