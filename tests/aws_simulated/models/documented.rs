//! The answers that AWS documents, as Hyperlink reads them.

use std::fmt::Debug;

use hyperlink::aws::credentials::SessionCache;
use hyperlink::aws::ec2::{
    Ec2, Endpoint, EndpointChanges, EndpointService, NewEndpoint, NewEndpointService, NewSecurityGroup, Selection,
    ServiceChanges, Tags, filter,
};
use hyperlink::aws::elbv2::LoadBalancing;
use hyperlink::aws::role_arn::RoleArn;
use hyperlink::aws::route53::Route53;
use hyperlink::aws::sts::caller_account;
use hyperlink::engine::client::{Execution, Reconcile};

use super::*;

const SERVICE: &str = "[ServiceId, ServiceName, ServiceState, AcceptanceRequired, NetworkLoadBalancerArns || `[]`, \
                       AvailabilityZones || `[]`, Tags[].[Key, Value] || `[]`]";
const ENDPOINT: &str = "[VpcEndpointId, ServiceName, VpcId, State, SubnetIds || `[]`, Groups[].GroupId || `[]`, \
                        DnsEntries[].[DnsName, HostedZoneId] || `[]`, Tags[].[Key, Value] || `[]`]";
const GROUP: &str = "[GroupId, GroupName, VpcId, Description, Tags[].[Key, Value] || `[]`, \
                     IpPermissions[].[IpRanges[].CidrIp, Ipv6Ranges[].CidrIpv6][][] || `[]`]";
const BALANCER: &str = "[LoadBalancerArn, LoadBalancerName, DNSName, Type, State.Code, AvailabilityZones[].ZoneName]";

/// The documented actions, each with the part of its answers that Hyperlink reads. Others have no documented answer.
fn asked() -> Vec<Value> {
    let of_each = |list: &str, part: &str| format!("{list}[].{part}");
    let done = "`null`".to_owned();
    let shown = [
        (
            "CreateVpcEndpointServiceConfiguration",
            format!("ServiceConfiguration.{SERVICE}"),
        ),
        (
            "DescribeVpcEndpointServiceConfigurations",
            of_each("ServiceConfigurations", SERVICE),
        ),
        ("ModifyVpcEndpointServiceConfiguration", done.clone()),
        ("DeleteVpcEndpointServiceConfigurations", done.clone()),
        (
            "DescribeVpcEndpointServicePermissions",
            of_each("AllowedPrincipals", "[Principal, PrincipalType]"),
        ),
        ("ModifyVpcEndpointServicePermissions", done.clone()),
        (
            "DescribeVpcEndpointConnections",
            of_each(
                "VpcEndpointConnections",
                "[VpcEndpointId, VpcEndpointOwner, VpcEndpointState]",
            ),
        ),
        ("RejectVpcEndpointConnections", "Unsuccessful[].ResourceId".to_owned()),
        ("CreateVpcEndpoint", format!("VpcEndpoint.{ENDPOINT}")),
        ("DescribeVpcEndpoints", of_each("VpcEndpoints", ENDPOINT)),
        ("ModifyVpcEndpoint", done.clone()),
        ("DeleteVpcEndpoints", done.clone()),
        ("CreateSecurityGroup", "GroupId".to_owned()),
        ("DescribeSecurityGroups", of_each("SecurityGroups", GROUP)),
        ("AuthorizeSecurityGroupIngress", done.clone()),
        (
            "DescribeSubnets",
            of_each("Subnets", "[SubnetId, VpcId, AvailabilityZone, AvailabilityZoneId]"),
        ),
        ("DescribeLoadBalancers", of_each("LoadBalancers", BALANCER)),
        ("ChangeResourceRecordSets", done),
        ("AssumeRole", "Credentials.AccessKeyId".to_owned()),
        ("AssumeRoleWithWebIdentity", "Credentials.AccessKeyId".to_owned()),
        ("GetCallerIdentity", "Account".to_owned()),
    ];
    let service = |action: &str| match action {
        "DescribeLoadBalancers" => "elbv2",
        "ChangeResourceRecordSets" => "route53",
        "AssumeRole" | "AssumeRoleWithWebIdentity" | "GetCallerIdentity" => "sts",
        _ => "ec2",
    };
    let lines = shown.map(|(action, shown)| json!({"service": service(action), "action": action, "shown": shown}));
    lines.to_vec()
}

fn tags(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!([key, value])).collect()
}

fn state(state: &impl Debug) -> String {
    format!("{state:?}")
}

fn service(service: &EndpointService) -> Value {
    let EndpointService {
        id,
        name,
        state: at,
        acceptance_required,
        load_balancers,
        zones,
        tags: all,
        ..
    } = service;
    json!([
        id,
        name,
        state(at),
        acceptance_required,
        load_balancers,
        zones,
        tags(all)
    ])
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let names = endpoint
        .dns_entries
        .iter()
        .map(|entry| json!([entry.name, entry.zone_id]));
    json!([
        endpoint.id,
        endpoint.service_name,
        endpoint.vpc_id,
        state(&endpoint.state),
        endpoint.subnet_ids,
        endpoint.group_ids,
        names.collect::<Vec<_>>(),
        tags(&endpoint.tags),
    ])
}

/// What Hyperlink reads in this answer to an action.
async fn read(action: &str, body: &str) -> Result<Value, String> {
    let body = body.to_owned();
    let aws = Answering::new("us-east-1", move |_| {
        let mut response = answer(200, &body);
        // The documented sessions have ended long ago.
        let date = "Wed, 01 Jan 2003 00:00:00 GMT".parse().unwrap();
        response.headers_mut().insert(http::header::DATE, date);
        response
    });
    let read = match action {
        "AssumeRole" | "AssumeRoleWithWebIdentity" | "GetCallerIdentity" => identity(action, &aws.connection()).await,
        "DescribeLoadBalancers" => balancers(LoadBalancing(aws.client())).await,
        "ChangeResourceRecordSets" => {
            let changed = Route53(aws.client())
                .change_records(Reconcile::begin(), "Z1", &[])
                .await;
            changed.map(|()| Value::Null).map_err(|error| format!("{error:?}"))
        }
        _ if action.starts_with("Describe") => lists(action, Ec2(aws.client())).await,
        _ => writes(action, Ec2(aws.client())).await,
    };
    read.map_err(|error| format!("{error}; asked: {:?}", aws.sent.lock().unwrap()))
}

async fn identity(action: &str, connection: &Connection) -> Result<Value, String> {
    let folder = tempfile::tempdir().unwrap();
    let role = "arn:aws:iam::123456789012:role/cpo";
    let (file, token) = (folder.path().join("credentials"), folder.path().join("token"));
    let profile = format!(
        "[default]\nrole_arn = {role}\nweb_identity_token_file = {}\n",
        token.display()
    );
    std::fs::write(&token, "a.b.c").unwrap();
    std::fs::write(&file, profile).unwrap();
    let sessions = match action {
        "GetCallerIdentity" => {
            let account = caller_account(connection, &Keys).await;
            return account.map(Value::from).map_err(|error| format!("{error:?}"));
        }
        "AssumeRole" => SessionCache::of_role(connection.clone(), Arc::new(Keys), RoleArn::parse(role).unwrap(), "h"),
        _ => SessionCache::of_profile(connection.clone(), file, "h"),
    };
    let session = sessions.session().await.map_err(|error| format!("{error:?}"))?;
    Ok(session.access_key_id().into())
}

async fn balancers(balancing: LoadBalancing) -> Result<Value, String> {
    let found = balancing
        .all(Reconcile::begin())
        .await
        .map_err(|error| format!("{error:?}"))?;
    let shown = found.iter();
    Ok(shown
        .map(|one| {
            let at = match &one.state {
                hyperlink::aws::elbv2::LoadBalancerState::ActiveImpaired => "active_impaired".to_owned(),
                other => state(other),
            };
            json!([one.arn, one.name, one.dns_name, one.kind, at, one.zones])
        })
        .collect())
}

async fn lists(action: &str, ec2: Ec2) -> Result<Value, String> {
    let at = Reconcile::begin();
    let by = Selection::Filters(vec![filter("vpc-id", "vpc-1")]);
    let read = match action {
        "DescribeVpcEndpointServiceConfigurations" => ec2
            .endpoint_services(at, &by)
            .await
            .map(|all| all.iter().map(service).collect()),
        "DescribeVpcEndpoints" => ec2
            .endpoints(at, &by)
            .await
            .map(|all| all.iter().map(endpoint).collect()),
        "DescribeVpcEndpointServicePermissions" => {
            let all = ec2.principals(at, "vpce-svc-1").await;
            all.map(|all| all.iter().map(|one| json!([one.arn, one.kind])).collect())
        }
        "DescribeVpcEndpointConnections" => {
            let all = ec2.connections(at, "vpce-svc-1").await;
            all.map(|all| {
                all.iter()
                    .map(|one| json!([one.endpoint_id, one.owner, state(&one.state)]))
                    .collect()
            })
        }
        "DescribeSecurityGroups" => ec2.security_groups(at, &by).await.map(|all| {
            let shown = all.iter().map(|one| {
                let ranges: Vec<_> = one.ingress.iter().map(|rule| &rule.cidr).collect();
                json!([one.id, one.name, one.vpc_id, one.description, tags(&one.tags), ranges])
            });
            shown.collect()
        }),
        _ => {
            let all = ec2.subnets(at, &by).await;
            all.map(|all| {
                all.iter()
                    .map(|one| json!([one.id, one.vpc_id, one.zone, one.zone_id]))
                    .collect()
            })
        }
    };
    read.map_err(|error| format!("{error:?}"))
}

async fn writes(action: &str, ec2: Ec2) -> Result<Value, String> {
    let at = Reconcile::begin();
    let text = String::new;
    let token = hyperlink::aws::client_token::ClientToken::new("t").unwrap();
    let deleted = |execution: Execution| (execution == Execution::Running).then_some(Value::Null).unwrap();
    let read = match action {
        "CreateVpcEndpointServiceConfiguration" => {
            let new = NewEndpointService {
                load_balancer: text(),
                client_token: token,
                tags: Tags::new(),
            };
            ec2.create_endpoint_service(at, &new).await.map(|made| service(&made))
        }
        "CreateVpcEndpoint" => {
            let new = NewEndpoint {
                service_name: text(),
                vpc_id: text(),
                subnet_ids: Vec::new(),
                group_ids: Vec::new(),
                client_token: token,
                tags: Tags::new(),
            };
            ec2.create_endpoint(at, &new).await.map(|made| endpoint(&made))
        }
        "CreateSecurityGroup" => {
            let new = NewSecurityGroup {
                name: text(),
                description: text(),
                vpc_id: text(),
                tags: Tags::new(),
            };
            ec2.create_security_group(at, &new).await.map(Value::from)
        }
        "RejectVpcEndpointConnections" => {
            let failed = ec2.reject_connections(at, "vpce-svc-1", &["vpce-1".to_owned()]).await;
            failed.map(|failed| failed.into_iter().map(|(id, _)| id).collect())
        }
        "ModifyVpcEndpointServiceConfiguration" => ec2
            .modify_endpoint_service(at, "x", &ServiceChanges::default())
            .await
            .map(|()| Value::Null),
        "ModifyVpcEndpointServicePermissions" => ec2.modify_principals(at, "x", &[], &[]).await.map(|()| Value::Null),
        "ModifyVpcEndpoint" => ec2
            .modify_endpoint(at, "x", &EndpointChanges::default())
            .await
            .map(|()| Value::Null),
        "AuthorizeSecurityGroupIngress" => ec2.authorize_ingress(at, "x", &[]).await.map(|()| Value::Null),
        "DeleteVpcEndpoints" => ec2.delete_endpoint(at, "x").await.map(deleted),
        "DeleteVpcEndpointServiceConfigurations" => ec2.delete_endpoint_service(at, "x").await.map(deleted),
        _ => panic!("no call for {action}"),
    };
    read.map_err(|error| format!("{error:?}"))
}

/// Examples that are not what the models say, so that no service can give such an answer.
const LEFT_OUT: [&str; 5] = [
    "command line: modify-vpc-endpoint-service-configuration 1",
    "command line: describe-security-groups 2",
    "command line: describe-security-groups 3",
    "command line: describe-subnets 1",
    "command line: describe-subnets 3",
];

#[tokio::test]
async fn answers_that_aws_documents_are_read_as_they_are() {
    let Some(examples) = by_python("documented.py", &asked()) else {
        println!("SKIPPED: no python3");
        return;
    };
    let (left_out, examples): (Vec<_>, Vec<_>) = examples.into_iter().partition(|line| line["answer"].is_null());
    let left_out: Vec<&str> = left_out.iter().map(|line| line["title"].as_str().unwrap()).collect();
    let mut wrong = Vec::new();
    for example in &examples {
        let (action, body) = (example["action"].as_str().unwrap(), example["answer"].as_str().unwrap());
        let read = read(action, body).await.unwrap_or_else(Value::from);
        // The models capitalise states that have capitals nowhere else.
        if read.to_string().to_lowercase() != example["shown"].to_string().to_lowercase() {
            wrong.push(format!("{}: {read}, not {}", example["title"], example["shown"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(left_out, LEFT_OUT);
    assert!(examples.len() >= 50, "{}", examples.len());
}
