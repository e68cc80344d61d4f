"""The consumer's side: private endpoints, their addresses, and their DNS zone groups."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.network import models as net

from errors import refused
from private_link import (
    GROUND,
    GUEST_VNET_ID,
    NODES_ID,
    PLS_ID,
    approved_for,
    decide,
    endpoint,
    put_endpoint,
    put_service,
    state,
    visible_to,
)
from world import GROUP, GROUP_ID, GUEST, GUEST_SUBSCRIPTION, LOCATION, eventually

GUEST_SUBNET = f"{GUEST_VNET_ID}/subnets/workers"
ZONE = "example.internal"
ZONE_ID = f"{GROUP_ID}/providers/Microsoft.Network/privateDnsZones/{ZONE}"


@pytest.fixture
def network(world):
    world.seed(resources=[*GROUND, {"id": ZONE_ID, "location": "global"}])
    return world.network()


@pytest.fixture
def guest(world):
    return world.network(subscription=GUEST_SUBSCRIPTION, credential=world.credential(GUEST))


def test_endpoint_by_id_is_approved_at_once(network):
    put_service(network)
    made = put_endpoint(network, "pe", PLS_ID)
    assert (made.provisioning_state, state(made)) == ("Succeeded", "Approved")
    assert made.private_link_service_connections[0].private_link_service_id == PLS_ID
    # Azure names no addresses of an endpoint to a Private Link Service.
    assert made.custom_dns_configs == []
    assert made.network_interfaces[0].id.rsplit("/", 1)[-1].startswith("pe.nic.")
    endpoints = network.private_endpoints
    assert [e.name for e in endpoints.list(GROUP)] == [e.name for e in endpoints.list_by_subscription()] == ["pe"]
    endpoints.begin_delete(GROUP, "pe").result()
    with pytest.raises(ResourceNotFoundError):
        endpoints.get(GROUP, "pe")
    assert list(network.private_link_services.list_private_endpoint_connections(GROUP, "pls")) == []


def test_address_is_shown_when_interfaces_are_expanded(network):
    put_service(network)
    put_endpoint(network, "pe", PLS_ID)
    bare = network.private_endpoints.get(GROUP, "pe")
    assert bare.network_interfaces[0].ip_configurations is None
    expanded = network.private_endpoints.get(GROUP, "pe", expand="networkInterfaces")
    (configuration,) = expanded.network_interfaces[0].ip_configurations
    assert configuration.private_ip_address == "10.0.0.5"
    assert configuration.name.startswith("privateEndpointIpConfig.")
    assert network.network_interfaces.get(GROUP, bare.network_interfaces[0].id.rsplit("/", 1)[-1]).private_endpoint.id == bare.id


def test_endpoint_with_an_address_and_an_interface_name_of_its_own(network):
    put_service(network)
    static = net.PrivateEndpointIPConfiguration(name="static", private_ip_address="10.0.0.77")
    put_endpoint(network, "pe", PLS_ID, ip_configurations=[static], custom_network_interface_name="my-nic")
    assert network.network_interfaces.get(GROUP, "my-nic").ip_configurations[0].private_ip_address == "10.0.0.77"


def test_alias_in_the_automatic_list_is_refused(network):
    alias = put_service(network, visibility=visible_to("*")).alias
    assert refused(network.private_endpoints.begin_create_or_update, GROUP, "pe", endpoint(alias))[0] == 400


def test_invisible_alias_is_refused(network, guest):
    alias = put_service(network).alias
    request = endpoint(alias, subnet=GUEST_SUBNET, manual=True)
    error = refused(guest.private_endpoints.begin_create_or_update, GROUP, "pe", request)
    assert error == (400, "InvalidPrivateLinkServiceId")


def test_manual_request_of_a_trusted_subscription_is_approved_by_itself(network, guest):
    trusted = {"visibility": visible_to(GUEST_SUBSCRIPTION), "auto_approval": approved_for(GUEST_SUBSCRIPTION)}
    alias = put_service(network, **trusted).alias
    made = put_endpoint(guest, "pe", alias, subnet=GUEST_SUBNET, manual=True)
    assert state(made) == "Approved"


def test_service_by_id_of_another_tenant_is_forbidden(network, guest):
    put_service(network)
    error = refused(guest.private_endpoints.begin_create_or_update, GROUP, "pe", endpoint(PLS_ID, subnet=GUEST_SUBNET))
    assert error == (403, "LinkedAuthorizationFailed")


def test_invited_subscription_of_another_tenant_asks_by_hand(network, guest):
    put_service(network, visibility=visible_to("*"), auto_approval=approved_for(GUEST_SUBSCRIPTION))
    error = refused(guest.private_endpoints.begin_create_or_update, GROUP, "pe", endpoint(PLS_ID, subnet=GUEST_SUBNET))
    assert error == (403, "LinkedAuthorizationFailed")
    made = put_endpoint(guest, "pe", PLS_ID, subnet=GUEST_SUBNET, manual=True)
    assert state(made) == "Approved"


def test_request_by_id_from_another_tenant_waits_for_the_owner(network, guest):
    put_service(network, visibility=visible_to(GUEST_SUBSCRIPTION))
    made = put_endpoint(guest, "pe", PLS_ID, subnet=GUEST_SUBNET, manual=True, message="x" * 140)
    assert (made.provisioning_state, state(made)) == ("Succeeded", "Pending")
    (connection,) = network.private_link_services.list_private_endpoint_connections(GROUP, "pls")
    decide(network, connection, "Approved")
    assert state(guest.private_endpoints.get(GROUP, "pe")) == "Approved"


def test_long_request_message_is_refused(network, guest):
    put_service(network, visibility=visible_to("*"))
    request = endpoint(PLS_ID, subnet=GUEST_SUBNET, manual=True, message="x" * 141)
    error = refused(guest.private_endpoints.begin_create_or_update, GROUP, "pe", request)
    assert error == (400, "RequestMessageTooLong")


def test_endpoint_can_lack_an_interface_or_its_address(world, network):
    put_service(network)
    made = put_endpoint(network, "pe", PLS_ID)

    def interfaces():
        return network.private_endpoints.get(GROUP, "pe", expand="networkInterfaces").network_interfaces

    nic = made.network_interfaces[0].id
    subnet = {"subnet": {"id": NODES_ID}, "privateIPAddress": ""}
    bare = {"ipConfigurations": [{"name": "ip", "properties": subnet}]}
    world.control("PUT", f"/resources{nic}", {"location": LOCATION, "properties": bare})
    (shown,) = interfaces()
    assert [ip.private_ip_address for ip in shown.ip_configurations] == [None]

    shown = next(one for one in world.control("GET", f"/resources?prefix={made.id}"))
    shown["properties"]["networkInterfaces"] = []
    world.control("PUT", f"/resources{made.id}", shown)
    assert interfaces() == []
    shown["properties"]["provisioningState"] = "Failed"
    world.control("PUT", f"/resources{made.id}", shown)
    assert network.private_endpoints.get(GROUP, "pe").provisioning_state == "Failed"


def test_lists_come_in_pages(world):
    world.seed(resources=GROUND, switches={"network_page_rows": 2})
    network = world.network()
    put_service(network)
    names = [f"pe{n}" for n in range(3)]
    for name in names:
        put_endpoint(network, name, PLS_ID)
    endpoints, interfaces = network.private_endpoints, network.network_interfaces
    for pages in (endpoints.list(GROUP).by_page(), endpoints.list_by_subscription().by_page()):
        assert [[e.name for e in page] for page in pages] == [names[:2], names[2:]]
    for found in (interfaces.list(GROUP), interfaces.list_all()):
        assert sorted(nic.private_endpoint.id.rsplit("/", 1)[-1] for nic in found if nic.private_endpoint) == names


def test_tags_can_change_and_the_target_cannot(network):
    put_service(network)
    made = put_endpoint(network, "pe", PLS_ID)
    made.tags = {"a": "1"}
    assert network.private_endpoints.begin_create_or_update(GROUP, "pe", made).result().tags == {"a": "1"}
    made.private_link_service_connections[0].private_link_service_id = PLS_ID.replace("/pls", "/another")
    assert refused(network.private_endpoints.begin_create_or_update, GROUP, "pe", made)[0] == 400


def zone_group(*zones):
    configurations = [net.PrivateDnsZoneConfig(name=f"zone{n}", private_dns_zone_id=zone) for n, zone in enumerate(zones)]
    return net.PrivateDnsZoneGroup(private_dns_zone_configs=configurations)


def test_zone_group_lives_from_create_to_delete(network):
    put_service(network)
    put_endpoint(network, "pe", PLS_ID)
    groups = network.private_dns_zone_groups
    made = groups.begin_create_or_update(GROUP, "pe", "default", zone_group(ZONE_ID)).result()
    assert (made.name, made.provisioning_state) == ("default", "Succeeded")
    assert [c.private_dns_zone_id for c in made.private_dns_zone_configs] == [ZONE_ID]
    assert [g.name for g in groups.list("pe", GROUP)] == ["default"]
    assert groups.get(GROUP, "pe", "default").private_dns_zone_configs[0].name == "zone0"
    groups.begin_delete(GROUP, "pe", "default").result()
    with pytest.raises(ResourceNotFoundError):
        groups.get(GROUP, "pe", "default")


def test_second_zone_group_and_missing_zone_are_refused(network):
    put_service(network)
    put_endpoint(network, "pe", PLS_ID)
    write = network.private_dns_zone_groups.begin_create_or_update
    assert refused(write, GROUP, "pe", "default", zone_group(ZONE_ID + ".missing"))[0] in (400, 404)
    write(GROUP, "pe", "default", zone_group(ZONE_ID)).result()
    assert refused(write, GROUP, "pe", "second", zone_group(ZONE_ID))[0] == 400


def test_endpoint_of_a_removed_connection_is_only_a_shell(network):
    put_service(network)
    put_endpoint(network, "pe", PLS_ID)
    services = network.private_link_services
    (connection,) = services.list_private_endpoint_connections(GROUP, "pls")
    services.begin_delete_private_endpoint_connection(GROUP, "pls", connection.name).result()
    services.begin_delete(GROUP, "pls").result()
    eventually(lambda: state(network.private_endpoints.get(GROUP, "pe")) == "Disconnected")
    network.private_endpoints.begin_delete(GROUP, "pe").result()


def test_endpoint_in_a_full_subnet_is_refused(world):
    # A /29 has 8 addresses; Azure keeps 5, and three are taken by the frontends.
    small = NODES_ID.replace("/nodes", "/small")
    fronts = [{"name": name, "properties": {"subnet": {"id": small}}} for name in ("api", "b", "c")]
    balancer = GROUND[0] | {"properties": {"frontendIPConfigurations": fronts}}
    world.seed(resources=[{"id": small, "properties": {"addressPrefix": "10.0.2.0/29"}}, balancer, GROUND[1]])
    network = world.network()
    put_service(network)
    error = refused(network.private_endpoints.begin_create_or_update, GROUP, "pe", endpoint(PLS_ID, subnet=small))
    assert error == (400, "SubnetIsFull")
