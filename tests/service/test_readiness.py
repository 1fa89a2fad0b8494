"""The service is alive but not ready while it compiles, and serves other surfaces meanwhile."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.live import a_ranker, a_surface, wait_until
from helpers.running_service import Running, running
from helpers.slow_compilation import slow_compilation

from banditrank.storage._factory import open_store

COMPILING = "urn:banditrank:problem:compiling"


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compile the formulas beforehand."""
    with a_ranker() as ranker:
        ranker.rank("new")


def address_with(directory: Path, *names: str) -> str:
    """Return the address of a store with surfaces."""
    address = f"sqlite:{directory / 'store.db'}"
    with open_store(address) as store:
        for name in names:
            store.create_surface(name, definition(name))
    return address


def definition(name: str) -> str:
    return replace(a_surface(), name=name, refresh_seconds=0.25).definition


def rank(service: Running, surface: str) -> Any:
    return service.ask("POST", f"/v1/surfaces/{surface}/rankings", {"user_type": "new"})


def dashboard(service: Running, surface: str) -> Any:
    return service.ask("GET", f"/v1/surfaces/{surface}/dashboard").json()


def test_it_is_not_ready_until_the_surfaces_of_the_store_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address_with(tmp_path, "slow", "quick")
    with (
        slow_compilation(monkeypatch, "slow") as slow,
        running(store=address, loads_in_background=True) as service,
    ):
        slow.wait_for_start()
        wait_until(lambda: rank(service, "quick").status_code == 200)
        assert service.ask("GET", "/healthz").status_code == 200
        response = service.ask("GET", "/readyz")
        assert (response.status_code, response.json()["type"]) == (503, COMPILING)
        assert response.json()["detail"] == "surfaces are being compiled", "without names: no key is needed"
        assert response.headers["retry-after"] == "1"
        for _ in range(20):  # more than there are threads
            refused = rank(service, "slow")
            assert (refused.status_code, refused.json()["type"]) == (503, COMPILING)
        listed = service.ask("GET", "/v1/surfaces").json()
        assert ([one["name"] for one in listed["surfaces"]], listed["is_loading"]) == (["quick"], True)
        assert "banditrank_surfaces_compiling 1.0" in service.ask("GET", "/metrics").text
        # "this-surface" while its own estimates are compiled
        wait_until(lambda: dashboard(service, "quick")["compiling"] == "another-surface")
        slow.finish()
        wait_until(lambda: service.ask("GET", "/readyz").status_code == 200)
        assert rank(service, "slow").status_code == 200
        assert service.ask("GET", "/v1/surfaces").json()["is_loading"] is False
        assert "banditrank_surfaces_compiling 0.0" in service.ask("GET", "/metrics").text


def test_a_new_surface_delays_neither_others_nor_readiness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address_with(tmp_path, "quick")
    with (
        running(store=address, loads_in_background=True) as service,
        slow_compilation(monkeypatch, "slow", "second", "third") as slow,
    ):
        created: list[Any] = []

        def create(name: str) -> None:
            body = {"name": name, "items": ["a", "b"], "n_positions": 1}
            created.append(service.ask("POST", "/v1/surfaces", body))

        threads = [threading.Thread(target=create, args=(name,)) for name in ("slow", "second", "third")]
        for thread in threads:  # more than the pool has threads
            thread.start()
        slow.wait_for_start()
        assert rank(service, "quick").status_code == 200
        assert service.ask("GET", "/readyz").status_code == 200
        added = service.ask("POST", "/v1/surfaces/quick/items", {"items": ["new"]})
        assert added.status_code == 200, "items of other surfaces change meanwhile"
        wait_until(lambda: service.ask("GET", "/v1/surfaces/quick/dashboard").json()["compiling"] is not None)
        slow.finish()
        for thread in threads:
            thread.join()
        assert [response.status_code for response in created] == [201] * 3
        wait_until(lambda: service.ask("GET", "/v1/surfaces/quick/dashboard").json()["compiling"] is None)
