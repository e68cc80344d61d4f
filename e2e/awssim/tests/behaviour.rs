//! How AWS behaves where controllers stumble: lags, budgets, quotas, states, principals and names that are gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use awssim::Preset;
use serde_json::json;
use support::*;

#[test]
fn what_was_just_created_is_not_shown_yet() {
    let mut aws = TestAws::with(|seed| seed["switches"] = json!({"describe_lag_s": 5.0, "tag_lag_s": 8.0}));
    let params = [
        ("GroupName", "one"),
        ("GroupDescription", "d"),
        ("VpcId", VPC),
        ("TagSpecification.1.ResourceType", "security-group"),
        ("TagSpecification.1.Tag.1.Key", "k"),
        ("TagSpecification.1.Tag.1.Value", "v"),
    ];
    let id = aws
        .ec2(&consumer(), "CreateSecurityGroup", &params)
        .ok()
        .value("groupId");
    let by_tag = [("Filter.1.Name", "tag:k"), ("Filter.1.Value.1", "v")];
    aws.advance(4.9);
    let by_id = [("GroupId.1", id.as_str())];
    assert_eq!(
        aws.ec2(&consumer(), "DescribeSecurityGroups", &by_id).code(),
        "InvalidGroup.NotFound"
    );
    aws.advance(0.1);
    aws.ec2(&consumer(), "DescribeSecurityGroups", &by_id).ok();
    assert!(
        aws.ec2(&consumer(), "DescribeSecurityGroups", &by_tag)
            .ok()
            .values("groupId")
            .is_empty()
    );
    aws.advance(3.0);
    assert_eq!(
        aws.ec2(&consumer(), "DescribeSecurityGroups", &by_tag)
            .ok()
            .values("groupId"),
        [id]
    );
}

#[test]
fn load_balancer_is_active_after_two_and_a_half_minutes() {
    let mut aws = TestAws::of(Preset::Recorded, |seed| {
        for resource in seed["resources"].as_array_mut().unwrap() {
            if resource["id"] == BALANCER {
                resource["state"] = json!("provisioning");
            }
        }
    });
    let describe = |aws: &mut TestAws, names: &[(&str, &str)]| {
        aws.call(&provider(), "elasticloadbalancing", "DescribeLoadBalancers", names)
    };
    let one = [("Names.member.1", "aone")];
    assert_eq!(
        describe(&mut aws, &one).ok().value("State"),
        "<Code>provisioning</Code>"
    );
    let create = [("NetworkLoadBalancerArn.1", BALANCER)];
    let refused = aws.ec2(&provider(), "CreateVpcEndpointServiceConfiguration", &create);
    assert_eq!(refused.code(), "InvalidParameter");
    aws.advance(149.0);
    assert_eq!(describe(&mut aws, &one).ok().value("Code"), "provisioning");
    aws.advance(1.0);
    let shown = describe(&mut aws, &one).ok();
    assert_eq!(shown.value("Code"), "active");
    assert_eq!(
        shown.value("DNSName"),
        "aone-0123456789abcdef.elb.us-east-1.amazonaws.com"
    );
    let with_unknown = [("Names.member.1", "aone"), ("Names.member.2", "agone")];
    assert_eq!(describe(&mut aws, &with_unknown).code(), "LoadBalancerNotFound");
}

#[test]
fn recorded_endpoint_takes_its_minutes() {
    let mut aws = TestAws::of(Preset::Recorded, |_| {});
    let service = aws.service();
    aws.advance(5.0);
    let name = format!("com.amazonaws.vpce.us-east-1.{service}");
    let params = [
        ("VpcEndpointType", "Interface"),
        ("VpcId", VPC),
        ("ServiceName", &name),
        ("SubnetId.1", SUBNETS[0]),
    ];
    let request = aws.query(&consumer(), "ec2", "CreateVpcEndpoint", &params);
    let answer = aws.aws.handle(aws.now, &request);
    assert_eq!(answer.wire.delay, Some(std::time::Duration::from_secs(30)));
    let id = aws
        .ec2(&consumer(), "DescribeVpcEndpoints", &[])
        .ok()
        .value("vpcEndpointId");
    aws.advance(59.0);
    assert_eq!(aws.endpoint_state(&id), "pending");
    aws.advance(1.0);
    assert_eq!(aws.endpoint_state(&id), "available");
    aws.ec2(&consumer(), "DeleteVpcEndpoints", &[("VpcEndpointId.1", &id)])
        .ok();
    let interfaces = |aws: &mut TestAws| {
        aws.ec2(&consumer(), "DescribeNetworkInterfaces", &[])
            .ok()
            .values("subnetId")
            .len()
    };
    aws.advance(60.0);
    assert_eq!((aws.endpoint_state(&id).as_str(), interfaces(&mut aws)), ("", 1));
    aws.advance(60.0);
    assert_eq!(interfaces(&mut aws), 0);
}

#[test]
fn budget_is_per_account_region_and_action() {
    let mut aws = TestAws::with(|seed| seed["throttle"] = json!({"enabled": true}));
    let params = [
        ("VpcEndpointType", "Interface"),
        ("VpcId", VPC),
        ("ServiceName", "none"),
    ];
    for _ in 0..4 {
        assert_eq!(
            aws.ec2(&consumer(), "CreateVpcEndpoint", &params).code(),
            "InvalidServiceName"
        );
    }
    let refused = aws.ec2(&consumer(), "CreateVpcEndpoint", &params);
    assert_eq!((refused.status, refused.code().as_str()), (503, "RequestLimitExceeded"));
    assert_ne!(
        aws.ec2(&provider(), "CreateVpcEndpoint", &params).code(),
        "RequestLimitExceeded"
    );
    aws.ec2(&consumer(), "DescribeVpcs", &[]).ok();
    aws.advance(3.4);
    assert_eq!(
        aws.ec2(&consumer(), "CreateVpcEndpoint", &params).code(),
        "InvalidServiceName"
    );
    for _ in 0..5 {
        aws.route53(&consumer(), "GET", "hostedzone", "").ok();
    }
    let refused = aws.change(&[("UPSERT", "api.one.hypershift.local", 300, "x.example")]);
    assert_eq!((refused.status, refused.code().as_str()), (400, "Throttling"));
}

#[test]
fn fifty_first_endpoint_of_a_vpc_is_refused() {
    let mut aws = TestAws::with(|seed| seed["accounts"][1]["quotas"] = json!({"endpoints_per_vpc": 2}));
    let service = aws.service();
    for _ in 0..2 {
        aws.create_endpoint(&service, &[("SubnetId.1", SUBNETS[0])]).ok();
    }
    let refused = aws.create_endpoint(&service, &[("SubnetId.1", SUBNETS[0])]);
    assert_eq!(refused.code(), "VpcEndpointLimitExceeded");
}

#[test]
fn service_shows_available_before_it_takes_endpoints() {
    let mut aws = TestAws::default();
    let action = "CreateVpcEndpointServiceConfiguration";
    assert_eq!(aws.ec2(&provider(), action, &[]).code(), "InvalidParameter");
    let created = aws
        .ec2(&provider(), action, &[("NetworkLoadBalancerArn.1", BALANCER)])
        .ok();
    assert_eq!(created.value("serviceState"), "Available");
    let id = created.value("serviceId");
    let allow = [("ServiceId", id.as_str()), ("AddAllowedPrincipals.1", "*")];
    aws.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &allow).ok();
    let refused = aws.create_endpoint(&id, &[("SubnetId.1", SUBNETS[0])]);
    assert_eq!((refused.status, refused.code().as_str()), (503, "Unavailable"));
    aws.advance(0.2);
    aws.create_endpoint(&id, &[("SubnetId.1", SUBNETS[0])]).ok();
}

#[test]
fn endpoint_waits_for_acceptance() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let ask = [("ServiceId", service.as_str()), ("AcceptanceRequired", "true")];
    aws.ec2(&provider(), "ModifyVpcEndpointServiceConfiguration", &ask).ok();
    let id = aws
        .create_endpoint(&service, &[("SubnetId.1", SUBNETS[0])])
        .ok()
        .value("vpcEndpointId");
    aws.advance(60.0);
    assert_eq!(aws.endpoint_state(&id), "pendingAcceptance");
    let accept = [("ServiceId", service.as_str()), ("VpcEndpointId.1", id.as_str())];
    aws.ec2(&provider(), "AcceptVpcEndpointConnections", &accept).ok();
    aws.advance(1.0);
    assert_eq!(aws.endpoint_state(&id), "available");
}

#[test]
fn removed_principal_keeps_its_connections() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let (id, _) = aws.endpoint(&service);
    let remove = [
        ("ServiceId", service.as_str()),
        ("RemoveAllowedPrincipals.1", "arn:aws:iam::222222222222:root"),
    ];
    aws.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &remove)
        .ok();
    let params = [("ServiceId", service.as_str())];
    let left = aws
        .ec2(&provider(), "DescribeVpcEndpointServicePermissions", &params)
        .ok();
    assert!(left.values("principal").is_empty());
    assert_eq!(aws.endpoint_state(&id), "available");
    assert_eq!(aws.create_endpoint(&service, &[]).code(), "InvalidServiceName");
}

#[test]
fn rejected_connection_is_listed_after_its_endpoint() {
    let mut aws = TestAws::with(|seed| seed["switches"]["rejected_listed_s"] = json!(60.0));
    let service = aws.service();
    let (id, _) = aws.endpoint(&service);
    let reject = [("ServiceId", service.as_str()), ("VpcEndpointId.1", id.as_str())];
    aws.ec2(&provider(), "RejectVpcEndpointConnections", &reject).ok();
    aws.ec2(&consumer(), "DeleteVpcEndpoints", &[("VpcEndpointId.1", &id)])
        .ok();
    let states = |aws: &mut TestAws| {
        let answer = aws.ec2(&provider(), "DescribeVpcEndpointConnections", &[]).ok();
        answer.values("vpcEndpointState")
    };
    aws.advance(1.0);
    assert_eq!(aws.endpoint_state(&id), "", "its owner sees it no longer");
    assert_eq!(states(&mut aws), ["rejected"]);
    aws.advance(60.0);
    assert!(states(&mut aws).is_empty());
}

#[test]
fn principal_whose_role_is_gone_shows_as_an_id() {
    let mut aws = TestAws::default();
    let service = aws.service();
    let gone = "arn:aws:iam::222222222222:role/gone";
    let add = [
        ("ServiceId", service.as_str()),
        ("AddAllowedPrincipals.1", ROLE),
        ("AddAllowedPrincipals.2", gone),
    ];
    aws.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &add).ok();
    let params = [("ServiceId", service.as_str())];
    let shown = aws
        .ec2(&provider(), "DescribeVpcEndpointServicePermissions", &params)
        .ok()
        .values("principal");
    assert!(
        shown.contains(&ROLE.to_owned()) && !shown.contains(&gone.to_owned()),
        "{shown:?}"
    );
    assert!(shown.iter().any(|principal| principal.starts_with("AROA")), "{shown:?}");
}

#[test]
fn token_of_a_deleted_thing_is_spent() {
    let mut aws = TestAws::default();
    let create = [("NetworkLoadBalancerArn.1", BALANCER), ("ClientToken", "t")];
    let action = "CreateVpcEndpointServiceConfiguration";
    let id = aws.ec2(&provider(), action, &create).ok().value("serviceId");
    aws.ec2(
        &provider(),
        "DeleteVpcEndpointServiceConfigurations",
        &[("ServiceId.1", &id)],
    )
    .ok();
    aws.advance(10.0);
    assert_eq!(
        aws.ec2(&provider(), action, &create).code(),
        "IdempotentParameterMismatch"
    );
}

#[test]
fn fault_hits_the_calls_it_names() {
    let mut aws = TestAws::default();
    let rules = r#"[{"match": {"path": "^/ec2/Describe", "from": 2, "times": 1},
        "do": {"status": 503, "code": "Unavailable"}},
        {"match": {"path": "CreateSecurityGroup"}, "do": {"drop": "after"}},
        {"match": {"path": "CreateVpcEndpointService"}, "do": {"ends": "Failed"}}]"#;
    aws.aws.set_faults(awssim::parse_faults(rules.as_bytes()).unwrap());
    aws.ec2(&consumer(), "DescribeVpcs", &[]).ok();
    let hit = aws.ec2(&consumer(), "DescribeVpcs", &[]);
    assert_eq!((hit.status, hit.code().as_str()), (503, "Unavailable"));
    let params = [("GroupName", "lost"), ("GroupDescription", "d"), ("VpcId", VPC)];
    let request = aws.query(&consumer(), "ec2", "CreateSecurityGroup", &params);
    assert_eq!(
        aws.aws.handle(aws.now, &request).wire.drop,
        Some(awssim::DropWhen::After)
    );
    assert_eq!(aws.aws.handle(aws.now, &request).wire.drop, None);
    let last: Vec<_> = aws
        .aws
        .journal(0)
        .iter()
        .rev()
        .take(2)
        .map(|call| (call.changed, call.code.clone()))
        .collect();
    assert_eq!(
        last,
        [(false, Some("InvalidGroup.Duplicate".to_owned())), (true, None)],
        "the first was carried out"
    );
    aws.service();
    let failed = aws
        .ec2(&provider(), "DescribeVpcEndpointServiceConfigurations", &[])
        .ok();
    assert_eq!(failed.value("serviceState"), "Failed");
}

#[test]
fn unknown_parameter_action_and_version_are_refused() {
    let mut aws = TestAws::default();
    assert_eq!(
        aws.ec2(&consumer(), "DescribeVpcs", &[("VpcIds.1", VPC)]).code(),
        "UnknownParameter"
    );
    assert_eq!(aws.ec2(&consumer(), "DescribeInstances", &[]).code(), "InvalidAction");
    let uri = "https://ec2.us-east-1.amazonaws.com/";
    let body = "Action=DescribeVpcs&Version=2014-10-01".to_owned();
    let request = signed(&consumer(), ("ec2", REGION), aws.now, "POST", uri, body);
    assert_eq!(aws.send(&request).code(), "InvalidAction");
}
