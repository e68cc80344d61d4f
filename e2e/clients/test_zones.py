"""Private DNS zones and their links to VNets: operations that begin with an empty 202, and conditions that fail late."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.mgmt.privatedns import models

from world import GROUP, GROUP_ID, LOCATION, PROVIDER_ID, SUBSCRIPTION, VNET_ID

ZONE = "example.internal"
ZONE_ID = f"{PROVIDER_ID}/privateDnsZones/{ZONE}"
GLOBAL = models.PrivateZone(location="global")


def zones(*names, group=GROUP_ID):
    return [{"id": f"{group}/providers/Microsoft.Network/privateDnsZones/{name}", "location": "global"} for name in names]


def link(vnet=VNET_ID, **properties):
    return models.VirtualNetworkLink(
        location="global",
        virtual_network=models.SubResource(id=vnet),
        registration_enabled=properties.pop("registration_enabled", False),
        **properties,
    )


def put_link(dns, zone, name, **options):
    return dns.virtual_network_links.begin_create_or_update(GROUP, zone, name, link(**options)).result()


def late_failure(begin, *arguments, **options):
    """The code that an accepted operation fails with."""
    poller = begin(*arguments, **options)
    with pytest.raises(HttpResponseError) as failed:
        poller.result()
    assert poller.status() == "Failed"
    return failed.value.error.code


def test_zone_lives_from_create_to_delete(dns):
    made = dns.private_zones.begin_create_or_update(GROUP, ZONE, GLOBAL).result()
    assert (made.id, made.provisioning_state, made.number_of_record_sets) == (ZONE_ID, "Succeeded", 1)
    assert (made.max_number_of_record_sets, made.max_number_of_virtual_network_links) == (25000, 1000)
    assert dns.private_zones.get(GROUP, ZONE).etag == made.etag
    dns.private_zones.begin_delete(GROUP, ZONE).result()
    with pytest.raises(ResourceNotFoundError) as gone:
        dns.private_zones.get(GROUP, ZONE)
    assert gone.value.error.code == "ResourceNotFound"
    # A zone that is not there is deleted already.
    dns.private_zones.begin_delete(GROUP, ZONE).result()


def test_zone_tags_are_patched(world, dns):
    world.seed(resources=zones(ZONE))
    patched = dns.private_zones.begin_update(GROUP, ZONE, models.PrivateZone(tags={"a": "1"})).result()
    assert patched.tags == dns.private_zones.get(GROUP, ZONE).tags == {"a": "1"}


def test_zones_are_listed_in_pages_by_group_and_by_subscription(world, dns):
    other = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/other"
    names = [f"z{n}.example" for n in range(5)]
    world.seed(resources=[*zones(*names), {"id": other, "location": LOCATION}, *zones("elsewhere.example", group=other)])
    pages = [[zone.name for zone in page] for page in dns.private_zones.list_by_resource_group(GROUP, top=2).by_page()]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(name for page in pages for name in page) == names
    assert {zone.name for zone in dns.private_zones.list(top=4)} == {*names, "elsewhere.example"}
    # The pager goes on where another one has stopped.
    first = dns.private_zones.list_by_resource_group(GROUP, top=2).by_page()
    head = [zone.name for zone in next(first)]
    rest = dns.private_zones.list_by_resource_group(GROUP, top=2).by_page(continuation_token=first.continuation_token)
    assert sorted(head + [zone.name for page in rest for zone in page]) == names


def test_failed_condition_on_a_zone_comes_with_the_operation(world, dns):
    world.seed(resources=zones(ZONE))
    begin = dns.private_zones.begin_create_or_update
    create_only = {"match_condition": MatchConditions.IfMissing}
    assert late_failure(begin, GROUP, ZONE, GLOBAL, **create_only) == "PreconditionFailed"
    stale = {"etag": "00000000-0000-0000-0000-000000000000", "match_condition": MatchConditions.IfNotModified}
    assert late_failure(begin, GROUP, ZONE, GLOBAL, **stale) == "PreconditionFailed"
    right = {"etag": dns.private_zones.get(GROUP, ZONE).etag, "match_condition": MatchConditions.IfNotModified}
    assert begin(GROUP, ZONE, GLOBAL, **right).result().name == ZONE
    assert begin(GROUP, "new.internal", GLOBAL, **create_only).result().name == "new.internal"


@pytest.mark.parametrize("name", ["single", "bad_char!.example", "a..example"])
def test_bad_zone_name_is_refused(dns, name):
    with pytest.raises(HttpResponseError) as refused:
        dns.private_zones.begin_create_or_update(GROUP, name, GLOBAL).result()
    assert refused.value.status_code in (200, 400)


def test_link_lives_from_create_to_delete(world, dns):
    world.seed(resources=zones(ZONE))
    made = put_link(dns, ZONE, "link", registration_enabled=True)
    assert (made.provisioning_state, made.virtual_network_link_state) == ("Succeeded", "Completed")
    assert (made.virtual_network.id, made.registration_enabled) == (VNET_ID, True)
    assert made.etag.startswith('"')
    zone = dns.private_zones.get(GROUP, ZONE)
    assert (zone.number_of_virtual_network_links, zone.number_of_virtual_network_links_with_registration) == (1, 1)
    links = dns.virtual_network_links
    assert links.begin_update(GROUP, ZONE, "link", models.VirtualNetworkLink(tags={"a": "1"})).result().tags == {"a": "1"}
    with pytest.raises(ResourceExistsError) as nested:
        dns.private_zones.begin_delete(GROUP, ZONE)
    assert nested.value.error.code == "CannotDeleteResource"
    links.begin_delete(GROUP, ZONE, "link").result()
    with pytest.raises(ResourceNotFoundError):
        links.get(GROUP, ZONE, "link")
    links.begin_delete(GROUP, ZONE, "link").result()
    dns.private_zones.begin_delete(GROUP, ZONE).result()


def test_link_of_a_privatelink_zone_has_a_resolution_policy(world, dns):
    name = "privatelink.blob.core.windows.net"
    world.seed(resources=zones(name))
    assert put_link(dns, name, "link").resolution_policy == "Default"
    assert put_link(dns, name, "link", resolution_policy="NxDomainRedirect").resolution_policy == "NxDomainRedirect"


def test_links_are_listed_in_pages(world, dns):
    vnets = [f"{PROVIDER_ID}/virtualNetworks/v{n}" for n in range(3)]
    space = {"location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
    linked = [
        {
            "id": f"{ZONE_ID}/virtualNetworkLinks/l{n}",
            "location": "global",
            "properties": {"virtualNetwork": {"id": vnet}, "registrationEnabled": False},
        }
        for n, vnet in enumerate(vnets)
    ]
    world.seed(resources=[*zones(ZONE), *({"id": vnet} | space for vnet in vnets), *linked])
    pages = [[link.name for link in page] for page in dns.virtual_network_links.list(GROUP, ZONE, top=2).by_page()]
    assert pages == [["l0", "l1"], ["l2"]]


def test_second_zone_of_a_name_cannot_be_linked_to_a_vnet(world, dns):
    other = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/other"
    world.seed(resources=[*zones(ZONE, "sub." + ZONE), {"id": other, "location": LOCATION}, *zones(ZONE, group=other)])
    put_link(dns, ZONE, "link")
    put_link(dns, "sub." + ZONE, "nested")
    begin = dns.virtual_network_links.begin_create_or_update
    assert late_failure(begin, "other", ZONE, "link", link()) == "BadRequest"


def test_failed_condition_on_a_link_comes_with_the_operation(world, dns):
    world.seed(resources=zones(ZONE))
    put_link(dns, ZONE, "link")
    links = dns.virtual_network_links
    create_only = {"match_condition": MatchConditions.IfMissing}
    assert late_failure(links.begin_create_or_update, GROUP, ZONE, "link", link(), **create_only) == "PreconditionFailed"
    right = {"etag": links.get(GROUP, ZONE, "link").etag, "match_condition": MatchConditions.IfNotModified}
    links.begin_delete(GROUP, ZONE, "link", **right).result()


def test_link_to_a_missing_zone_is_refused(dns):
    with pytest.raises(ResourceNotFoundError) as missing:
        put_link(dns, "missing.internal", "link")
    assert missing.value.error.code == "ParentResourceNotFound"


def test_deleted_link_may_be_shown_for_a_while(world, dns):
    world.seed(resources=zones(ZONE), switches={"link_delete_lag_s": 3600})
    put_link(dns, ZONE, "link")
    links = dns.virtual_network_links
    links.begin_delete(GROUP, ZONE, "link").result()
    assert links.get(GROUP, ZONE, "link").name == "link"
    world.clock(advance_s=3600)
    with pytest.raises(ResourceNotFoundError):
        links.get(GROUP, ZONE, "link")
