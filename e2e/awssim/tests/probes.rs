//! What an emulator at hand gets wrong, answered as AWS does: one test for each probe of the comparison.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::*;

const CREATE_SERVICE: &str = "CreateVpcEndpointServiceConfiguration";
const DESCRIBE_SERVICES: &str = "DescribeVpcEndpointServiceConfigurations";
const DELETE_SERVICES: &str = "DeleteVpcEndpointServiceConfigurations";

#[test]
fn path_is_built_and_carries_traffic() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (id, group) = aws.endpoint(&service);
    let rule = [
        ("GroupId", group.as_str()),
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "443"),
        ("IpPermissions.1.ToPort", "443"),
        ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/16"),
    ];
    aws.ec2(&consumer(), "AuthorizeSecurityGroupIngress", &rule).ok();
    let shown = aws
        .ec2(&consumer(), "DescribeVpcEndpoints", &[("VpcEndpointId.1", &id)])
        .ok();
    let names = shown.values("dnsName");
    assert!(names[0].starts_with(&id) && names[0].ends_with(&format!("{service}.us-east-1.vpce.amazonaws.com")));
    assert!(
        names[1].contains("-us-east-1"),
        "the regional name comes first: {names:?}"
    );
    aws.change(&[("UPSERT", "*.apps.one.hypershift.local", 300, &names[0])])
        .ok();
    let question = awssim::Question {
        vpc: VPC,
        name: "console.apps.one.hypershift.local",
        from: None,
        port: None,
    };
    let reachable = aws.aws.reachable(aws.now, &question);
    assert!(reachable.ok, "{reachable:?}");
    assert_eq!(
        (reachable.path.len(), reachable.address.as_deref()),
        (8, Some("10.0.0.4"))
    );
    let other_port = awssim::Question {
        port: Some(6443),
        ..question
    };
    let why = aws.aws.reachable(aws.now, &other_port).why.unwrap();
    assert!(why.starts_with("security_group: "), "{why}");
}

#[test]
fn connections_are_listed_and_rejected() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (id, _) = aws.endpoint(&service);
    let filter = [("Filter.1.Name", "service-id"), ("Filter.1.Value.1", service.as_str())];
    let list = |aws: &mut TestAws| {
        let answer = aws.ec2(&provider(), "DescribeVpcEndpointConnections", &filter).ok();
        (answer.values("vpcEndpointId"), answer.values("vpcEndpointState"))
    };
    assert_eq!(list(&mut aws), (vec![id.clone()], vec!["available".to_owned()]));
    let unknown = "vpce-00000000000000000";
    let reject = [
        ("ServiceId", service.as_str()),
        ("VpcEndpointId.1", &id),
        ("VpcEndpointId.2", unknown),
    ];
    let answer = aws.ec2(&provider(), "RejectVpcEndpointConnections", &reject).ok();
    assert_eq!(answer.values("resourceId"), [unknown], "one failed, with HTTP 200");
    assert_eq!(answer.code(), "InvalidVpcEndpointId.NotFound");
    assert_eq!(list(&mut aws).1, ["rejected"]);
    assert_eq!(aws.endpoint_state(&id), "rejected");
}

#[test]
fn filters_and_pages_of_endpoint_services_count() {
    let mut aws = TestAws::with(|seed| {
        let service = |n: u8| {
            let id = format!("vpc-endpoint-service/vpce-svc-0000000000000000{n}");
            let arn = format!("arn:aws:ec2:{REGION}:{PROVIDER}:{id}");
            serde_json::json!({"id": arn, "load_balancers": [], "tags": {"n": n.to_string()}})
        };
        let resources = seed["resources"].as_array_mut().unwrap();
        resources.extend((1..=7).map(service));
    });
    let name = "com.amazonaws.vpce.us-east-1.vpce-svc-00000000000000003";
    let filter = [("Filter.1.Name", "service-name"), ("Filter.1.Value.1", name)];
    assert_eq!(
        aws.ec2(&provider(), DESCRIBE_SERVICES, &filter)
            .ok()
            .values("serviceName"),
        [name]
    );
    let tag = [
        ("Filter.1.Name", "tag:n"),
        ("Filter.1.Value.1", "4"),
        ("Filter.1.Value.2", "5"),
    ];
    assert_eq!(
        aws.ec2(&provider(), DESCRIBE_SERVICES, &tag)
            .ok()
            .values("serviceId")
            .len(),
        2
    );
    let first = aws.ec2(&provider(), DESCRIBE_SERVICES, &[("MaxResults", "5")]).ok();
    let token = first.value("nextToken");
    let rest = aws
        .ec2(
            &provider(),
            DESCRIBE_SERVICES,
            &[("MaxResults", "5"), ("NextToken", &token)],
        )
        .ok();
    let ids = [first.values("serviceId"), rest.values("serviceId")].concat();
    assert_eq!(ids.len(), 7);
    assert!(ids.is_sorted() && rest.values("nextToken").is_empty());
    let wrong = [("Filter.1.Name", "color"), ("Filter.1.Value.1", "red")];
    assert_eq!(
        aws.ec2(&provider(), DESCRIBE_SERVICES, &wrong).code(),
        "InvalidParameterValue"
    );
}

#[test]
fn second_service_of_a_load_balancer_is_refused() {
    let mut aws = TestAws::default();
    aws.service();
    let again = aws.ec2(&provider(), CREATE_SERVICE, &[("NetworkLoadBalancerArn.1", BALANCER)]);
    assert_eq!((again.status, again.code().as_str()), (400, "InvalidParameter"));
    aws.ec2(
        &provider(),
        CREATE_SERVICE,
        &[("NetworkLoadBalancerArn.1", BALANCER_TWO)],
    )
    .ok();
}

#[test]
fn client_token_gives_the_first_result_again() {
    let mut aws = TestAws::default();
    let params = [("NetworkLoadBalancerArn.1", BALANCER), ("ClientToken", "t1")];
    let first = aws.ec2(&provider(), CREATE_SERVICE, &params).ok().value("serviceId");
    assert_eq!(
        aws.ec2(&provider(), CREATE_SERVICE, &params).ok().value("serviceId"),
        first
    );
    let other = [("NetworkLoadBalancerArn.1", BALANCER_TWO), ("ClientToken", "t1")];
    assert_eq!(
        aws.ec2(&provider(), CREATE_SERVICE, &other).code(),
        "IdempotentParameterMismatch"
    );
    let long = "t".repeat(65);
    let long = [
        ("NetworkLoadBalancerArn.1", BALANCER_TWO),
        ("ClientToken", long.as_str()),
    ];
    assert_eq!(
        aws.ec2(&provider(), CREATE_SERVICE, &long).code(),
        "InvalidParameterValue"
    );
    let service = aws.service_allowing(&first);
    let params = [("SubnetId.1", SUBNETS[0]), ("ClientToken", "t1")];
    let endpoint = aws.create_endpoint(&service, &params).ok().value("vpcEndpointId");
    assert_eq!(
        aws.create_endpoint(&service, &params).ok().value("vpcEndpointId"),
        endpoint
    );
}

#[test]
fn states_take_their_time() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let created = aws.create_endpoint(&service, &[("SubnetId.1", SUBNETS[0])]).ok();
    assert_eq!(created.value("state"), "pending");
    let id = created.value("vpcEndpointId");
    aws.advance(0.6);
    assert_eq!(aws.endpoint_state(&id), "available");
    aws.ec2(&consumer(), "DeleteVpcEndpoints", &[("VpcEndpointId.1", &id)])
        .ok();
    assert_eq!(aws.endpoint_state(&id), "deleting");
    aws.advance(0.3);
    assert_eq!(aws.endpoint_state(&id), "deleted");
    aws.advance(0.3);
    let gone = aws.ec2(&consumer(), "DescribeVpcEndpoints", &[("VpcEndpointId.1", &id)]);
    assert_eq!(gone.code(), "InvalidVpcEndpointId.NotFound");
}

#[test]
fn unknown_or_not_allowed_service_is_refused() {
    let mut aws = TestAws::default();
    let params = [("SubnetId.1", SUBNETS[0])];
    assert_eq!(
        aws.create_endpoint("vpce-svc-00000000000000000", &params).code(),
        "InvalidServiceName"
    );
    let create = [("NetworkLoadBalancerArn.1", BALANCER), ("AcceptanceRequired", "false")];
    let service = aws.ec2(&provider(), CREATE_SERVICE, &create).ok().value("serviceId");
    aws.advance(1.0);
    assert_eq!(aws.create_endpoint(&service, &params).code(), "InvalidServiceName");
    let service = aws.service_allowing(&service);
    aws.create_endpoint(&service, &params).ok();
}

#[test]
fn subnets_of_one_zone_or_of_none_of_the_services_are_refused() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let code = |aws: &mut TestAws, subnets: &[(&str, &str)]| aws.create_endpoint(&service, subnets).code();
    let same = [("SubnetId.1", SUBNETS[0]), ("SubnetId.2", SUBNETS[2])];
    assert_eq!(code(&mut aws, &same), "DuplicateSubnetsInSameZone");
    assert_eq!(code(&mut aws, &[("SubnetId.1", SUBNETS[3])]), "InvalidParameter");
    assert_eq!(
        code(&mut aws, &[("SubnetId.1", "subnet-00000000000000000")]),
        "InvalidSubnetID.NotFound"
    );
    let listed = aws.ec2(&consumer(), "DescribeVpcEndpoints", &[]).ok();
    assert!(listed.values("vpcEndpointId").is_empty(), "the whole call is refused");
    let id = aws
        .create_endpoint(&service, &[("SubnetId.1", SUBNETS[0])])
        .ok()
        .value("vpcEndpointId");
    let add = [("VpcEndpointId", id.as_str()), ("AddSubnetId.1", SUBNETS[2])];
    assert_eq!(
        aws.ec2(&consumer(), "ModifyVpcEndpoint", &add).code(),
        "DuplicateSubnetsInSameZone"
    );
    let swap = [
        ("VpcEndpointId", id.as_str()),
        ("AddSubnetId.1", SUBNETS[2]),
        ("RemoveSubnetId.1", SUBNETS[0]),
    ];
    assert_eq!(
        aws.ec2(&consumer(), "ModifyVpcEndpoint", &swap).code(),
        "DuplicateSubnetsInSameZone"
    );
    let add = [("VpcEndpointId", id.as_str()), ("AddSubnetId.1", SUBNETS[1])];
    aws.ec2(&consumer(), "ModifyVpcEndpoint", &add).ok();
}

#[test]
fn bad_tags_are_refused() {
    let mut aws = TestAws::default();
    let group = aws.group("one");
    let tag = |aws: &mut TestAws, tags: &[(&str, &str)]| {
        let mut params = vec![("ResourceId.1".to_owned(), group.clone())];
        for (at, (key, value)) in tags.iter().enumerate() {
            params.push((format!("Tag.{}.Key", at + 1), (*key).to_owned()));
            params.push((format!("Tag.{}.Value", at + 1), (*value).to_owned()));
        }
        let params: Vec<(&str, &str)> = params
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        aws.ec2(&consumer(), "CreateTags", &params).code()
    };
    assert_eq!(tag(&mut aws, &[("aws:x", "1")]), "InvalidParameterValue");
    assert_eq!(tag(&mut aws, &[("a", "1"), ("a", "2")]), "InvalidParameterValue");
    let many: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "v")).collect();
    assert_eq!(tag(&mut aws, &many), "");
    assert_eq!(tag(&mut aws, &[("one-more", "1")]), "TagLimitExceeded");
    assert_eq!(tag(&mut aws, &[("k7", "changed")]), "");
}

#[test]
fn wrong_key_and_wrong_secret_are_refused() {
    let mut aws = TestAws::default();
    let mut wrong = provider();
    wrong.secret = "another".to_owned();
    for keys in [wrong, keys("AKIANOBODY")] {
        let answer = aws.ec2(&keys, "DescribeVpcs", &[]);
        assert_eq!((answer.status, answer.code().as_str()), (401, "AuthFailure"));
        let answer = aws.call(&keys, "sts", "GetCallerIdentity", &[]);
        assert_eq!(answer.status, 403, "{}", answer.body);
    }
}

#[test]
fn dry_run_creates_nothing() {
    let mut aws = TestAws::default();
    let params = [("NetworkLoadBalancerArn.1", BALANCER), ("DryRun", "true")];
    let answer = aws.ec2(&provider(), CREATE_SERVICE, &params);
    assert_eq!((answer.status, answer.code().as_str()), (412, "DryRunOperation"));
    assert!(
        aws.ec2(&provider(), DESCRIBE_SERVICES, &[])
            .ok()
            .values("serviceId")
            .is_empty()
    );
    let denied = aws.ec2(&keys("AKIAREADER"), CREATE_SERVICE, &params);
    assert_eq!((denied.status, denied.code().as_str()), (403, "UnauthorizedOperation"));
}

#[test]
fn security_group_in_use_is_kept_until_its_interface_is_gone() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (id, group) = aws.endpoint(&service);
    let delete = |aws: &mut TestAws| {
        aws.ec2(&consumer(), "DeleteSecurityGroup", &[("GroupId", &group)])
            .code()
    };
    assert_eq!(delete(&mut aws), "DependencyViolation");
    aws.ec2(&consumer(), "DeleteVpcEndpoints", &[("VpcEndpointId.1", &id)])
        .ok();
    aws.advance(0.6);
    assert_eq!(aws.endpoint_state(&id), "", "the endpoint is gone");
    assert_eq!(delete(&mut aws), "DependencyViolation");
    aws.advance(0.6);
    assert_eq!(delete(&mut aws), "");
    assert_eq!(delete(&mut aws), "InvalidGroup.NotFound");
}

#[test]
fn load_balancer_in_use_is_kept() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let delete = |aws: &mut TestAws| {
        let params = [("LoadBalancerArn", BALANCER)];
        aws.call(&provider(), "elasticloadbalancing", "DeleteLoadBalancer", &params)
            .code()
    };
    assert_eq!(delete(&mut aws), "ResourceInUse");
    aws.ec2(&provider(), DELETE_SERVICES, &[("ServiceId.1", &service)]).ok();
    aws.advance(1.0);
    assert_eq!(delete(&mut aws), "");
}

#[test]
fn service_with_connections_is_kept_until_they_are_rejected() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (id, _) = aws.endpoint(&service);
    let answer = aws.ec2(&provider(), DELETE_SERVICES, &[("ServiceId.1", &service)]).ok();
    assert_eq!(
        (answer.value("resourceId"), answer.code().as_str()),
        (service.clone(), "ExistingVpcEndpointConnections")
    );
    let reject = [("ServiceId", service.as_str()), ("VpcEndpointId.1", id.as_str())];
    aws.ec2(&provider(), "RejectVpcEndpointConnections", &reject).ok();
    let answer = aws.ec2(&provider(), DELETE_SERVICES, &[("ServiceId.1", &service)]).ok();
    assert!(answer.values("item").is_empty(), "{}", answer.body);
    let again = aws.ec2(&provider(), DELETE_SERVICES, &[("ServiceId.1", &service)]).ok();
    assert_eq!(again.code(), "InvalidVpcEndpointService.NotFound");
}

#[test]
fn asterisk_of_a_record_returns_escaped() {
    let mut aws = TestAws::default();
    aws.change(&[("CREATE", "*.apps.one.hypershift.local", 300, "x.example")])
        .ok();
    let list = aws
        .route53(&consumer(), "GET", &format!("hostedzone/{ZONE}/rrset"), "")
        .ok();
    assert!(
        list.values("Name")
            .contains(&"\\052.apps.one.hypershift.local.".to_owned()),
        "{}",
        list.body
    );
    let start = format!("hostedzone/{ZONE}/rrset?name=%5C052.apps.one.hypershift.local.&type=CNAME&maxitems=1");
    assert_eq!(aws.route53(&consumer(), "GET", &start, "").ok().value("Type"), "CNAME");
    aws.change(&[("DELETE", "\\052.apps.one.hypershift.local.", 300, "x.example")])
        .ok();
}
