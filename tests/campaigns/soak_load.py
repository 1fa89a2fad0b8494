"""HTTP load for soak runs: rankings and feedback on several surfaces, over bare sockets.

A client library would take more of the machine than the service. Latencies count from when a request was due,
so that a slow response also shows in the requests that waited behind it.
"""

import asyncio
import json
import math
import random
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple, cast

_HEAD = (
    "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {n}\r\n\r\n"
)
_CLICKED = 0.3  # share of reported rankings with a click
_TICK_SECONDS = 0.001
_STALL_SECONDS = 60.0  # without a response


class Traffic(NamedTuple):
    """The requests for one surface."""

    surface: str
    user_types: Sequence[str]
    reported: float = 1.0  # share of rankings with feedback


class _Connection(asyncio.Protocol):
    """A connection that ranks, then reports."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.buffer = b""
        self.due = 0.0
        self.is_reported = False  # whether the current ranking gets feedback

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.load.idle.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.load.closing:
            self.load.failures[f"connection lost: {error}"] += 1
            self.load.connections.remove(self)
            if self in self.load.idle:
                self.load.idle.remove(self)

    def send(self, message: bytes, due: float, *, is_reported: bool) -> None:
        self.due = due
        self.is_reported = is_reported
        self.transport.write(message)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        start = head.find(b"content-length: ") + 16
        end = head.find(b"\r\n", start)
        if len(body) < int(head[start : end if end > 0 else None]):
            return
        self.buffer = b""
        now = time.perf_counter()
        is_ok = self.load.receive(now - self.due, head, body)
        if self.is_reported and is_ok:
            self.send(self.load.feedback(body), now, is_reported=False)
        else:
            self.load.idle.append(self)
            self.load.send_due()


class Load:
    """Requests over a number of connections, with their latencies.

    Parameters
    ----------
    port
        Port of the service.
    traffic
        The surfaces, which get equal shares of the rankings.
    seed
        For surfaces, user types, clicks and rankings without feedback.
    """

    def __init__(self, port: int, traffic: Sequence[Traffic], *, seed: int) -> None:
        self.port = port
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.choices = [
            (_request(f"/v1/surfaces/{one.surface}/rankings", _json({"user_type": user_type})), one.reported)
            for one in traffic
            for user_type in one.user_types
        ]
        self.weights = [1 / len(one.user_types) for one in traffic for _ in one.user_types]
        reported = zip((share for _, share in self.choices), self.weights, strict=True)
        self.requests_per_ranking = 1 + sum(a * b for a, b in reported) / sum(self.weights)
        self.idle: deque[_Connection] = deque()
        self.connections: list[_Connection] = []
        self.closing = False
        self.requests = 0
        self.latencies: list[float] = []  # seconds, since they were last cleared
        self.failures: Counter[str] = Counter()
        self._rate: float | None = None
        self._left = 0.0  # remaining number of rankings to request
        self._started = 0.0
        self._asked = 0

    async def open(self, connections: int) -> None:
        """Open connections."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            _, protocol = await loop.create_connection(lambda: _Connection(self), "127.0.0.1", self.port)
            self.connections.append(protocol)

    def close(self) -> None:
        """Close all connections."""
        self.closing = True
        for connection in self.connections:
            connection.transport.close()

    async def run_rankings(self, rankings: int) -> None:
        """Request a number of rankings as fast as responses come, and wait for all responses."""
        self._begin(None, rankings)
        self.send_due()
        await self._settle()

    async def run_seconds(self, seconds: float, *, rate: float | None = None) -> float:
        """Send requests for some seconds; return the number of responses per second.

        Parameters
        ----------
        seconds
            How long to send requests.
        rate
            Requests a second; as fast as responses come without one.
        """
        self._begin(rate, math.inf)
        before, start = self.requests, time.perf_counter()
        try:
            while (now := time.perf_counter()) < start + seconds:
                self.send_due()
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            self._left = 0
        reached = (self.requests - before) / (now - start)
        await self._settle()
        return reached

    def _begin(self, rate: float | None, rankings: float) -> None:
        self._rate, self._left = rate, rankings
        self._started, self._asked = time.perf_counter(), 0

    async def _settle(self) -> None:
        """Wait until no response is outstanding."""
        seen, since = self.requests, time.monotonic()
        while self._left > 0 or len(self.idle) < len(self.connections):
            await asyncio.sleep(_TICK_SECONDS)
            if self.requests > seen:
                seen, since = self.requests, time.monotonic()
            elif time.monotonic() > since + _STALL_SECONDS:
                raise TimeoutError(f"no response for {_STALL_SECONDS:.0f} seconds; {dict(self.failures)}")

    def send_due(self) -> None:
        """Request rankings on idle connections, as many as are due."""
        while self.idle and self._left > 0:
            due = now = time.perf_counter()
            if self._rate is not None:
                due = self._started + self._asked * self.requests_per_ranking / self._rate
                if due > now:
                    return
            self._asked += 1
            self._left -= 1
            message, reported = self.random.choices(self.choices, self.weights)[0]
            is_reported = self.random.random() < reported
            self.idle.popleft().send(message, due, is_reported=is_reported)

    def receive(self, seconds: float, head: bytes, body: bytes) -> bool:
        """Count a response, and return whether it is a success."""
        self.requests += 1
        self.latencies.append(seconds)
        is_ok = head[9:10] == b"2"
        if not is_ok:
            self.failures[f"{head[9:12].decode()}: {body[:200].decode(errors='replace')}"] += 1
        return is_ok

    def feedback(self, ranking: bytes) -> bytes:
        """Return a feedback request for a ranking, as received."""
        shown = json.loads(ranking)
        clicked = self.random.choice(shown["items"]) if self.random.random() < _CLICKED else None
        return _request("/v1/feedback", _json({"ranking": shown["id"], "clicked": clicked}))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _request(path: str, body: bytes) -> bytes:
    return _HEAD.format(path=path, n=len(body)).encode() + body
