"""Refusals, by the classes that the packages give them, and which of them the packages try again by themselves."""

import time

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.core.credentials import AccessToken
from azure.mgmt.network import models as net

from world import GROUP, READER, SCOPE, SUBSCRIPTION, VNET_ID, wait_until_expired

GET_VNET = {"method": "GET", "path": "/virtualNetworks/vnet$"}


class Fixed:
    """A credential that has one token and never another."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *_scopes, **_options):
        return AccessToken(self.token, int(time.time()) + 3600)


def test_missing_resource_group_and_missing_resource_are_told_apart(network):
    for group, code in ((GROUP, "ResourceNotFound"), ("missing", "ResourceGroupNotFound")):
        with pytest.raises(ResourceNotFoundError) as missing:
            network.virtual_networks.get(group, "missing")
        assert (missing.value.status_code, missing.value.error.code) == (404, code)
        assert missing.value.response.headers["x-ms-failure-cause"] == "gateway"


def test_unknown_subscription_is_not_found(world):
    with pytest.raises(ResourceNotFoundError) as missing:
        world.network(subscription="99999999-9999-9999-9999-999999999999").virtual_networks.get(GROUP, "vnet")
    assert missing.value.error.code == "SubscriptionNotFound"


def test_reader_may_not_write(world):
    network = world.network(credential=world.credential(READER))
    assert network.virtual_networks.get(GROUP, "vnet").name == "vnet"
    with pytest.raises(HttpResponseError) as forbidden:
        network.subnets.begin_create_or_update(GROUP, "vnet", "one", net.Subnet(address_prefix="10.0.1.0/24"))
    assert (forbidden.value.status_code, forbidden.value.error.code) == (403, "AuthorizationFailed")
    assert "Microsoft.Network/virtualNetworks/subnets/write" in forbidden.value.message
    assert f"{VNET_ID}/subnets/one" in forbidden.value.message


def test_right_on_the_resource_is_not_a_right_on_what_it_refers_to(world):
    writer = {"object_id": READER.object_id, "scope": f"/subscriptions/{SUBSCRIPTION}"}
    actions = ["*/read", "Microsoft.Network/networkInterfaces/write", "Microsoft.Network/privateEndpoints/write"]
    world.seed(roles=[writer | {"actions": actions}])
    network = world.network(credential=world.credential(READER))
    connection = net.PrivateLinkServiceConnection(name="c", private_link_service_id="x.y.westus2.azure.privatelinkservice")
    endpoint = net.PrivateEndpoint(
        location="westus2",
        subnet=net.Subnet(id=f"{VNET_ID}/subnets/nodes"),
        manual_private_link_service_connections=[connection],
    )
    with pytest.raises(HttpResponseError) as forbidden:
        network.private_endpoints.begin_create_or_update(GROUP, "pe", endpoint)
    assert (forbidden.value.status_code, forbidden.value.error.code) == (403, "LinkedAuthorizationFailed")
    assert "subnets/join/action" in forbidden.value.message


def test_expired_token_is_refused(world):
    world.seed(switches={"token_life_s": 3})
    issued = world.credential().get_token(SCOPE)
    network = world.network(credential=Fixed(issued.token))
    assert network.virtual_networks.get(GROUP, "vnet").name == "vnet"
    wait_until_expired(issued)
    with pytest.raises(ClientAuthenticationError) as expired:
        network.virtual_networks.get(GROUP, "vnet")
    assert (expired.value.status_code, expired.value.error.code) == (401, "ExpiredAuthenticationToken")


def test_token_that_nobody_issued_is_refused(world):
    for token in ("nonsense", world.credential().get_token(SCOPE).token[:-6] + "AAAAAA"):
        with pytest.raises(ClientAuthenticationError) as refused:
            world.network(credential=Fixed(token)).virtual_networks.get(GROUP, "vnet")
        assert (refused.value.status_code, refused.value.error.code) == (401, "InvalidAuthenticationToken")


@pytest.mark.parametrize(
    ("version", "code"), [("2015-01-01", "NoRegisteredProviderFound"), ("nonsense", "InvalidApiVersionParameter")]
)
def test_unknown_api_version_is_refused(network, version, code):
    with pytest.raises(HttpResponseError) as refused:
        network.virtual_networks.get(GROUP, "vnet", api_version=version)
    assert (refused.value.status_code, refused.value.error.code) == (400, code)


@pytest.mark.parametrize(
    "tags",
    [{"a<b": "1"}, {f"t{n}": "1" for n in range(51)}, {"x" * 513: "1"}, {"a": "x" * 257}],
    ids=["character", "51-tags", "long-name", "long-value"],
)
def test_bad_tags_are_refused(network, tags):
    with pytest.raises(HttpResponseError) as refused:
        network.virtual_networks.update_tags(GROUP, "vnet", net.TagsObject(tags=tags))
    assert refused.value.status_code == 400


def test_throttled_call_is_tried_again_when_the_service_says(world, network):
    world.fault(GET_VNET, {"status": 429, "code": "SubscriptionRequestsThrottled", "headers": {"Retry-After": "2"}})
    started = time.monotonic()
    assert network.virtual_networks.get(GROUP, "vnet").name == "vnet"
    assert time.monotonic() - started >= 2
    assert [call["status"] for call in world.journal()] == [429, 200]


def test_empty_bucket_throttles_and_fills_again(world):
    world.seed(throttle={"reads": {"bucket": 2, "per_s": 0.01}})
    impatient = world.network(retry_total=0)
    with pytest.raises(HttpResponseError) as throttled:
        for _ in range(3):
            impatient.virtual_networks.get(GROUP, "vnet")
    assert (throttled.value.status_code, throttled.value.error.code) == (429, "SubscriptionRequestsThrottled")
    assert int(throttled.value.response.headers["Retry-After"]) >= 1
    world.clock(advance_s=100)
    assert world.network().virtual_networks.get(GROUP, "vnet").name == "vnet"


def test_remaining_calls_are_said_with_every_answer(world, network):
    remaining = []

    def note(response):
        remaining.append(int(response.http_response.headers["x-ms-ratelimit-remaining-subscription-reads"]))

    for _ in range(2):
        network.virtual_networks.get(GROUP, "vnet", raw_response_hook=note)
    assert len(remaining) == 2 and remaining[0] <= 249


def test_private_dns_has_a_budget_of_its_own(world):
    world.seed(throttle={"dns_reads_5min": 2})
    zones = world.dns(retry_total=0).private_zones
    for _ in range(2):
        assert list(zones.list_by_resource_group(GROUP)) == []
    with pytest.raises(HttpResponseError) as throttled:
        list(zones.list_by_resource_group(GROUP))
    assert throttled.value.status_code == 429
    assert world.network(retry_total=0).virtual_networks.get(GROUP, "vnet").name == "vnet"


def test_server_errors_are_tried_again_and_refusals_are_not(world, network):
    world.fault(GET_VNET | {"times": 2}, {"status": 503, "code": "ServiceUnavailable"})
    assert network.virtual_networks.get(GROUP, "vnet").name == "vnet"
    world.fault(GET_VNET | {"times": 2}, {"status": 409, "code": "Conflict"})
    with pytest.raises(ResourceExistsError):
        network.virtual_networks.get(GROUP, "vnet")
    assert [call["status"] for call in world.journal()] == [503, 503, 200, 409]


def test_ids_of_a_call_are_returned(network):
    seen = {}

    def note(response):
        seen.update(response.http_response.headers)

    mine = "11112222-3333-4444-5555-666677778888"
    network.virtual_networks.get(GROUP, "vnet", headers={"x-ms-correlation-request-id": mine}, raw_response_hook=note)
    headers = {name.lower(): value for name, value in seen.items()}
    assert headers["x-ms-correlation-request-id"] == mine
    assert headers["x-ms-request-id"]
    assert headers["x-ms-routing-request-id"].count(":") == 2
    assert headers["etag"].startswith('W/"')


def test_ids_are_found_in_any_case_and_shown_as_they_were_made(network):
    assert network.virtual_networks.get("RG", "VNET").id == VNET_ID
