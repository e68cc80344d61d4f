"""What is not known of AWS, and how to find out: one question for each switch of the simulated AWS. Each makes what it
needs and removes it again, so that one that fails leaves the others alone."""

from dataclasses import dataclass
from typing import Callable

from botocore.exceptions import ClientError

from base import TAG, pairs
from probe import Unclear, code

ENDPOINT_COST = "an endpoint for minutes, about 0.01 USD"
RULE = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}


@dataclass
class Question:
    switch: str
    asks: str
    # AWS's actions, all that are called.
    calls: tuple
    cost: str
    ask: Callable


QUESTIONS = []
OF_GROUPS = ("ec2:CreateSecurityGroup", "ec2:DeleteSecurityGroup", "ec2:DescribeSecurityGroups")
OF_SERVICES = (
    "ec2:CreateVpcEndpointServiceConfiguration",
    "ec2:DeleteVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointServiceConfigurations",
)
OF_ENDPOINTS = OF_SERVICES + (
    "ec2:CreateVpcEndpoint",
    "ec2:DeleteVpcEndpoints",
    "ec2:DescribeVpcEndpoints",
    "ec2:ModifyVpcEndpointServicePermissions",
)


def question(switch, asks, calls, cost="nothing"):
    """Declares the function as a question; it returns the value of the switch."""

    def declare(ask):
        QUESTIONS.append(Question(switch, asks, tuple(sorted(set(calls))), cost, ask))
        return ask

    return declare


@question("describe_lag_s", "How long does describe miss a new security group?", OF_GROUPS)
def describe_lag(probe):
    with probe.group() as group:

        def shown():
            return code(probe.ec2.describe_security_groups, GroupIds=[group]) is None

        return probe.surely(shown, "group shown", seconds=120, every=0.25)


@question("tag_lag_s", "How long does a filter miss the tags of a new security group?", OF_GROUPS)
def tag_lag(probe):
    with probe.group() as group:
        filters = [{"Name": f"tag:{pair['Key']}", "Values": [pair["Value"]]} for pair in pairs(probe.run)]

        def shown():
            listed = probe.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
            return group in [one["GroupId"] for one in listed]

        return probe.surely(shown, "group found by its tag", seconds=120, every=0.25)


@question(
    "authorize_is_atomic",
    "Does one rule that exists keep the others of its call from being added?",
    (*OF_GROUPS, "ec2:AuthorizeSecurityGroupIngress"),
)
def atomic(probe):
    with probe.group() as group:

        def authorize(*cidrs):
            permissions = [RULE | {"IpRanges": [{"CidrIp": cidr} for cidr in cidrs]}]
            return code(probe.ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=permissions)

        def shown():
            listed = probe.ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [group]}])
            groups = listed["SecurityGroups"]
            return {one["CidrIp"] for each in groups for rule in each["IpPermissions"] for one in rule["IpRanges"]}

        authorize("10.0.0.0/16")
        probe.surely(lambda: "10.0.0.0/16" in shown(), "first rule shown")
        if (refused := authorize("10.0.0.0/16", "10.1.0.0/16")) != "InvalidPermission.Duplicate":
            raise Unclear(f"not refused as a duplicate: {refused}")
        return probe.until(lambda: "10.1.0.0/16" in shown(), seconds=30) is None


@question(
    "spent_token_is_refused",
    "Is a client token refused once what it made is deleted?",
    OF_SERVICES,
)
def spent_token(probe):
    token = probe.run
    first, _ = probe.create_service(ClientToken=token)
    probe.delete_service(first)
    try:
        second, _ = probe.create_service(ClientToken=token)
    except ClientError as error:
        if error.response["Error"]["Code"] != "IdempotentParameterMismatch":
            raise Unclear(error.response["Error"]["Code"]) from error
        return True
    probe.delete_service(second)
    if second == first:
        raise Unclear("neither: the deleted service is the answer")
    return False


@question("subnets_are_required", "Is an endpoint without subnets refused?", OF_ENDPOINTS, ENDPOINT_COST)
def subnets(probe):
    with probe.service() as (service, name):
        endpoint, _ = probe.create_endpoint(service, name)
        if endpoint is not None:
            probe.delete_endpoint(endpoint)
        return endpoint is None


@question(
    "zone_swap_is_refused",
    "Is one change refused that removes a subnet and adds another of its zone?",
    (*OF_ENDPOINTS, "ec2:ModifyVpcEndpoint"),
    ENDPOINT_COST,
)
def zone_swap(probe):
    old, new, _ = probe.base.subnets
    with probe.endpoint() as (_, endpoint):
        swap = {"VpcEndpointId": endpoint, "RemoveSubnetIds": [old], "AddSubnetIds": [new]}
        refused = code(probe.ec2.modify_vpc_endpoint, **swap)
        probe.surely(lambda: probe.endpoint_state(endpoint) == "available", "endpoint available again")
        return refused is not None


@question(
    "connection_filter_is_refused",
    "Is the documented filter vpc-endpoint-id of connections refused?",
    (*OF_ENDPOINTS, "ec2:DescribeVpcEndpointConnections"),
    ENDPOINT_COST,
)
def connection_filter(probe):
    with probe.endpoint() as (_, endpoint):
        filters = [{"Name": "vpc-endpoint-id", "Values": [endpoint]}]
        return code(probe.ec2.describe_vpc_endpoint_connections, Filters=filters) is not None


@question(
    "deleting_blocks_delete",
    "Does a connection that is deleting keep its endpoint service?",
    (*OF_ENDPOINTS, "ec2:DescribeVpcEndpointConnections"),
    ENDPOINT_COST,
)
def deleting_blocks(probe):
    with probe.endpoint() as (service, endpoint):
        probe.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
        before = probe.connection_state(service, endpoint)
        refused = probe.try_delete_service(service)
        if before != "deleting":
            raise Unclear(f"the connection is {before}")
        return refused is not None


@question(
    "batch_error_has_messages",
    "Is a refused batch of records answered by an InvalidChangeBatch element?",
    ("route53:ChangeResourceRecordSets",),
)
def batch_error(probe):
    bodies = []

    def keep(response_dict, **_):
        bodies.append(response_dict["body"])

    events = probe.client("route53").meta.events
    events.register("before-parse.route53.ChangeResourceRecordSets", keep)
    try:
        refused = probe.change_record("DELETE", "none")
    finally:
        events.unregister("before-parse.route53.ChangeResourceRecordSets", keep)
    if refused is None or b"InvalidChangeBatch" not in bodies[-1]:
        raise Unclear(f"not refused: {refused}")
    return b"<InvalidChangeBatch" in bodies[-1]


@question(
    "zone_busy_s",
    "How long does a change keep its zone from the next one?",
    ("route53:ChangeResourceRecordSets",),
)
def zone_busy(probe):
    def change(action, name):
        """Whether a change is accepted."""
        refused = probe.change_record(action, name)
        if refused not in (None, "PriorRequestNotComplete"):
            raise Unclear(refused)
        return refused is None

    probe.surely(lambda: change("CREATE", "one"), "first record")
    took = probe.surely(lambda: change("CREATE", "two"), "second record", seconds=120, every=0.05)
    for name in ("one", "two"):
        probe.surely(lambda name=name: change("DELETE", name), "record deleted")
    return took


@question(
    "gone_principal_shows_id",
    "Is an allowed role that is gone shown by its unique id?",
    (
        *OF_SERVICES,
        "ec2:DescribeVpcEndpointServicePermissions",
        "ec2:ModifyVpcEndpointServicePermissions",
        "iam:CreateRole",
        "iam:DeleteRole",
    ),
)
def gone_principal(probe):
    name = f"{probe.run}-b"
    with probe.service() as (service, _):
        role = probe.roles.make(name)
        try:
            principals = {"ServiceId": service, "AddAllowedPrincipals": [role]}
            probe.ec2.modify_vpc_endpoint_service_permissions(**principals)
        finally:
            probe.roles.remove(name)

        def shown():
            listed = probe.ec2.describe_vpc_endpoint_service_permissions(ServiceId=service)["AllowedPrincipals"]
            return [one["Principal"] for one in listed]

        if probe.until(lambda: shown() != [role], seconds=600) is None:
            return False
        if len(shown()) != 1 or not shown()[0].startswith("AROA"):
            raise Unclear(f"it is shown as {shown()}")
        return True


@question(
    "ec2_expired_code",
    "Which code has EC2 for an expired session?",
    ("ec2:DescribeVpcs", "sts:AssumeRole"),
    "nothing, but 15 minutes",
)
def expired(probe):
    made = probe.client("sts").assume_role(RoleArn=probe.base.role, RoleSessionName=TAG, DurationSeconds=900)
    keys = made["Credentials"]
    probe.clock.sleep(960)
    session = (keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    return code(probe.client("ec2", session).describe_vpcs)


@question(
    "rejected_listed_s",
    "How long is a rejected connection listed after its endpoint is gone?",
    (*OF_ENDPOINTS, "ec2:DescribeVpcEndpointConnections", "ec2:RejectVpcEndpointConnections"),
    f"{ENDPOINT_COST}; up to two hours",
)
def rejected(probe):
    with probe.endpoint() as (service, endpoint):
        probe.ec2.reject_vpc_endpoint_connections(ServiceId=service, VpcEndpointIds=[endpoint])
        probe.surely(lambda: probe.connection_state(service, endpoint) == "rejected", "connection rejected")
        probe.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
        probe.surely(lambda: probe.endpoint_state(endpoint) is None, "endpoint gone")
        gone = lambda: probe.connection_state(service, endpoint) is None
        return probe.surely(gone, "connection no longer listed", seconds=7200, every=10)
