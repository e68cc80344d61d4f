"""Resource groups and what is in them, by azure-mgmt-resource."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from world import GROUP, GROUP_ID, LOCATION, PROVIDER_ID, SUBSCRIPTION, VNET_ID

NSG = "Microsoft.Network/networkSecurityGroups"
NETWORK_VERSION = "2024-05-01"


def nsg(name, **more):
    return {"id": f"{PROVIDER_ID}/networkSecurityGroups/{name}", "location": LOCATION, **more}


def test_group_lives_from_create_to_delete(resources):
    groups = resources.resource_groups
    assert not groups.check_existence("new")
    created = groups.create_or_update("new", {"location": LOCATION, "tags": {"a": "1"}})
    assert (created.name, created.location, created.properties.provisioning_state) == ("new", LOCATION, "Succeeded")
    assert created.id == f"/subscriptions/{SUBSCRIPTION}/resourceGroups/new"
    assert groups.check_existence("NEW")
    groups.begin_delete("new").result()
    assert not groups.check_existence("new")
    with pytest.raises(ResourceNotFoundError) as gone:
        groups.get("new")
    assert gone.value.error.code == "ResourceGroupNotFound"


def test_tags_are_replaced_by_put_and_by_patch(resources):
    groups = resources.resource_groups
    groups.create_or_update(GROUP, {"location": LOCATION, "tags": {"a": "1", "b": "2"}})
    assert groups.update(GROUP, {"tags": {"c": "3"}}).tags == {"c": "3"}
    assert groups.get(GROUP).tags == {"c": "3"}
    assert not groups.create_or_update(GROUP, {"location": LOCATION}).tags


def test_location_of_a_group_cannot_change(resources):
    with pytest.raises(ResourceExistsError) as refused:
        resources.resource_groups.create_or_update(GROUP, {"location": "eastus"})
    assert (refused.value.status_code, refused.value.error.code) == (409, "InvalidResourceGroupLocation")


def test_groups_are_listed_in_pages_and_by_tag(resources):
    groups = resources.resource_groups
    for number in range(5):
        groups.create_or_update(f"g{number}", {"location": LOCATION, "tags": {"parity": str(number % 2)}})
    assert {group.name for group in groups.list()} == {GROUP, "g0", "g1", "g2", "g3", "g4"}
    pages = [[group.name for group in page] for page in groups.list(top=4).by_page()]
    assert [name for page in pages for name in page] == [group.name for group in groups.list(top=4)]
    assert len(pages[0]) <= 4
    odd = groups.list(filter="tagName eq 'parity' and tagValue eq '1'")
    assert [group.name for group in odd] == ["g1", "g3"]


def test_bad_group_name_is_refused(resources):
    with pytest.raises(HttpResponseError) as refused:
        resources.resource_groups.create_or_update("ends-with-a-dot.", {"location": LOCATION})
    assert refused.value.status_code == 400


def test_deleting_a_group_takes_all_that_is_in_it(world, resources):
    world.seed(resources=[nsg("rules")])
    world.clock(freeze=True)
    poller = resources.resource_groups.begin_delete(GROUP)
    assert resources.resource_groups.get(GROUP).properties.provisioning_state == "Deleting"
    world.clock(freeze=False)
    poller.result()
    assert [r["id"] for r in world.control("GET", f"/resources?prefix={GROUP_ID}")] == []
    with pytest.raises(ResourceNotFoundError) as gone:
        world.network().virtual_networks.get(GROUP, "vnet")
    assert gone.value.error.code == "ResourceGroupNotFound"


def test_deleting_a_group_that_is_not_there_is_not_found(resources):
    with pytest.raises(ResourceNotFoundError) as missing:
        resources.resource_groups.begin_delete("missing")
    assert missing.value.error.code == "ResourceGroupNotFound"


def test_resources_of_a_group_and_of_a_subscription_are_listed(world, resources):
    other = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/other"
    world.seed(
        resources=[
            nsg("one", tags={"team": "blue"}),
            nsg("two"),
            {"id": other, "location": LOCATION},
            {"id": f"{other}/providers/{NSG}/three", "location": LOCATION},
        ]
    )
    # Children are not resources of their own here.
    in_group = list(resources.resources.list_by_resource_group(GROUP))
    assert {resource.name for resource in in_group} == {"vnet", "one", "two"}
    assert {resource.name for resource in resources.resources.list()} == {"vnet", "one", "two", "three"}
    (vnet,) = [resource for resource in in_group if resource.name == "vnet"]
    assert (vnet.id, vnet.type, vnet.location) == (VNET_ID, "Microsoft.Network/virtualNetworks", LOCATION)
    by_type = resources.resources.list(filter=f"resourceType eq '{NSG}'")
    assert {resource.name for resource in by_type} == {"one", "two", "three"}
    by_tag = resources.resources.list(filter="tagName eq 'team' and tagValue eq 'blue'")
    assert [resource.name for resource in by_tag] == ["one"]


def test_resource_is_read_and_written_by_its_id(resources):
    by_id, version = resources.resources, {"api_version": NETWORK_VERSION}
    target = nsg("generic")["id"]
    assert not by_id.check_existence_by_id(target, **version)
    made = by_id.begin_create_or_update_by_id(target, {"location": LOCATION, "tags": {"a": "1"}}, **version).result()
    assert (made.name, made.type, made.properties["provisioningState"]) == ("generic", NSG, "Succeeded")
    assert by_id.check_existence_by_id(target, **version)
    assert by_id.get_by_id(target.upper().replace("/SUBSCRIPTIONS", "/subscriptions"), **version).name == "generic"
    assert by_id.begin_update_by_id(target, {"tags": {"b": "2"}}, **version).result().tags == {"b": "2"}
    by_id.begin_delete_by_id(target, **version).result()
    with pytest.raises(ResourceNotFoundError) as gone:
        by_id.get_by_id(target, **version)
    assert gone.value.error.code == "ResourceNotFound"
