"""Network security groups with rules, route tables with routes, public IP addresses."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.network import models as net

from world import GROUP, LOCATION


def rule(priority, **changes):
    properties = {
        "protocol": "Tcp",
        "source_address_prefix": "*",
        "source_port_range": "*",
        "destination_address_prefix": "10.0.0.0/16",
        "destination_port_range": "6443",
        "access": "Allow",
        "direction": "Inbound",
        "priority": priority,
    }
    return net.SecurityRule(**properties | changes)


def test_security_group_lives_from_create_to_delete(network):
    groups = network.network_security_groups
    inline = rule(100)
    inline.name = "api"
    made = groups.begin_create_or_update(GROUP, "nsg", net.NetworkSecurityGroup(location=LOCATION, security_rules=[inline])).result()
    assert (made.provisioning_state, made.security_rules[0].name) == ("Succeeded", "api")
    assert made.security_rules[0].id == f"{made.id}/securityRules/api"
    assert {r.name for r in made.default_security_rules} >= {"AllowVnetInBound", "DenyAllInBound", "DenyAllOutBound"}
    assert [g.name for g in groups.list(GROUP)] == [g.name for g in groups.list_all()] == ["nsg"]
    assert groups.update_tags(GROUP, "nsg", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    groups.begin_delete(GROUP, "nsg").result()
    with pytest.raises(ResourceNotFoundError):
        groups.get(GROUP, "nsg")


def test_rules_are_written_one_by_one(network):
    network.network_security_groups.begin_create_or_update(GROUP, "nsg", net.NetworkSecurityGroup(location=LOCATION)).result()
    rules = network.security_rules
    made = rules.begin_create_or_update(GROUP, "nsg", "api", rule(100)).result()
    assert (made.name, made.priority, made.provisioning_state) == ("api", 100, "Succeeded")
    assert rules.get(GROUP, "nsg", "api").destination_port_range == "6443"
    assert [r.name for r in rules.list(GROUP, "nsg")] == ["api"]
    assert [r.name for r in network.network_security_groups.get(GROUP, "nsg").security_rules] == ["api"]
    with pytest.raises(HttpResponseError) as conflict:
        rules.begin_create_or_update(GROUP, "nsg", "other", rule(100, destination_port_range="22")).result()
    assert conflict.value.error.code == "SecurityRuleConflict"
    rules.begin_delete(GROUP, "nsg", "api").result()
    assert list(rules.list(GROUP, "nsg")) == []


def test_default_rules_are_read(network):
    network.network_security_groups.begin_create_or_update(GROUP, "nsg", net.NetworkSecurityGroup(location=LOCATION)).result()
    defaults = {r.name: r for r in network.default_security_rules.list(GROUP, "nsg")}
    assert defaults["DenyAllInBound"].priority == 65500
    assert network.default_security_rules.get(GROUP, "nsg", "AllowVnetInBound").access == "Allow"


def test_route_table_with_routes(network):
    tables, routes = network.route_tables, network.routes
    inline = net.Route(name="default", address_prefix="0.0.0.0/0", next_hop_type="Internet")
    made = tables.begin_create_or_update(GROUP, "table", net.RouteTable(location=LOCATION, routes=[inline])).result()
    assert made.routes[0].id == f"{made.id}/routes/default"
    appliance = net.Route(address_prefix="10.8.0.0/16", next_hop_type="VirtualAppliance", next_hop_ip_address="10.0.0.9")
    assert routes.begin_create_or_update(GROUP, "table", "nva", appliance).result().next_hop_ip_address == "10.0.0.9"
    assert {r.name for r in routes.list(GROUP, "table")} == {"default", "nva"}
    assert routes.get(GROUP, "table", "nva").next_hop_type == "VirtualAppliance"
    routes.begin_delete(GROUP, "table", "nva").result()
    assert [r.name for r in tables.get(GROUP, "table").routes] == ["default"]
    assert tables.update_tags(GROUP, "table", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    assert [t.name for t in tables.list(GROUP)] == [t.name for t in tables.list_all()] == ["table"]
    tables.begin_delete(GROUP, "table").result()
    assert list(tables.list(GROUP)) == []


def test_public_address_of_a_load_balancer(network):
    addresses = network.public_ip_addresses
    body = net.PublicIPAddress(
        location=LOCATION, sku=net.PublicIPAddressSku(name="Standard"), public_ip_allocation_method="Static"
    )
    made = addresses.begin_create_or_update(GROUP, "ip", body).result()
    assert made.provisioning_state == "Succeeded"
    assert [a.name for a in addresses.list(GROUP)] == [a.name for a in addresses.list_all()] == ["ip"]
    assert addresses.update_tags(GROUP, "ip", net.TagsObject(tags={"a": "1"})).tags == {"a": "1"}
    frontend = net.FrontendIPConfiguration(name="public", public_ip_address=net.PublicIPAddress(id=made.id))
    balancer = net.LoadBalancer(
        location=LOCATION, sku=net.LoadBalancerSku(name="Standard"), frontend_ip_configurations=[frontend]
    )
    balancer = network.load_balancers.begin_create_or_update(GROUP, "lb", balancer).result()
    assert addresses.get(GROUP, "ip").ip_configuration.id == balancer.frontend_ip_configurations[0].id
    with pytest.raises(HttpResponseError) as in_use:
        addresses.begin_delete(GROUP, "ip").result()
    assert in_use.value.error.code == "PublicIPAddressCannotBeDeleted"
    network.load_balancers.begin_delete(GROUP, "lb").result()
    addresses.begin_delete(GROUP, "ip").result()
    assert list(addresses.list(GROUP)) == []
