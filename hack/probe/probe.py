"""What all questions need: things that are made and removed around a question, and waits."""

from contextlib import contextmanager
from itertools import count

from botocore.exceptions import ClientError

from base import TAG, tagged


# They tell about the caller's rights, pace and quotas or about AWS's day, and nothing about the request.
NO_ANSWERS = (
    "AccessDenied",
    "AuthFailure",
    "InternalError",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "Unavailable",
    "UnauthorizedOperation",
)


class Unclear(Exception):
    """AWS has answered neither."""


def telling(code):
    """The code, if it tells about the request."""
    if code in NO_ANSWERS or code.endswith("LimitExceeded"):
        raise Unclear(code)
    return code


def code(call, **arguments):
    """The error code of a call; none if it succeeds."""
    try:
        call(**arguments)
    except ClientError as error:
        return telling(error.response["Error"]["Code"])
    return None


class Probe:
    """How questions are asked. `client` makes boto3's clients that try once, `clock` has `now()` and `sleep()`, `roles`
    has `make()` and `remove()`."""

    def __init__(self, client, clock, roles, base, run):
        self.client, self.clock, self.roles, self.base, self.run = client, clock, roles, base, run
        self.ec2 = client("ec2")
        self.numbers = count()

    def until(self, condition, seconds=900, every=1.0):
        """Waits for a condition. The seconds that it took; none if it took too long."""
        began = self.clock.now()
        while not condition():
            if self.clock.now() - began > seconds:
                return None
            self.clock.sleep(every)
        return self.clock.now() - began

    def surely(self, condition, what, seconds=900, every=1.0):
        """Waits for a condition that has to come. The seconds that it took."""
        took = self.until(condition, seconds, every)
        if took is None:
            raise Unclear(f"{what}: not in {seconds} s")
        return took

    @contextmanager
    def group(self):
        arguments = {"GroupName": f"{self.run}-{next(self.numbers)}", "Description": TAG, "VpcId": self.base.vpc}
        made = self.ec2.create_security_group(**arguments, TagSpecifications=tagged("security-group", self.run))
        try:
            yield made["GroupId"]
        finally:
            self.ec2.delete_security_group(GroupId=made["GroupId"])

    def shown_service(self, service):
        """The endpoint service as it is listed; none if it is not."""
        filters = [{"Name": "service-id", "Values": [service]}]
        listed = self.ec2.describe_vpc_endpoint_service_configurations(Filters=filters)["ServiceConfigurations"]
        return listed[0] if listed else None

    def create_service(self, **arguments):
        arguments |= {"NetworkLoadBalancerArns": [self.base.balancer], "AcceptanceRequired": False}
        arguments["TagSpecifications"] = tagged("vpc-endpoint-service", self.run)
        made = self.ec2.create_vpc_endpoint_service_configuration(**arguments)["ServiceConfiguration"]

        def is_available():
            shown = self.shown_service(made["ServiceId"])
            return shown is not None and shown["ServiceState"] == "Available"

        self.surely(is_available, "endpoint service available")
        return made["ServiceId"], made["ServiceName"]

    def try_delete_service(self, service):
        """Deletes an endpoint service. The code of its refusal; none if it is being deleted."""
        failed = self.ec2.delete_vpc_endpoint_service_configurations(ServiceIds=[service]).get("Unsuccessful", [])
        codes = [one["Error"]["Code"] for one in failed]
        return telling(codes[0]) if codes and not codes[0].endswith(".NotFound") else None

    def delete_service(self, service):
        self.surely(lambda: self.try_delete_service(service) is None, "endpoint service deleted")
        self.surely(lambda: self.shown_service(service) is None, "endpoint service gone")

    @contextmanager
    def service(self):
        service, name = self.create_service()
        try:
            yield service, name
        finally:
            self.delete_service(service)

    def endpoint_state(self, endpoint):
        """The state of an endpoint, in lower case; none if it is not listed."""
        filters = [{"Name": "vpc-endpoint-id", "Values": [endpoint]}]
        listed = self.ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
        return listed[0]["State"].lower() if listed else None

    def create_endpoint(self, service, name, **arguments):
        """Creates an endpoint. Its id, or the code of the refusal."""
        partition, account = (self.base.role.split(":")[at] for at in (1, 4))
        principals = [f"arn:{partition}:iam::{account}:root"]
        self.ec2.modify_vpc_endpoint_service_permissions(ServiceId=service, AddAllowedPrincipals=principals)
        arguments |= {"VpcEndpointType": "Interface", "VpcId": self.base.vpc, "ServiceName": name}
        arguments["TagSpecifications"] = tagged("vpc-endpoint", self.run)
        made = {}

        def create():
            made.clear()
            try:
                made["id"] = self.ec2.create_vpc_endpoint(**arguments)["VpcEndpoint"]["VpcEndpointId"]
            except ClientError as error:
                made["code"] = telling(error.response["Error"]["Code"])
            # A service takes endpoints only a moment after it is available.
            return made.get("code") != "InvalidServiceName"

        self.surely(create, "endpoint taken")
        return made.get("id"), made.get("code")

    def delete_endpoint(self, endpoint):
        self.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
        self.surely(lambda: self.endpoint_state(endpoint) in (None, "deleted"), "endpoint deleted")

    @contextmanager
    def endpoint(self):
        """An endpoint service with an endpoint that is available."""
        with self.service() as (service, name):
            endpoint, refused = self.create_endpoint(service, name, SubnetIds=self.base.subnets[:1])
            if endpoint is None:
                raise Unclear(f"no endpoint: {refused}")
            try:
                self.surely(lambda: self.endpoint_state(endpoint) == "available", "endpoint available")
                yield service, endpoint
            finally:
                self.delete_endpoint(endpoint)

    def connection_state(self, service, endpoint):
        filters = [{"Name": "service-id", "Values": [service]}]
        listed = self.ec2.describe_vpc_endpoint_connections(Filters=filters).get("VpcEndpointConnections", [])
        states = [one["VpcEndpointState"].lower() for one in listed if one["VpcEndpointId"] == endpoint]
        return states[0] if states else None

    def change_record(self, action, name):
        record = {"Name": f"{name}.{self.base.zone_name}", "Type": "CNAME", "TTL": 60}
        record["ResourceRecords"] = [{"Value": "x.example"}]
        batch = {"Changes": [{"Action": action, "ResourceRecordSet": record}]}
        call = self.client("route53").change_resource_record_sets
        return code(call, HostedZoneId=self.base.zone, ChangeBatch=batch)
