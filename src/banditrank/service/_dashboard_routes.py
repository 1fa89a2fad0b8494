"""Routes of the dashboard: documents, time series and server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime

from starlette.responses import Response, StreamingResponse

from banditrank.dashboard._document_schemas import CountsDocument, DashboardDocument, SeriesDocument
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import InvalidInputError
from banditrank.service._dashboard_cache import DashboardCache
from banditrank.service._http_errors import TOO_MANY_STREAMS, UNKNOWN_SURFACE
from banditrank.service._requests import JsonResponse, Request, info_of, make_conditional
from banditrank.service._routing import Parameter, Route

STATE_SECONDS = 2.0
"""Minimum seconds between two ``state`` or ``counts`` events."""

MAX_STATE_SECONDS = 30.0
"""Maximum seconds between two ``state`` events; they are also sent if only ages have changed."""

HEARTBEAT_SECONDS = 5.0
"""Seconds between two comments that show that the service is alive."""

# All streams wake up at the same moments, so that they share one document.
_TICK_SECONDS = 1.0

_SINCE = Parameter(
    "since",
    "Omit buckets that began before this time. All buckets are returned if their width changed since.",
    {"type": "string", "format": "date-time"},
)


def _parse_since(request: Request) -> float | None:
    value = request.query_params.get("since")
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInputError("since", "must be an ISO 8601 time", value) from None
    if time.tzinfo is None:
        raise InvalidInputError("since", "must have a UTC offset, such as Z", value)
    return time.timestamp()


async def _dashboard(request: Request) -> Response:
    dashboard = await request.service.dashboard_cache.dashboard(await request.surface())
    return make_conditional(request, JsonResponse(dashboard.body), dashboard.etag)


async def _series(request: Request) -> JsonResponse:
    runtime, since = await request.surface(), _parse_since(request)
    return JsonResponse(await request.service.dashboard_cache.series(runtime, since=since))


async def _events(request: Request) -> StreamingResponse:
    runtime = await request.surface()
    # Starlette would add a character set, although it is always UTF-8.
    headers = {"content-type": "text/event-stream"}
    return StreamingResponse(_event_stream(runtime, request), headers=headers)


async def _event_stream(runtime: SurfaceRuntime, request: Request) -> AsyncIterator[bytes]:
    """Yield events until the surface is deleted, the key becomes invalid, or a limit or the service's end."""
    service, loop = request.service, asyncio.get_running_loop()
    cache = service.dashboard_cache
    end = loop.time() + service.settings.max_stream_seconds
    next_state = next_heartbeat = state_sent_at = 0.0
    etag = estimates_tag = b""
    grid = await _bucket_grid(cache, runtime)
    while not (runtime.is_deleted or service.stopping.is_set()) and _may_read(runtime, request):
        now = loop.time()
        events = []
        if now >= next_state:
            next_state = now + STATE_SECONDS - _TICK_SECONDS / 2
            dashboard = await cache.dashboard(runtime)
            if dashboard.estimates_tag != estimates_tag or now - state_sent_at >= MAX_STATE_SECONDS:
                estimates_tag, state_sent_at = dashboard.estimates_tag, now
                events.append(_event(b"state", dashboard.body))
            elif dashboard.etag != etag:
                events.append(_event(b"counts", dashboard.counts))
            etag = dashboard.etag
        new_grid = await _bucket_grid(cache, runtime)
        if new_grid != grid:
            is_same_width = new_grid[:2] == grid[:2]
            first = grid[2] if is_same_width else 0
            events.append(_event(b"series", await cache.series(runtime, first=first)))
            grid = new_grid
        if now >= next_heartbeat:
            next_heartbeat = now + HEARTBEAT_SECONDS - _TICK_SECONDS / 2
            events.append(b": alive\n\n")
        if events:
            yield b"".join(events)
        if loop.time() >= end:
            return
        tick = loop.time() + _TICK_SECONDS - loop.time() % _TICK_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(tick, end)):
                await service.stopping.wait()


def _may_read(runtime: SurfaceRuntime, request: Request) -> bool:
    """Return whether the key of a stream is still valid for its surface."""
    principal = request.service.authenticator.find(info_of(request.scope).headers.get(b"authorization", b""))
    return principal is not None and "read" in principal.rights and principal.covers(runtime.surface.name)


async def _bucket_grid(cache: DashboardCache, runtime: SurfaceRuntime) -> tuple[int, int, int]:
    """Return the start, the width and the number of the closed buckets."""
    buckets = await cache.closed_buckets(runtime)
    return buckets.start_ms, buckets.width_ms, len(buckets.visits)


def _event(name: bytes, document: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, document)


ROUTES = (
    Route(
        "GET",
        "/v1/surfaces/{surface}/dashboard",
        "dashboard",
        "Return the dashboard document of a surface: all that its dashboard shows except the time series.",
        "read",
        _dashboard,
        response_schema=DashboardDocument,
        errors=(UNKNOWN_SURFACE,),
        has_etag=True,
    ),
    Route(
        "GET",
        "/v1/surfaces/{surface}/series",
        "series",
        "Return the time series of a surface.",
        "read",
        _series,
        response_schema=SeriesDocument,
        errors=(UNKNOWN_SURFACE,),
        query=(_SINCE,),
    ),
    Route(
        "GET",
        "/v1/surfaces/{surface}/events",
        "events",
        "Stream changes of a surface as server-sent events: state with a dashboard document, counts with its "
        "part that is known at once if the estimates are the same, series with the buckets that closed since "
        "the last event.",
        "read",
        _events,
        errors=(UNKNOWN_SURFACE, TOO_MANY_STREAMS),
        content_type="text/event-stream",
        events={"state": DashboardDocument, "counts": CountsDocument, "series": SeriesDocument},
    ),
)
