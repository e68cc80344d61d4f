"""Gives each test a freshly seeded simulator; in the end every simulated action was called, and no answer broke a model."""

import os

import pytest

from cloud import Cloud, seed
from model import Checker

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
    "sts": "AssumeRole GetCallerIdentity",
}


@pytest.fixture(scope="session")
def checker(request):
    checker = Checker()
    yield checker
    assert not checker.unexplained(), "\n".join(checker.unexplained())
    expected = {f"{service}:{action}" for service, actions in ACTIONS.items() for action in actions.split()}
    if request.session.testsfailed == 0 and not request.config.getoption("keyword"):
        assert checker.called == expected, checker.called ^ expected


@pytest.fixture
def cloud(checker):
    addresses = [os.environ[name] for name in ("AWSSIM_AWS", "AWSSIM_CONTROL", "AWSSIM_CA")]
    cloud = Cloud(addresses, checker)
    cloud.control("PUT", "/seed", seed())
    return cloud
