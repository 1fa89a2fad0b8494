"""HTTP load of rankings and feedback over several connections; prints throughput and latencies.

Run as ``python benchmarks/load.py PORT SECONDS CONNECTIONS [--rate R] [--kind feedback|rank|batch]``; it
prints requests a second and latencies. Each ranking is followed by feedback, or rankings are requested alone,
one or `BATCH` in a request. At a rate, latencies count from when a request was to be sent, not from when a
connection was free to send it. Written on bare sockets: a client library would take longer than the service.
"""

import argparse
import asyncio
import json
import random
import time
from collections import deque

import uvloop

_HEAD = (
    "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {n}\r\n\r\n"
)
_TYPES = ("type-1", "type-2", "type-3")
BATCH = 32
"""Rankings in one request."""


def request(path: str, body: bytes) -> bytes:
    """Return a request as it is sent."""
    return _HEAD.format(path=path, n=len(body)).encode() + body


class Connection(asyncio.Protocol):
    """Requests a ranking, then sends its feedback, repeatedly."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.buffer = b""
        self.due = 0.0
        self.reports = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to send requests."""
        self.transport = transport
        self.load.idle.append(self)
        self.load.send_due()

    def request_ranking(self, due: float) -> None:
        """Send a request for a ranking, which was to be sent at a time."""
        self.reports = False
        self.send(self.load.rank_request(), due)

    def send(self, message: bytes, due: float) -> None:
        """Send a request."""
        self.due = due
        self.transport.write(message)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Take in a response, or a part of one."""
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        offset = head.find(b"content-length: ") + 16
        length = int(head[offset : head.find(b"\r\n", offset) if head.find(b"\r\n", offset) > 0 else None])
        if len(body) < length:
            return
        self.buffer = b""
        now = time.perf_counter()
        self.load.finished(now - self.due, ok=head[9:10] == b"2")
        if self.reports or self.load.kind != "feedback":
            self.load.idle.append(self)
        else:
            self.reports = True
            self.send(self.load.feedback_request(body), now)
        self.load.send_due()


class Load:
    """All connections, and what they measured."""

    def __init__(self, surface: str, rate: float | None, kind: str) -> None:
        self.kind = kind
        self.per_ranking = 2 if kind == "feedback" else 1  # requests
        self.idle: deque[Connection] = deque()
        self.latencies: list[float] = []
        self.failed = 0
        self.running = True
        self.rate = rate
        self.started = time.perf_counter()
        self.n_requested = 0
        body = {name: json.dumps({"user_type": name}).encode() for name in _TYPES}
        path = f"/v1/surfaces/{surface}/rankings"
        self.rank_requests = [request(path, body[name]) for name in _TYPES]
        if kind == "batch":
            types = [_TYPES[number % len(_TYPES)] for number in range(BATCH)]
            self.rank_requests = [request(f"{path}/batch", json.dumps({"user_types": types}).encode())]

    def send_due(self) -> None:
        """Send the requests that are due over idle connections."""
        while self.running and self.idle:
            now = time.perf_counter()
            due = now if self.rate is None else self.started + self.n_requested * self.per_ranking / self.rate
            if due > now:
                return
            self.n_requested += 1
            self.idle.popleft().request_ranking(due)

    def rank_request(self) -> bytes:
        """Return a request for a ranking."""
        return random.choice(self.rank_requests)  # noqa: S311 - no secret

    def feedback_request(self, ranking: bytes) -> bytes:
        """Return the feedback for a ranking."""
        end = ranking.find(b'"', 7)
        clicked = ranking[ranking.find(b"[") + 1 : ranking.find(b",", ranking.find(b"["))]
        chosen = clicked if random.random() < 0.3 else b"null"  # noqa: S311 - no secret
        return request("/v1/feedback", b'{"ranking":"%s","clicked":%s}' % (ranking[7:end], chosen))

    def finished(self, seconds: float, *, ok: bool) -> None:
        """Count a response."""
        self.latencies.append(seconds)
        self.failed += not ok


async def run(port: int, seconds: float, connections: int, rate: float | None, kind: str) -> dict[str, float]:
    """Load the service and return what was measured."""
    loop = asyncio.get_running_loop()
    load = Load("bench", rate, kind)
    opened = [
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(connections)
    ]
    await asyncio.sleep(seconds / 4)  # to warm up
    load.latencies.clear()
    load.started = start = time.perf_counter()
    load.n_requested = 0
    while (now := time.perf_counter()) - start < seconds:
        await asyncio.sleep(0.001 if rate else 0.05)
        load.send_due()
    measured = sorted(load.latencies)
    load.running = False
    await asyncio.sleep(0.2)
    for transport, _ in opened:
        transport.close()
    return {
        "requests_a_second": len(measured) / (now - start),
        "p50_ms": measured[len(measured) // 2] * 1e3,
        "p99_ms": measured[int(len(measured) * 0.99)] * 1e3,
        "failed": load.failed,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("connections", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--kind", choices=("feedback", "rank", "batch"), default="feedback")
    print(json.dumps(uvloop.run(run(**vars(parser.parse_args())))))
