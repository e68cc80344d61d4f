"""The simulated actions, and which of boto3's paginators and waiters are for them."""

from functools import cache

import boto3
import botocore.session
from botocore import xform_name

ACTIONS = {
    "ec2": """AcceptVpcEndpointConnections AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress
        CreateSecurityGroup CreateTags CreateVpcEndpoint CreateVpcEndpointServiceConfiguration DeleteSecurityGroup
        DeleteVpcEndpointServiceConfigurations DeleteVpcEndpoints DescribeNetworkInterfaces DescribeSecurityGroups
        DescribeSubnets DescribeVpcEndpointConnections DescribeVpcEndpointServiceConfigurations
        DescribeVpcEndpointServicePermissions DescribeVpcEndpoints DescribeVpcs ModifyVpcEndpoint
        ModifyVpcEndpointServiceConfiguration ModifyVpcEndpointServicePermissions RejectVpcEndpointConnections
        RevokeSecurityGroupEgress RevokeSecurityGroupIngress""",
    "elbv2": "DescribeLoadBalancers DeleteLoadBalancer",
    "route53": """ChangeResourceRecordSets GetChange GetHostedZone ListHostedZones ListHostedZonesByName
        ListHostedZonesByVPC ListResourceRecordSets""",
    "sts": "AssumeRole AssumeRoleWithWebIdentity GetCallerIdentity",
}


def names():
    """Service and action of each."""
    return {(service, action) for service, actions in ACTIONS.items() for action in actions.split()}


@cache
def client(service):
    """A client that calls nothing."""
    return boto3.client(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="s")


def paginators():
    """Service and call of each."""
    calls = {(service, xform_name(action)) for service, action in names()}
    return {(service, call) for service, call in calls if client(service).can_paginate(call)}


def waiters():
    """Service and name of each."""
    found = set()
    for service in ACTIONS:
        if not client(service).waiter_names:
            continue
        model = botocore.session.get_session().get_waiter_model(service)
        operations = {xform_name(name): model.get_waiter(name).operation for name in model.waiter_names}
        assert set(client(service).waiter_names) == set(operations)
        found |= {(service, name) for name, action in operations.items() if (service, action) in names()}
    return found
