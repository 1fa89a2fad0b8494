"""Server of the dashboard's page with made-up documents, which can stop and fail."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import unquote, urlsplit

from banditrank.dashboard._document_schemas import CountsDocument
from helpers.dashboard_documents import Document, Made, explanation, last_bucket

PAGES = files("banditrank.service") / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
ALL_RIGHTS = ("rank", "read", "administer")


@dataclass
class Fixture:
    """State of the server.

    Attributes
    ----------
    made
        Surfaces by name.
    rights
        Rights by key; None if keys are not required.
    streams
        Whether there are server-sent events.
    is_loading
        Whether surfaces are still being loaded after a start.
    broken_series, broken_events
        Whether requests of the series, or the events, fail.
    held
        Paths whose responses are held back until the test releases them.
    explained
        Fields that replace those of explanations.
    requests
        All requests, as method and path.
    """

    made: dict[str, Made]
    rights: dict[str, tuple[str, ...]] | None = None
    streams: bool = True
    is_loading: bool = False
    broken_series: bool = False
    broken_events: bool = False
    held: set[str] = field(default_factory=set)
    explained: Document = field(default_factory=dict)
    slow: threading.Event = field(default_factory=threading.Event)  # set: the dashboard gets no response
    muted: threading.Event = field(default_factory=threading.Event)  # set: streams send nothing
    requests: list[str] = field(default_factory=list)
    port: int = 0
    version: int = 0
    n_closed: int = 0
    counts: Document | None = None  # the last that was sent without estimates
    changed: threading.Condition = field(default_factory=threading.Condition)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(self, name: str) -> str:
        return f"{self.address}/surfaces/{name}"

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        fixture = self

        class Bound(_Handler):
            served = fixture

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Bound)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and close all streams."""
        server, self._server = self._server, None
        with self.changed:
            self.changed.notify_all()
        if server is not None and self._thread is not None:
            server.shutdown()
            self._thread.join()
            server.server_close()

    @property
    def listens(self) -> bool:
        return self._server is not None

    def change(self, name: str, **changes: Any) -> None:
        """Change a surface's dashboard and notify open streams."""
        made = self.made[name]
        with self.changed:
            made.dashboard.update(changes)
            self.version += 1
            self.changed.notify_all()

    def count(self, name: str, **changes: Any) -> None:
        """Change what a surface's dashboard knows at once and send it without the estimates."""
        dashboard = self.made[name].dashboard
        with self.changed:
            dashboard.update(changes)
            self.counts = {field: dashboard[field] for field in CountsDocument.__annotations__}
            self.changed.notify_all()

    def close_bucket(self, name: str) -> None:
        """Append a copy of the last bucket to a surface's series and notify open streams."""
        series = self.made[name].series
        count = len(series["visits"])
        with self.changed:
            for values in series.values():
                if isinstance(values, list) and len(values) == count:
                    values.append(values[-1])
            self.n_closed += 1
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    served: Fixture
    protocol_version = "HTTP/1.0"  # a connection a request: one kept alive would outlive the server

    def log_message(self, *_: object) -> None:
        """Log nothing: tests read `requests`."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.served.requests.append(f"GET {path}")
        if path == "/":
            self._file("index.html")
        elif path.startswith("/surfaces/"):
            self._file("surface.html")
        elif path.startswith("/assets/"):
            self._file(path.removeprefix("/assets/"))
        elif path == "/v1/access":
            self._json({"keys_required": self.served.rights is not None, "rights": list(self._rights())})
        elif "read" not in self._rights():
            self._problem(401, "send a valid key: Authorization: Bearer KEY")
        else:
            self._api(path)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self.served.requests.append(f"POST {path}")
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "administer" not in self._rights():
            self._problem(403, "the key must have the right to administer")
        elif path == "/v1/surfaces":
            if given["name"] in self.served.made:
                self._problem(409, f"there is a surface {given['name']!r} already")
            else:
                self.created = given
                self._json({**given, "revision": 1, "version": 0, "rounds": 0}, status=201)
        else:
            surface = self.served.made[path.split("/")[3]].surface
            known = {item["name"]: item for item in surface["items"]}
            for name in given["items"]:
                if name in known and not known[name]["retired"]:
                    self._problem(422, f"items must not be active already, got {name!r}")
                    return
            for name in given["items"]:
                if name in known:
                    known[name]["retired"] = False
                else:
                    surface["items"].append({"name": name, "retired": False})
            self._json(surface)

    def do_DELETE(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.served.requests.append(f"DELETE {path}")
        _, _, _, name, _, item = path.split("/", 5)
        surface = self.served.made[name].surface
        for one in surface["items"]:
            one["retired"] |= one["name"] == item
        self._json(surface)

    def _api(self, path: str) -> None:
        made = self.served.made
        if path == "/v1/surfaces":
            surfaces = [one.surface for one in made.values()]
            self._json({"surfaces": surfaces, "is_loading": self.served.is_loading})
            return
        if path.startswith("/v1/rankings/"):
            self._explain(path.removeprefix("/v1/rankings/"))
            return
        _, _, _, name, *rest = path.split("/")
        if name not in made:
            self._problem(404, f"there is no surface {name!r}")
        elif not rest:
            self._json(made[name].surface)
        elif rest == ["dashboard"]:
            self._dashboard(made[name])
        elif rest == ["series"] and self.served.broken_series:
            self._problem(500, "It was logged, and nothing was changed", {"x-request-id": "5f2c81"})
        elif rest == ["series"]:
            self._json(made[name].series)
        elif rest == ["events"] and self.served.streams:
            self._stream(made[name])
        elif rest == ["events"]:
            self._problem(406, "there is no stream")

    def _explain(self, ranking: str) -> None:
        for made in self.served.made.values():
            if any(one["id"] == ranking for one in made.dashboard["latest_rankings"]):
                self._json(explanation(made, ranking) | self.served.explained)
                return
        self._problem(404, "the id was not given out here")

    def _dashboard(self, made: Made) -> None:
        etag = f'"{self.served.version}"'
        if self.headers.get("if-none-match") == etag:
            self._send(304, b"", "application/json", {"etag": etag})
        else:
            self._json(made.dashboard, headers={"etag": etag})

    def _stream(self, made: Made) -> None:
        served = self.served
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        sent_version, n_closed, counts = -1, served.n_closed, served.counts
        try:
            while served.listens and self.server is served._server:
                with served.changed:
                    if served.muted.is_set():
                        served.changed.wait(0.1)
                        continue
                    if n_closed < served.n_closed:
                        n_closed = served.n_closed
                        self._event("series", last_bucket(made.series))
                    if served.counts is not counts:
                        counts = served.counts
                        self._event("counts", counts or {})
                    if served.slow.is_set() or sent_version == served.version:
                        self.wfile.write(b": alive\n\n")
                        served.changed.wait(1.0)
                        continue
                    sent_version = served.version
                    self._event("state", made.dashboard)
        except (BrokenPipeError, ConnectionResetError):
            return

    def _event(self, kind: str, document: Document) -> None:
        content = "{" if self.served.broken_events else json.dumps(document)
        self.wfile.write(f"event: {kind}\ndata: {content}\n\n".encode())
        self.wfile.flush()

    def _rights(self) -> tuple[str, ...]:
        if self.served.rights is None:
            return ALL_RIGHTS
        return self.served.rights.get((self.headers.get("authorization") or "").removeprefix("Bearer "), ())

    def _file(self, name: str) -> None:
        for file in PAGES.iterdir():
            if file.name == name:
                headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
                self._send(200, file.read_bytes(), KINDS[name.rsplit(".", 1)[1]], headers)
                return
        self._problem(404, "there is nothing here")

    def _json(self, document: Document, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        while unquote(urlsplit(self.path).path) in self.served.held and self.served.listens:
            time.sleep(0.01)
        self._send(status, body, "application/json", headers or {})

    def _problem(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        document = {"type": "urn:banditrank:problem:x", "title": "x", "status": status, "detail": detail}
        self._json(document, status=status, headers=headers)

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the page has gone elsewhere
            self.end_headers()
            self.wfile.write(body)


@contextmanager
def serving(*made: Made, **settings: Any) -> Iterator[Fixture]:
    """Serve the page and some surfaces until the block ends."""
    fixture = Fixture({one.name: one for one in made}, **settings)
    fixture.start()
    try:
        yield fixture
    finally:
        fixture.stop()
