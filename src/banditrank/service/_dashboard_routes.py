"""Routes of the dashboard: documents, time series and server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from banditrank.dashboard._document_schemas import CountsDocument, DashboardDocument, SeriesDocument
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import InvalidInputError
from banditrank.service._http import Request, Response
from banditrank.service._http_errors import TOO_MANY_STREAMS, UNKNOWN_SURFACE
from banditrank.service._routing import Parameter, Route
from banditrank.service._streams import StreamingResponse

if TYPE_CHECKING:
    from banditrank.service._application import Application

STATE_SECONDS = 2.0
"""Minimum seconds between two ``state`` or ``counts`` events."""

MAX_STATE_SECONDS = 30.0
"""Maximum seconds between two ``state`` events; they are also sent if only ages have changed."""

HEARTBEAT_SECONDS = 5.0
"""Seconds between two comments that show that the service is alive."""

_TICK_SECONDS = 1.0  # all streams wake up at the same moments, so that they share one document

_STALL_SECONDS = 30.0  # after which a stream beyond its maximum duration is aborted

_SINCE = Parameter(
    "since",
    "Omit buckets that began before this time. All buckets are returned if their width changed since.",
    {"type": "string", "format": "date-time"},
)


def _parse_since(request: Request) -> float | None:
    value = request.query.get("since")
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInputError("since", "must be an ISO 8601 time", value) from None
    if time.tzinfo is None:
        raise InvalidInputError("since", "must have a UTC offset, such as Z", value)
    return time.timestamp()


async def _dashboard(application: "Application", request: Request) -> Response:
    runtime = await application.surface(request)
    dashboard = await application.dashboard_cache.dashboard(runtime)
    return request.conditional(Response(200, dashboard.body), dashboard.etag)


async def _series(application: "Application", request: Request) -> Response:
    runtime, since = await application.surface(request), _parse_since(request)
    return Response(200, await application.dashboard_cache.series(runtime, since=since))


async def _events(application: "Application", request: Request) -> StreamingResponse:
    runtime = await application.surface(request)
    application.streams.acquire()
    return StreamingResponse(
        200,
        _event_stream(application, runtime, request),
        b"text/event-stream",
        on_close=application.streams.release,
        timeout_seconds=application.settings.max_stream_seconds + _STALL_SECONDS,
    )


async def _event_stream(
    application: "Application", runtime: SurfaceRuntime, request: Request
) -> AsyncIterator[bytes]:
    """Yield events until the surface is deleted, the key becomes invalid or the stream reaches its limit."""
    loop, cache = asyncio.get_running_loop(), application.dashboard_cache
    end = loop.time() + application.settings.max_stream_seconds
    next_state = next_heartbeat = state_sent_at = 0.0
    etag = estimates_tag = b""
    grid = await _bucket_grid(application, runtime)
    while not runtime.is_deleted and _may_read(application, runtime, request):
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
        new_grid = await _bucket_grid(application, runtime)
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
        await asyncio.sleep(min(_TICK_SECONDS - loop.time() % _TICK_SECONDS, max(0.0, end - loop.time())))


def _may_read(application: "Application", runtime: SurfaceRuntime, request: Request) -> bool:
    """Return whether the key of a stream is still valid for its surface."""
    principal = application.authenticator.find(request.headers)
    return principal is not None and "read" in principal.rights and principal.covers(runtime.surface.name)


async def _bucket_grid(application: "Application", runtime: SurfaceRuntime) -> tuple[int, int, int]:
    """Return the start, the width and the number of the closed buckets."""
    buckets = await application.dashboard_cache.closed_buckets(runtime)
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
