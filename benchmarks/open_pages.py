"""Keeps dashboards open: connections on which a service tells what is new, read and thrown away.

Run as ``python benchmarks/open_pages.py PORT PAGES``; it prints a line when all have been told something, and
goes on until it is terminated.
"""

import asyncio
import sys

import uvloop

_REQUEST = b"GET /v1/surfaces/bench/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
_PIECE = 1 << 16


async def keep_open(port: int, told: asyncio.Semaphore) -> None:
    """Read a stream for ever."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ConnectionError(head)
    await reader.readuntil(b"event: state")
    told.release()
    while await reader.read(_PIECE):
        pass
    raise ConnectionError("the stream has ended")


async def run(port: int, pages: int) -> None:
    """Open all pages, and keep them open."""
    told = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(pages):
            group.create_task(keep_open(port, told))
        for _ in range(pages):
            await told.acquire()
        print("started", flush=True)


if __name__ == "__main__":
    uvloop.run(run(*map(int, sys.argv[1:])))
