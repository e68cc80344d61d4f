"""The life of a private path by boto3: built, found reachable, taken down."""

from cloud import NLB, SUBNETS, VPC, ZONE, code, eventually

RULE = {
    "IpProtocol": "tcp",
    "FromPort": 443,
    "ToPort": 443,
    "IpRanges": [{"CidrIp": "10.0.0.0/16", "Description": "Control plane service"}],
    "Ipv6Ranges": [{"CidrIpv6": "fd00::/8"}],
}
TAGS = [{"Key": "hypershift.openshift.io/cluster-id", "Value": "one"}]


def build(cloud):
    service, name = cloud.endpoint_service()
    ec2 = cloud.client("ec2")
    tags = [{"ResourceType": "security-group", "Tags": TAGS}]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=VPC, TagSpecifications=tags)["GroupId"]
    ec2.get_waiter("security_group_exists").wait(GroupIds=[group], WaiterConfig={"Delay": 1})
    assert len(ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[RULE])["SecurityGroupRules"]) == 2
    tags = [{"ResourceType": "vpc-endpoint", "Tags": TAGS}]
    endpoint = cloud.endpoint(name, SecurityGroupIds=[group], TagSpecifications=tags, ClientToken="t")
    again = cloud.endpoint(name, SecurityGroupIds=[group], TagSpecifications=tags, ClientToken="t")
    assert again["VpcEndpointId"] == endpoint["VpcEndpointId"]
    return service, group, endpoint


def state(cloud, endpoint):
    filters = [{"Name": "vpc-endpoint-id", "Values": [endpoint]}]
    shown = cloud.client("ec2").describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
    return shown[0]["State"] if shown else None


def change(cloud, action, value):
    record = {"Name": "*.apps.one.hypershift.local", "Type": "CNAME", "TTL": 300, "ResourceRecords": [{"Value": value}]}
    batch = {"Comment": "c", "Changes": [{"Action": action, "ResourceRecordSet": record}]}
    route53 = cloud.client("route53")
    info = route53.change_resource_record_sets(HostedZoneId=ZONE, ChangeBatch=batch)["ChangeInfo"]
    route53.get_waiter("resource_record_sets_changed").wait(Id=info["Id"], WaiterConfig={"Delay": 1})


def test_path_is_built_and_taken_down(cloud):
    service, group, endpoint = build(cloud)
    endpoint_id, name = endpoint["VpcEndpointId"], endpoint["DnsEntries"][0]["DnsName"]
    assert endpoint["State"] == "pending" and endpoint["Tags"] == TAGS
    eventually(lambda: state(cloud, endpoint_id) == "available")
    change(cloud, "UPSERT", name)
    cloud.control("PUT", "/services", {"load_balancer": NLB, "name": "ns/private-router"})
    query = f"/reachable?vpc={VPC}&name=console.apps.one.hypershift.local"
    assert cloud.control("GET", query)["ok"]
    provider, ec2 = cloud.provider("ec2"), cloud.client("ec2")
    interfaces = ec2.describe_network_interfaces(Filters=[{"Name": "group-id", "Values": [group]}])["NetworkInterfaces"]
    assert [interface["SubnetId"] for interface in interfaces] == SUBNETS[:1]
    failed = provider.delete_vpc_endpoint_service_configurations(ServiceIds=[service])["Unsuccessful"]
    assert failed[0]["Error"]["Code"] == "ExistingVpcEndpointConnections"
    pages = provider.get_paginator("describe_vpc_endpoint_connections").paginate(
        Filters=[{"Name": "service-id", "Values": [service]}]
    )
    connections = [each["VpcEndpointId"] for page in pages for each in page["VpcEndpointConnections"]]
    assert connections == [endpoint_id]
    assert not provider.reject_vpc_endpoint_connections(ServiceId=service, VpcEndpointIds=connections)["Unsuccessful"]
    assert not provider.delete_vpc_endpoint_service_configurations(ServiceIds=[service])["Unsuccessful"]
    assert not ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint_id])["Unsuccessful"]
    assert code(ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    eventually(lambda: not ec2.describe_network_interfaces()["NetworkInterfaces"])
    assert ec2.delete_security_group(GroupId=group)["GroupId"] == group
    change(cloud, "DELETE", name)
    elbv2 = cloud.provider("elbv2")
    eventually(lambda: not provider.describe_vpc_endpoint_service_configurations()["ServiceConfigurations"])
    elbv2.delete_load_balancer(LoadBalancerArn=NLB)
    elbv2.get_waiter("load_balancers_deleted").wait(LoadBalancerArns=[NLB], WaiterConfig={"Delay": 1})


def test_endpoint_is_modified(cloud):
    _, group, endpoint = build(cloud)
    ec2, endpoint_id = cloud.client("ec2"), endpoint["VpcEndpointId"]
    other = ec2.create_security_group(GroupName="other", Description="d", VpcId=VPC)["GroupId"]
    assert ec2.modify_vpc_endpoint(
        VpcEndpointId=endpoint_id,
        AddSubnetIds=SUBNETS[1:2],
        AddSecurityGroupIds=[other],
        RemoveSecurityGroupIds=[group],
    )["Return"]
    shown = ec2.describe_vpc_endpoints(VpcEndpointIds=[endpoint_id])["VpcEndpoints"][0]
    assert shown["SubnetIds"] == SUBNETS[:2] and [each["GroupId"] for each in shown["Groups"]] == [other]
    assert len(shown["DnsEntries"]) == 3 and len(shown["NetworkInterfaceIds"]) == 2


def test_connection_is_accepted(cloud):
    service, name = cloud.endpoint_service()
    provider = cloud.provider("ec2")
    provider.modify_vpc_endpoint_service_configuration(ServiceId=service, AcceptanceRequired=True)
    endpoint = cloud.endpoint(name)
    assert endpoint["State"] == "pendingAcceptance"
    ids = [endpoint["VpcEndpointId"]]
    assert not provider.accept_vpc_endpoint_connections(ServiceId=service, VpcEndpointIds=ids)["Unsuccessful"]
    eventually(lambda: state(cloud, ids[0]) == "available")
