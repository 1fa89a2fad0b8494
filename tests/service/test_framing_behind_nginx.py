"""HTTP framing behind nginx: clients cannot bypass its rules or receive responses to other clients."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from helpers.framing_client import RECORDED, Address, converse, key, take_records
from helpers.framing_vectors import CANARY, CANARY_PATH, VECTORS, Request, Vector
from helpers.recording_application import SERVERS, recording
from helpers.running_service import Running, running
from helpers.servers import NginxServer, free_port, private_directory

SURFACE = {"name": "canary", "items": ["a", "b", "c"], "n_positions": 2}
N_CLIENTS = 3
N_ATTACKERS = 4
PAUSE_SECONDS = 0.01  # between the requests of a client, for the others to have a turn

# As for WebSockets: what a client offers reaches the service.
UPGRADES = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"
MODES = {
    "buffered": "proxy_request_buffering on; proxy_set_header Connection '';",
    "streamed": "proxy_request_buffering off; proxy_set_header Connection '';",
    "upgrades": UPGRADES,
    "streamed upgrades": f"proxy_request_buffering off; {UPGRADES}",
}
# While a response is delayed, a body arrives behind its head.
DELAY_SECONDS = {"streamed upgrades": 0.05}

SERVER = """
    server {{
        listen 127.0.0.1:{port};
        client_header_timeout 500ms;
        client_body_timeout 500ms;
        location / {{
            limit_except GET POST {{ deny all; }}
            proxy_pass http://service;
            proxy_http_version 1.1;
            proxy_set_header Host localhost;
            {lines}
        }}
    }}
"""

FRAME = """
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    upstream service {{ server 127.0.0.1:{port}; keepalive 32; }}
"""


@contextmanager
def proxied(upstream_port: int, mode: str) -> Iterator[tuple[NginxServer, Address]]:
    """Start nginx in front of a service."""
    port = free_port()
    configuration = FRAME.format(port=upstream_port) + SERVER.format(port=port, lines=MODES[mode])
    with private_directory() as directory, NginxServer(directory, configuration, [port]) as nginx:
        yield nginx, ("127.0.0.1", port)


@contextmanager
def clients(address: Address, ask: Callable[[HTTPConnection, str], bool]) -> Iterator[None]:
    """Run legitimate clients until the block ends; each request has a unique marker."""
    is_over = threading.Event()
    wrong: list[str] = []
    n_asked: Counter[int] = Counter()

    def keep_asking(client: int) -> None:
        connection = HTTPConnection(*address, timeout=30)
        try:
            while not (is_over.wait(PAUSE_SECONDS) and n_asked[client]) and not wrong:
                marker = f"marker-{client}-{n_asked[client]}"
                if not ask(connection, marker):
                    wrong.append(marker)
                n_asked[client] += 1
        except OSError as error:
            wrong.append(f"client {client}: {error}")
        finally:
            connection.close()

    threads = [threading.Thread(target=keep_asking, args=(client,)) for client in range(N_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert wrong == [], "a client got what was not its answer"
    assert sorted(n_asked) == list(range(N_CLIENTS))


def _attack(address: Address) -> None:
    """Send all vectors, a few at a time."""
    with ThreadPoolExecutor(N_ATTACKERS) as attackers:
        conversations = list(attackers.map(lambda vector: converse(address, vector), VECTORS))
    assert not any(one.timed_out for one in conversations)


def _ask_recorder(connection: HTTPConnection, marker: str) -> bool:
    body = marker.encode()
    connection.request("POST", f"/{marker}", body)
    response = connection.getresponse()
    response.read()
    return response.headers[RECORDED] == key(Request("POST", f"/{marker}", body))


def _ask_service(connection: HTTPConnection, marker: str) -> bool:
    connection.request("GET", f"/v1/surfaces/{marker}")
    response = connection.getresponse()
    return response.status == 404 and f"'{marker}'" in response.read().decode()


@pytest.mark.parametrize("http", SERVERS)
@pytest.mark.parametrize("mode", MODES)
def test_applications_see_only_what_nginx_forwards(mode: str, http: str) -> None:
    delay_seconds = DELAY_SECONDS.get(mode, 0.0)
    with (
        recording(**SERVERS[http], delay_seconds=delay_seconds) as recorder,
        proxied(recorder[1], mode) as (nginx, address),
    ):
        with clients(address, _ask_recorder):
            _attack(address)
        nginx.finish()
        seen = Counter(f"{record['method']} {record['path']}" for record in take_records(recorder))
        assert seen - Counter(nginx.forwarded()) == Counter(), "requests that nginx did not forward"
    assert len(seen) > N_CLIENTS
    assert not [request for request in seen if request.startswith("DELETE")], "past the rule"


@pytest.mark.parametrize("mode", MODES)
def test_no_vector_reaches_past_a_rule(mode: str) -> None:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", SURFACE).status_code == 201
        with proxied(_port(service), mode) as (_, address):
            denied = converse(address, Vector("denied", (CANARY,)))
            assert denied.responses[0].status == 403
            for vector in VECTORS:  # all on the same connection to the service
                converse(address, vector)
                exists = service.ask("GET", CANARY_PATH).status_code == 200
                assert exists, f"the canary was deleted by {vector.name!r}"
            with clients(address, _ask_service):
                _attack(address)
        assert service.ask("GET", CANARY_PATH).status_code == 200, "the canary was deleted"


def _port(service: Running) -> int:
    return int(service.address.rpartition(":")[2])
