"""Gives each test a freshly seeded simulator; in the end every simulated action was called, with every paginator and
waiter that is for it, and no answer broke a model."""

import os

import pytest

import actions
from cloud import Cloud, seed
from model import Checker

# An endpoint's network interfaces are in use for their whole life.
NEVER_ENDS = {("ec2", "network_interface_available")}


@pytest.fixture(scope="session")
def checker(request):
    checker = Checker()
    yield checker
    assert not checker.unexplained(), "\n".join(checker.unexplained())
    if request.session.testsfailed or request.config.getoption("keyword"):
        return
    expected = {f"{service}:{action}" for service, action in actions.names()}
    assert checker.called == expected, checker.called ^ expected
    assert checker.paginators == actions.paginators(), checker.paginators ^ actions.paginators()
    expected = actions.waiters() - NEVER_ENDS
    assert checker.waiters == expected, checker.waiters ^ expected


@pytest.fixture
def cloud(checker):
    addresses = [os.environ[name] for name in ("AWSSIM_AWS", "AWSSIM_CONTROL", "AWSSIM_CA")]
    cloud = Cloud(addresses, checker)
    cloud.control("PUT", "/seed", seed())
    return cloud
