"""Subscriptions, tenants, providers and permissions: what a client asks before it does anything."""

import pytest
from azure.core import PipelineClient
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.core.rest import HttpRequest
from azure.mgmt.authorization import AuthorizationManagementClient

from world import GROUP, GUEST, GUEST_SUBSCRIPTION, LOCATION, OWNER, READER, SCOPE, STRANGER, SUBSCRIPTION, TENANT, VNET_ID


def test_only_subscriptions_with_a_role_are_listed(world):
    def listed(who):
        client = world.subscriptions(credential=world.credential(who))
        return [subscription.subscription_id for subscription in client.subscriptions.list()]

    assert listed(OWNER) == [SUBSCRIPTION]
    assert listed(READER) == [SUBSCRIPTION]
    assert listed(GUEST) == [GUEST_SUBSCRIPTION]
    assert listed(STRANGER) == []


def test_subscription_says_its_tenant_and_state(world):
    subscription = world.subscriptions().subscriptions.get(SUBSCRIPTION)
    assert subscription.id == f"/subscriptions/{SUBSCRIPTION}"
    assert (subscription.state, subscription.tenant_id) == ("Enabled", TENANT)
    assert subscription.display_name


def test_unknown_subscription_is_not_found(world):
    with pytest.raises(ResourceNotFoundError) as missing:
        world.subscriptions().subscriptions.get("99999999-9999-9999-9999-999999999999")
    assert missing.value.error.code == "SubscriptionNotFound"


def test_locations_of_a_subscription_are_listed(world):
    locations = {location.name: location for location in world.subscriptions().subscriptions.list_locations(SUBSCRIPTION)}
    assert locations[LOCATION].display_name == "West US 2"


def test_tenants_of_the_caller_are_listed(world):
    (tenant,) = world.subscriptions().tenants.list()
    assert (tenant.id, tenant.tenant_id) == (f"/tenants/{TENANT}", TENANT)


def test_network_provider_is_registered_and_names_its_types(resources):
    provider = resources.providers.get("Microsoft.Network")
    assert (provider.namespace, provider.registration_state) == ("Microsoft.Network", "Registered")
    types = {kind.resource_type: kind for kind in provider.resource_types}
    assert {"virtualNetworks", "privateLinkServices", "privateEndpoints", "privateDnsZones"} <= set(types)
    assert "2024-05-01" in types["privateEndpoints"].api_versions
    assert "2024-06-01" in types["privateDnsZones"].api_versions
    assert "Microsoft.Network" in {provider.namespace for provider in resources.providers.list()}


def test_providers_are_known_without_a_subscription_too(resources):
    assert resources.providers.get_at_tenant_scope("Microsoft.Network").namespace == "Microsoft.Network"
    assert "Microsoft.Network" in {provider.namespace for provider in resources.providers.list_at_tenant_scope()}
    types = resources.provider_resource_types.list("Microsoft.Network").value
    assert "privateEndpoints" in {kind.resource_type for kind in types}


def test_unknown_provider_is_refused(resources):
    with pytest.raises(HttpResponseError) as refused:
        resources.providers.get("Microsoft.Nonsense")
    assert (refused.value.status_code, refused.value.error.code) == (404, "InvalidResourceNamespace")


def test_provider_can_be_unregistered_and_registered(world, resources):
    with pytest.raises(ResourceExistsError) as in_use:
        resources.providers.unregister("Microsoft.Network")
    assert in_use.value.status_code == 409
    world.control("DELETE", f"/resources{VNET_ID}")
    gone = resources.providers.unregister("Microsoft.Network")
    assert gone.registration_state in ("Unregistering", "Unregistered")
    back = resources.providers.register("Microsoft.Network")
    assert back.registration_state in ("Registering", "Registered")


def test_write_to_an_unregistered_provider_registers_it(world, resources):
    """The SDK's own policy answers `MissingSubscriptionRegistration` with a registration, and tries again after 10 s."""
    world.seed(subscription={"unregistered": ["Microsoft.Network"]})
    assert world.network().virtual_networks.update_tags(GROUP, "vnet", {"tags": {"a": "1"}}).tags == {"a": "1"}
    assert resources.providers.get("Microsoft.Network").registration_state == "Registered"
    calls = [(call["method"], call.get("code")) for call in world.journal()]
    assert calls == [("PATCH", "MissingSubscriptionRegistration"), ("POST", None), ("GET", None), ("PATCH", None), ("GET", None)]


def test_write_to_an_unregistered_provider_is_refused_until_it_is_registered(world, resources):
    network = world.network()
    network.virtual_networks.begin_delete(GROUP, "vnet").result()
    resources.providers.unregister("Microsoft.Network")
    with pytest.raises(HttpResponseError) as refused:
        network.route_tables.begin_create_or_update(GROUP, "table", {"location": LOCATION})
    assert (refused.value.status_code, refused.value.error.code) == (409, "MissingSubscriptionRegistration")
    resources.providers.register("Microsoft.Network")
    world.clock(advance_s=60)
    assert resources.providers.get("Microsoft.Network").registration_state == "Registered"
    table = network.route_tables.begin_create_or_update(GROUP, "table", {"location": LOCATION}).result()
    assert table.provisioning_state == "Succeeded"


def test_permissions_of_a_scope_are_those_of_the_caller(world):
    def permissions(who):
        client = world.client(AuthorizationManagementClient, SUBSCRIPTION, credential=world.credential(who))
        return client.permissions

    (everything,) = permissions(OWNER).list_for_resource_group(GROUP)
    assert (everything.actions, everything.not_actions) == (["*"], [])
    (reading,) = permissions(READER).list_for_resource_group(GROUP)
    assert reading.actions == ["*/read"]
    on_vnet = permissions(READER).list_for_resource(GROUP, "Microsoft.Network", "", "virtualNetworks", "vnet")
    assert [permission.actions for permission in on_vnet] == [["*/read"]]


def test_description_of_the_cloud_names_its_endpoints(world):
    """What `azure.mgmt.core.tools.get_arm_endpoints` knows of the public clouds has to be asked from another one."""
    with PipelineClient(world.arm, connection_verify=world.ca) as client:
        answer = client.send_request(HttpRequest("GET", f"{world.arm}/metadata/endpoints?api-version=2022-09-01"))
    answer.raise_for_status()
    cloud = answer.json()

    assert cloud["resourceManager"].rstrip("/") == world.arm
    assert cloud["authentication"]["loginEndpoint"].rstrip("/") == world.authority
    assert SCOPE.removesuffix("/.default") in cloud["authentication"]["audiences"]
