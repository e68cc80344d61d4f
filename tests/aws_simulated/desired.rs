//! One cluster's path, and the accounts in which it lies.

use std::collections::{BTreeMap, BTreeSet};

use hyperlink::aws::body::Tags;
use hyperlink::aws::client_token::ClientToken;
use hyperlink::aws::kinds::allowed_principals::AllowedPrincipals;
use hyperlink::aws::kinds::endpoint_service::{EndpointService, OwnedEndpointService};
use hyperlink::aws::kinds::records::Records;
use hyperlink::aws::kinds::security_group::SecurityGroup;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use hyperlink::aws::owner_tags::{OwnerTags, Precedence};
use hyperlink::aws::slot::{Scope, Slot};
use serde_json::{Value, json};

pub(crate) const MANAGEMENT: &str = "111122223333";
pub(crate) const GUEST: &str = "444455556666";
pub(crate) const LOAD_BALANCER: &str = "a1b2c3d4";
pub(crate) const LOAD_BALANCER_ARN: &str =
    "arn:aws:elasticloadbalancing:us-east-1:111122223333:loadbalancer/net/a1b2c3d4/50dc6c495c0c9188";
pub(crate) const ZONE: &str = "Z0123456789";
pub(crate) const API: &str = "api.example.hypershift.local";
pub(crate) const APPS: &str = "*.apps.example.hypershift.local";
pub(crate) const SECRET: &str = "secret";

/// What the roles may do, as HyperShift's own policies allow it.
const HO_ACTIONS: [&str; 9] = [
    "ec2:CreateVpcEndpointServiceConfiguration",
    "ec2:DescribeVpcEndpointServiceConfigurations",
    "ec2:DeleteVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointServicePermissions",
    "ec2:ModifyVpcEndpointServicePermissions",
    "ec2:DescribeVpcEndpointConnections",
    "ec2:RejectVpcEndpointConnections",
    "ec2:CreateTags",
    "elasticloadbalancing:DescribeLoadBalancers",
];
const CPO_ACTIONS: [&str; 14] = [
    "ec2:CreateVpcEndpoint",
    "ec2:ModifyVpcEndpoint",
    "ec2:DeleteVpcEndpoints",
    "ec2:DescribeVpcEndpoints",
    "ec2:CreateTags",
    "ec2:CreateSecurityGroup",
    "ec2:DeleteSecurityGroup",
    "ec2:DescribeSecurityGroups",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:DescribeVpcs",
    "ec2:DescribeSubnets",
];

fn user(name: &str, key: &str, policy: &Value) -> Value {
    json!({"name": name, "access_key_id": key, "secret_access_key": SECRET,
        "policies": [{"Version": "2012-10-17", "Statement": policy}]})
}

/// Two accounts, a network in each, a load balancer that is new, and the hosted zone of the installer.
pub(crate) fn seed() -> Value {
    let ho = json!([{"Effect": "Allow", "Action": HO_ACTIONS, "Resource": "*"}]);
    let zone_actions = ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"];
    let cpo = json!([
        {"Effect": "Allow", "Action": CPO_ACTIONS, "Resource": "*"},
        {"Effect": "Allow", "Action": "route53:ListHostedZones", "Resource": "*"},
        {"Effect": "Allow", "Action": zone_actions, "Resource": format!("arn:aws:route53:::hostedzone/{ZONE}")},
    ]);
    let arn = |account: &str, resource: &str| format!("arn:aws:ec2:us-east-1:{account}:{resource}");
    let subnet = |account: &str, id: &str, vpc: &str, cidr: &str, zone: &str| json!({"id": arn(account, &format!("subnet/{id}")), "vpc": vpc, "cidr": cidr, "zone_id": zone});
    json!({
        "accounts": [
            {"id": MANAGEMENT, "users": [user("ho", "AKIAHO", &ho)]},
            {"id": GUEST, "users": [user("cpo", "AKIACPO", &cpo)]},
        ],
        "resources": [
            {"id": arn(MANAGEMENT, "vpc/vpc-1"), "cidr": "10.8.0.0/16"},
            subnet(MANAGEMENT, "subnet-m1", "vpc-1", "10.8.1.0/24", "use1-az1"),
            subnet(MANAGEMENT, "subnet-m2", "vpc-1", "10.8.2.0/24", "use1-az2"),
            {"id": arn(GUEST, "vpc/vpc-2"), "cidr": "10.0.0.0/16"},
            subnet(GUEST, "subnet-1", "vpc-2", "10.0.1.0/24", "use1-az1"),
            subnet(GUEST, "subnet-2", "vpc-2", "10.0.2.0/24", "use1-az2"),
            subnet(GUEST, "subnet-3", "vpc-2", "10.0.3.0/24", "use1-az1"),
            {"id": LOAD_BALANCER_ARN, "vpc": "vpc-1", "subnets": ["subnet-m1", "subnet-m2"], "state": "provisioning"},
            {"id": format!("arn:aws:route53:::hostedzone/{ZONE}"), "account": GUEST,
                "name": "example.hypershift.local", "vpcs": [{"id": "vpc-2", "region": "us-east-1"}]},
        ],
        "services": [{"load_balancer": LOAD_BALANCER_ARN, "name": "clusters-example/private-router"}],
    })
}

pub(crate) fn scope(account: &str) -> Scope {
    Scope::own(account, "us-east-1")
}

pub(crate) fn owner_tags(pairs: &[(&str, &str)], precedence: Precedence) -> OwnerTags {
    let pairs = pairs.iter();
    let tags: Tags = pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    OwnerTags::new("5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11", tags, &Tags::new(), precedence)
}

pub(crate) fn load_balancer() -> Slot {
    Slot::load_balancer(&scope(MANAGEMENT), LOAD_BALANCER)
}

pub(crate) fn endpoint_service() -> EndpointService {
    EndpointService {
        owned: OwnedEndpointService {
            slot: Slot::endpoint_service(&scope(MANAGEMENT), LOAD_BALANCER),
            owner_tags: owner_tags(&[("kubernetes.io/cluster/mgmt", "owned")], Precedence::HyperShift),
            vouched: true,
            management_tag: None,
        },
        load_balancer_arn: LOAD_BALANCER_ARN.to_owned(),
        client_token: ClientToken::new("token-of-the-service").unwrap(),
    }
}

pub(crate) fn allowed_principals() -> AllowedPrincipals {
    AllowedPrincipals {
        slot: Slot::allowed_principals(&endpoint_service().owned.slot),
        arns: BTreeSet::from([format!("arn:aws:iam::{GUEST}:user/cpo")]),
    }
}

pub(crate) fn security_group() -> SecurityGroup {
    let cluster_tag = "kubernetes.io/cluster/example-x7k2p";
    SecurityGroup {
        slot: Slot::security_group(&scope(GUEST), "vpc-2", "example-x7k2p-vpce-private-router"),
        owner_tags: owner_tags(&[(cluster_tag, "owned")], Precedence::User),
        cluster_tag: cluster_tag.to_owned(),
        port: 443,
        ranges: BTreeSet::from(["10.0.0.0/16".parse().unwrap(), "10.1.0.0/16".parse().unwrap()]),
    }
}

pub(crate) fn vpc_endpoint(service_name: &str, group: &str, subnets: &[&str]) -> VpcEndpoint {
    let zones = [
        ("subnet-1", "use1-az1"),
        ("subnet-2", "use1-az2"),
        ("subnet-3", "use1-az1"),
    ];
    let zones: BTreeMap<String, String> = zones.map(|(subnet, zone)| (subnet.to_owned(), zone.to_owned())).into();
    VpcEndpoint {
        slot: Slot::vpc_endpoint(&scope(GUEST), "vpc-2", service_name),
        security_group: group.to_owned(),
        subnets: subnets.iter().map(|subnet| (*subnet).to_owned()).collect(),
        zones,
        owner_tags: owner_tags(&[("AWSEndpointService", "private-router")], Precedence::HyperShift),
        client_token: ClientToken::new("token-of-the-endpoint").unwrap(),
        kept: None,
        may_be_refused: false,
    }
}

pub(crate) fn records(target: &str) -> Records {
    Records {
        slot: Slot::records(&scope(GUEST), ZONE, &[API, APPS]),
        target: target.to_owned(),
        endpoint_suffix: "vpce.amazonaws.com".to_owned(),
    }
}
