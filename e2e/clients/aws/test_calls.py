"""Single calls by boto3: rules, tags, pages, identities, error codes."""

import base64
import json
import time
from functools import partial

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cloud import CONSUMER, REGION, ROLE, SUBNETS, VPC, ZONE, code, seed


def test_rules_of_both_directions(cloud):
    ec2 = cloud.client("ec2")
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=VPC)["GroupId"]
    rule = {"IpProtocol": "udp", "FromPort": 53, "ToPort": 53, "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[rule])
    shown = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert shown["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group
    assert code(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[rule]) == "InvalidPermission.Duplicate"
    assert ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[rule])["Return"]
    assert ec2.revoke_security_group_egress(GroupId=group, IpPermissions=[rule])["Return"]


def test_tags_are_added(cloud):
    ec2 = cloud.client("ec2")
    ec2.create_tags(Resources=[VPC, SUBNETS[0]], Tags=[{"Key": "k", "Value": "v"}])
    found = ec2.describe_subnets(Filters=[{"Name": "tag:k", "Values": ["v"]}])["Subnets"]
    assert [subnet["SubnetId"] for subnet in found] == SUBNETS[:1]
    assert ec2.describe_vpcs(VpcIds=[VPC])["Vpcs"][0]["Tags"] == [{"Key": "k", "Value": "v"}]


def test_zones_are_found(cloud):
    route53 = cloud.client("route53")
    assert route53.get_hosted_zone(Id=ZONE)["VPCs"] == [{"VPCRegion": REGION, "VPCId": VPC}]
    assert route53.list_hosted_zones_by_name(DNSName="one.hypershift.local")["HostedZones"][0]["Id"].endswith(ZONE)
    by_vpc = route53.list_hosted_zones_by_vpc(VPCId=VPC, VPCRegion=REGION)["HostedZoneSummaries"]
    assert by_vpc[0]["Owner"] == {"OwningAccount": CONSUMER}


def test_identities(cloud):
    sts = cloud.client("sts")
    assert sts.get_caller_identity()["Account"] == CONSUMER
    keys = sts.assume_role(RoleArn=ROLE, RoleSessionName="one")["Credentials"]
    session = cloud.client("ec2", keys["AccessKeyId"], keys["SessionToken"], keys["SecretAccessKey"])
    assert session.describe_vpcs()["Vpcs"]
    cloud.control("POST", "/clock", {"freeze": True, "advance_s": 3500})
    assert session.describe_vpcs()["Vpcs"], "within the hour, signed by real time"
    cloud.control("POST", "/clock", {"advance_s": 200})
    assert code(session.describe_vpcs) == "RequestExpired"


def test_web_identity_is_called_unsigned(cloud):
    arguments = {"RoleArn": ROLE, "RoleSessionName": "one", "WebIdentityToken": "not.a.token"}
    nobody = cloud.client("sts", key="AKIANOBODY")
    assert code(nobody.assume_role_with_web_identity, **arguments) == "InvalidIdentityToken"


class Issuer:
    """An issuer of web identity tokens, as the guest's API server is one."""

    URL = "https://issuer.example/one"

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @staticmethod
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    def jwks(self):
        numbers = self.key.public_key().public_numbers()
        n, e = (self.part(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": n, "e": e}]}

    def token(self, subject, lasts=600):
        head = {"alg": "RS256", "kid": "k", "typ": "JWT"}
        claims = {"iss": self.URL, "sub": subject, "aud": ["openshift"], "exp": int(time.time()) + lasts}
        signed = ".".join(self.part(json.dumps(each).encode()) for each in (head, claims))
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{self.part(signature)}"


def test_web_identity_gets_a_session(cloud):
    issuer, subject = Issuer(), "system:serviceaccount:kube-system:control-plane-operator"
    everything = seed()
    consumer = everything["accounts"][1]
    consumer["oidc_providers"] = [{"issuer": issuer.URL, "jwks": issuer.jwks()}]
    trusted = {"issuer": issuer.URL, "subject": subject, "audience": "openshift"}
    consumer["roles"][0]["web_identities"] = [trusted]
    cloud.control("PUT", "/seed", everything)
    sts = cloud.client("sts", key="AKIANOBODY")
    assume = partial(sts.assume_role_with_web_identity, RoleArn=ROLE, RoleSessionName="one")
    answer = assume(WebIdentityToken=issuer.token(subject))
    shown = [answer[name] for name in ("SubjectFromWebIdentityToken", "Audience", "Provider")]
    assert shown == [subject, "openshift", issuer.URL]
    keys = answer["Credentials"]
    session = cloud.client("ec2", keys["AccessKeyId"], keys["SessionToken"], keys["SecretAccessKey"])
    assert session.describe_vpcs()["Vpcs"]
    assert code(assume, WebIdentityToken=issuer.token("somebody")) == "AccessDenied"
    assert code(assume, WebIdentityToken=issuer.token(subject, -1)) == "ExpiredTokenException"
    assert code(assume, WebIdentityToken=Issuer().token(subject)) == "InvalidIdentityToken"


def test_principals(cloud):
    service, _ = cloud.endpoint_service()
    provider = cloud.provider("ec2")
    provider.modify_vpc_endpoint_service_permissions(ServiceId=service, AddAllowedPrincipals=[ROLE])
    pages = provider.get_paginator("describe_vpc_endpoint_service_permissions").paginate(ServiceId=service)
    shown = [each["Principal"] for page in pages for each in page["AllowedPrincipals"]]
    assert shown == [ROLE, f"arn:aws:iam::{CONSUMER}:root"]


@pytest.mark.parametrize(
    ("service", "call", "arguments", "expected", "status"),
    [
        ("ec2", "describe_vpcs", {"VpcIds": ["vpc-00000000"]}, "InvalidVpcID.NotFound", 400),
        ("ec2", "describe_subnets", {"SubnetIds": ["subnet-00000000"]}, "InvalidSubnetID.NotFound", 400),
        ("ec2", "describe_security_groups", {"GroupIds": ["sg-00000000"]}, "InvalidGroup.NotFound", 400),
        ("ec2", "describe_vpc_endpoints", {"VpcEndpointIds": ["vpce-00000000"]}, "InvalidVpcEndpointId.NotFound", 400),
        ("ec2", "describe_vpcs", {"DryRun": True}, "DryRunOperation", 412),
        ("elbv2", "describe_load_balancers", {"Names": ["none"]}, "LoadBalancerNotFound", 400),
        ("route53", "get_hosted_zone", {"Id": "ZNONE"}, "NoSuchHostedZone", 404),
        ("route53", "get_change", {"Id": "CNONE"}, "NoSuchChange", 404),
        ("sts", "assume_role", {"RoleArn": f"{ROLE}-none-at-all", "RoleSessionName": "one"}, "AccessDenied", 403),
    ],
)
def test_error_codes(cloud, service, call, arguments, expected, status):
    with pytest.raises(ClientError) as refused:
        getattr(cloud.client(service), call)(**arguments)
    response = refused.value.response
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (expected, status)
    assert response["ResponseMetadata"]["RequestId"]
