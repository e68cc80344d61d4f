use hyperlink_engine::client::{Execution, WriteError};
use hyperlink_engine::failure::Class;
use rstest::rstest;

use super::*;
use crate::api::sample::{Sample, answer, reconcile};
use crate::client_token::ClientToken;

fn ec2(sample: &Sample) -> Ec2 {
    Ec2(sample.client.clone())
}

fn owned() -> Tags {
    Tags::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())])
}

const TAGS: &str = "<tagSet><item><key>a</key><value>1</value></item><item><key>b</key><value/></item></tagSet>";

fn service_xml(state: &str) -> String {
    format!(
        "<serviceType><item><serviceType>Interface</serviceType></item></serviceType><serviceId>vpce-svc-1</serviceId>\
         <serviceName>com.amazonaws.vpce.us-east-1.vpce-svc-1</serviceName><serviceState>{state}</serviceState>\
         <availabilityZoneIdSet><item>use1-az1</item></availabilityZoneIdSet><availabilityZoneSet>\
         <item>us-east-1a</item>\
         </availabilityZoneSet><acceptanceRequired>false</acceptanceRequired><managesVpcEndpoints>false\
         </managesVpcEndpoints><networkLoadBalancerArnSet><item>arn:n</item></networkLoadBalancerArnSet>{TAGS}"
    )
}

#[tokio::test]
async fn endpoint_service_is_created_with_token_and_tags() {
    let body = format!(
        "<CreateVpcEndpointServiceConfigurationResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r\
         </requestId><serviceConfiguration>{}</serviceConfiguration></CreateVpcEndpointServiceConfigurationResponse>",
        service_xml("Pending")
    );
    let sample = Sample::answering(&body);
    let new = NewEndpointService {
        load_balancer: "arn:n".into(),
        client_token: ClientToken::new("t").unwrap(),
        tags: owned(),
    };
    let made = ec2(&sample).create_endpoint_service(reconcile(), &new).await.unwrap();
    assert_eq!(
        sample.form(),
        "Action=CreateVpcEndpointServiceConfiguration & AcceptanceRequired=false & NetworkLoadBalancerArn.1=arn:n \
         & ClientToken=t & TagSpecification.1.ResourceType=vpc-endpoint-service & TagSpecification.1.Tag.1.Key=a \
         & TagSpecification.1.Tag.1.Value=1 & TagSpecification.1.Tag.2.Key=b & TagSpecification.1.Tag.2.Value="
    );
    let expected = EndpointService {
        id: "vpce-svc-1".into(),
        name: "com.amazonaws.vpce.us-east-1.vpce-svc-1".into(),
        state: ServiceState::Pending,
        acceptance_required: false,
        load_balancers: vec!["arn:n".into()],
        zones: vec!["us-east-1a".into()],
        zone_ids: vec!["use1-az1".into()],
        tags: owned(),
    };
    assert_eq!(made, expected);
}

#[tokio::test]
async fn endpoint_services_are_read_until_the_token_is_empty() {
    let page = |state, token| {
        let body = format!(
            "<DescribeVpcEndpointServiceConfigurationsResponse><serviceConfigurationSet><item>{}</item>\
             </serviceConfigurationSet><nextToken>{token}</nextToken>\
             </DescribeVpcEndpointServiceConfigurationsResponse>",
            service_xml(state)
        );
        answer(200, &body)
    };
    let sample = Sample::new([page("AVAILABLE", "n"), page("Resting", "")]);
    let selection = Selection::Filters(vec![filter("service-name", "x")]);
    let found = ec2(&sample).endpoint_services(reconcile(), &selection).await.unwrap();
    let states: Vec<_> = found.into_iter().map(|found| found.state).collect();
    assert_eq!(states, [ServiceState::Available, ServiceState::Other("Resting".into())]);
    let requests = sample.aws.requests();
    let first = "&Filter.1.Name=service-name&Filter.1.Value.1=x&MaxResults=200";
    assert!(requests[0].ends_with(first), "{requests:?}");
    assert!(requests[1].ends_with(&format!("{first}&NextToken=n")), "{requests:?}");
}

#[tokio::test]
async fn token_that_comes_back_ends_the_list() {
    let body = "<DescribeSubnetsResponse><subnetSet/><nextToken>n</nextToken></DescribeSubnetsResponse>";
    let sample = Sample::answering(body);
    let listed = ec2(&sample).subnets(reconcile(), &Selection::id("subnet-1")).await;
    assert_eq!(listed.unwrap_err().code, "EndlessList");
    assert_eq!(sample.aws.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pages_with_new_tokens_are_bounded() {
    let page = |number| {
        let body = format!("<DescribeSubnetsResponse><nextToken>{number}</nextToken></DescribeSubnetsResponse>");
        answer(200, &body)
    };
    let sample = Sample::new((0..1_000).map(page));
    let listed = ec2(&sample).subnets(reconcile(), &Selection::id("subnet-1")).await;
    assert_eq!(listed.unwrap_err().code, "EndlessList");
    assert_eq!(sample.aws.requests().len(), 200);
}

#[tokio::test]
async fn endpoint_service_is_changed_as_named() {
    let sample = Sample::answering(
        "<ModifyVpcEndpointServiceConfigurationResponse><return>true</return>\
        </ModifyVpcEndpointServiceConfigurationResponse>",
    );
    let changes = ServiceChanges {
        acceptance_required: Some(false),
        add_load_balancers: vec!["arn:new".into()],
        remove_load_balancers: vec!["arn:old".into()],
    };
    let calls = ec2(&sample);
    let sent = calls.modify_endpoint_service(reconcile(), "vpce-svc-1", &changes);
    assert_eq!(sent.await, Ok(()));
    assert_eq!(
        sample.form(),
        "Action=ModifyVpcEndpointServiceConfiguration & ServiceId=vpce-svc-1 & AddNetworkLoadBalancerArn.1=arn:new \
         & RemoveNetworkLoadBalancerArn.1=arn:old & AcceptanceRequired=false"
    );
}

fn unsuccessful_xml(action: &str, code: &str) -> String {
    format!(
        "<{action}Response><unsuccessful><item><resourceId>x-1</resourceId><error><code>{code}</code><message>m\
        </message>\
         </error></item></unsuccessful></{action}Response>"
    )
}

#[rstest]
#[case::gone("InvalidVpcEndpointService.NotFound", None)]
#[case::connected("ExistingVpcEndpointConnections", Some(Class::Busy))]
#[case::denied("UnauthorizedOperation", Some(Class::Denied))]
#[tokio::test]
async fn item_error_in_200_is_an_error(#[case] code: &str, #[case] class: Option<Class>) {
    let sample = Sample::answering(&unsuccessful_xml("DeleteVpcEndpointServiceConfigurations", code));
    let sent = ec2(&sample).delete_endpoint_service(reconcile(), "x-1").await;
    assert_eq!(
        sample.form(),
        "Action=DeleteVpcEndpointServiceConfigurations & ServiceId.1=x-1"
    );
    match (sent, class) {
        (Ok(execution), None) => assert_eq!(execution, Execution::NothingThere),
        (Err(WriteError::Failed(error)), Some(class)) => assert_eq!((error.class, error.status), (class, 200)),
        (sent, _) => panic!("{sent:?}"),
    }
}

#[tokio::test]
async fn principals_are_read_and_changed() {
    let body = "<DescribeVpcEndpointServicePermissionsResponse><allowedPrincipals><item><principal>*</principal></item>\
        <item><principalType>Role</principalType><principal>arn:r</principal></item></allowedPrincipals>\
        </DescribeVpcEndpointServicePermissionsResponse>";
    let sample = Sample::answering(body);
    let found = ec2(&sample).principals(reconcile(), "vpce-svc-1").await.unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|found| (found.arn.as_str(), found.kind.as_deref()))
        .collect();
    assert_eq!(shown, [("*", None), ("arn:r", Some("Role"))]);
    let form = "Action=DescribeVpcEndpointServicePermissions & ServiceId=vpce-svc-1 & MaxResults=200";
    assert_eq!(sample.form(), form);

    let sample = Sample::answering(
        "<ModifyVpcEndpointServicePermissionsResponse><return>true</return>\
        </ModifyVpcEndpointServicePermissionsResponse>",
    );
    let calls = ec2(&sample);
    let (add, remove) = (["arn:r".to_owned()], ["*".to_owned()]);
    let sent = calls.modify_principals(reconcile(), "vpce-svc-1", &add, &remove);
    assert_eq!(sent.await, Ok(()));
    assert_eq!(
        sample.form(),
        "Action=ModifyVpcEndpointServicePermissions & ServiceId=vpce-svc-1 & AddAllowedPrincipals.1=arn:r \
         & RemoveAllowedPrincipals.1=*"
    );
}

#[tokio::test]
async fn connections_are_read_and_rejected_one_by_one_in_the_answer() {
    let body = "<DescribeVpcEndpointConnectionsResponse><vpcEndpointConnectionSet><item><serviceId>vpce-svc-1\
    </serviceId>\
        <vpcEndpointOwner>1</vpcEndpointOwner><vpcEndpointState>pendingAcceptance</vpcEndpointState>\
        <vpcEndpointId>vpce-1\
        </vpcEndpointId></item></vpcEndpointConnectionSet></DescribeVpcEndpointConnectionsResponse>";
    let sample = Sample::answering(body);
    let found = ec2(&sample).connections(reconcile(), "vpce-svc-1").await.unwrap();
    assert_eq!((found.len(), &found[0].state), (1, &EndpointState::PendingAcceptance));
    assert_eq!(
        sample.form(),
        "Action=DescribeVpcEndpointConnections & Filter.1.Name=service-id & Filter.1.Value.1=vpce-svc-1 \
         & MaxResults=200"
    );

    let sample = Sample::answering(&unsuccessful_xml("RejectVpcEndpointConnections", "InvalidState"));
    let calls = ec2(&sample);
    let ids = ["vpce-1".to_owned(), "x-1".to_owned()];
    let sent = calls.reject_connections(reconcile(), "vpce-svc-1", &ids);
    let failed = sent.await.unwrap();
    assert_eq!(
        (failed.len(), failed[0].0.as_str(), failed[0].1.code.as_str()),
        (1, "x-1", "InvalidState")
    );
    let form =
        "Action=RejectVpcEndpointConnections & ServiceId=vpce-svc-1 & VpcEndpointId.1=vpce-1 & VpcEndpointId.2=x-1";
    assert_eq!(sample.form(), form);
}

#[tokio::test]
async fn subnets_are_read() {
    let body = "<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-1</subnetId><state>available</state>\
    <vpcId>vpc-1\
        </vpcId><availabilityZone>us-east-1a</availabilityZone><availabilityZoneId>use1-az4</availabilityZoneId></item>\
        </subnetSet></DescribeSubnetsResponse>";
    let sample = Sample::answering(body);
    let selection = Selection::Ids(vec!["subnet-1".into()]);
    let found = ec2(&sample).subnets(reconcile(), &selection).await.unwrap();
    assert_eq!(found[0].zone_id.as_deref(), Some("use1-az4"));
}

#[tokio::test]
async fn tags_are_added_to_one_resource() {
    let sample = Sample::answering("<CreateTagsResponse><return>true</return></CreateTagsResponse>");
    assert_eq!(ec2(&sample).create_tags(reconcile(), "vpce-1", &owned()).await, Ok(()));
    assert_eq!(
        sample.form(),
        "Action=CreateTags & ResourceId.1=vpce-1 & Tag.1.Key=a & Tag.1.Value=1 & Tag.2.Key=b & Tag.2.Value="
    );
}

#[rstest]
#[case::longest(&"a".repeat(64), true)]
#[case::too_long(&"a".repeat(65), false)]
#[case::empty("", false)]
#[case::blank("a b", false)]
#[case::not_ascii("ä", false)]
fn client_token_is_what_ec2_takes(#[case] text: &str, #[case] usable: bool) {
    assert_eq!(ClientToken::new(text).is_some(), usable);
}

#[test]
fn calls_can_be_made_by_any_task() {
    fn is_send(_: impl Send) {}
    let sample = Sample::answering("<A/>");
    let (calls, none) = (ec2(&sample), Selection::Ids(Vec::new()));
    is_send(calls.endpoints(reconcile(), &none));
    is_send(calls.delete_endpoint(reconcile(), "vpce-1"));
    let route53 = crate::route53::Route53(sample.client.clone());
    is_send(route53.hosted_zones(reconcile()));
    is_send(route53.change_records(reconcile(), "Z1", &[]));
}
