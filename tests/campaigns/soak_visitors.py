"""Background activity of a soak run: open dashboards, metrics and changing items."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from urllib.parse import quote

import httpx

_POLL_SECONDS = 2.0
_SCRAPE_SECONDS = 15.0
_REOPEN_SECONDS = 20.0  # after which a stream is closed and another one opened, like pages
MAX_STREAM_SECONDS = 3000.0  # of the other streams; less than the service allows
_ROTATE_SECONDS = 5.0
_CHUNK_BYTES = 1 << 16


class Visitors:
    """Dashboards, a metrics scraper and an editor of items, as tasks.

    Parameters
    ----------
    port
        Port of the service.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.failures: Counter[str] = Counter()
        self._tasks: list[asyncio.Task[None]] = []
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def watch(self, surface: str, *, streams: int) -> None:
        """Open a dashboard that polls, and dashboards with streams."""
        self._start(self._poll(surface))
        for number in range(streams):
            self._start(self._stream(surface, closes=number == 0))

    def rotate_items(self, surface: str, shown: Sequence[str], spare: Sequence[str]) -> None:
        """Replace the oldest item by a spare one, in a loop.

        Names come back: new ones for ever would grow the counts, as they should.
        """
        self._start(self._rotate(surface, list(shown), list(spare)))

    def scrape(self) -> None:
        """Read the metrics as Prometheus would."""
        self._start(self._scrape())

    async def counted(self) -> int:
        """Return the number of counted rankings, of all surfaces."""
        answer = await self._get("/v1/surfaces")
        return 0 if answer is None else sum(surface["rounds"] for surface in answer.json()["surfaces"])

    async def close(self) -> None:
        """Close all dashboards."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self._http.aclose()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _poll(self, surface: str) -> None:
        tag = ""
        while True:
            state = await self._get(
                f"/v1/surfaces/{surface}/dashboard", {"if-none-match": tag} if tag else {}
            )
            if state is not None:
                tag = state.headers.get("etag", tag)
            await self._get(f"/v1/surfaces/{surface}/series")
            await asyncio.sleep(_POLL_SECONDS)

    async def _scrape(self) -> None:
        while True:
            await self._get("/metrics")
            await asyncio.sleep(_SCRAPE_SECONDS)

    async def _stream(self, surface: str, *, closes: bool) -> None:
        while True:
            try:
                async with asyncio.timeout(_REOPEN_SECONDS if closes else MAX_STREAM_SECONDS):
                    await self._read_stream(surface)
            except TimeoutError:
                continue  # this page is closed and another one opened
            except (OSError, asyncio.IncompleteReadError) as error:
                self.failures[f"stream: {error!r}"] += 1
            await asyncio.sleep(1)

    async def _read_stream(self, surface: str) -> None:
        """Read a stream until the service ends it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(f"GET /v1/surfaces/{surface}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise ConnectionError(head)
            while await reader.read(_CHUNK_BYTES):
                pass
            raise ConnectionError("the service ended the stream")
        finally:
            writer.close()

    async def _rotate(self, surface: str, shown: list[str], spare: list[str]) -> None:
        path = f"/v1/surfaces/{surface}/items"
        while True:
            await asyncio.sleep(_ROTATE_SECONDS)
            added, retired = spare.pop(0), shown.pop(0)
            await self._ask("POST", path, json={"items": [added]})
            await self._ask("DELETE", f"{path}/{quote(retired)}")
            shown.append(added)
            spare.append(retired)

    async def _get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response | None:
        return await self._ask("GET", path, headers=headers)

    async def _ask(self, method: str, path: str, **options: object) -> httpx.Response | None:
        try:
            response = await self._http.request(method, path, **options)  # type: ignore[arg-type]
        except httpx.TransportError as error:
            self.failures[f"{method} {path}: {error!r}"] += 1
            return None
        if response.status_code >= 400:
            self.failures[f"{method} {path}: {response.status_code} {response.text[:200]}"] += 1
            return None
        return response
