"""Load balancers with their frontends, backend pools, probes and rules, and the network interfaces behind them."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.network import models as net

from errors import refused
from world import GROUP, LOCATION, PROVIDER_ID, VNET_ID

LB_ID = f"{PROVIDER_ID}/loadBalancers/lb"
NODES = net.Subnet(id=f"{VNET_ID}/subnets/nodes")


def frontend(name, **properties):
    return net.FrontendIPConfiguration(name=name, subnet=NODES, **properties)


def put(network, **properties):
    balancer = net.LoadBalancer(location=LOCATION, sku=net.LoadBalancerSku(name="Standard"), **properties)
    return network.load_balancers.begin_create_or_update(GROUP, "lb", balancer).result()


def nic(network, name="nic", **properties):
    configuration = net.NetworkInterfaceIPConfiguration(name="ip", subnet=NODES, **properties)
    body = net.NetworkInterface(location=LOCATION, ip_configurations=[configuration])
    return network.network_interfaces.begin_create_or_update(GROUP, name, body).result()


def test_balancer_lives_from_create_to_delete(network):
    made = put(network, frontend_ip_configurations=[frontend("api")])
    assert (made.provisioning_state, made.sku.name) == ("Succeeded", "Standard")
    (front,) = made.frontend_ip_configurations
    assert front.id == f"{LB_ID}/frontendIPConfigurations/api"
    assert (front.private_ip_address, front.private_ip_allocation_method) == ("10.0.0.4", "Dynamic")
    balancers = network.load_balancers
    assert [b.name for b in balancers.list(GROUP)] == [b.name for b in balancers.list_all()] == ["lb"]
    assert balancers.update_tags(GROUP, "lb", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    balancers.begin_delete(GROUP, "lb").result()
    with pytest.raises(ResourceNotFoundError):
        balancers.get(GROUP, "lb")


def test_frontend_keeps_its_address_when_another_is_added(network):
    first = put(network, frontend_ip_configurations=[frontend("one")])
    static = frontend("three", private_ip_address="10.0.0.100", private_ip_allocation_method="Static")
    more = [*first.frontend_ip_configurations, frontend("two"), static]
    second = put(network, frontend_ip_configurations=more)
    addresses = {f.name: f.private_ip_address for f in second.frontend_ip_configurations}
    assert addresses == {"one": "10.0.0.4", "two": "10.0.0.5", "three": "10.0.0.100"}
    frontends = network.load_balancer_frontend_ip_configurations
    assert {f.name for f in frontends.list(GROUP, "lb")} == set(addresses)
    assert frontends.get(GROUP, "lb", "two").private_ip_address == "10.0.0.5"


def test_rules_refer_to_frontend_pool_and_probe(network):
    reference = net.SubResource
    front, pool, probe = (
        f"{LB_ID}/{part}" for part in ("frontendIPConfigurations/api", "backendAddressPools/nodes", "probes/healthz")
    )
    made = put(
        network,
        frontend_ip_configurations=[frontend("api")],
        backend_address_pools=[net.BackendAddressPool(name="nodes")],
        probes=[net.Probe(name="healthz", protocol="Tcp", port=30000, interval_in_seconds=5)],
        load_balancing_rules=[
            net.LoadBalancingRule(
                name="api",
                protocol="Tcp",
                frontend_port=6443,
                backend_port=30000,
                frontend_ip_configuration=reference(id=front),
                backend_address_pool=reference(id=pool),
                probe=reference(id=probe),
            )
        ],
    )
    rule_id = f"{LB_ID}/loadBalancingRules/api"
    assert made.load_balancing_rules[0].id == rule_id
    assert [r.id for r in made.frontend_ip_configurations[0].load_balancing_rules] == [rule_id]
    assert [r.id for r in made.backend_address_pools[0].load_balancing_rules] == [rule_id]
    assert network.load_balancer_load_balancing_rules.get(GROUP, "lb", "api").backend_port == 30000
    assert [r.name for r in network.load_balancer_load_balancing_rules.list(GROUP, "lb")] == ["api"]
    assert network.load_balancer_probes.get(GROUP, "lb", "healthz").port == 30000
    assert [p.name for p in network.load_balancer_probes.list(GROUP, "lb")] == ["healthz"]
    assert list(network.load_balancer_outbound_rules.list(GROUP, "lb")) == []
    assert list(network.inbound_nat_rules.list(GROUP, "lb")) == []


def test_pool_is_written_by_its_own_id(network):
    put(network, frontend_ip_configurations=[frontend("api")])
    pools = network.load_balancer_backend_address_pools
    made = pools.begin_create_or_update(GROUP, "lb", "nodes", net.BackendAddressPool()).result()
    assert (made.id, made.provisioning_state) == (f"{LB_ID}/backendAddressPools/nodes", "Succeeded")
    assert [p.name for p in pools.list(GROUP, "lb")] == ["nodes"]
    assert [p.name for p in network.load_balancers.get(GROUP, "lb").backend_address_pools] == ["nodes"]
    pools.begin_delete(GROUP, "lb", "nodes").result()
    with pytest.raises(ResourceNotFoundError):
        pools.get(GROUP, "lb", "nodes")


def test_interface_in_a_pool_is_seen_from_both_sides(network):
    made = put(
        network,
        frontend_ip_configurations=[frontend("api")],
        backend_address_pools=[net.BackendAddressPool(name="nodes")],
    )
    (pool,) = made.backend_address_pools
    interface = nic(network, load_balancer_backend_address_pools=[net.BackendAddressPool(id=pool.id)])
    members = network.load_balancer_backend_address_pools.get(GROUP, "lb", "nodes").backend_ip_configurations
    assert [member.id for member in members] == [interface.ip_configurations[0].id]
    assert [n.name for n in network.load_balancer_network_interfaces.list(GROUP, "lb")] == ["nic"]
    assert [b.name for b in network.network_interface_load_balancers.list(GROUP, "nic")] == ["lb"]


def test_interface_lives_from_create_to_delete(network):
    made = nic(network)
    (configuration,) = made.ip_configurations
    assert (made.provisioning_state, configuration.private_ip_address, configuration.primary) == ("Succeeded", "10.0.0.4", True)
    interfaces = network.network_interfaces
    assert [n.name for n in interfaces.list(GROUP)] == [n.name for n in interfaces.list_all()] == ["nic"]
    assert interfaces.update_tags(GROUP, "nic", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    configurations = network.network_interface_ip_configurations
    assert [c.name for c in configurations.list(GROUP, "nic")] == ["ip"]
    assert configurations.get(GROUP, "nic", "ip").private_ip_address == "10.0.0.4"
    # Its address is free again when it is gone.
    interfaces.begin_delete(GROUP, "nic").result()
    with pytest.raises(ResourceNotFoundError):
        interfaces.get(GROUP, "nic")
    static = nic(network, "other", private_ip_address="10.0.0.4", private_ip_allocation_method="Static")
    assert static.ip_configurations[0].private_ip_address == "10.0.0.4"


def test_address_in_use_is_refused(network):
    nic(network)
    with pytest.raises(HttpResponseError) as taken:
        nic(network, "other", private_ip_address="10.0.0.4", private_ip_allocation_method="Static")
    assert (taken.value.status_code, taken.value.error.code) == (400, "PrivateIPAddressInUse")


def test_basic_balancer_is_refused_for_a_private_link_service(world, network):
    basic = net.LoadBalancer(
        location=LOCATION, sku=net.LoadBalancerSku(name="Basic"), frontend_ip_configurations=[frontend("api")]
    )
    network.load_balancers.begin_create_or_update(GROUP, "lb", basic).result()
    nat = net.Subnet(address_prefix="10.0.1.0/24", private_link_service_network_policies="Disabled")
    nat = network.subnets.begin_create_or_update(GROUP, "vnet", "nat", nat).result()
    service = net.PrivateLinkService(
        location=LOCATION,
        load_balancer_frontend_ip_configurations=[net.FrontendIPConfiguration(id=f"{LB_ID}/frontendIPConfigurations/api")],
        ip_configurations=[net.PrivateLinkServiceIpConfiguration(name="nat", subnet=net.Subnet(id=nat.id))],
    )
    status, _code = refused(network.private_link_services.begin_create_or_update, GROUP, "pls", service)
    assert status == 400


def test_nat_rule_and_outbound_rule_of_a_public_frontend(network):
    address = net.PublicIPAddress(
        location=LOCATION, sku=net.PublicIPAddressSku(name="Standard"), public_ip_allocation_method="Static"
    )
    address = network.public_ip_addresses.begin_create_or_update(GROUP, "ip", address).result()
    front = net.SubResource(id=f"{LB_ID}/frontendIPConfigurations/public")
    pool = net.SubResource(id=f"{LB_ID}/backendAddressPools/nodes")
    put(
        network,
        frontend_ip_configurations=[net.FrontendIPConfiguration(name="public", public_ip_address=address)],
        backend_address_pools=[net.BackendAddressPool(name="nodes")],
        outbound_rules=[
            net.OutboundRule(name="out", protocol="All", frontend_ip_configurations=[front], backend_address_pool=pool)
        ],
    )
    assert network.load_balancer_outbound_rules.get(GROUP, "lb", "out").protocol == "All"
    rules = network.inbound_nat_rules
    ssh = net.InboundNatRule(protocol="Tcp", frontend_port=2222, backend_port=22, frontend_ip_configuration=front)
    assert rules.begin_create_or_update(GROUP, "lb", "ssh", ssh).result().provisioning_state == "Succeeded"
    assert rules.get(GROUP, "lb", "ssh").frontend_port == 2222
    rules.begin_delete(GROUP, "lb", "ssh").result()
    assert list(rules.list(GROUP, "lb")) == []
