"""Every paginator and every waiter that boto3 has for what is simulated, each to its end."""

import pytest

from cloud import CONSUMER, NLB, PROVIDER, REGION, SUBNETS, VPC, ZONE

ZONE_ARN = "arn:aws:route53:::hostedzone"


def balancer(number):
    return NLB.replace("aone/0123456789ab", f"a{number:02}/0123456789{number:02}")


def put(cloud, arn, body):
    cloud.control("PUT", f"/resources/{arn}", body)


# Of each call with pages: where its items are, what an item is told by, and how one more is put: a kind and its members.
LISTS = {
    "describe_vpcs": ("Vpcs", "VpcId", "vpc", lambda at: {"cidr": f"10.{at + 1}.0.0/16"}),
    "describe_subnets": (
        "Subnets",
        "SubnetId",
        "subnet",
        lambda at: {"vpc": VPC, "cidr": f"10.0.{at + 10}.0/24", "zone_id": "use1-az1"},
    ),
    "describe_security_groups": (
        "SecurityGroups",
        "GroupId",
        "security-group",
        lambda at: {"vpc": VPC, "name": f"g{at}"},
    ),
    "describe_network_interfaces": (
        "NetworkInterfaces",
        "NetworkInterfaceId",
        "network-interface",
        lambda at: {"vpc": VPC, "subnet": SUBNETS[0], "address": f"10.0.0.{at + 10}", "endpoint": "vpce-1"},
    ),
    "describe_vpc_endpoints": (
        "VpcEndpoints",
        "VpcEndpointId",
        "vpc-endpoint",
        lambda _: {"vpc": VPC, "service_id": "vpce-svc-1", "state": "available", "subnets": [], "label": "x"},
    ),
    "describe_vpc_endpoint_service_configurations": (
        "ServiceConfigurations",
        "ServiceId",
        "vpc-endpoint-service",
        lambda at: {"load_balancers": [balancer(at)]},
    ),
}
PREFIXES = {"network-interface": "eni", "security-group": "sg", "vpc-endpoint": "vpce", "vpc-endpoint-service": "vpce-svc"}


def pages_of(client, call, size, **arguments):
    return list(client.get_paginator(call).paginate(PaginationConfig={"PageSize": size}, **arguments))


@pytest.mark.parametrize("call", LISTS)
def test_pages_of_ec2_have_each_item_once(cloud, call):
    items, key, kind, body = LISTS[call]
    made = [f"{PREFIXES.get(kind, kind)}-{number:017x}" for number in range(12)]
    for at, id in enumerate(made):
        put(cloud, f"arn:aws:ec2:{REGION}:{CONSUMER}:{kind}/{id}", body(at))
    pages = pages_of(cloud.client("ec2"), call, 5)
    assert all(len(page[items]) == 5 for page in pages[:-1])
    found = [item[key] for page in pages for item in page[items]]
    assert len(found) == len(set(found)) >= 12 and set(made) <= set(found)


def test_pages_of_connections_and_principals_have_each_once(cloud):
    service = "vpce-svc-00000000000000001"
    principals = [f"arn:aws:iam::{number:012}:root" for number in range(12)]
    body = {"load_balancers": [NLB], "principals": [{"arn": arn} for arn in principals]}
    put(cloud, f"arn:aws:ec2:{REGION}:{PROVIDER}:vpc-endpoint-service/{service}", body)
    endpoints = [f"vpce-{number:017x}" for number in range(12)]
    body = {"vpc": VPC, "service_id": service, "state": "available", "subnets": [], "label": "x"}
    for id in endpoints:
        put(cloud, f"arn:aws:ec2:{REGION}:{CONSUMER}:vpc-endpoint/{id}", body)
    provider = cloud.provider("ec2")
    pages = pages_of(provider, "describe_vpc_endpoint_service_permissions", 5, ServiceId=service)
    assert [each["Principal"] for page in pages for each in page["AllowedPrincipals"]] == principals
    filters = [{"Name": "service-id", "Values": [service]}]
    pages = pages_of(provider, "describe_vpc_endpoint_connections", 5, Filters=filters)
    assert sorted(each["VpcEndpointId"] for page in pages for each in page["VpcEndpointConnections"]) == endpoints


def test_pages_of_zones_records_and_load_balancers_are_whole(cloud):
    for number in range(12):
        put(cloud, f"{ZONE_ARN}/Z{number:02}", {"account": CONSUMER, "name": f"{number}.example"})
    route53 = cloud.client("route53")
    assert [len(page["HostedZones"]) for page in pages_of(route53, "list_hosted_zones", 5)] == [5, 5, 3]
    pages = pages_of(route53, "list_resource_record_sets", 1, HostedZoneId=ZONE)
    assert [record["Type"] for page in pages for record in page["ResourceRecordSets"]] == ["NS", "SOA"]
    put(cloud, balancer(1), {"vpc": VPC, "subnets": SUBNETS[:2]})
    pages = pages_of(cloud.provider("elbv2"), "describe_load_balancers", 1)
    found = [page["LoadBalancers"][0]["LoadBalancerArn"] for page in pages]
    assert sorted(found) == sorted([NLB, balancer(1)])


def test_waiters_for_what_is_there_end(cloud):
    ec2, elbv2, soon = cloud.client("ec2"), cloud.provider("elbv2"), {"Delay": 1, "MaxAttempts": 20}
    ec2.get_waiter("vpc_exists").wait(VpcIds=[VPC], WaiterConfig=soon)
    ec2.get_waiter("vpc_available").wait(VpcIds=[VPC], WaiterConfig=soon)
    ec2.get_waiter("subnet_available").wait(SubnetIds=SUBNETS, WaiterConfig=soon)
    elbv2.get_waiter("load_balancer_exists").wait(Names=["aone"], WaiterConfig=soon)
