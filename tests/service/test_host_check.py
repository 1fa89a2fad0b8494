"""The check of the Host header prevents DNS rebinding."""

from collections.abc import Iterator

import pytest
from helpers.running_service import Running, running

from banditrank.engine._api_keys import create_key
from banditrank.service import _host_check as host_check
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b"], "n_positions": 1}
FOREIGN = [
    "evil.example",
    "evil.example:8420",
    "localhost.evil.example",
    "evil@localhost",
    "192.168.0.7:8420",
    "0.0.0.0:8420",
    "[::2]:8420",
    "::1",
    "",
]
OWN = ["localhost", "LocalHost:8420", "127.0.0.1:8420", "127.1.2.3", "[::1]", "[::1]:8420"]


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        yield service


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize(
    "asked",
    [
        ("POST", "/v1/surfaces", ADS),
        ("GET", "/v1/surfaces"),
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("GET", "/v1/feedback"),  # which can only be posted
    ],
)
def test_a_foreign_host_is_refused(service: Running, asked: tuple, host: str) -> None:
    for _ in range(2):  # nor is it remembered
        refused = service.ask(*asked, headers={"host": host})
        assert refused.status_code == 421
        assert refused.json()["type"] == "urn:banditrank:problem:wrong-host"
    assert service.ask("GET", "/v1/surfaces").json()["surfaces"] == []


@pytest.mark.parametrize("host", OWN)
def test_loopback_hosts_are_served(service: Running, host: str) -> None:
    for _ in range(2):
        assert service.ask("GET", "/v1/surfaces", headers={"host": host}).status_code == 200


def test_with_keys_any_host_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    key = create_key(store, "page", ["read"])
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    headers = {"host": "shop.example", "authorization": f"Bearer {key}"}
    with running() as service:
        assert service.ask("GET", "/v1/surfaces", headers=headers).status_code == 200


def test_more_hosts_than_are_remembered_are_served(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_check, "_MAX_ACCEPTED", 3)
    for port in range(10):
        assert service.ask("GET", "/healthz", headers={"host": f"localhost:{port}"}).status_code == 200
