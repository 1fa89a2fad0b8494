"""No bytes of a request lead to an internal error."""

import asyncio
import json
from collections import Counter

import pytest
from helpers.fuzzed_requests import HOST, JSON, FuzzedRequest, Fuzzer, send

from banditrank.engine._api_keys import create_key
from banditrank.service._application import ROUTES, Application
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["new", "old"]}
# Reports and streams take no bytes but those of the path, and long to make. No surface is deleted.
LONG = {"dashboard", "series", "events", "equality", "experiment", "deleteSurface", "retireItem"}
PARAMETERS = {"surface": "ads", "item": "nope", "file": "api.js"}


async def _statuses(n_requests: int, seed: int, key: tuple[bytes, bytes]) -> Counter[int]:
    """Return the number of responses by status to damaged requests; fail at an internal error."""
    application = Application(Settings(store="memory:", require_keys=True, allow_origins=("loopback",)))
    await application.start()
    fuzzer, routes = Fuzzer(seed), [route for route in ROUTES if route.operation_id not in LONG]
    statuses: Counter[int] = Counter()

    async def post(path: bytes, body: object) -> dict[str, str]:
        request = FuzzedRequest("POST", path, b"", (HOST, JSON, key), json.dumps(body).encode())
        return json.loads((await send(application, request))[1])

    try:
        await post(b"/v1/surfaces", ADS)
        for number in range(n_requests):
            ranking = await post(b"/v1/surfaces/ads/rankings", {"user_type": "new"})
            route = routes[number % len(routes)]
            request = fuzzer.request(route, {**PARAMETERS, "ranking": ranking["id"]}, key)
            status, body = await send(application, request)
            assert status < 500, f"{request}: {body.decode()}"
            if status >= 400:
                assert json.loads(body)["status"] == status, request
            statuses[status] += 1
    finally:
        await application.stop()
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


@pytest.mark.parametrize(
    "body", [b'{"unknown":"\xff"}', b'{"\xff":1,"unknown":2}', b'"\xed\xa0\x80"', b"\xff"]
)
@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.request_schema], ids=lambda each: each.operation_id
)
def test_invalid_utf_8_is_malformed_wherever_it_is(route: object, body: bytes) -> None:
    """Finding 14: invalid UTF-8 is a 400, also behind another error of the body."""
    from banditrank.service._http_errors import MALFORMED, HttpError
    from banditrank.service._request_body import BodyReader

    reader = BodyReader(ROUTES, max_bytes=1000, timeout_seconds=1.0)
    with pytest.raises(HttpError) as refused:
        reader.decode(route, body)
    assert refused.value.error_type is MALFORMED
