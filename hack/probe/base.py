"""What the questions stand on: a VPC, a load balancer, a hosted zone and a role. All have the tag of the probe, by which
they are found again and removed; the zone, which AWS cannot create with a tag, has a name and a comment."""

import json
from dataclasses import dataclass

from botocore.exceptions import ClientError

TAG = "hyperlink-aws-probe"
PARTS = (
    ("VPC 10.99.0.0/16 with two subnets in one zone and one in another", "free"),
    ("internal network load balancer in two zones, without targets", "about 0.03 USD an hour"),
    ("private hosted zone", "free if it is deleted within 12 hours, else 0.50 USD"),
    ("IAM role without any policy, which its own account may assume", "free"),
)

# Their tags need these rights, without a call.
RIGHTS = ("ec2:CreateTags", "elasticloadbalancing:AddTags", "iam:TagRole")
# AWS's actions by which they are made, and removed with what a question may leave.
CALLS = (
    "ec2:CreateSubnet",
    "ec2:CreateVpc",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DeleteVpcEndpointServiceConfigurations",
    "ec2:DeleteVpcEndpoints",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTags",
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:ListRoleTags",
    "iam:ListRoles",
    "route53:ChangeResourceRecordSets",
    "route53:CreateHostedZone",
    "route53:DeleteHostedZone",
    "route53:ListHostedZones",
    "route53:ListResourceRecordSets",
    "sts:GetCallerIdentity",
)


@dataclass
class Base:
    vpc: str
    # The first two are in one zone, the third in another.
    subnets: list
    balancer: str
    zone: str
    zone_name: str
    role: str


def pairs(run):
    return [{"Key": TAG, "Value": run}]


def tagged(kind, run):
    return [{"ResourceType": kind, "Tags": pairs(run)}]


def make(client, run, roles):
    ec2, elbv2, route53 = client("ec2"), client("elbv2"), client("route53")
    vpc = ec2.create_vpc(CidrBlock="10.99.0.0/16", TagSpecifications=tagged("vpc", run))["Vpc"]["VpcId"]
    ec2.get_waiter("vpc_available").wait(VpcIds=[vpc])
    zones = ec2.describe_availability_zones(Filters=[{"Name": "opt-in-status", "Values": ["opt-in-not-required"]}])
    first, second = sorted(zone["ZoneName"] for zone in zones["AvailabilityZones"])[:2]
    subnets = []
    for at, zone in enumerate((first, first, second)):
        place = {"VpcId": vpc, "CidrBlock": f"10.99.{at}.0/24", "AvailabilityZone": zone}
        made = ec2.create_subnet(**place, TagSpecifications=tagged("subnet", run))
        subnets.append(made["Subnet"]["SubnetId"])
    balancer = elbv2.create_load_balancer(
        Name=run, Type="network", Scheme="internal", Subnets=[subnets[0], subnets[2]], Tags=pairs(run)
    )["LoadBalancers"][0]["LoadBalancerArn"]
    elbv2.get_waiter("load_balancer_available").wait(LoadBalancerArns=[balancer])
    name = f"{run}.internal"
    zone = route53.create_hosted_zone(
        Name=name,
        CallerReference=run,
        HostedZoneConfig={"PrivateZone": True, "Comment": TAG},
        VPC={"VPCRegion": ec2.meta.region_name, "VPCId": vpc},
    )["HostedZone"]["Id"].split("/")[-1]
    return Base(vpc, subnets, balancer, zone, name, roles.make(run))


class Roles:
    """Roles that their own account may assume, and that may do nothing."""

    def __init__(self, client, run, clock):
        self.client, self.run, self.clock = client, run, clock

    def make(self, name):
        partition, account = (self.client("sts").get_caller_identity()["Arn"].split(":")[at] for at in (1, 4))
        trusted = {"AWS": f"arn:{partition}:iam::{account}:root"}
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": trusted}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        made = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document, Tags=pairs(self.run))
        # A new role is not known everywhere at once.
        self.clock.sleep(15)
        return made["Role"]["Arn"]

    def remove(self, name):
        self.client("iam").delete_role(RoleName=name)


def ours(tags):
    """Whether these tags have that of the probe."""
    return any(tag["Key"] == TAG for tag in tags)


def until_gone(clock, listed, remove, what):
    """Removes what is listed, again and again: what uses it may be deleted shortly before."""
    for _ in range(120):
        left = listed()
        if not left:
            return
        for one in left:
            try:
                remove(one)
            except ClientError as error:
                print(f"  {one}: {error.response['Error']['Code']}, again in 5 s")
        clock.sleep(5)
    raise SystemExit(f"{what} cannot be removed: {left}; try again with --clean")


def remove(client, clock):
    """Removes everything with the probe's tag, of this run and of earlier ones."""
    ec2, elbv2 = client("ec2"), client("elbv2")
    filters = [{"Name": "tag-key", "Values": [TAG]}]

    def listed(call, result, key):
        def list_them():
            pages = ec2.get_paginator(call).paginate(Filters=filters)
            found = [one for page in pages for one in page[result] if ours(one.get("Tags", []))]
            # Endpoints and services that are deleted stay listed for a while.
            state = {one[key]: one.get("State", one.get("ServiceState", "")).lower() for one in found}
            return [one for one in state if state[one] not in ("deleting", "deleted")]

        return list_them

    def balancers():
        arns = [
            balancer["LoadBalancerArn"]
            for page in elbv2.get_paginator("describe_load_balancers").paginate()
            for balancer in page["LoadBalancers"]
        ]
        found = []
        for at in range(0, len(arns), 20):
            described = elbv2.describe_tags(ResourceArns=arns[at : at + 20])["TagDescriptions"]
            found += [one["ResourceArn"] for one in described if ours(one["Tags"])]
        return found

    steps = (
        (
            "endpoints",
            listed("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
            lambda one: ec2.delete_vpc_endpoints(VpcEndpointIds=[one]),
        ),
        (
            "endpoint services",
            listed("describe_vpc_endpoint_service_configurations", "ServiceConfigurations", "ServiceId"),
            lambda one: ec2.delete_vpc_endpoint_service_configurations(ServiceIds=[one]),
        ),
        ("load balancers", balancers, lambda one: elbv2.delete_load_balancer(LoadBalancerArn=one)),
        (
            "security groups",
            listed("describe_security_groups", "SecurityGroups", "GroupId"),
            lambda one: ec2.delete_security_group(GroupId=one),
        ),
        ("subnets", listed("describe_subnets", "Subnets", "SubnetId"), lambda one: ec2.delete_subnet(SubnetId=one)),
        ("hosted zones", lambda: zones(client), lambda one: remove_zone(client, one)),
        ("VPCs", listed("describe_vpcs", "Vpcs", "VpcId"), lambda one: ec2.delete_vpc(VpcId=one)),
        ("roles", lambda: role_names(client), lambda one: client("iam").delete_role(RoleName=one)),
    )
    for what, list_them, remove_one in steps:
        until_gone(clock, list_them, remove_one, what)


def zones(client):
    pages = client("route53").get_paginator("list_hosted_zones").paginate()
    return [zone["Id"].split("/")[-1] for page in pages for zone in page["HostedZones"] if is_ours(zone)]


def is_ours(zone):
    return zone.get("Config", {}).get("Comment") == TAG and zone["Name"].startswith(f"{TAG}-")


def remove_zone(client, zone):
    route53 = client("route53")
    pages = route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone)
    records = [record for page in pages for record in page["ResourceRecordSets"] if record["Type"] not in ("NS", "SOA")]
    if records:
        changes = [{"Action": "DELETE", "ResourceRecordSet": record} for record in records]
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    route53.delete_hosted_zone(Id=zone)


def role_names(client):
    iam = client("iam")
    pages = iam.get_paginator("list_roles").paginate()
    names = [role["RoleName"] for page in pages for role in page["Roles"] if role["RoleName"].startswith(TAG)]
    return [name for name in names if ours(iam.list_role_tags(RoleName=name)["Tags"])]
