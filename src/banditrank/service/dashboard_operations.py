"""Operations behind the dashboard's pages."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from banditrank.dashboard.document_schemas import DashboardDocument, SeriesDocument
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import InvalidInputError
from banditrank.service.messages import Request, Response
from banditrank.service.operations import Operation, Parameter
from banditrank.service.problems import TOO_MANY_STREAMS, UNKNOWN_SURFACE
from banditrank.service.streams import Stream

if TYPE_CHECKING:
    from banditrank.service.application import Application

STATE_SECONDS = 2.0
"""Between two states that a stream tells."""

AGAIN_SECONDS = 30.0
"""After which a stream tells a state also if nothing but ages has changed, since ages are shown, too."""

ALIVE_SECONDS = 5.0
"""Between two signs of life, so that a page can tell a quiet service from one that is gone."""

_TICK_SECONDS = 1.0  # all streams look at the same moments, so that one document serves all of them

_STUCK_SECONDS = 30.0  # beyond its time, after which a stream that cannot be sent is cut off

_SINCE = Parameter(
    "since",
    "Leave out buckets that began before this time. Buckets are all told again after they became wider.",
    {"type": "string", "format": "date-time"},
)


def _since(request: Request) -> float | None:
    given = request.query.get("since")
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInputError("since", "must be a time as of ISO 8601", given) from None
    if time.tzinfo is None:
        raise InvalidInputError("since", "must say its offset from UTC, such as Z", given)
    return time.timestamp()


async def _dashboard(application: "Application", request: Request) -> Response:
    live = await application.surface(request)
    state = await application.documents.state(live)
    return request.if_changed(Response(200, state.body), state.tag)


async def _series(application: "Application", request: Request) -> Response:
    live, since = await application.surface(request), _since(request)
    return Response(200, await application.documents.series(live, since=since))


async def _events(application: "Application", request: Request) -> Stream:
    live = await application.surface(request)
    application.streams.add()
    told, seconds = _told(application, live, request), application.settings.stream_seconds
    return Stream(
        200, told, b"text/event-stream", ended=application.streams.remove, seconds=seconds + _STUCK_SECONDS
    )


async def _told(application: "Application", live: SurfaceRuntime, request: Request) -> AsyncIterator[bytes]:
    """Tell what is new, as long as there is the surface and whoever asks may know."""
    loop, documents = asyncio.get_running_loop(), application.documents
    end = loop.time() + application.settings.stream_seconds
    next_state = next_sign = 0.0
    told = 0.0
    tag = b""
    grid = await _grid(application, live)
    while not live.is_deleted and _may_read(application, live, request):
        now = loop.time()
        parts = []
        if now >= next_state:
            next_state = now + STATE_SECONDS - _TICK_SECONDS / 2
            state = await documents.state(live)
            if state.tag != tag or now - told >= AGAIN_SECONDS:
                tag, told = state.tag, now
                parts.append(_event(b"state", state.body))
        present = await _grid(application, live)
        if present != grid:
            same_width = present[:2] == grid[:2]
            first = grid[2] if same_width else 0
            parts.append(_event(b"series", await documents.series(live, first=first)))
            grid = present
        if now >= next_sign:
            next_sign = now + ALIVE_SECONDS - _TICK_SECONDS / 2
            parts.append(b": alive\n\n")
        if parts:
            yield b"".join(parts)
        if loop.time() >= end:
            return
        await asyncio.sleep(min(_TICK_SECONDS - loop.time() % _TICK_SECONDS, max(0.0, end - loop.time())))


def _may_read(application: "Application", live: SurfaceRuntime, request: Request) -> bool:
    """Return whether the key of a stream is still valid for its surface."""
    principal = application.rights.find(request.headers)
    return principal is not None and "read" in principal.rights and principal.covers(live.surface.name)


async def _grid(application: "Application", live: SurfaceRuntime) -> tuple[int, int, int]:
    """Return where the series' buckets begin, how wide they are, and how many are closed."""
    buckets = await application.documents.closed(live)
    return buckets.start_ms, buckets.width_ms, len(buckets.visits)


def _event(name: bytes, document: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, document)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surfaces/{surface}/dashboard",
        "dashboard",
        "All that a dashboard shows but for the series: what is best now, what was learned, and so on.",
        "read",
        _dashboard,
        answer=DashboardDocument,
        problems=(UNKNOWN_SURFACE,),
        conditional=True,
    ),
    Operation(
        "GET",
        "/v1/surfaces/{surface}/series",
        "series",
        "How a surface fared over time.",
        "read",
        _series,
        answer=SeriesDocument,
        problems=(UNKNOWN_SURFACE,),
        query=(_SINCE,),
    ),
    Operation(
        "GET",
        "/v1/surfaces/{surface}/events",
        "events",
        "The same as it changes: events of kind state hold a dashboard document, events of kind series the "
        "buckets that were closed since.",
        "read",
        _events,
        problems=(UNKNOWN_SURFACE, TOO_MANY_STREAMS),
        content_type="text/event-stream",
        events={"state": DashboardDocument, "series": SeriesDocument},
    ),
)
