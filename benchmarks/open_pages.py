"""Keep event streams of dashboards open, and discard their data.

Run as ``python benchmarks/open_pages.py PORT PAGES``; it prints ``started`` after each stream has sent a
state, and runs until it is terminated.
"""

import asyncio
import sys

import uvloop

_REQUEST = b"GET /v1/surfaces/bench/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
_CHUNK_BYTES = 1 << 16


async def keep_open(port: int, started: asyncio.Semaphore) -> None:
    """Read a stream for ever."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ConnectionError(head)
    await reader.readuntil(b"event: state")
    started.release()
    while await reader.read(_CHUNK_BYTES):
        pass
    raise ConnectionError("the stream has ended")


async def run(port: int, pages: int) -> None:
    """Open all pages, and keep them open."""
    started = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(pages):
            group.create_task(keep_open(port, started))
        for _ in range(pages):
            await started.acquire()
        print("started", flush=True)


if __name__ == "__main__":
    uvloop.run(run(*map(int, sys.argv[1:])))
