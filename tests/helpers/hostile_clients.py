"""Hostile clients of an HTTP server in a process of its own, and the memory that they take there."""

import asyncio
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from helpers.framing_client import Address
from helpers.servers import free_port

STRICT = ("uvicorn", "--http", "banditrank.service.strict_http:StrictHttpProtocol", "--no-access-log")
SENT_BYTES = 1 << 25
QUIET_SECONDS = 0.3
PAGE_BYTES = 4096

HOLD = b"POST /hold HTTP/1.1\r\nhost: localhost\r\n"
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = HOLD + b"transfer-encoding: chunked\r\n\r\n"

HOSTILE_CLIENTS = {
    "silent": (b"", b""),
    "endless header": (GET + b"x-more: ", b"y" * 65536),
    "headers without end": (GET, b"aa:\r\n" * 10_000),
    "endless target": (b"GET /", b"y" * 65536),
    "body that is not read": (HOLD + b"content-length: 1000000000000\r\n\r\n", b"y" * 65536),
    "chunks that are not read": (CHUNKED, b"1\r\ny\r\n" * 10_000),
    "endless chunk extension": (CHUNKED + b"1;", b"y" * 65536),
    "trailers without end": (CHUNKED + b"0\r\n", b"aa: y\r\n" * 10_000),
    "pipelined requests behind one that waits": (HOLD + b"\r\n", (GET + b"\r\n") * 2_000),
    "pipelined requests, responses not read": (b"", (GET + b"\r\n") * 2_000),
    "stream that is not read": (GET.replace(b"/", b"/stream", 1) + b"\r\n", b""),
}
"""What a client sends first, and then again and again, without reading."""


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Respond at once, with a stream without end, or never and without reading the body."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/hold":
        await asyncio.Event().wait()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"y" * 65536, "more_body": True})
    await receive()
    await send({"type": "http.response.body", "body": b"y" * 1000})


class ServerProcess:
    """A server with its address."""

    def __init__(self, address: Address, pid: int) -> None:
        self.address = address
        self._statm = Path(f"/proc/{pid}/statm")

    def resident_bytes(self) -> int:
        """Return the memory of the process."""
        return int(self._statm.read_text().split()[1]) * PAGE_BYTES

    @contextmanager
    def attacked(self, kind: str, n_clients: int) -> Iterator[None]:
        """Let clients send as much as the server takes, and keep them until the block ends."""
        first, repeated = HOSTILE_CLIENTS[kind]
        with ExitStack() as stack, selectors.DefaultSelector() as selector:
            for _ in range(n_clients):
                client = stack.enter_context(socket.create_connection(self.address))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(first)
                client.setblocking(False)
                if repeated:
                    selector.register(client, selectors.EVENT_WRITE, [0])
            while ready := selector.select(QUIET_SECONDS) if selector.get_map() else []:
                for key, _ in ready:
                    try:
                        key.data[0] += key.fileobj.send(repeated[key.data[0] % len(repeated) :])  # type: ignore[union-attr]
                    except OSError:
                        selector.unregister(key.fileobj)
                    else:
                        if key.data[0] >= SENT_BYTES:
                            selector.unregister(key.fileobj)
            time.sleep(QUIET_SECONDS)
            yield


@contextmanager
def server_process(*command: str) -> Iterator[ServerProcess]:
    """Run a server, with the option `--port`, in a process of its own until the block ends."""
    port = free_port()
    arguments = [sys.executable, "-m", *command, "--port", str(port)]
    tests = Path(__file__).parents[1]
    with subprocess.Popen(arguments, cwd=tests, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            while not _is_listening(port):
                assert process.poll() is None, "the server did not start"
                time.sleep(0.02)
            yield ServerProcess(("127.0.0.1", port), process.pid)
        finally:
            # Some servers serve in processes of their own.
            os.killpg(process.pid, signal.SIGKILL)


def _is_listening(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0
