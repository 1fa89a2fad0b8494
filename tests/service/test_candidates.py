"""Candidates and pinned items over HTTP."""

import asyncio
import threading
from typing import Any

import pytest
from helpers.running_service import running

from banditrank.client import AsyncClient, Client
from banditrank.engine._api_keys import create_key
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ITEMS = ["a", "b", "c", "d", "e"]
SURFACE = {"name": "ads", "items": ITEMS, "n_positions": 2, "user_types": ["new", "old"]}
PATH = "/v1/surfaces/ads/rankings"


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
@pytest.mark.parametrize("refresh_seconds", [0, 3600])  # in a thread, and in the event loop
def test_rankings_keep_to_candidates_and_pins(treatment: str, refresh_seconds: float) -> None:
    surface = {**SURFACE, "treatment": treatment, "refresh_seconds": refresh_seconds}
    with running() as service, Client(service.address, timeout_seconds=60) as client:
        assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
        for _ in range(3):
            shown = client.rank("ads", "new", candidates=["c", "d", "e"], exclude=["e"], pinned={2: "a"})
            assert shown.items in {("c", "a"), ("d", "a")}
            explanation = client.explain(shown.id)
            assert (explanation["candidates"], explanation["pinned"]) == (["c", "d"], {"2": "a"})
            assert explanation["is_reproduced"]
            assert client.feedback(shown.id, clicked="a") == "counted"
        several = client.rank_batch("ads", ["new", "old"] * 5, candidates=["b", "c"])
        assert {frozenset(one.items) for one in several} == {frozenset("bc")}


@pytest.mark.parametrize(
    ("request_fields", "field", "detail"),
    [
        (
            {"candidates": ["a"]},
            "candidates",
            "must leave at least 2 items, one for each position that is not pinned",
        ),
        (
            {"candidates": ["a", "z"]},
            "candidates",
            "one for each position that is not pinned (ignored: 'z'), got 1",
        ),
        ({"pinned": {"1": "z"}}, "pinned", "pinned must be one of a, b, c, d, e, got 'z'"),
        ({"candidates": []}, "candidates", "candidates must be"),
        ({"pinned": {"3": "a"}}, "pinned.3", "pinned.3 must be a whole number from 1 to 2, got 3"),
        ({"pinned": {"0": "a"}}, "pinned.0", "pinned.0 must be a whole number from 1 to 100, got 0"),
        ({"pinned": {"01": "a"}}, "pinned.01", "pinned.01 must be a whole number from 1 to 100, got '01'"),
        ({"pinned": {"": "a"}}, "pinned.''", "pinned.'' must be a whole number from 1 to 100, got ''"),
        ({"pinned": {"1": 5}}, "pinned.1", "pinned.1 must be 1 to 200 printable characters, got 5"),
        (
            {"pinned": {"first": "a"}},
            "pinned.first",
            "pinned.first must be a whole number from 1 to 100, got 'first'",
        ),
        (
            {"pinned": {str(position): "a" for position in range(1, 102)}},
            "pinned",
            "pinned must be an object of 0 to 100 elements, got 101",
        ),
        ({"pinned": {"1": "a"}, "exclude": "a"}, "exclude", "exclude must be a list"),
        ({"exclude": "a"}, "exclude", "exclude must be a list"),
    ],
)
def test_invalid_requests_name_the_field(request_fields: dict, field: str, detail: str) -> None:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", SURFACE).status_code == 201
        response = service.ask("POST", PATH, {"user_type": "new", **request_fields})
        assert response.status_code == 422
        problem = response.json()
        assert problem["field"].startswith(field)
        assert detail in problem["detail"]


def test_a_key_without_the_right_to_read_learns_no_items(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = {right: create_key(store, right, [right]) for right in ("rank", "administer")}
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running(require_keys=True) as service:
        headers = {right: {"authorization": f"Bearer {key}"} for right, key in keys.items()}
        created = service.ask("POST", "/v1/surfaces", SURFACE, headers=headers["administer"])
        assert created.status_code == 201
        for restriction, message in (
            ({"candidates": ["z", "a"]}, "(ignored: 'z'), got 1"),
            ({"pinned": {"1": "z"}}, "must be active items of the surface, got 'z'"),
        ):
            request = {"user_type": "new", **restriction}
            problem = service.ask("POST", PATH, request, headers=headers["rank"]).json()
            assert problem["detail"].endswith(message)
            assert not set("bcde") & set(problem["detail"].replace("'", " ").replace(",", " ").split())
        request = {"user_type": "new", "exclude": ["z"]}
        assert service.ask("POST", PATH, request, headers=headers["rank"]).json()["ignored"] == ["z"]


@pytest.mark.parametrize("refresh_seconds", [0, 3600])  # in a thread, and in the event loop
def test_retired_and_unknown_items_are_ignored_and_named(refresh_seconds: float) -> None:
    """Finding 12: a stale id in candidates or exclude does not fail a request."""
    surface = {**SURFACE, "refresh_seconds": refresh_seconds}
    stale = {"candidates": ["a", "b", "c", "z", "z"], "exclude": ["y", "a"]}
    with running() as service, Client(service.address, timeout_seconds=60) as client:
        assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
        assert service.ask("DELETE", "/v1/surfaces/ads/items/a").status_code == 200
        plain = service.ask("POST", PATH, {"user_type": "new"}).json()
        assert plain["ignored"] == []
        response = service.ask("POST", PATH, {"user_type": "new", **stale}).json()
        assert (set(response["items"]), response["ignored"]) == ({"b", "c"}, ["a", "z", "y"])
        batch = service.ask("POST", f"{PATH}/batch", {"user_types": ["new"] * 20, **stale}).json()
        assert batch["ignored"] == ["a", "z", "y"]
        assert all(each.keys() == {"id", "items", "expires_at", "arm"} for each in batch["rankings"])
        shown = client.rank("ads", "new", **stale)
        several = client.rank_batch("ads", ["new", "old"], **stale)
        assert [each.ignored for each in (shown, *several)] == [("a", "z", "y")] * 3
        explanation = client.explain(shown.id)
        assert (explanation["is_reproduced"], explanation["candidates"]) == (True, ["b", "c"])
        assert client.feedback(shown.id, clicked="b") == "counted"


def test_the_asynchronous_client_names_ignored_items() -> None:
    """Finding 12: both clients name what was ignored."""

    async def ignored(address: str) -> list[tuple[str, ...]]:
        async with AsyncClient(address, timeout_seconds=60) as client:
            shown = await client.rank("ads", "new", exclude=["z"])
            (other,) = await client.rank_batch("ads", ["old"], candidates=["a", "b", "z"])
            return [shown.ignored, other.ignored]

    with running() as service:
        assert service.ask("POST", "/v1/surfaces", SURFACE).status_code == 201
        assert asyncio.run(ignored(service.address)) == [("z",), ("z",)]


@pytest.mark.parametrize(("n_items", "is_in_loop"), [(5, True), (1001, False)])
@pytest.mark.parametrize("fields", [{}, {"exclude": ["0"]}], ids=["all items", "candidates"])
def test_rankings_of_large_surfaces_do_not_block_the_event_loop(
    n_items: int, fields: dict, *, is_in_loop: bool
) -> None:
    items = [str(number) for number in range(n_items)]
    surface = {"name": "ads", "items": items, "n_positions": min(n_items - 1, 20), "refresh_seconds": 3600}
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
        runtime = service.engine.surface("ads")
        rank_batch, threads = runtime.rank_batch, []

        def recorded(*arguments: Any, **options: Any) -> Any:
            threads.append(threading.current_thread().name)
            return rank_batch(*arguments, **options)

        body = {"user_types": ["everybody"] * 20, **fields}
        service.ask("POST", f"{PATH}/batch", body).raise_for_status()  # compiles in a thread
        runtime.rank_batch = recorded
        assert len(service.ask("POST", f"{PATH}/batch", body).json()["rankings"]) == 20
    assert all(name.startswith("banditrank-store") != is_in_loop for name in threads)
    assert len(threads) == (3 if is_in_loop and fields else 1)
