"""HTTP framing: only requests that were sent are served."""

from collections.abc import Iterator

import pytest
from helpers.framing_client import (
    Address,
    converse,
    take_records,
    violations_by_recorder,
    violations_by_service,
)
from helpers.framing_vectors import CANARY_PATH, VECTORS, Vector, splits
from helpers.hostile_clients import server_process
from helpers.recording_application import SERVERS, recording
from helpers.running_service import Running, running

SURFACE = {"name": "canary", "items": ["a", "b", "c"], "n_positions": 2}

# uvicorn appends trailers to the headers before it calls the application, if they arrive with the head.
TRAILERS_AS_HEADERS = {
    f"trailer: {name}" for name in ("authorization", "connection", "expect", "origin", "x-checksum")
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Address]]:
    with recording(**SERVERS[request.param]) as address:
        yield request.param, address


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
def test_applications_see_only_requests_that_were_sent(server: tuple[str, Address], vector: Vector) -> None:
    name, address = server
    is_allowed = name == "guarded" and vector.name in TRAILERS_AS_HEADERS
    expected = ["trailer accepted as a header"] if is_allowed else []
    assert violations_by_recorder(address, vector) == expected


def test_packets_can_be_split_anywhere() -> None:
    with recording(loop="asyncio") as address:
        broken = {vector.name: violations_by_recorder(address, vector) for vector in splits()}
    assert len(broken) > 400
    assert {name: found for name, found in broken.items() if found} == {}


# Their parsers accept line ends without CR and folded headers, which the guard does not see.
@pytest.mark.campaign
@pytest.mark.parametrize(
    ("command", "n_hidden"),
    [
        (("uvicorn", "--ws=none", "--http=httptools"), 0),
        (("uvicorn", "--ws=none", "--http=h11"), 6),
        (("granian", "--interface=asgi", "--http=1", "--no-ws"), 1),
    ],
)
def test_stock_servers_with_the_guard_serve_few_hidden_requests(
    command: tuple[str, ...], n_hidden: int
) -> None:
    with server_process(*command, "helpers.recording_application:guarded") as process:
        address = process.address
        take_records(address)
        for vector in VECTORS:
            converse(address, vector)
        hidden = [record for record in take_records(address) if record["path"] == CANARY_PATH]
    assert len(hidden) == n_hidden


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_service_responds_only_to_requests_that_were_sent(service: Running, vector: Vector) -> None:
    host, port = service.address.removeprefix("http://").split(":")
    assert violations_by_service((host, int(port)), vector) == []
    assert service.ask("GET", CANARY_PATH).status_code == 200, "the canary was deleted"
