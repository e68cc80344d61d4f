//! Every request that Hyperlink has, each with all that it may hold.

use hyperlink::aws::client_token::ClientToken;
use hyperlink::aws::credentials::SessionCache;
use hyperlink::aws::ec2::{
    Ec2, EndpointChanges, NewEndpoint, NewEndpointService, NewSecurityGroup, Rule, Selection, ServiceChanges, Tags,
    filter,
};
use hyperlink::aws::elbv2::LoadBalancing;
use hyperlink::aws::role_arn::RoleArn;
use hyperlink::aws::route53::{Change, ChangeKind, RecordSet, Route53};
use hyperlink::aws::sts::caller_account;
use hyperlink::engine::client::Reconcile;

use super::*;

/// A first page, whatever was asked; every other request is refused.
fn first_page(request: &Request<Bytes>) -> Response<Bytes> {
    let asked = format!("{} {}", request.uri(), String::from_utf8_lossy(request.body()));
    let is_next = ["NextToken=", "Marker=", "marker=", "identifier="]
        .iter()
        .any(|token| asked.contains(token));
    let form = asked.split(['&', ' ']).find_map(|pair| pair.strip_prefix("Action="));
    let rest = match asked.contains("/rrset") {
        true => "ListResourceRecordSets",
        false => "ListHostedZones",
    };
    if is_next {
        return answer(
            400,
            "<Response><Errors><Error><Code>InvalidParameter</Code></Error></Errors></Response>",
        );
    }
    let action = form.unwrap_or(rest);
    let page = "<nextToken>next</nextToken><IsTruncated>true</IsTruncated><NextMarker>next</NextMarker><NextRecordName>\
                \\052.n.x.</NextRecordName><NextRecordType>CNAME</NextRecordType><NextRecordIdentifier>i\
                </NextRecordIdentifier>";
    answer(
        200,
        &format!("<{action}Response><{action}Result>{page}</{action}Result>{page}</{action}Response>"),
    )
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn tags() -> Tags {
    [("kubernetes.io/cluster/x", "owned"), ("a+b", "c d&e=ü")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Sends each request to the services of a region. What was sent.
pub(super) async fn send_all(region: &str) -> Vec<Value> {
    let aws = Answering::new(region, first_page);
    let ec2 = || Ec2(aws.client());
    services(ec2).await;
    endpoints(ec2).await;
    groups(ec2).await;
    let balancing = || LoadBalancing(aws.client());
    drop(balancing().by_name(Reconcile::begin(), &texts(["a1", "a2"])).await);
    drop(balancing().all(Reconcile::begin()).await);
    records(|| Route53(aws.client())).await;
    drop(caller_account(&aws.connection(), &Keys).await);
    sessions(&aws.connection()).await;
    aws.sent.lock().unwrap().clone()
}

async fn services(ec2: impl Fn() -> Ec2) {
    let at = Reconcile::begin;
    let new = NewEndpointService {
        load_balancer: "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/a/1".to_owned(),
        client_token: ClientToken::new("t").unwrap(),
        tags: tags(),
    };
    drop(ec2().create_endpoint_service(at(), &new).await);
    let by_filter = Selection::Filters(vec![filter("service-name", "com.x"), filter("tag:a", "b")]);
    drop(ec2().endpoint_services(at(), &by_filter).await);
    drop(ec2().endpoint_services(at(), &Selection::id("vpce-svc-1")).await);
    let changes = ServiceChanges {
        acceptance_required: Some(false),
        add_load_balancers: texts(["arn:1", "arn:2"]),
        remove_load_balancers: texts(["arn:3"]),
    };
    drop(ec2().modify_endpoint_service(at(), "vpce-svc-1", &changes).await);
    drop(ec2().principals(at(), "vpce-svc-1").await);
    let (add, remove) = (texts(["arn:aws:iam::1:role/a", "*"]), texts(["arn:aws:iam::1:root"]));
    drop(ec2().modify_principals(at(), "vpce-svc-1", &add, &remove).await);
    drop(ec2().connections(at(), "vpce-svc-1").await);
    let endpoints = texts(["vpce-1", "vpce-2"]);
    drop(ec2().reject_connections(at(), "vpce-svc-1", &endpoints).await);
    drop(ec2().delete_endpoint_service(at(), "vpce-svc-1").await);
}

async fn endpoints(ec2: impl Fn() -> Ec2) {
    let at = Reconcile::begin;
    let new = NewEndpoint {
        service_name: "com.amazonaws.vpce.us-east-1.vpce-svc-1".to_owned(),
        vpc_id: "vpc-1".to_owned(),
        subnet_ids: texts(["subnet-1", "subnet-2"]),
        group_ids: texts(["sg-1", "sg-2"]),
        client_token: ClientToken::new("t").unwrap(),
        tags: tags(),
    };
    drop(ec2().create_endpoint(at(), &new).await);
    let by_filter = Selection::Filters(vec![filter("vpc-id", "vpc-1"), filter("service-name", "com.x")]);
    drop(ec2().endpoints(at(), &by_filter).await);
    drop(
        ec2()
            .endpoints(at(), &Selection::Ids(texts(["vpce-1", "vpce-2"])))
            .await,
    );
    let changes = EndpointChanges {
        add_subnets: texts(["subnet-1"]),
        remove_subnets: texts(["subnet-2"]),
        add_groups: texts(["sg-1"]),
        remove_groups: texts(["sg-2", "sg-3"]),
    };
    drop(ec2().modify_endpoint(at(), "vpce-1", &changes).await);
    drop(ec2().delete_endpoint(at(), "vpce-1").await);
    drop(ec2().create_tags(at(), "vpce-1", &tags()).await);
    drop(
        ec2()
            .subnets(at(), &Selection::Ids(texts(["subnet-1", "subnet-2"])))
            .await,
    );
    let of_network = Selection::Filters(vec![filter("vpc-id", "vpc-1")]);
    drop(ec2().subnets(at(), &of_network).await);
}

async fn groups(ec2: impl Fn() -> Ec2) {
    let at = Reconcile::begin;
    let new = NewSecurityGroup {
        name: "x-vpce-private-router".to_owned(),
        description: "VPC endpoint security group".to_owned(),
        vpc_id: "vpc-1".to_owned(),
        tags: tags(),
    };
    drop(ec2().create_security_group(at(), &new).await);
    let by_filter = Selection::Filters(vec![filter("group-name", "x"), filter("vpc-id", "vpc-1")]);
    drop(ec2().security_groups(at(), &by_filter).await);
    drop(ec2().security_groups(at(), &Selection::id("sg-1")).await);
    let rules = [
        ("10.0.0.0/16", Some((443, 443))),
        ("fd00::/8", Some((6443, 6443))),
        ("10.1.0.0/16", None),
    ];
    let rules = rules.map(|(cidr, ports)| Rule {
        protocol: if ports.is_some() { "tcp" } else { "-1" }.to_owned(),
        ports,
        cidr: cidr.to_owned(),
        description: Some("Control plane service".to_owned()),
    });
    drop(ec2().authorize_ingress(at(), "sg-1", &rules).await);
    drop(ec2().revoke_ingress(at(), "sg-1", &rules).await);
    drop(ec2().delete_security_group(at(), "sg-1").await);
}

async fn records(route53: impl Fn() -> Route53) {
    let at = Reconcile::begin;
    drop(route53().hosted_zones(at()).await);
    drop(route53().records(at(), "Z1").await);
    drop(
        route53()
            .records_named(at(), "Z1", &["*.apps.x.hypershift.local"])
            .await,
    );
    let change = |kind, name: &str| Change {
        kind,
        records: RecordSet {
            name: name.to_owned(),
            kind: "CNAME".to_owned(),
            ttl: Some(300),
            values: texts(["vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com"]),
            set_identifier: Some("<&>".to_owned()),
        },
    };
    let changes = [
        change(ChangeKind::Create, "*.apps.x.hypershift.local"),
        change(ChangeKind::Upsert, "api.x.hypershift.local"),
        change(ChangeKind::Delete, "old.x.hypershift.local."),
    ];
    drop(route53().change_records(at(), "Z1", &changes).await);
}

/// A session by a token, and one that the identity assumes.
async fn sessions(connection: &Connection) {
    const ROLE: &str = "arn:aws:iam::123456789012:role/a/cpo";
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("credentials"), folder.path().join("token"));
    std::fs::write(&token, "header.claims.signature").unwrap();
    let profile = format!(
        "[default]\nrole_arn = {ROLE}\nweb_identity_token_file = {}\n",
        token.display()
    );
    std::fs::write(&file, profile).unwrap();
    drop(
        SessionCache::of_profile(connection.clone(), file, "hyperlink/cpo 1")
            .session()
            .await,
    );
    let role = RoleArn::parse(ROLE).unwrap();
    drop(
        SessionCache::of_role(connection.clone(), Arc::new(Keys), role, "h")
            .session()
            .await,
    );
}
