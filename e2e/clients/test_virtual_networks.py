"""VNets, subnets, and what subnets refer to: security groups with rules, route tables with routes."""

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.mgmt.network import models as net

from errors import refused
from world import GROUP, LOCATION, PROVIDER_ID, VNET_ID

NSG_ID = f"{PROVIDER_ID}/networkSecurityGroups/rules"
TABLE_ID = f"{PROVIDER_ID}/routeTables/table"


def subnet(network, name, **properties):
    return network.subnets.begin_create_or_update(GROUP, "vnet", name, net.Subnet(**properties)).result()


def test_vnet_lives_from_create_to_delete(network):
    vnets = network.virtual_networks
    vnet = net.VirtualNetwork(
        location=LOCATION,
        address_space=net.AddressSpace(address_prefixes=["10.9.0.0/16"]),
        dhcp_options=net.DhcpOptions(dns_servers=["10.9.0.5"]),
        subnets=[net.Subnet(name="one", address_prefix="10.9.1.0/24")],
    )
    made = vnets.begin_create_or_update(GROUP, "other", vnet).result()
    assert made.provisioning_state == "Succeeded"
    assert made.resource_guid and made.etag
    assert made.subnets[0].id == made.id + "/subnets/one"
    assert made.dhcp_options.dns_servers == ["10.9.0.5"]
    assert {v.name for v in vnets.list(GROUP)} == {v.name for v in vnets.list_all()} == {"vnet", "other"}
    vnets.begin_delete(GROUP, "other").result()
    with pytest.raises(ResourceNotFoundError) as gone:
        vnets.get(GROUP, "other")
    assert gone.value.error.code == "ResourceNotFound"


def test_tags_of_a_vnet_are_patched(network):
    assert network.virtual_networks.update_tags(GROUP, "vnet", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    vnet = network.virtual_networks.get(GROUP, "vnet")
    assert vnet.tags == {"a": "1"}
    assert [s.name for s in vnet.subnets] == ["nodes"]


def test_vnet_put_drops_the_tags_it_omits(network):
    network.virtual_networks.update_tags(GROUP, "vnet", net.TagsObject(tags={"a": "1"}))
    vnet = network.virtual_networks.get(GROUP, "vnet")
    vnet.tags = None
    assert not network.virtual_networks.begin_create_or_update(GROUP, "vnet", vnet).result().tags


def test_subnet_lives_from_create_to_delete(network):
    made = subnet(network, "one", address_prefix="10.0.1.0/24")
    assert (made.name, made.address_prefix, made.provisioning_state) == ("one", "10.0.1.0/24", "Succeeded")
    assert made.private_endpoint_network_policies == "Disabled"
    assert made.private_link_service_network_policies == "Enabled"
    assert {s.name for s in network.subnets.list(GROUP, "vnet")} == {"nodes", "one"}
    network.subnets.begin_delete(GROUP, "vnet", "one").result()
    with pytest.raises(ResourceNotFoundError):
        network.subnets.get(GROUP, "vnet", "one")


def test_subnet_and_vnet_share_their_etag(network):
    before = network.virtual_networks.get(GROUP, "vnet").etag
    made = subnet(network, "one", address_prefix="10.0.1.0/24")
    vnet = network.virtual_networks.get(GROUP, "vnet")
    assert vnet.etag == made.etag == network.subnets.get(GROUP, "vnet", "nodes").etag != before
    assert made.etag.startswith('W/"')


def test_write_on_an_old_etag_is_a_failed_precondition(network):
    old = network.subnets.get(GROUP, "vnet", "nodes")
    subnet(network, "one", address_prefix="10.0.1.0/24")
    write = network.subnets.begin_create_or_update
    stale = refused(write, GROUP, "vnet", "nodes", old, headers={"If-Match": old.etag})
    assert stale == (412, "PreconditionFailed")
    new = network.subnets.get(GROUP, "vnet", "nodes")
    assert write(GROUP, "vnet", "nodes", new, headers={"If-Match": new.etag}).result().name == "nodes"


def test_subnet_refers_to_its_security_group_and_route_table(world, network):
    world.seed(resources=[{"id": NSG_ID, "location": LOCATION}, {"id": TABLE_ID, "location": LOCATION}])
    refers = {
        "network_security_group": net.NetworkSecurityGroup(id=NSG_ID),
        "route_table": net.RouteTable(id=TABLE_ID),
    }
    made = subnet(network, "one", address_prefix="10.0.1.0/24", **refers)
    assert (made.network_security_group.id, made.route_table.id) == (NSG_ID, TABLE_ID)
    assert [s.id for s in network.network_security_groups.get(GROUP, "rules").subnets] == [made.id]
    assert [s.id for s in network.route_tables.get(GROUP, "table").subnets] == [made.id]
    in_use = "InUseNetworkSecurityGroupCannotBeDeleted"
    assert refused(network.network_security_groups.begin_delete, GROUP, "rules") == (400, in_use)
    assert refused(network.route_tables.begin_delete, GROUP, "table") == (400, "InUseRouteTableCannotBeDeleted")
    # A PUT without them takes them off.
    bare = subnet(network, "one", address_prefix="10.0.1.0/24")
    assert (bare.network_security_group, bare.route_table) == (None, None)
    network.network_security_groups.begin_delete(GROUP, "rules").result()
    network.route_tables.begin_delete(GROUP, "table").result()


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"address_prefix": "10.0.0.128/25"}, "NetcfgSubnetRangesOverlap"),
        ({"address_prefix": "10.7.0.0/24"}, "NetcfgSubnetRangeOutsideVnet"),
        ({"address_prefix": "nonsense"}, "InvalidAddressPrefixFormat"),
        (
            {"address_prefix": "10.0.1.0/24", "network_security_group": net.NetworkSecurityGroup(id=NSG_ID)},
            "InvalidResourceReference",
        ),
    ],
    ids=["overlap", "outside", "malformed", "reference"],
)
def test_bad_subnet_is_refused(network, properties, code):
    assert refused(subnet, network, "bad", **properties) == (400, code)


def test_subnet_in_a_missing_vnet_is_refused(network):
    error = refused(network.subnets.begin_create_or_update, GROUP, "missing", "s", net.Subnet(address_prefix="10.0.1.0/24"))
    assert error == (404, "ParentResourceNotFound")


def test_subnet_in_use_cannot_be_deleted(world, network):
    nic = {
        "id": f"{PROVIDER_ID}/networkInterfaces/nic",
        "location": LOCATION,
        "properties": {"ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": f"{VNET_ID}/subnets/nodes"}}}]},
    }
    world.seed(resources=[nic])
    assert refused(network.subnets.begin_delete, GROUP, "vnet", "nodes") == (400, "InUseSubnetCannotBeDeleted")
    assert refused(network.virtual_networks.begin_delete, GROUP, "vnet")[0] in (400, 409)


def test_second_write_to_a_busy_vnet_is_a_conflict(world, network):
    world.clock(freeze=True)
    first = network.subnets.begin_create_or_update(GROUP, "vnet", "one", net.Subnet(address_prefix="10.0.1.0/24"))
    with pytest.raises(ResourceExistsError) as busy:
        subnet(network, "two", address_prefix="10.0.2.0/24")
    assert (busy.value.status_code, busy.value.error.code) == (409, "AnotherOperationInProgress")
    world.clock(freeze=False)
    first.result()


def test_sdk_waits_by_itself_for_a_vnet_that_answers_429(world, network):
    world.seed(switches={"vnet_busy": "429"})
    world.clock(speed=0.1)
    first = network.subnets.begin_create_or_update(GROUP, "vnet", "one", net.Subnet(address_prefix="10.0.1.0/24"))
    second = network.subnets.begin_create_or_update(GROUP, "vnet", "two", net.Subnet(address_prefix="10.0.2.0/24"))
    world.clock(speed=1)
    assert (first.result().name, second.result().name) == ("one", "two")
    assert "RetryableError" in [call.get("code") for call in world.journal()]


def test_addresses_of_a_vnet_can_be_asked_for(network):
    free = network.virtual_networks.check_ip_address_availability(GROUP, "vnet", ip_address="10.0.0.4")
    assert free.available
    usage = list(network.virtual_networks.list_usage(GROUP, "vnet"))
    assert [u.id for u in usage] == [f"{VNET_ID}/subnets/nodes"]
    # 256 addresses without the 5 that Azure keeps.
    assert (usage[0].current_value, usage[0].limit) == (0, 251)
