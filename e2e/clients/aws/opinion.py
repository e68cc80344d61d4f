"""One script of calls that runs on the simulator and on moto, and what each of them answers to each step."""

import re
from functools import cache

import boto3
import jmespath
from botocore.config import Config
from botocore.exceptions import ClientError

REGION = "us-east-1"
TAGS = [{"Key": "hypershift.openshift.io/cluster-id", "Value": "one"}]
ENDPOINT = "VpcEndpoint.{state: State, subnets: SubnetIds, groups: Groups[].GroupId, tags: Tags}"
RULE = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
NETWORKS = [{"CidrIp": cidr, "Description": "Control plane service"} for cidr in ("10.0.0.0/16", "10.1.0.0/16")]


def members(value, where=""):
    """The paths of the members of an answer."""
    if isinstance(value, list):
        return {path for each in value for path in members(each, where)}
    if isinstance(value, dict):
        inner = {
            path for key, each in value.items() if key != "ResponseMetadata" for path in members(each, f"{where}.{key}")
        }
        return inner | ({where} if where else set())
    return {where}


class World:
    """Where the script runs. `given` has what is there at the start: `account`, `vpc`, `subnets` (zones a, b, a),
    `balancer` and `other` (ARNs, zones a and b), `balancer_name`, `zone`, `role`, `root` (ARNs) and `key` (an access
    key with its secret). `settle` lets what was begun come to its end."""

    def __init__(self, given, settle, **connection):
        self.given, self.settle, self.connection = given, settle, connection
        self.outcomes, self.names, self.members = {}, {}, {}

    @cache
    def client(self, service, key):
        config = Config(retries={"total_max_attempts": 1})
        keys = {"aws_access_key_id": key[0], "aws_secret_access_key": key[1]}
        return boto3.client(service, region_name=REGION, config=config, **keys, **self.connection)

    def plain(self, value):
        """A value without what is another one each time: ids have the names that the script gives."""
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each) for each in value]
        if isinstance(value, str):
            for given, name in self.names.items():
                value = value.replace(given, name)
            return re.sub(r"\bvpce-(svc-)?[0-9a-f]{8,}\b(?<!0{8})", "<another>", value)
        return value

    def name(self, name, value):
        self.names[value] = f"<{name}>"
        return value

    def step(self, name, service, call, shown='`"done"`', key=None, **arguments):
        """Makes a call. What `shown` finds in its answer is the outcome, or the error's code."""
        assert name not in self.outcomes, name
        answer = {}
        try:
            answer = getattr(self.client(service, key or self.given["key"]), call)(**arguments)
            outcome = self.plain(jmespath.search(shown, answer))
        except ClientError as error:
            outcome = error.response["Error"]["Code"]
        except NotImplementedError as error:
            outcome = type(error).__name__
        self.outcomes[name] = outcome
        self.members.setdefault(f"{service} {call}", set()).update(members(answer))
        return answer

    def run(self):
        for name in ("vpc", "zone", "balancer", "other", "account"):
            self.name(name, self.given[name])
        for at, subnet in enumerate(self.given["subnets"]):
            self.name(f"subnet {at}", subnet)
        service, service_name = self.services()
        group = self.groups()
        endpoint = self.endpoints(service_name, group)
        self.tags(group)
        self.records()
        self.identities()
        self.deletions(service, group, endpoint)
        return self

    def services(self):
        step, balancer = self.step, self.given["balancer"]
        shown = "LoadBalancers[].[LoadBalancerArn, Type, State.Code, length(AvailabilityZones)]"
        step("load balancer by name", "elbv2", "describe_load_balancers", shown, Names=[self.given["balancer_name"]])
        names = [self.given["balancer_name"], "none"]
        step("one unknown name of two", "elbv2", "describe_load_balancers", shown, Names=names)
        create = "create_vpc_endpoint_service_configuration"
        specification = [{"ResourceType": "vpc-endpoint-service", "Tags": TAGS}]
        arguments = {"NetworkLoadBalancerArns": [balancer], "AcceptanceRequired": False, "ClientToken": "one"}
        arguments["TagSpecifications"] = specification
        step("dry run", "ec2", create, DryRun=True, NetworkLoadBalancerArns=[self.given["other"]])
        shown = "ServiceConfiguration.[AcceptanceRequired, NetworkLoadBalancerArns, Tags]"
        made = step("service", "ec2", create, shown, **arguments)["ServiceConfiguration"]
        service = self.name("service", made["ServiceId"])
        step("same token", "ec2", create, "ServiceConfiguration.ServiceId", **arguments)
        step(
            "same token, other parameters",
            "ec2",
            create,
            **arguments | {"NetworkLoadBalancerArns": [self.given["other"]]},
        )
        step("second service of a load balancer", "ec2", create, NetworkLoadBalancerArns=[balancer])
        self.settle()
        describe = "describe_vpc_endpoint_service_configurations"
        shown = "ServiceConfigurations[].[ServiceId, ServiceState, AcceptanceRequired, NetworkLoadBalancerArns, Tags]"
        step("service by id", "ec2", describe, shown, ServiceIds=[service])
        filters = [{"Name": "service-name", "Values": [made["ServiceName"]]}]
        step("services by name", "ec2", describe, "length(ServiceConfigurations)", Filters=filters)
        step("unknown filter of services", "ec2", describe, Filters=[{"Name": "color", "Values": ["red"]}])
        step("unknown service", "ec2", describe, ServiceIds=["vpce-svc-00000000000000000"])
        modify, principals = "modify_vpc_endpoint_service_permissions", [self.given["role"], self.given["root"]]
        step("principals are added", "ec2", modify, "ReturnValue", ServiceId=service, AddAllowedPrincipals=principals)
        step("principal is removed", "ec2", modify, ServiceId=service, RemoveAllowedPrincipals=principals[:1])
        describe, shown = "describe_vpc_endpoint_service_permissions", "AllowedPrincipals[].Principal"
        step("principals", "ec2", describe, shown, ServiceId=service)
        modify = "modify_vpc_endpoint_service_configuration"
        step("acceptance", "ec2", modify, "Return", ServiceId=service, AcceptanceRequired=True)
        step("no acceptance", "ec2", modify, "Return", ServiceId=service, AcceptanceRequired=False)
        return service, made["ServiceName"]

    def groups(self):
        step, create = self.step, "create_security_group"
        specification = [{"ResourceType": "security-group", "Tags": TAGS}]
        arguments = {"GroupName": "g", "Description": "d", "VpcId": self.given["vpc"]}
        made = step("group", "ec2", create, "Tags", **arguments, TagSpecifications=specification)
        group = self.name("group", made["GroupId"])
        step("group of the same name", "ec2", create, **arguments)
        self.settle()
        authorize, revoke = "authorize_security_group_ingress", "revoke_security_group_ingress"
        for number, network in enumerate(NETWORKS):
            permissions = [RULE | {"IpRanges": [network]}]
            shown = "SecurityGroupRules[].[CidrIpv4, FromPort, IsEgress, Description]"
            step(f"rule {number}", "ec2", authorize, shown, GroupId=group, IpPermissions=permissions)
        permissions = [RULE | {"Ipv6Ranges": [{"CidrIpv6": "fd00::/8"}]}]
        step("rule of IPv6", "ec2", authorize, "Return", GroupId=group, IpPermissions=permissions)
        both = [RULE | {"IpRanges": [NETWORKS[0] | {"Description": "other"}, {"CidrIp": "10.2.0.0/16"}]}]
        step("one rule of two exists", "ec2", authorize, GroupId=group, IpPermissions=both)
        shown = "SecurityGroups[].[GroupId, GroupName, VpcId, IpPermissions[].[IpProtocol, IpRanges, Ipv6Ranges], Tags]"
        filters = [{"Name": "group-name", "Values": ["g"]}, {"Name": "vpc-id", "Values": [self.given["vpc"]]}]
        step("group with merged rules", "ec2", "describe_security_groups", shown, Filters=filters)
        permissions = [RULE | {"IpRanges": [{"CidrIp": "10.1.0.0/16"}]}]
        step("rule is revoked", "ec2", revoke, "Return", GroupId=group, IpPermissions=permissions)
        permissions = [RULE | {"IpRanges": [{"CidrIp": "10.3.0.0/16"}]}]
        for call in ("authorize_security_group_egress", "revoke_security_group_egress"):
            step(call.replace("_security_group_", " "), "ec2", call, "Return", GroupId=group, IpPermissions=permissions)
        step("unknown group", "ec2", "describe_security_groups", GroupIds=["sg-00000000000000000"])
        return group

    def endpoints(self, service_name, group):
        step, create, subnets = self.step, "create_vpc_endpoint", self.given["subnets"]
        specification = [{"ResourceType": "vpc-endpoint", "Tags": TAGS}]
        arguments = {"VpcEndpointType": "Interface", "VpcId": self.given["vpc"], "ServiceName": service_name}
        step("zones of subnets", "ec2", "describe_subnets", "Subnets[].[SubnetId, VpcId]", SubnetIds=subnets[:2])
        step("unknown subnet", "ec2", "describe_subnets", SubnetIds=["subnet-00000000000000000"])
        step(
            "network",
            "ec2",
            "describe_vpcs",
            "Vpcs[].[VpcId, CidrBlockAssociationSet[].CidrBlock]",
            VpcIds=[self.given["vpc"]],
        )
        unknown = f"com.amazonaws.vpce.{REGION}.vpce-svc-00000000000000000"
        step("endpoint of an unknown service", "ec2", create, **arguments | {"ServiceName": unknown})
        step("two subnets of a zone", "ec2", create, **arguments, SubnetIds=[subnets[0], subnets[2]])
        arguments |= {
            "SubnetIds": subnets[:1],
            "SecurityGroupIds": [group],
            "ClientToken": "e",
            "PrivateDnsEnabled": False,
        }
        arguments["TagSpecifications"] = specification
        made = step("endpoint", "ec2", create, ENDPOINT, **arguments)["VpcEndpoint"]
        endpoint = self.name("endpoint", made["VpcEndpointId"])
        step("endpoint by the same token", "ec2", create, "VpcEndpoint.VpcEndpointId", **arguments)
        self.settle()
        names = [entry["DnsName"] for entry in made.get("DnsEntries", [])]
        regional = [
            name for name in names if name.startswith(f"{endpoint}-") and name.endswith(f".{REGION}.vpce.amazonaws.com")
        ]
        self.outcomes["names of the endpoint"] = bool(names) and len(regional) == len(names)
        describe, shown = "describe_vpc_endpoints", "VpcEndpoints[].[VpcEndpointId, State, VpcId, SubnetIds, Tags]"
        step("endpoint by id", "ec2", describe, shown, VpcEndpointIds=[endpoint])
        for filter, value in (
            ("vpc-endpoint-id", endpoint),
            ("service-name", service_name),
            ("vpc-id", self.given["vpc"]),
        ):
            filters = [{"Name": filter, "Values": [value]}]
            step(f"endpoints by {filter}", "ec2", describe, "length(VpcEndpoints)", Filters=filters)
        filters = [{"Name": "group-id", "Values": [group]}]
        shown = "NetworkInterfaces[].[SubnetId, VpcId, Groups[].GroupId, Status]"
        step("interfaces of the endpoint", "ec2", "describe_network_interfaces", shown, Filters=filters)
        step("unknown endpoint", "ec2", describe, VpcEndpointIds=["vpce-00000000000000000"])
        step(
            "subnet is added", "ec2", "modify_vpc_endpoint", "Return", VpcEndpointId=endpoint, AddSubnetIds=subnets[1:2]
        )
        add = {"VpcEndpointId": endpoint, "AddSubnetIds": subnets[2:3]}
        step("second subnet of a zone is added", "ec2", "modify_vpc_endpoint", **add)
        return endpoint

    def tags(self, group):
        step, create = self.step, "create_tags"
        step("tag", "ec2", create, Resources=[group], Tags=[{"Key": "a", "Value": "b"}])
        step("tag of AWS", "ec2", create, Resources=[group], Tags=[{"Key": "aws:a", "Value": "b"}])
        step("tag twice", "ec2", create, Resources=[group], Tags=[{"Key": "c", "Value": value} for value in "de"])
        filters = [{"Name": "tag:a", "Values": ["b"]}]
        step("groups by tag", "ec2", "describe_security_groups", "SecurityGroups[].GroupId", Filters=filters)

    def records(self):
        step, zone = self.step, self.given["zone"]
        shown = "HostedZones[].[Name, Config.PrivateZone]"
        step("zones", "route53", "list_hosted_zones", shown)
        step("zones by name", "route53", "list_hosted_zones_by_name", shown, DNSName="one.hypershift.local")
        network = {"VPCId": self.given["vpc"], "VPCRegion": REGION}
        by_network = "HostedZoneSummaries[].[HostedZoneId, Name, Owner.OwningAccount]"
        step("zones of the network", "route53", "list_hosted_zones_by_vpc", by_network, **network)
        shown = "[HostedZone.Name, HostedZone.Config.PrivateZone, VPCs]"
        step("zone by id", "route53", "get_hosted_zone", shown, Id=zone)

        def change(name, *changes):
            changes = [
                {
                    "Action": action,
                    "ResourceRecordSet": {
                        "Name": record,
                        "Type": "CNAME",
                        "TTL": 300,
                        "ResourceRecords": [{"Value": value}],
                    },
                }
                for action, record, value in changes
            ]
            arguments = {"HostedZoneId": zone, "ChangeBatch": {"Changes": changes}}
            done = step(name, "route53", "change_resource_record_sets", "ChangeInfo.Status != null", **arguments)
            self.settle()
            return done

        api, apps = "api.one.hypershift.local", "*.apps.one.hypershift.local"
        made = change("records", ("CREATE", api, "x.example"), ("UPSERT", apps, "x.example"))
        step("records are in force", "route53", "get_change", "ChangeInfo.Status", Id=made["ChangeInfo"]["Id"])
        change("record that exists", ("CREATE", api, "y.example"))
        change("record of another value", ("DELETE", api, "y.example"))
        change(
            "batch with a wrong change",
            ("UPSERT", "new.one.hypershift.local", "x"),
            ("DELETE", "no.one.hypershift.local", "x"),
        )
        shown = "ResourceRecordSets[?Type=='CNAME'].[Name, TTL, ResourceRecords[].Value]"
        step("all records", "route53", "list_resource_record_sets", shown, HostedZoneId=zone)
        start = {"StartRecordName": apps, "StartRecordType": "CNAME", "MaxItems": "1"}
        step("records from a name", "route53", "list_resource_record_sets", shown, HostedZoneId=zone, **start)
        change("records are deleted", ("DELETE", api, "x.example"), ("DELETE", apps, "x.example"))
        step("unknown zone", "route53", "list_resource_record_sets", HostedZoneId="Z00000000000000000000")

    def identities(self):
        step, role = self.step, {"RoleArn": self.given["role"], "RoleSessionName": "one"}
        step("identity", "sts", "get_caller_identity", "[length(Account), length(Arn) > `0`]")
        shown = "[Credentials.AccessKeyId, Credentials.SessionToken, AssumedRoleUser.Arn] | length(@)"
        step("role", "sts", "assume_role", shown, **role)
        step("role by a wrong token", "sts", "assume_role_with_web_identity", **role, WebIdentityToken="not.a.token")
        step("wrong key", "ec2", "describe_vpcs", key=("AKIANOBODY", "secret"))
        step("wrong secret", "sts", "get_caller_identity", key=(self.given["key"][0], "another"))

    def deletions(self, service, group, endpoint):
        step = self.step
        filters = [{"Name": "service-id", "Values": [service]}]
        shown = "VpcEndpointConnections[].[VpcEndpointId, VpcEndpointState]"
        step("connections", "ec2", "describe_vpc_endpoint_connections", shown, Filters=filters)
        delete = "delete_vpc_endpoint_service_configurations"
        failed = "Unsuccessful[].[ResourceId, Error.Code]"
        step("unknown service is deleted", "ec2", delete, failed, ServiceIds=["vpce-svc-00000000000000000"])
        step("service with a connection is deleted", "ec2", delete, failed, ServiceIds=[service])
        step("load balancer in use is deleted", "elbv2", "delete_load_balancer", LoadBalancerArn=self.given["balancer"])
        step("group in use is deleted", "ec2", "delete_security_group", GroupId=group)
        connection = {"ServiceId": service, "VpcEndpointIds": [endpoint]}
        step("connection is accepted again", "ec2", "accept_vpc_endpoint_connections", failed, **connection)
        step("connection is rejected", "ec2", "reject_vpc_endpoint_connections", failed, **connection)
        step("endpoint is deleted", "ec2", "delete_vpc_endpoints", failed, VpcEndpointIds=[endpoint])
        shown = "VpcEndpoints[].State"
        step("deleted endpoint", "ec2", "describe_vpc_endpoints", shown, VpcEndpointIds=[endpoint])
        self.settle()
        step("deleted endpoint later", "ec2", "describe_vpc_endpoints", shown, VpcEndpointIds=[endpoint])
        unknown = ["vpce-00000000000000000"]
        step("unknown endpoint is deleted", "ec2", "delete_vpc_endpoints", failed, VpcEndpointIds=unknown)
        step("service is deleted", "ec2", delete, failed, ServiceIds=[service])
        step("group is deleted", "ec2", "delete_security_group", GroupId=group)
        step("group is deleted again", "ec2", "delete_security_group", GroupId=group)
