"""Gives each test a freshly seeded simulator. `ARMSIM_WORLDS` is a JSON array of the lines that `armsim serve` prints:
one for each of pytest's parallel workers."""

import json
import os

import pytest

from world import World


@pytest.fixture(scope="session")
def simulator():
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return json.loads(os.environ["ARMSIM_WORLDS"])[int(worker.removeprefix("gw"))]


@pytest.fixture
def world(simulator):
    world = World(simulator)
    world.seed()
    yield world
    world.close()


@pytest.fixture
def network(world):
    return world.network()


@pytest.fixture
def dns(world):
    return world.dns()


@pytest.fixture
def resources(world):
    return world.resources()
