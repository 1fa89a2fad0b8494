"""The service as an ASGI application.

Rankings and feedback are asked for thousands of times a second, so nothing stands between the server and the
operations but what every request needs: routing, the right to ask, the body, and the clock.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from multiprocessing import parent_process
from pathlib import Path
from types import MappingProxyType

from banditrank.engine.engine import Engine
from banditrank.engine.journal import Answer, Done, call_back
from banditrank.engine.live_surface import LiveSurface
from banditrank.errors import BanditRankError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.service import (
    access,
    dashboard_operations,
    health,
    openapi,
    pages,
    rankings,
    reports,
    surfaces,
)
from banditrank.service.bodies import Bodies
from banditrank.service.direct_answers import DirectAnswers
from banditrank.service.hosts import OwnHosts
from banditrank.service.messages import (
    RawHeaders,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    query_of,
)
from banditrank.service.metrics import Metrics
from banditrank.service.operations import Operation, Router
from banditrank.service.origins import agreement_with, answer_across_origins
from banditrank.service.problems import UNKNOWN_SURFACE, ProblemError, response_to
from banditrank.service.repeating import repeat
from banditrank.service.rights import KEY_SECONDS, Rights
from banditrank.service.settings import Settings
from banditrank.service.shared_documents import SharedDocuments
from banditrank.service.streams import OpenStreams, Stream
from banditrank.service.tallies import SHARING_SECONDS
from banditrank.service.vitals import SAMPLE_SECONDS, Vitals

OPERATIONS: tuple[Operation, ...] = (
    *surfaces.OPERATIONS,
    *rankings.OPERATIONS,
    *reports.OPERATIONS,
    *dashboard_operations.OPERATIONS,
    *health.OPERATIONS,
    *access.OPERATIONS,
    *pages.OPERATIONS,
    *openapi.OPERATIONS,
)


_PARENT_SECONDS = 1.0


class Application:
    """Answers requests.

    Parameters
    ----------
    settings
        How to.
    truths
        The true worlds of surfaces whose users are simulated, by name: dashboards show them beside.
    shared
        Directory in which workers tell each other what they counted; None if this is the only one.
    """

    engine: Engine
    metrics: Metrics
    vitals: Vitals
    documents: SharedDocuments
    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        settings: Settings,
        truths: Mapping[str, Problem] = MappingProxyType({}),
        shared: Path | None = None,
    ) -> None:
        self.settings = settings
        self._truths = truths
        self._shared = shared
        self.log = logging.getLogger("banditrank.service")
        self.router = Router(OPERATIONS)
        self.bodies = Bodies(OPERATIONS, largest=settings.largest_body, seconds=settings.body_seconds)
        self._own_hosts = OwnHosts()
        self.rights = Rights(always=settings.demands_keys)
        self._background: list[asyncio.Task[None]] = []
        self.direct_answer_to = DirectAnswers(self).to  # for `DirectProtocol`
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
            self._check_host(scope["headers"])
            operation, parameters = self.router.find(scope["method"], _raw_path(scope))
            name = operation.name
            self._check_right(scope["headers"], operation)
            body = None if operation.body is None else await self.bodies.read(operation, scope, receive)
            query = query_of(scope) if operation.query else {}
            response = await operation.handler(self, Request(parameters, query, body, scope["headers"]))
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asked is told
            response = self.refusal(name, error)
        if scope["method"] == "HEAD":
            response = response.head()
        if isinstance(response, Response):
            await response.send(send)
        self.note(name, response.status, start)  # of a stream when it begins: it may go on for hours
        if isinstance(response, Stream):
            await self._stream(response, name, receive, send)

    def admit(self, headers: RawHeaders, operation: Operation) -> None:
        """Raise a problem unless whoever asks may."""
        self._check_host(headers)
        self._check_right(headers, operation)

    def _check_host(self, headers: RawHeaders) -> None:
        if not self.rights.demanded:
            self._own_hosts.check(headers)

    def _check_right(self, headers: RawHeaders, operation: Operation) -> None:
        if operation.right is not None:
            self.rights.check(headers, operation.right)

    def refusal(self, name: str, error: Exception) -> Response:
        """Return the response to a request that ended with an error, and log a mistake of the service."""
        if not isinstance(error, ProblemError | BanditRankError):
            self.log.error("request failed", exc_info=error, extra={"operation": name})
        return response_to(error)

    def agreed(self, response: Response, headers: RawHeaders) -> Response:
        """Return a response with what a browser is to be told, if pages of other origins may ask."""
        if not self.settings.allow_origins:
            return response
        agreement = agreement_with(headers, self.settings.allow_origins)
        return response._replace(headers=(*response.headers, *agreement))

    def note(self, name: str, status: int, start: float) -> None:
        """Count a request, and log it if it is to be."""
        seconds = time.perf_counter() - start
        self.metrics.request(name, status, seconds)
        if status >= 500 or self.settings.log_requests:
            details = {"operation": name, "status": status, "milliseconds": round(seconds * 1e3, 2)}
            self.log.info("request", extra=details)

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
        self.metrics = Metrics(self.engine, self._shared)
        self.vitals = Vitals(self.engine, self.metrics)
        self.documents = SharedDocuments(self.engine, self.vitals)
        await self.rights.read(store)
        self._begin("reading API keys", lambda: self.rights.read_again(store), KEY_SECONDS)
        self._begin("measuring", self._measure, SAMPLE_SECONDS)
        if self._shared is not None:
            self._begin("sharing metrics", self._share_metrics, SHARING_SECONDS)
            self._begin("looking for the parent", _stop_without_parent, _PARENT_SECONDS)
        self.log.info("started", extra={"surfaces": len(self.engine.surfaces())})
        if self.rights.nobody_has_any:
            self.log.warning("API keys are demanded and there are none: make one with banditrank keys create")

    async def stop(self) -> None:
        """Write what is waiting, and close the store."""
        self.stopping.set()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.to_thread(self.engine.close)
        with contextlib.suppress(OSError):
            await self._share_metrics()
        await asyncio.to_thread(self.engine.store.close)
        self.log.info("stopped")

    def _deliver(self, calls: Sequence[tuple[Done, Answer]]) -> None:
        """Call back those who wait for a commit, a whole group in one turn of the loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(call_back, calls)

    def _begin(self, what: str, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        self._background.append(asyncio.create_task(repeat(what, work, seconds)))

    async def _share_metrics(self) -> None:
        await asyncio.to_thread(self.metrics.share)

    async def _measure(self) -> None:
        self.vitals.sample()


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("latin-1")


async def _stop_without_parent() -> None:
    """Stop a worker whose parent was killed: nobody else would, and it has the port."""
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        signal.raise_signal(signal.SIGTERM)
