"""Examples of all operations in the OpenAPI document, recorded from a service.

``make examples`` runs this module, which writes them into the package.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from banditrank.service._application import ROUTES
from banditrank.service._openapi import EXAMPLES_FILE
from helpers.running_service import Running, running

SETTINGS = {"max_stream_seconds": 0.01}
MAX_TEXT_LINES = 12  # of a response that is not JSON
ITEMS = ["ad-1", "ad-2", "ad-3", "ad-4"]
SURFACE = {"name": "ads", "items": ITEMS, "n_positions": 2, "user_types": ["new", "returning"]}
LOTTERY = {
    "name": "carousel",
    "items": ["shoes", "books", "coffee"],
    "n_positions": 1,
    "user_types": ["new", "returning"],
    "treatment": "equal-lottery",
    "utility": "nash",
    "guarantees": [{"kind": "least-exposure", "level": 0.1}],
    "refresh_seconds": 0.0,
}
FAVOURITES = {"new": "shoes", "returning": "books"}
EXPERIMENT = {"name": "autumn", "arms": [{"name": "hold-out", "share": 0.1, "policy": "random"}]}
IF_NONE_MATCH = '"4f0c7a1e2b"'
SINCE = "2026-11-16T12:00:00Z"


class _Recorder:
    """Sends requests to a service, and records the example of each operation."""

    def __init__(self, service: Running) -> None:
        self.service = service
        self.examples: dict[str, Any] = {}
        self._routes = {route.operation_id: route for route in ROUTES}

    def call(self, operation_id: str, body: Any = None, **parameters: Any) -> Any:
        """Send the request of an operation, record it, and return the response."""
        route = self._routes[operation_id]
        if route.has_etag:
            parameters["If-None-Match"] = IF_NONE_MATCH
        query = {one.name: parameters[one.name] for one in route.query}
        headers = {"If-None-Match": IF_NONE_MATCH} if route.has_etag else {}
        path = route.path
        for name, value in parameters.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        path += f"?{urlencode(query)}" if query else ""
        response = self.service.ask(route.method, path, body, headers=headers)
        assert response.status_code == route.status, f"{operation_id}: {response.text}"
        example: dict[str, Any] = {"parameters": parameters}
        if body is not None:
            example["request"] = body
        if response.content:
            example["response"] = _content(response.headers["content-type"], response.text)
        self.examples[operation_id] = example
        return example.get("response")

    def problem(self, name: str, method: str, path: str, body: Any = None, **options: Any) -> None:
        """Send a request that fails, and record its problem details."""
        document = self.service.ask(method, path, body, **options).json()
        assert document["type"].endswith(f":{name}"), document
        recorded = {"detail": document["detail"]}
        if "field" in document:
            recorded["field"] = document["field"]
        self.examples.setdefault("problems", {})[name] = recorded


def _content(content_type: str, text: str) -> Any:
    if content_type.startswith("application/json"):
        return json.loads(text)
    if content_type.startswith("text/event-stream"):
        lines = text.split("\n\n", maxsplit=1)[0].splitlines()
        return {"event": lines[0].removeprefix("event: "), "data": lines[1].removeprefix("data: ")}
    return "\n".join(text.splitlines()[:MAX_TEXT_LINES])


def _play_lottery(service: Running) -> Any:
    """Create a surface with a lottery, let it learn that tastes conflict, and return its last ranking."""
    assert service.ask("POST", "/v1/surfaces", LOTTERY).status_code == 201
    ranking = None
    for user_type in ("new", "returning") * 20:
        path, favourite = "/v1/surfaces/carousel/rankings", FAVOURITES[user_type]
        ranking = service.ask("POST", path, {"user_type": user_type}).json()
        clicked = favourite if favourite in ranking["items"] else None
        service.ask("POST", "/v1/feedback", {"ranking": ranking["id"], "clicked": clicked})
    return ranking


def record(service: Running) -> Mapping[str, Any]:
    """Use every operation of a service without surfaces, and return the examples."""
    recorder = _Recorder(service)
    call, surface = recorder.call, {"surface": "ads"}
    call("createSurface", SURFACE)
    recorder.problem("no-experiment", "GET", "/v1/surfaces/ads/experiment")
    settings = {"attribution_seconds": 3600.0, "policy": "auto", "experiment": EXPERIMENT}
    call("updateSurface", settings, **surface)
    call("addItems", {"items": ["ad-4", "ad-5"]}, **surface)
    call("retireItem", item="ad-5", **surface)
    call("syncItems", {"items": [*ITEMS[1:], "ad-6"]}, **surface)
    request = {"user_type": "new", "exclude": ["ad-1"], "visitor": "visitor-11"}  # retired: it is ignored
    ranking = call("rank", request, **surface)
    first, second = call("rankBatch", {"user_types": ["new", "returning"]}, **surface)["rankings"]
    call("feedback", {"ranking": ranking["id"], "clicked": ranking["items"][0]})
    call(
        "feedbackBatch",
        {
            "feedback": [
                {"ranking": first["id"], "clicked": first["items"][1], "reward": 0.5},
                {"ranking": second["id"], "clicked": None},
            ]
        },
    )
    drawn = _play_lottery(service)
    call("explain", ranking=drawn["id"])
    call("listSurfaces")
    call("readSurface", **surface)
    call("estimates", level=0.95, **surface)
    call("equality", surface="carousel")
    call("experiment", **surface)
    call("dashboard", **surface)
    call("series", since=SINCE, **surface)
    call("events", **surface)
    call("access")
    call("health")
    call("readiness")
    call("metrics")
    call("surfacesPage")
    call("surfacePage", **surface)
    call("asset", file="icon.svg")
    recorder.problem("already-exists", "POST", "/v1/surfaces", SURFACE)
    recorder.problem("conflicting-feedback", "POST", "/v1/feedback", {"ranking": ranking["id"]})
    recorder.problem("invalid", "POST", "/v1/surfaces", SURFACE | {"n_positions": 0})
    recorder.problem("unknown-ranking", "POST", "/v1/feedback", {"ranking": "forged"})
    recorder.problem("unknown-surface", "GET", "/v1/surfaces/adz")
    recorder.problem("wrong-content-type", "POST", "/v1/feedback", content=b"{}")
    json_type = {"content-type": "application/json"}
    recorder.problem("malformed", "POST", "/v1/feedback", content=b"{", headers=json_type)
    call("deleteSurface", **surface)
    return recorder.examples


def write() -> None:
    """Record all examples, and write them into the package."""
    with running(**SETTINGS) as service:
        examples = record(service)
    Path(str(EXAMPLES_FILE)).write_text(json.dumps(examples, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
