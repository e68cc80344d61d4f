"""Both sides of a private link, ready made: seeded, not created, where a test is about something else."""

from azure.mgmt.network import models as net

from world import GROUP, GUEST_SUBSCRIPTION, LOCATION, PROVIDER_ID, VNET_ID, eventually

LB_ID = f"{PROVIDER_ID}/loadBalancers/lb"
FRONTEND_ID = f"{LB_ID}/frontendIPConfigurations/api"
PLS_ID = f"{PROVIDER_ID}/privateLinkServices/pls"
NAT_ID = f"{VNET_ID}/subnets/nat"
NODES_ID = f"{VNET_ID}/subnets/nodes"
GUEST_GROUP_ID = f"/subscriptions/{GUEST_SUBSCRIPTION}/resourceGroups/{GROUP}"
GUEST_VNET_ID = f"{GUEST_GROUP_ID}/providers/Microsoft.Network/virtualNetworks/guest"

# A frontend, and a subnet that a Private Link Service may take its NAT addresses from.
GROUND = [
    {
        "id": LB_ID,
        "location": LOCATION,
        "sku": {"name": "Standard"},
        "properties": {"frontendIPConfigurations": [{"name": "api", "properties": {"subnet": {"id": NODES_ID}}}]},
    },
    {
        "id": NAT_ID,
        "properties": {"addressPrefix": "10.0.1.0/24", "privateLinkServiceNetworkPolicies": "Disabled"},
    },
]


def service(frontend=FRONTEND_ID, **properties):
    return net.PrivateLinkService(
        location=LOCATION,
        load_balancer_frontend_ip_configurations=[net.FrontendIPConfiguration(id=frontend)],
        ip_configurations=[net.PrivateLinkServiceIpConfiguration(name="nat", subnet=net.Subnet(id=NAT_ID), primary=True)],
        **properties,
    )


def visible_to(*subscriptions):
    return net.PrivateLinkServicePropertiesVisibility(subscriptions=list(subscriptions))


def approved_for(*subscriptions):
    return net.PrivateLinkServicePropertiesAutoApproval(subscriptions=list(subscriptions))


def put_service(network, name="pls", **properties):
    body = service(**properties)
    return network.private_link_services.begin_create_or_update(GROUP, name, body).result()


def endpoint(target, subnet=NODES_ID, manual=False, message=None, **properties):
    """An endpoint in the provider's own VNet, or in `subnet`."""
    connection = net.PrivateLinkServiceConnection(name="conn", private_link_service_id=target, request_message=message)
    kind = "manual_private_link_service_connections" if manual else "private_link_service_connections"
    return net.PrivateEndpoint(location=LOCATION, subnet=net.Subnet(id=subnet), **{kind: [connection]}, **properties)


def put_endpoint(network, name, target, **options):
    body = endpoint(target, **options)
    return network.private_endpoints.begin_create_or_update(GROUP, name, body).result()


def state(made):
    (connection,) = (made.private_link_service_connections or []) + (made.manual_private_link_service_connections or [])
    return connection.private_link_service_connection_state.status


def decide(network, connection, status):
    """Approves or rejects, and waits until Azure has carried it out."""
    services = network.private_link_services
    connection.private_link_service_connection_state = net.PrivateLinkServiceConnectionState(status=status)
    services.update_private_endpoint_connection(GROUP, "pls", connection.name, connection)

    def settled():
        now = services.get_private_endpoint_connection(GROUP, "pls", connection.name)
        return now.provisioning_state == "Succeeded" and now.private_link_service_connection_state.status == status

    eventually(settled)
