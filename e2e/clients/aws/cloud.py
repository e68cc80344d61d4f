"""One simulated AWS as a test has it: a small seed, control calls, and boto3's clients for it."""

import json
import time
import urllib.error
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

PROVIDER, CONSUMER = "111111111111", "222222222222"
REGION = "us-east-1"
VPC = "vpc-0aaaaaaaaaaaaaaaa"
SUBNETS = [f"subnet-0aaaaaaaaaaaaaaa{number}" for number in (1, 2, 3)]
NLB = f"arn:aws:elasticloadbalancing:{REGION}:{PROVIDER}:loadbalancer/net/aone/0123456789abcdef"
ZONE = "Z0000000000000000001"
ROLE = f"arn:aws:iam::{CONSUMER}:role/cpo"


def seed():
    everything = [{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}]

    def account(number, key):
        user = {"name": "u", "access_key_id": key, "secret_access_key": f"secret of {key}", "policies": everything}
        return {"id": number, "users": [user]}

    consumer = account(CONSUMER, "AKIACONSUMER")
    consumer["roles"] = [{"name": "cpo", "trusted": [f"arn:aws:iam::{CONSUMER}:root"], "policies": everything}]
    ec2 = f"arn:aws:ec2:{REGION}:{CONSUMER}"
    resources = [{"id": f"{ec2}:vpc/{VPC}", "cidr": "10.0.0.0/16"}]
    for at, subnet in enumerate(SUBNETS):
        cidr, zone = f"10.0.{at}.0/24", f"use1-az{at + 1}"
        resources.append({"id": f"{ec2}:subnet/{subnet}", "vpc": VPC, "cidr": cidr, "zone_id": zone})
    resources.append({"id": NLB, "vpc": VPC, "subnets": SUBNETS[:2]})
    zone = {"id": f"arn:aws:route53:::hostedzone/{ZONE}", "account": CONSUMER, "name": "one.hypershift.local"}
    resources.append(zone | {"vpcs": [{"id": VPC, "region": REGION}], "comment": "of tests"})
    switches = {"describe_lag_s": 0, "tag_lag_s": 0, "zone_busy_s": 0}
    accounts = [account(PROVIDER, "AKIAPROVIDER"), consumer]
    return {"accounts": accounts, "resources": resources, "switches": switches, "throttle": {"enabled": False}}


def eventually(condition, seconds=20):
    """Waits until the condition holds, for what no waiter waits for."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


class Cloud:
    def __init__(self, addresses, checker):
        self.aws, self.control_url, self.ca = addresses
        self.checker = checker

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.control_url + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from error

    def client(self, service, key="AKIACONSUMER", token=None, secret=None):
        client = boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.aws,
            verify=self.ca,
            aws_access_key_id=key,
            aws_secret_access_key=secret or f"secret of {key}",
            aws_session_token=token,
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.checker.attach(client)
        return client

    def provider(self, service):
        return self.client(service, "AKIAPROVIDER")

    def endpoint_service(self):
        """An endpoint service that the consumer may connect to; its id and name."""
        self.provider("elbv2").get_waiter("load_balancer_available").wait(Names=["aone"], WaiterConfig={"Delay": 1})
        ec2 = self.provider("ec2")
        made = ec2.create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[NLB], AcceptanceRequired=False)
        made = made["ServiceConfiguration"]
        principals = [f"arn:aws:iam::{CONSUMER}:root"]
        ec2.modify_vpc_endpoint_service_permissions(ServiceId=made["ServiceId"], AddAllowedPrincipals=principals)
        ids = [made["ServiceId"]]

        def is_available():
            shown = ec2.describe_vpc_endpoint_service_configurations(ServiceIds=ids)["ServiceConfigurations"]
            return shown[0]["ServiceState"] == "Available"

        eventually(is_available)
        # It takes endpoints only a moment after that.
        self.control("POST", "/clock", {"advance_s": 1})
        return made["ServiceId"], made["ServiceName"]

    def endpoint(self, name, **options):
        options.setdefault("SubnetIds", SUBNETS[:1])
        made = self.client("ec2").create_vpc_endpoint(
            VpcEndpointType="Interface", VpcId=VPC, ServiceName=name, **options
        )
        return made["VpcEndpoint"]


def code(call, **arguments):
    """The error code of a call that has to fail."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    raise AssertionError("succeeded")
