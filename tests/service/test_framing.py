"""HTTP framing: only requests that were sent are served."""

from collections.abc import Iterator

import pytest
from helpers.framing_client import Address, violations_by_recorder, violations_by_service
from helpers.framing_vectors import CANARY_PATH, VECTORS, Vector, splits
from helpers.recording_application import recording
from helpers.running_service import Running, running

SURFACE = {"name": "canary", "items": ["a", "b", "c"], "n_positions": 2}


@pytest.fixture(scope="module")
def recorder() -> Iterator[Address]:
    with recording() as address:
        yield address


@pytest.fixture(scope="module")
def running_service() -> Iterator[Running]:
    with running() as service:
        yield service


@pytest.fixture
def service(running_service: Running) -> Running:
    """Return the service, with the canary even if an earlier vector deleted it."""
    if running_service.ask("GET", CANARY_PATH).status_code != 200:
        assert running_service.ask("POST", "/v1/surfaces", SURFACE).status_code == 201
    return running_service


def test_names_of_vectors_are_unique() -> None:
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_applications_see_only_requests_that_were_sent(recorder: Address, vector: Vector) -> None:
    assert violations_by_recorder(recorder, vector) == []


@pytest.mark.parametrize("kind", ["length", "chunks", "conflict", "upgrade"])
def test_packets_can_be_split_anywhere(recorder: Address, kind: str) -> None:
    vectors = [vector for vector in splits() if vector.name.startswith(kind)]
    assert len(vectors) > 100
    broken = {vector.name: violations_by_recorder(recorder, vector) for vector in vectors}
    assert {name: found for name, found in broken.items() if found} == {}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_service_responds_only_to_requests_that_were_sent(service: Running, vector: Vector) -> None:
    host, port = service.address.removeprefix("http://").split(":")
    assert violations_by_service((host, int(port)), vector) == []
    assert service.ask("GET", CANARY_PATH).status_code == 200, "the canary was deleted"
