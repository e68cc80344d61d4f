"""The provider's side: Private Link Services, who sees them, and the connections to them."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.network import models as net

from errors import refused
from private_link import (
    FRONTEND_ID,
    GROUND,
    GUEST_VNET_ID,
    LB_ID,
    NAT_ID,
    PLS_ID,
    approved_for,
    decide,
    put_endpoint,
    put_service,
    service,
    state,
    visible_to,
)
from world import GROUP, GUEST, GUEST_SUBSCRIPTION, LOCATION

GUEST_SUBNET = f"{GUEST_VNET_ID}/subnets/workers"


@pytest.fixture
def network(world):
    world.seed(resources=GROUND)
    return world.network()


@pytest.fixture
def guest(world):
    return world.network(subscription=GUEST_SUBSCRIPTION, credential=world.credential(GUEST))


def test_service_lives_from_create_to_delete(network):
    services = network.private_link_services
    made = put_service(network, enable_proxy_protocol=True, fqdns=["api.example.com"])
    assert (made.id, made.provisioning_state, made.enable_proxy_protocol) == (PLS_ID, "Succeeded", True)
    assert made.fqdns == ["api.example.com"]
    assert made.load_balancer_frontend_ip_configurations[0].id == FRONTEND_ID
    assert (made.ip_configurations[0].name, made.ip_configurations[0].primary) == ("nat", True)
    assert made.private_endpoint_connections == []
    assert made.network_interfaces[0].id.rsplit("/", 1)[-1].startswith("pls.nic.")
    assert [s.name for s in services.list(GROUP)] == [s.name for s in services.list_by_subscription()] == ["pls"]
    services.begin_delete(GROUP, "pls").result()
    with pytest.raises(ResourceNotFoundError):
        services.get(GROUP, "pls")


def test_alias_stays_over_an_update_and_is_new_after_a_new_creation(network):
    first = put_service(network).alias
    assert put_service(network, visibility=visible_to("*")).alias == first
    network.private_link_services.begin_delete(GROUP, "pls").result()
    assert put_service(network).alias != first


def test_update_of_tags_alone_is_over_at_once(world, network):
    put_service(network)
    body = service()
    body.tags = {"a": "1"}
    started = len(world.journal())
    assert network.private_link_services.begin_create_or_update(GROUP, "pls", body).result().tags == {"a": "1"}
    # The write, one look at the operation, and the final read.
    assert [call["method"] for call in world.journal()[started:]] == ["PUT", "GET", "GET"]


def test_nat_address_is_on_the_network_interface(network):
    made = put_service(network)
    nic = network.network_interfaces.get(GROUP, made.network_interfaces[0].id.rsplit("/", 1)[-1])
    assert nic.ip_configurations[0].private_ip_address == "10.0.1.4"
    assert refused(network.network_interfaces.begin_delete, GROUP, nic.name)[0] == 400


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"frontend": FRONTEND_ID + "-missing"}, "InvalidResourceReference"),
        ({"nat": f"{GUEST_VNET_ID}/subnets/workers"}, "LinkedAuthorizationFailed"),
        ({"nat": NAT_ID.replace("/nat", "/nodes")}, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled"),
        ({"location": "eastus"}, None),
    ],
    ids=["frontend", "linked-scope", "policies", "region"],
)
def test_bad_service_is_refused(network, change, code):
    body = service(frontend=change.get("frontend", FRONTEND_ID))
    body.location = change.get("location", LOCATION)
    body.ip_configurations[0].subnet.id = change.get("nat", NAT_ID)
    status, said = refused(network.private_link_services.begin_create_or_update, GROUP, "pls", body)
    assert status == (403 if code == "LinkedAuthorizationFailed" else 400)
    assert code in (None, said)


def test_more_services_of_a_load_balancer_than_its_quota_are_refused(world):
    more = [{"name": f"f{n}", "properties": {"subnet": {"id": NAT_ID.replace("/nat", "/nodes")}}} for n in range(3)]
    balancer = GROUND[0] | {"properties": {"frontendIPConfigurations": more}}
    world.seed(resources=[balancer, GROUND[1]], subscription={"quotas": {"pls_per_load_balancer": 2}})
    network = world.network()
    for n in range(2):
        put_service(network, f"pls{n}", frontend=f"{LB_ID}/frontendIPConfigurations/f{n}")
    third = service(frontend=f"{LB_ID}/frontendIPConfigurations/f2")
    assert refused(network.private_link_services.begin_create_or_update, GROUP, "pls2", third)[0] == 400


def test_load_balancer_in_use_cannot_be_deleted(network):
    put_service(network)
    error = refused(network.load_balancers.begin_delete, GROUP, "lb")
    assert error == (400, "CannotDeleteLoadBalancerWithPrivateLinkService")


def test_connection_is_approved_and_rejected_and_removed(network, guest):
    alias = put_service(network, visibility=visible_to("*")).alias
    put_endpoint(guest, "pe", alias, subnet=GUEST_SUBNET, manual=True)
    services = network.private_link_services
    (connection,) = services.list_private_endpoint_connections(GROUP, "pls")
    assert connection.name.startswith("pe.")
    assert connection.private_endpoint.id.endswith("/privateEndpoints/pe")
    assert connection.link_identifier.isdigit()
    assert [c.name for c in services.get(GROUP, "pls").private_endpoint_connections] == [connection.name]

    decide(network, connection, "Approved")
    assert state(guest.private_endpoints.get(GROUP, "pe")) == "Approved"
    decide(network, connection, "Rejected")
    assert state(guest.private_endpoints.get(GROUP, "pe")) == "Rejected"

    blocked = "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted"
    assert refused(services.begin_delete, GROUP, "pls") == (400, blocked)
    services.begin_delete_private_endpoint_connection(GROUP, "pls", connection.name).result()
    assert list(services.list_private_endpoint_connections(GROUP, "pls")) == []
    assert state(guest.private_endpoints.get(GROUP, "pe")) == "Disconnected"
    services.begin_delete(GROUP, "pls").result()


def test_unknown_connection_is_not_found(network):
    put_service(network)
    services = network.private_link_services
    with pytest.raises(ResourceNotFoundError):
        services.get_private_endpoint_connection(GROUP, "pls", "nobody")


def test_visibility_of_an_alias_can_be_checked(network, guest):
    hidden = put_service(network).alias

    def visible(alias, by_group=False):
        question = net.CheckPrivateLinkServiceVisibilityRequest(private_link_service_alias=alias)
        services = guest.private_link_services
        if by_group:
            check = services.begin_check_private_link_service_visibility_by_resource_group
            return check(LOCATION, GROUP, question).result().visible
        return services.begin_check_private_link_service_visibility(LOCATION, question).result().visible

    assert not visible(hidden)
    put_service(network, visibility=visible_to(GUEST_SUBSCRIPTION))
    assert visible(hidden)
    assert visible(hidden, by_group=True)


def test_services_that_approve_by_themselves_are_listed(network, guest):
    services = guest.private_link_services
    assert list(services.list_auto_approved_private_link_services(LOCATION)) == []
    everyone = {"visibility": visible_to(GUEST_SUBSCRIPTION), "auto_approval": approved_for(GUEST_SUBSCRIPTION)}
    put_service(network, **everyone)
    assert [s.private_link_service for s in services.list_auto_approved_private_link_services(LOCATION)] == [PLS_ID]
    by_group = services.list_auto_approved_private_link_services_by_resource_group(LOCATION, GROUP)
    assert [s.private_link_service for s in by_group] == [PLS_ID]
