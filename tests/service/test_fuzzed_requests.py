"""No bytes of a request lead to an internal error."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator

import pytest
from helpers.fuzzed_requests import HOST, JSON, FuzzedRequest, Fuzzer, send
from helpers.running_service import Running, running

from banditrank.engine._api_keys import create_key
from banditrank.service import create_app
from banditrank.service._application import ROUTES
from banditrank.service._routing import Route
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["new", "old"]}
# Reports and streams take no bytes but those of the path, and long to make. No surface is deleted.
LONG = {"dashboard", "series", "events", "equality", "experiment", "deleteSurface", "retireItem"}
PARAMETERS = {"surface": "ads", "item": "nope", "file": "api.js"}


async def _statuses(n_requests: int, seed: int, key: tuple[bytes, bytes]) -> Counter[int]:
    """Return the number of responses by status to damaged requests; fail at an internal error."""
    application = create_app(Settings(store="memory:", require_keys=True, allow_origins=("loopback",)))
    fuzzer, routes = Fuzzer(seed), [route for route in ROUTES if route.operation_id not in LONG]
    statuses: Counter[int] = Counter()

    async def post(path: bytes, body: object) -> dict[str, str]:
        request = FuzzedRequest("POST", path, b"", (HOST, JSON, key), json.dumps(body).encode())
        return json.loads((await send(application, request))[1])

    async with application.router.lifespan_context(application):
        await post(b"/v1/surfaces", ADS)
        for number in range(n_requests):
            ranking = await post(b"/v1/surfaces/ads/rankings", {"user_type": "new"})
            route = routes[number % len(routes)]
            request = fuzzer.request(route, {**PARAMETERS, "ranking": ranking["id"]}, key)
            status, body = await send(application, request)
            assert status < 500, f"{request}: {body.decode()}"
            # The guard's refusals have no body.
            if status >= 400 and body:
                assert json.loads(body)["status"] == status, request
            statuses[status] += 1
    return statuses


@pytest.mark.parametrize(
    ("n_requests", "seed"), [(600, 1), pytest.param(30_000, 2, marks=pytest.mark.campaign)]
)
def test_no_bytes_lead_to_an_internal_error(
    n_requests: int, seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Finding 14: no bytes of a request lead to a 500 or to a failure in the log."""
    store = MemoryStore()
    key = create_key(store, "all", ["rank", "read", "administer"])
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    statuses = asyncio.run(_statuses(n_requests, seed, (b"authorization", f"Bearer {key}".encode())))
    assert {200, 400, 401, 404, 415, 422} <= statuses.keys(), "the requests reach all steps"
    assert "request failed" not in caplog.messages


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        yield service


@pytest.mark.parametrize(
    "body", [b'{"unknown":"\xff"}', b'{"\xff":1,"unknown":2}', b'"\xed\xa0\x80"', b"\xff"]
)
@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.request_schema], ids=lambda each: each.operation_id
)
def test_invalid_utf_8_is_malformed_wherever_it_is(service: Running, route: Route, body: bytes) -> None:
    """Finding 14: invalid UTF-8 is a 400, also behind another error of the body."""
    path = route.path.replace("{surface}", "ads").replace("{item}", "a")
    headers = {"content-type": "application/json"}
    answer = service.ask(route.method, path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:banditrank:problem:malformed")
