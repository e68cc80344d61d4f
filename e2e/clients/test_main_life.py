"""The main life: a service behind a load balancer is published, reached by alias from another tenant, named, and taken down."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.network import models as net
from azure.mgmt.privatedns import models as dns

from world import GROUP, GUEST, GUEST_SUBSCRIPTION, LOCATION, VNET_ID, eventually

GUEST_VNET = f"/subscriptions/{GUEST_SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/guest"
ZONE = "cluster.hypershift.local"


@pytest.mark.parametrize("api_version", [None, "2024-05-01", "2023-11-01"], ids=["newest", "2024-05-01", "2023-11-01"])
def test_whole_life(world, api_version):
    version = {"api_version": api_version} if api_version else {}
    provider = world.network()
    guest = world.network(subscription=GUEST_SUBSCRIPTION, credential=world.credential(GUEST))
    guest_dns = world.dns(subscription=GUEST_SUBSCRIPTION, credential=world.credential(GUEST))

    service = publish(provider, version)
    endpoint = connect(guest, service.alias, version)
    approve(provider, version)
    endpoint = guest.private_endpoints.get(GROUP, "pe", expand="networkInterfaces", **version)
    assert endpoint.manual_private_link_service_connections[0].private_link_service_connection_state.status == "Approved"
    address = endpoint.network_interfaces[0].ip_configurations[0].private_ip_address
    assert address == "10.1.0.4"
    name_it(guest_dns, address)

    reach = f"/reachable?vnet={GUEST_VNET}&name=api.{ZONE}"
    assert world.control("GET", reach)["address"] == address

    take_down(provider, guest, guest_dns, version)
    assert not world.control("GET", reach)["ok"]
    versions = {call["api_version"] for call in world.journal() if "/privateLinkServices/" in call["path"]}
    assert versions == {api_version or "2026-03-01"}
    left = [r["id"] for r in world.control("GET", "/resources") if not is_seeded(r["id"])]
    assert left == []


def is_seeded(resource_id):
    last = resource_id.rsplit("/", 1)[-1]
    return last in {GROUP, "vnet", "nodes", "guest", "workers"} or "/providers/Microsoft.Network/" not in resource_id


def publish(network, version):
    """A frontend, a NAT subnet, and the Private Link Service between them."""
    subnet = net.SubResource(id=f"{VNET_ID}/subnets/nodes")
    frontend = net.FrontendIPConfiguration(name="api", subnet=subnet, private_ip_allocation_method="Dynamic")
    balancer = net.LoadBalancer(
        location=LOCATION, sku=net.LoadBalancerSku(name="Standard"), frontend_ip_configurations=[frontend]
    )
    balancer = network.load_balancers.begin_create_or_update(GROUP, "lb", balancer, **version).result()
    assert balancer.frontend_ip_configurations[0].private_ip_address == "10.0.0.4"

    nat = net.Subnet(address_prefix="10.0.1.0/24", private_link_service_network_policies="Disabled")
    nat = network.subnets.begin_create_or_update(GROUP, "vnet", "nat", nat, **version).result()
    service = net.PrivateLinkService(
        location=LOCATION,
        load_balancer_frontend_ip_configurations=[net.FrontendIPConfiguration(id=balancer.frontend_ip_configurations[0].id)],
        ip_configurations=[net.PrivateLinkServiceIpConfiguration(name="nat", subnet=net.Subnet(id=nat.id), primary=True)],
        visibility=net.PrivateLinkServicePropertiesVisibility(subscriptions=["*"]),
    )
    service = network.private_link_services.begin_create_or_update(GROUP, "pls", service, **version).result()
    assert service.provisioning_state == "Succeeded"
    assert service.alias.startswith("pls.") and service.alias.endswith(".westus2.azure.privatelinkservice")
    return service


def connect(network, alias, version):
    connection = net.PrivateLinkServiceConnection(
        name="conn", private_link_service_id=alias, request_message="please"
    )
    endpoint = net.PrivateEndpoint(
        location=LOCATION,
        subnet=net.Subnet(id=f"{GUEST_VNET}/subnets/workers"),
        manual_private_link_service_connections=[connection],
    )
    poller = network.private_endpoints.begin_create_or_update(GROUP, "pe", endpoint, **version)
    assert poller.status() == "InProgress"
    endpoint = poller.result()
    assert endpoint.provisioning_state == "Succeeded"
    assert endpoint.manual_private_link_service_connections[0].private_link_service_connection_state.status == "Pending"
    return endpoint


def approve(network, version):
    (connection,) = network.private_link_services.list_private_endpoint_connections(GROUP, "pls", **version)
    assert connection.private_link_service_connection_state.status == "Pending"
    connection.private_link_service_connection_state = net.PrivateLinkServiceConnectionState(
        status="Approved", description="known"
    )
    answer = network.private_link_services.update_private_endpoint_connection(GROUP, "pls", connection.name, connection, **version)
    assert answer.private_link_service_connection_state.status == "Approved"
    # The SDK takes this call for a synchronous one; Azure goes on after the answer.
    assert answer.provisioning_state == "Updating"
    services = network.private_link_services
    eventually(lambda: services.get_private_endpoint_connection(GROUP, "pls", connection.name, **version).provisioning_state == "Succeeded")


def name_it(client, address):
    zone = client.private_zones.begin_create_or_update(GROUP, ZONE, dns.PrivateZone(location="global")).result()
    assert zone.number_of_record_sets == 1
    link = dns.VirtualNetworkLink(
        location="global", virtual_network=dns.SubResource(id=GUEST_VNET), registration_enabled=False
    )
    link = client.virtual_network_links.begin_create_or_update(GROUP, ZONE, "link", link).result()
    assert link.virtual_network_link_state == "Completed"
    records = dns.RecordSet(ttl=300, a_records=[dns.ARecord(ipv4_address=address)])
    records = client.record_sets.create_or_update(GROUP, ZONE, "A", "api", records)
    assert records.fqdn == f"api.{ZONE}."


def take_down(provider, guest, guest_dns, version):
    guest_dns.record_sets.delete(GROUP, ZONE, "A", "api")
    guest_dns.virtual_network_links.begin_delete(GROUP, ZONE, "link").result()
    guest_dns.private_zones.begin_delete(GROUP, ZONE).result()
    guest.private_endpoints.begin_delete(GROUP, "pe", **version).result()
    provider.private_link_services.begin_delete(GROUP, "pls", **version).result()
    with pytest.raises(ResourceNotFoundError):
        provider.private_link_services.get(GROUP, "pls", **version)
    provider.load_balancers.begin_delete(GROUP, "lb", **version).result()
    provider.subnets.begin_delete(GROUP, "vnet", "nat", **version).result()
