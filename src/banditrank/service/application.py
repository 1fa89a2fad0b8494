"""The service as an ASGI application.

Rankings and feedback are asked for thousands of times a second, so nothing stands between the server and the
operations but what every request needs: routing, the right to ask, the body, and the clock.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from banditrank.engine.engine import Engine
from banditrank.engine.journal import Answer, Done
from banditrank.engine.keys import RIGHTS, Right, rights_of
from banditrank.engine.live_surface import LiveSurface
from banditrank.errors import BanditRankError, StoreError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.service import access, dashboard, health, openapi, pages, rankings, reports, surfaces
from banditrank.service.dashboards import Dashboards
from banditrank.service.messages import (
    BODY_IS_THERE,
    JSON,
    BodyTooLargeError,
    BodyTooSlowError,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    header,
    query_of,
    read_body,
)
from banditrank.service.metrics import Metrics
from banditrank.service.operations import Operation, Router
from banditrank.service.origins import answer_across_origins
from banditrank.service.problems import (
    INVALID,
    MALFORMED,
    NO_KEY,
    NO_RIGHT,
    TOO_LARGE,
    TOO_SLOW,
    UNKNOWN_SURFACE,
    WRONG_CONTENT_TYPE,
    ProblemError,
    response_to,
)
from banditrank.service.settings import Settings
from banditrank.service.streams import OpenStreams, Stream
from banditrank.service.vitals import SAMPLE_SECONDS, Vitals

if TYPE_CHECKING:
    from banditrank.storage.records import KeyRecord

OPERATIONS: tuple[Operation, ...] = (
    *surfaces.OPERATIONS,
    *rankings.OPERATIONS,
    *reports.OPERATIONS,
    *dashboard.OPERATIONS,
    *health.OPERATIONS,
    *access.OPERATIONS,
    *pages.OPERATIONS,
    *openapi.OPERATIONS,
)

_KEY_SECONDS = 2.0  # after which a key that was made or revoked is known as such


class Application:
    """Answers requests.

    Parameters
    ----------
    settings
        How to.
    truths
        The true worlds of surfaces whose users are simulated, by name: dashboards show them beside.
    """

    engine: Engine
    metrics: Metrics
    vitals: Vitals
    dashboards: Dashboards
    loop: asyncio.AbstractEventLoop

    def __init__(self, settings: Settings, truths: Mapping[str, Problem] = MappingProxyType({})) -> None:
        self.settings = settings
        self._truths = truths
        self.log = logging.getLogger("banditrank.service")
        self._router = Router(OPERATIONS)
        self._decoders = {
            operation.name: msgspec.json.Decoder(operation.body)
            for operation in OPERATIONS
            if operation.body is not None
        }
        self._keys: dict[str, KeyRecord] = {}
        self._demands_keys = settings.demands_keys
        self._background: list[asyncio.Task[None]] = []
        self.streams = OpenStreams(settings.most_streams)
        self.stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end with the server."""
        if scope["type"] == "http":
            if self.settings.allow_origins:
                allowed = self.settings.allow_origins
                await answer_across_origins(self._answer, allowed, scope, receive, send)
            else:
                await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            scope.setdefault("state", {})["stopping"] = self.stopping  # see `PunctualProtocol.shutdown`
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        name = "none"
        response: Response | Stream
        try:
            operation, parameters = self._router.find(scope["method"], _raw_path(scope))
            name = operation.name
            if operation.right is not None and self._demands_keys:
                self._check_right(scope, operation.right)
            body = None if operation.body is None else await self._body(operation, scope, receive)
            query = query_of(scope) if operation.query else {}
            response = await operation.handler(self, Request(parameters, query, body, scope["headers"]))
        except (ProblemError, BanditRankError) as error:
            response = response_to(error)
        except Exception as error:
            self.log.exception("request failed", extra={"operation": name})
            response = response_to(error)
        if scope["method"] == "HEAD":
            response = response.head()
        if isinstance(response, Response):
            await response.send(send)
        seconds = time.perf_counter() - start  # of a stream until it begins: it may go on for hours
        self.metrics.request(name, response.status, seconds)
        if response.status >= 500 or self.settings.log_requests:
            details = {"operation": name, "status": response.status, "milliseconds": round(seconds * 1e3, 2)}
            self.log.info("request", extra=details)
        if isinstance(response, Stream):
            await self._stream(response, name, receive, send)

    async def _stream(self, stream: Stream, name: str, receive: Receive, send: Send) -> None:
        try:
            await stream.send(send, receive, self.stopping)
        except Exception:  # the client sees that the response has no end, and asks again
            self.log.exception("stream failed", extra={"operation": name})
            raise

    async def surface(self, request: Request) -> LiveSurface:
        """Return the surface that a path names, or raise a problem."""
        name = request.parameters["surface"]
        live = self.engine.known(name)
        if live is not None:
            return live
        try:
            return await asyncio.to_thread(self.engine.surface, name)
        except UnknownNameError as error:
            raise ProblemError(UNKNOWN_SURFACE, f"there is no surface {str(error.value)[:80]!r}") from None

    async def _body(self, operation: Operation, scope: Scope, receive: Receive) -> Any:
        content_type = header(scope["headers"], b"content-type") or b""
        if content_type != JSON and content_type.partition(b";")[0].strip().lower() != JSON:
            got = content_type.decode("latin-1")[:80]
            raise ProblemError(WRONG_CONTENT_TYPE, f"content-type must be application/json, got {got!r}")
        most = self.settings.largest_body
        try:
            is_there = scope.get(BODY_IS_THERE, False)
            text = await read_body(receive, most=most, seconds=self.settings.body_seconds, is_there=is_there)
        except BodyTooLargeError:
            close = ((b"connection", b"close"),)
            raise ProblemError(TOO_LARGE, f"a body must be at most {most:,} bytes", close) from None
        except BodyTooSlowError:
            close = ((b"connection", b"close"),)
            seconds = self.settings.body_seconds
            raise ProblemError(TOO_SLOW, f"a body must arrive within {seconds:g} seconds", close) from None
        try:
            return self._decoders[operation.name].decode(text)
        except msgspec.ValidationError as error:
            raise ProblemError(INVALID, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProblemError(MALFORMED, str(error)) from None
        except RecursionError:
            raise ProblemError(MALFORMED, "the body is nested too deeply") from None

    @property
    def demands_keys(self) -> bool:
        """Whether a key is needed at present."""
        return self._demands_keys

    def rights(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, ...]:
        """Return what whoever sends these headers may do."""
        if not self._demands_keys:
            return RIGHTS
        scheme, _, key = (header(headers, b"authorization") or b"").partition(b" ")
        return rights_of(key.decode("latin-1"), self._keys) if scheme.lower() == b"bearer" else ()

    def _check_right(self, scope: Scope, right: Right) -> None:
        rights = self.rights(scope["headers"])
        if not rights:
            ask = ((b"www-authenticate", b"Bearer"),)
            raise ProblemError(NO_KEY, "send a valid key: Authorization: Bearer KEY", ask)
        if right not in rights:
            raise ProblemError(
                NO_RIGHT, f"the key must have the right to {right}, it has {', '.join(rights)}"
            )

    # Beginning and ending with the server

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except BanditRankError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        """Open the store and begin to work."""
        self.loop = asyncio.get_running_loop()
        store = await asyncio.to_thread(self.settings.open_store)
        self.engine = await asyncio.to_thread(
            lambda: Engine(
                store,
                sync_seconds=self.settings.sync_seconds,
                deliver=self._deliver,
                bucket_seconds=self.settings.bucket_seconds,
                truths=self._truths,
            )
        )
        self.metrics = Metrics(self.engine)
        self.vitals = Vitals(self.engine, self.metrics)
        self.dashboards = Dashboards(self.engine, self.vitals)
        await self._read_keys()
        self._background = [asyncio.create_task(work) for work in (self._keep_keys(), self._keep_watch())]
        self.log.info("started", extra={"surfaces": len(self.engine.surfaces())})

    async def stop(self) -> None:
        """Write what is waiting, and close the store."""
        self.stopping.set()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.to_thread(self.engine.close)
        await asyncio.to_thread(self.engine.store.close)
        self.log.info("stopped")

    def _deliver(self, calls: Sequence[tuple[Done, Answer]]) -> None:
        """Call back those who wait for a commit, a whole group in one turn of the loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(_call_back, calls)

    async def _keep_keys(self) -> None:
        while True:
            await asyncio.sleep(_KEY_SECONDS)
            with contextlib.suppress(StoreError):  # the engine says so
                await self._read_keys()

    async def _keep_watch(self) -> None:
        while True:
            self.vitals.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _read_keys(self) -> None:
        keys = await asyncio.to_thread(self.engine.store.api_keys)
        self._keys = {key.id: key for key in keys}
        self._demands_keys = self.settings.demands_keys or bool(keys)


def _call_back(calls: Sequence[tuple[Done, Answer]]) -> None:
    for done, answer in calls:
        done(answer)


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("latin-1")
