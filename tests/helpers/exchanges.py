"""Requests and responses of the HTTP API, for a test that later versions answer as 0.2 did.

``python -m helpers.exchanges FILE`` records the exchanges with the service of this checkout.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from banditrank.engine._api_keys import create_key
from banditrank.storage._factory import open_store
from helpers.running_service import Running, running

Exchange: TypeAlias = dict[str, Any]

ADS = {"name": "ads", "items": ["ad 1", "ad/2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}
SHELF = {"name": "shelf", "items": ["pear"], "n_positions": 1}  # its rankings are all the same
EXPERIMENT = {"name": "spring", "arms": [{"name": "hold-out", "share": 0.5, "policy": "random"}]}
JSON = {"content-type": "application/json"}
ORIGIN = "https://shop.example"
_MASKED_KEYS = {
    "request_id",
    "expires_at",
    "created_at",
    "as_of",
    "at",
    "now",
    "version",
    "shown_at",
    "start",
}
_HEADERS = (
    "access-control-allow-origin",
    "cache-control",
    "content-security-policy",
    "content-type",
    "referrer-policy",
    "retry-after",
    "www-authenticate",
    "x-content-type-options",
)
_RANKING_ID = re.compile(r"[A-Za-z0-9_-]{60,}")


def play() -> Iterator[Exchange]:
    """Send requests to services with and without keys, and yield each with what is compared of it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        store = f"sqlite:{folder / 'store.db'}"
        service = stack.enter_context(
            running(allow_origins=(ORIGIN,), max_body_bytes=4096, max_stream_seconds=0.01)
        )
        call = _Caller(service)
        yield from _use_surfaces(call)
        yield from _rank_and_learn(call)
        yield from _use_other_routes(call)
        opened = open_store(store)
        keys = {
            "rank": create_key(opened, "page", ["rank"]),
            "read": create_key(opened, "analyst", ["read"], surfaces=("shelf",)),
            "administer": create_key(opened, "owner", ["rank", "read", "administer"]),
        }
        opened.close()
        yield from _service_with_keys(_Caller(stack.enter_context(running(store=store))), keys)


class _Caller:
    """Sends requests and records them."""

    def __init__(self, service: Running) -> None:
        self._service = service
        self.ids: list[str] = []

    def __call__(
        self, method: str, path: str, body: Any = None, *, content: bytes | None = None, **headers: str
    ) -> Exchange:
        """Send a request; ``#1`` in it stands for the first ranking id that was received."""
        request: Exchange = {"method": method, "path": path}
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if sent:
            request["headers"] = {**sent, **({"authorization": "…"} if "authorization" in sent else {})}
        if body is not None:
            request["body"] = body
            content = self._insert_ids(json.dumps(body)).encode()
            sent = {**JSON, **sent}
        elif content is not None:
            request["content"] = content.decode("latin-1")
        response = self._service.ask(method, self._insert_ids(path), content=content, headers=sent)
        if isinstance(ranking := _json(response.text), dict) and response.status_code == 200:
            self.ids += [each["id"] for each in (ranking, *ranking.get("rankings", [])) if "id" in each]
        received: Exchange = {"status": response.status_code}
        received["headers"] = {name: response.headers[name] for name in _HEADERS if name in response.headers}
        if response.headers.get("content-type", "").startswith("text/html"):
            return {"request": request, "response": received}
        document = _json(response.text)
        if path.endswith("/dashboard") and isinstance(document, dict) and response.status_code == 200:
            document = sorted(document)  # its values depend on when it is asked for
        received["body"] = _masked(response.text if document is None else document)
        return {"request": request, "response": received}

    def _insert_ids(self, text: str) -> str:
        return re.sub(r"#(\d+)", lambda match: self.ids[int(match[1]) - 1], text)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _masked(value: Any, key: str = "") -> Any:
    """Return a value without ids, times and what a policy chose at random."""
    if isinstance(value, dict):
        return {name: _masked(element, name) for name, element in value.items()}
    if isinstance(value, list):
        return [_masked(element, key) for element in value]
    if isinstance(value, str):
        if value.startswith("event: "):
            return value.split("\n")[0]
        if value.startswith("# HELP"):
            return sorted(set(re.findall(r"^# TYPE (\w+)", value, re.MULTILINE)))
        return "…" if key in _MASKED_KEYS else _RANKING_ID.sub("#", value)
    is_masked = key in _MASKED_KEYS and value is not None
    return "number" if isinstance(value, float) else "…" if is_masked else value


def _use_surfaces(call: _Caller) -> Iterator[Exchange]:
    """Create, change and read surfaces, with valid and with invalid requests."""
    yield call("GET", "/v1/surfaces")
    yield call("POST", "/v1/surfaces", ADS)
    yield call("POST", "/v1/surfaces", SHELF)
    yield call("POST", "/v1/surfaces", ADS)
    for changed in (
        {"n_positions": 0},
        {"n_positions": "two"},
        {"policy": "thompson-rnak"},
        {"treatment": "equl"},
        {"colour": "red"},
        {"items": ["a", "a"]},
        {"name": "a/b"},
        {"items": ["a"]},
    ):
        yield call("POST", "/v1/surfaces", {**ADS, "name": "new", **changed})
    yield call("POST", "/v1/surfaces", {})
    yield call("POST", "/v1/surfaces", [])
    yield call("PATCH", "/v1/surfaces/ads", {"attribution_seconds": 60.0})
    yield call("PATCH", "/v1/surfaces/ads", {"attribution": 60})
    yield call("PATCH", "/v1/surfaces/adz", {"attribution_seconds": 60.0})
    yield call("GET", "/v1/surfaces/ads")
    yield call("GET", "/v1/surfaces/adz")
    yield call("GET", "/v1/surfaces/a%20b")
    yield call("HEAD", "/v1/surfaces/ads")
    yield call("HEAD", "/v1/surfaces/adz")


def _rank_and_learn(call: _Caller) -> Iterator[Exchange]:
    """Request rankings and send feedback, with valid and with invalid bodies."""
    yield call("POST", "/v1/surfaces/shelf/rankings", {"user_type": "everybody"})
    yield call("POST", "/v1/feedback", {"ranking": "#1", "clicked": "pear"})
    yield call("POST", "/v1/feedback", {"ranking": "#1", "clicked": "pear"})
    yield call("POST", "/v1/feedback", {"ranking": "#1", "clicked": "pear", "reward": 0.5})
    yield call("POST", "/v1/feedback", {"ranking": "#1", "clicked": "apple"})
    yield call("POST", "/v1/feedback", {"ranking": "forged"})
    yield call("POST", "/v1/feedback", {"ranking": "#1", "reward": 2})
    yield call("POST", "/v1/feedback", {"ranking": 5})
    yield call("POST", "/v1/feedback", {})
    yield call("POST", "/v1/surfaces/shelf/rankings/batch", {"user_types": ["everybody", "everybody"]})
    yield call("POST", "/v1/surfaces/shelf/rankings/batch", {"user_types": ["everybody", "other"]})
    yield call("POST", "/v1/surfaces/shelf/rankings/batch", {"user_types": []})
    yield call(
        "POST",
        "/v1/feedback/batch",
        {"feedback": [{"ranking": "#2"}, {"ranking": "forged"}, {"ranking": "#3", "clicked": "apple"}]},
    )
    yield call("POST", "/v1/surfaces/ads/rankings", {"user_type": "nwe"})
    yield call(
        "POST",
        "/v1/surfaces/ads/rankings",
        {"user_type": "new", "exclude": ["ad 1", "ad-9"], "pinned": {"2": "ad-3"}},
    )
    yield call("POST", "/v1/surfaces/ads/rankings", {"user_type": "new", "candidates": ["ad 1"]})
    yield call("POST", "/v1/surfaces/ads/rankings", {"user_type": "new", "pinned": {"3": "ad-3"}})
    yield call("POST", "/v1/surfaces/adz/rankings", {"user_type": "new"})
    for content in (
        b"{",
        b"",
        b"\xff",
        b'{"user_type":"\xff"}',
        b'{"user_type":"new","x":"\xff"}',
        b"[" * 2000,
    ):
        yield call("POST", "/v1/surfaces/ads/rankings", content=content, content_type="application/json")
    yield call("POST", "/v1/surfaces/ads/rankings", content=b"{}")
    yield call("POST", "/v1/surfaces/ads/rankings", content=b"{}", content_type="text/plain")
    yield call("POST", "/v1/surfaces/ads/rankings", content=b" " * 5000, content_type="application/json")
    yield call(
        "POST",
        "/v1/surfaces/shelf/rankings",
        {"user_type": "everybody"},
        content_type="application/json; charset=utf-8",
    )


def _use_other_routes(call: _Caller) -> Iterator[Exchange]:
    """Use all other routes of a service that needs no keys."""
    yield call("GET", "/v1/rankings/forged")
    yield call("POST", "/v1/surfaces/ads/items", {"items": ["ad-4"]})
    yield call("PUT", "/v1/surfaces/ads/items", {"items": ["ad 1", "ad/2", "ad-5"]})
    yield call("PUT", "/v1/surfaces/ads/items", {"items": ["ad-5"]})
    yield call("POST", "/v1/surfaces/ads/items", {"items": ["ad-6"]})
    yield call("DELETE", "/v1/surfaces/ads/items/ad%2F2")
    yield call("DELETE", "/v1/surfaces/ads/items/ad%209")
    yield call("DELETE", "/v1/surfaces/ads/items/ad%201")
    yield call("GET", "/v1/surfaces/shelf/estimates")
    yield call("GET", "/v1/surfaces/shelf/estimates?level=0.9")
    yield call("GET", "/v1/surfaces/shelf/estimates?level=2")
    yield call("GET", "/v1/surfaces/shelf/estimates?level=much")
    yield call("GET", "/v1/surfaces/ads/experiment")
    yield call("PATCH", "/v1/surfaces/ads", {"experiment": EXPERIMENT})
    yield call("GET", "/v1/surfaces/ads/experiment")
    yield call("GET", "/v1/surfaces/shelf/series")
    yield call("GET", "/v1/surfaces/shelf/series?since=2026-11-16T12:00:00Z")
    yield call("GET", "/v1/surfaces/shelf/series?since=yesterday")
    yield call("GET", "/v1/surfaces/shelf/series?since=2026-11-16T12:00:00")
    yield call("GET", "/v1/surfaces/shelf/dashboard", if_none_match="*")
    yield call("GET", "/v1/surfaces/shelf/dashboard", if_none_match='"other", W/"more"')
    yield call("GET", "/v1/surfaces/shelf/events")
    yield call("HEAD", "/v1/surfaces/shelf/events")
    yield call("GET", "/v1/surfaces/adz/events")
    yield call("GET", "/v1/access")
    yield call("GET", "/healthz")
    yield call("GET", "/readyz")
    yield call("GET", "/metrics")
    yield call("GET", "/v1/surfaces", origin=ORIGIN)
    yield call("GET", "/v1/surfaces/adz", origin=ORIGIN)
    yield call("GET", "/v1/surfaces", origin="https://other.example")
    yield call("GET", "/v1/surfaces", host="shop.example")
    yield call("GET", "/", host="shop.example")
    for path in (
        "/",
        "/surfaces/ads",
        "/docs",
        "/assets/nothing.js",
        "/assets/..%2Fsurface.html",
        "/assets/index.html",
    ):
        yield call("GET", path)
    for path in (
        "/v1",
        "/v1/surfaces/",
        "/v2/surfaces",
        "/v1/surfaces/ads/",
        "/v1//surfaces",
        "/V1/surfaces",
    ):
        yield call("GET", path)
    yield call("DELETE", "/v1/surfaces/ads")
    yield call("DELETE", "/v1/surfaces/ads")
    yield call("GET", "/v1/surfaces")


def _service_with_keys(call: _Caller, keys: dict[str, str]) -> Iterator[Exchange]:
    """Use a service with keys of one right each, one of which is limited to a surface."""
    rank, read, administer = (f"Bearer {keys[right]}" for right in ("rank", "read", "administer"))
    yield call("POST", "/v1/surfaces", SHELF)
    yield call("POST", "/v1/surfaces", SHELF, authorization="Bearer forged")
    yield call("POST", "/v1/surfaces", SHELF, authorization=rank)
    yield call("POST", "/v1/surfaces", SHELF, authorization=administer)
    yield call("POST", "/v1/surfaces", ADS, authorization=administer)
    yield call("GET", "/v1/surfaces", authorization=read)
    yield call("GET", "/v1/surfaces", authorization=rank)
    yield call("GET", "/v1/surfaces/ads", authorization=read)
    yield call("GET", "/v1/surfaces/shelf", authorization=read)
    yield call("GET", "/metrics", authorization=read)
    yield call("GET", "/metrics")
    yield call("GET", "/v1/access", authorization=read)
    yield call("GET", "/v1/access", authorization=administer)
    yield call("GET", "/v1/access")
    yield call("POST", "/v1/surfaces/shelf/rankings", {"user_type": "everybody"}, authorization=rank)
    yield call("POST", "/v1/surfaces/shelf/rankings", {"user_type": "other"}, authorization=rank)
    yield call(
        "POST", "/v1/surfaces/ads/rankings", {"user_type": "new", "pinned": {"1": "ad"}}, authorization=rank
    )
    yield call("POST", "/v1/surfaces/shelf/rankings", {"user_type": "everybody"}, authorization=read)
    yield call("POST", "/v1/surfaces/shelf/rankings", content=b"{", content_type="application/json")
    yield call("POST", "/v1/feedback", {"ranking": "#1", "clicked": "pear"}, authorization=rank)
    yield call("GET", "/v1/rankings/#1", authorization=rank)
    yield call("GET", "/healthz")
    yield call("GET", "/readyz")
    yield call("GET", "/", host="shop.example")


if __name__ == "__main__":
    lines = (json.dumps(exchange, ensure_ascii=False) for exchange in play())
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
