"""Request reports over several connections, one after the other: ``report_flood.py PORT N KEY``."""

import asyncio
import sys
from itertools import cycle

PATHS = ("/v1/surfaces/catalog/estimates", "/v1/surfaces/bench/equality", "/v1/surfaces/catalog/equality")


async def request_reports(port: int, key: str) -> None:
    """Request one report after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for path in cycle(PATHS):
        head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in answer.split(b"\r\n") if line.startswith(b"content-length")
        )
        await reader.readexactly(length)


async def main(port: int, connections: int, key: str) -> None:
    """Request reports until terminated."""
    requesting = [asyncio.create_task(request_reports(port, key)) for _ in range(connections)]
    await asyncio.sleep(0.2)
    print("started", flush=True)
    await asyncio.gather(*requesting)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
