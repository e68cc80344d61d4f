"""Long-running operations as the packages' own pollers see them: how they end, how often they are asked for, and where from."""

import time

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError
from azure.core.polling import LROPoller
from azure.mgmt.network import models as net
from azure.mgmt.privatedns.models import ARecord, RecordSet

from world import GROUP, PROVIDER_ID

SUBNET = net.Subnet(address_prefix="10.0.1.0/24")
PUT_SUBNET = {"method": "PUT", "path": "/subnets/one$"}


def begin(network, **options):
    return network.subnets.begin_create_or_update(GROUP, "vnet", "one", SUBNET, **options)


def failure(poller):
    with pytest.raises(HttpResponseError) as failed:
        poller.result()
    return failed.value


def polls(world):
    return [call for call in world.journal() if "/operations/" in call["path"]]


def test_poller_asks_when_it_was_told_to(world, network):
    poller = begin(network)
    assert poller.status() == "InProgress"
    poller.result()
    assert poller.status() == "Succeeded"
    # `Retry-After: 1`, and not the 30 s that are the packages' own habit.
    assert 1 <= len(polls(world)) <= 3


def test_failed_operation_says_why(world, network):
    error = {"code": "InternalServerError", "message": "An error occurred."}
    world.fault(PUT_SUBNET, {"operation": "fail", "operation_error": error})
    poller = begin(network)
    failed = failure(poller)
    assert poller.status() == "Failed"
    assert failed.error.code == "InternalServerError"
    assert network.subnets.get(GROUP, "vnet", "one").provisioning_state == "Failed"


def test_canceled_operation_names_the_one_that_took_its_place(world, network):
    world.fault(PUT_SUBNET, {"operation": "cancel"})
    poller = begin(network)
    failed = failure(poller)
    assert poller.status() == "Canceled"
    assert "CanceledAndSupersededDueToAnotherOperation" in str(failed.error)


def test_operation_that_hangs_is_given_up_by_the_caller(world, network):
    world.fault(PUT_SUBNET, {"operation": "hang"})
    poller = begin(network)
    poller.wait(timeout=2.5)
    assert not poller.done()
    assert poller.status() == "InProgress"
    assert len(polls(world)) >= 2
    world.seed()  # ends the poller's thread: its operation is unknown now


def test_lost_operation_is_an_error_though_the_write_stands(world, network):
    world.fault(PUT_SUBNET, {"operation": "lost"})
    assert failure(begin(network)).status_code == 404
    assert network.subnets.get(GROUP, "vnet", "one").name == "one"


def test_poller_is_resumed_by_another_client(world, network):
    token = begin(network).continuation_token()
    other = world.network()
    resumed = other.subnets.begin_create_or_update(GROUP, "vnet", "one", SUBNET, continuation_token=token)
    assert isinstance(resumed, LROPoller)
    assert resumed.result().provisioning_state == "Succeeded"
    assert [call["method"] for call in world.journal()].count("PUT") == 1


def test_deletion_that_failed_leaves_the_resource(world, network):
    begin(network).result()
    world.fault({"method": "DELETE", "path": "/subnets/one$"}, {"operation": "fail"})
    failure(network.subnets.begin_delete(GROUP, "vnet", "one"))
    assert network.subnets.get(GROUP, "vnet", "one").name == "one"


@pytest.mark.parametrize("lost", [{"drop": "after"}, {"status": 504, "code": "GatewayTimeout", "drop": "after"}], ids=["cut", "504"])
def test_write_whose_answer_was_lost_is_repeated(world, lost):
    world.seed(resources=[{"id": f"{PROVIDER_ID}/privateDnsZones/example.internal", "location": "global"}])
    world.fault({"method": "PUT", "path": "/A/name$"}, lost)
    records = world.dns().record_sets
    body = RecordSet(ttl=300, a_records=[ARecord(ipv4_address="10.0.0.4")])
    assert records.create_or_update(GROUP, "example.internal", "A", "name", body).ttl == 300
    assert [call["changed"] for call in world.journal()] == [True, True]


def test_cut_body_is_an_error_of_the_transport(world):
    world.fault({"method": "GET", "path": "/virtualNetworks/vnet$", "times": 99}, {"cut_body_at": 20})
    network = world.network(retry_total=0)
    with pytest.raises((ServiceResponseError, ServiceRequestError, HttpResponseError)):
        network.virtual_networks.get(GROUP, "vnet")


def test_page_of_html_with_200_is_an_error(world, network):
    page = {"status": 200, "body": "<html>hello</html>", "headers": {"content-type": "text/html"}}
    world.fault({"method": "GET", "path": "/virtualNetworks/vnet$"}, page)
    with pytest.raises(ValueError):
        network.virtual_networks.get(GROUP, "vnet")


def test_polling_url_on_a_foreign_host_is_not_followed_in_silence(world):
    world.fault(PUT_SUBNET, {"poll_url": "https://127.0.0.1:9/elsewhere"})
    network = world.network(retry_total=0)
    with pytest.raises(ServiceRequestError):
        begin(network).result()


def test_slow_answer_is_waited_for(world, network):
    world.fault({"method": "GET", "path": "/virtualNetworks/vnet$"}, {"delay_ms": 500})
    started = time.monotonic()
    assert network.virtual_networks.get(GROUP, "vnet").name == "vnet"
    assert time.monotonic() - started >= 0.5
