"""The simulator and moto as a second opinion, step by step: each difference is known, with its reason."""


import boto3
from actions import names
from botocore import xform_name
from cloud import CONSUMER, NLB, PROVIDER, REGION, ROLE, SUBNETS, VPC, ZONE, seed
from moto import mock_aws
from opinion import TAGS, World

API = ["api.one.hypershift.local.", 300, ["x.example"]]
APPS = ".apps.one.hypershift.local."


def endpoint(state):
    return {"state": state, "subnets": ["<subnet 0>"], "groups": ["<group>"], "tags": TAGS}


def of_awssim(cloud):
    everything = seed()
    mine = everything["resources"]
    for resource in mine:
        resource["id"] = resource["id"].replace(PROVIDER, CONSUMER)
        if resource["id"].endswith(SUBNETS[2]):
            resource["zone_id"] = "use1-az1"
    balancer = NLB.replace(PROVIDER, CONSUMER)
    other = balancer.replace("aone", "atwo").replace("abcdef", "abcde0")
    mine.append({"id": other, "vpc": VPC, "subnets": SUBNETS[:2]})
    cloud.control("PUT", "/seed", everything)
    # Nothing moves on by itself, however slow the machine is.
    cloud.control("POST", "/clock", {"freeze": True})
    given = {"vpc": VPC, "subnets": SUBNETS, "balancer": balancer, "balancer_name": "aone", "other": other}
    given |= {"zone": ZONE, "role": ROLE, "root": f"arn:aws:iam::{CONSUMER}:root"}
    given["account"], given["key"] = CONSUMER, ("AKIACONSUMER", "secret of AKIACONSUMER")

    def settle():
        cloud.control("POST", "/clock", {"advance_s": 1})

    settle()
    return World(given, settle, endpoint_url=cloud.aws, verify=cloud.ca).run()


def of_moto():
    ec2, elbv2, route53 = (boto3.client(service, region_name=REGION) for service in ("ec2", "elbv2", "route53"))
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{at}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"][
            "SubnetId"
        ]
        for at, zone in enumerate("aba")
    ]
    made = [elbv2.create_load_balancer(Name=name, Type="network", Subnets=subnets[:2]) for name in ("aone", "atwo")]
    balancer, other = (each["LoadBalancers"][0]["LoadBalancerArn"] for each in made)
    zone = route53.create_hosted_zone(
        Name="one.hypershift.local",
        CallerReference="one",
        HostedZoneConfig={"PrivateZone": True},
        VPC={"VPCRegion": REGION, "VPCId": vpc},
    )["HostedZone"]["Id"].split("/")[-1]
    given = {
        "vpc": vpc,
        "subnets": subnets,
        "balancer": balancer,
        "balancer_name": "aone",
        "other": other,
        "zone": zone,
    }
    given |= {"role": "arn:aws:iam::123456789012:role/cpo", "root": "arn:aws:iam::123456789012:root"}
    return World(given | {"account": "123456789012", "key": ("AKIAMOTO", "secret")}, lambda: None).run()


# What moto 5.2 does otherwise, by what AWS is known to do: each step with AWS's outcome and moto's.
DIFFERENCES = {
    "connections are missing": {
        "connections": ([["<endpoint>", "available"]], "NotImplementedError"),
        "connection is accepted again": ([["<endpoint>", "InvalidState"]], "NotImplementedError"),
        "connection is rejected": ([], "NotImplementedError"),
        "service with a connection is deleted": ([["<service>", "ExistingVpcEndpointConnections"]], []),
        "service is deleted": ([], [["<service>", "InvalidVpcEndpointService.NotFound"]]),
    },
    "filters are ignored, or unknown": {
        "services by name": (1, 5),
        "unknown filter of services": ("InvalidParameterValue", "done"),
        "endpoints by vpc-endpoint-id": (1, "FilterNotImplementedError"),
        "endpoints by service-name": (1, 3),
        "endpoints by vpc-id": (1, 4),
        "one unknown name of two": ("LoadBalancerNotFound", [["<balancer>", "network", "active", 2]]),
    },
    "a load balancer has one service, and a token one result": {
        "second service of a load balancer": ("InvalidParameter", "done"),
        "same token": ("<service>", "<another>"),
        "same token, other parameters": ("IdempotentParameterMismatch", "done"),
        "endpoint by the same token": ("<endpoint>", "<another>"),
    },
    "an endpoint's network interfaces have its groups": {
        "interfaces of the endpoint": ([["<subnet 0>", "<vpc>", ["<group>"], "in-use"]], []),
    },
    "states take their time, and names have the region": {
        "endpoint": (endpoint("pending"), endpoint("available")),
        "deleted endpoint": (["deleting"], ["deleted"]),
        "deleted endpoint later": ("InvalidVpcEndpointId.NotFound", ["deleted"]),
        "names of the endpoint": (True, False),
    },
    "what is wrong is refused": {
        "endpoint of an unknown service": ("InvalidServiceName", "done"),
        "two subnets of a zone": ("DuplicateSubnetsInSameZone", "done"),
        "second subnet of a zone is added": ("DuplicateSubnetsInSameZone", "done"),
        "tag of AWS": ("InvalidParameterValue", "done"),
        "tag twice": ("InvalidParameterValue", "done"),
        "wrong key": ("AuthFailure", "done"),
        "wrong secret": ("SignatureDoesNotMatch", "done"),
        "role by a wrong token": ("InvalidIdentityToken", "done"),
        "dry run": ("DryRunOperation", "done"),
        "unknown endpoint is deleted": ([["vpce-00000000000000000", "InvalidVpcEndpointId.NotFound"]], []),
    },
    "what is in use stays": {
        "load balancer in use is deleted": ("ResourceInUse", "done"),
        "group in use is deleted": ("DependencyViolation", "done"),
        "group is deleted": ("done", "InvalidGroup.NotFound"),
    },
    "a batch of records is checked and atomic, and an asterisk escaped": {
        "record that exists": ("InvalidChangeBatch", True),
        "record of another value": ("InvalidChangeBatch", True),
        "batch with a wrong change": ("InvalidChangeBatch", "InvalidInput"),
        "all records": ([API, ["\\052" + APPS, 300, ["x.example"]]], [["*" + APPS, 300, ["x.example"]]]),
        "records from a name": ([["\\052" + APPS, 300, ["x.example"]]], [["*" + APPS, 300, ["x.example"]]]),
    },
    "the answer to a create shows tags, as documented": {"group": (TAGS, None)},
}

# Members that moto's answers have and the simulator's have not.
LEFT_OUT = {
    "what subnets are for machines": {
        ("ec2 describe_subnets", ".Subnets.AssignIpv6AddressOnCreation"),
        ("ec2 describe_subnets", ".Subnets.Ipv6Native"),
        ("ec2 describe_subnets", ".Subnets.PrivateDnsNameOptionsOnLaunch"),
        ("ec2 describe_subnets", ".Subnets.PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsAAAARecord"),
        ("ec2 describe_subnets", ".Subnets.PrivateDnsNameOptionsOnLaunch.EnableResourceNameDnsARecord"),
        ("ec2 describe_subnets", ".Subnets.PrivateDnsNameOptionsOnLaunch.HostnameType"),
    },
    "session policies": {("sts assume_role", ".PackedPolicySize")},
}


def test_moto_differs_where_it_is_known_to(cloud):
    with mock_aws():
        moto = of_moto()
    awssim = of_awssim(cloud)
    assert awssim.outcomes.keys() == moto.outcomes.keys()
    called = {tuple(call.split()) for call in awssim.members}
    assert called == {(service, xform_name(action)) for service, action in names()}
    steps = {step: (awssim.outcomes[step], moto.outcomes[step]) for step in awssim.outcomes}
    different = {step: pair for step, pair in steps.items() if pair[0] != pair[1]}
    assert different == {step: pair for row in DIFFERENCES.values() for step, pair in row.items()}
    refused = "sts assume_role_with_web_identity"
    left_out = {
        (call, member)
        for call, members in moto.members.items()
        for member in members - awssim.members[call]
        if call != refused
    }
    assert left_out == set().union(*LEFT_OUT.values())
