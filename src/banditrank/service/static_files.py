"""The dashboard's files: part of the package, without data, the same for everybody."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from banditrank.service.http import REVALIDATED, Headers, Request, Response
from banditrank.service.http_errors import NOT_FOUND, HttpError
from banditrank.service.routing import Route

if TYPE_CHECKING:
    from banditrank.service.application import Application

_HTML = b"text/html; charset=utf-8"
_KINDS = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = ((b"content-security-policy", _POLICY), (b"referrer-policy", b"no-referrer"))


DIRECTORY = files("banditrank.service") / "static"


class _File(NamedTuple):
    content: bytes
    content_type: bytes
    tag: bytes


@cache
def _files() -> dict[str, _File]:
    """Return the files by name: only what is listed here can be asked for."""
    found = {}
    for file in DIRECTORY.iterdir():
        ending = file.name.rpartition(".")[2]
        kind = _HTML if ending == "html" else _KINDS.get(ending)
        if kind is not None:
            content = file.read_bytes()
            tag = b'"%s"' % hashlib.blake2s(content, digest_size=12).hexdigest().encode()
            found[file.name] = _File(content, kind, tag)
    return found


def _response(request: Request, file: _File) -> Response:
    response = Response(200, file.content, file.content_type, _HEADERS, REVALIDATED)
    return request.if_changed(response, file.tag)


async def _surfaces(_application: "Application", request: Request) -> Response:
    return _response(request, _files()["index.html"])


async def _surface(_application: "Application", request: Request) -> Response:
    return _response(request, _files()["surface.html"])


async def _asset(_application: "Application", request: Request) -> Response:
    file = _files().get(request.parameters["file"])
    if file is None or file.content_type == _HTML:
        raise HttpError(NOT_FOUND, "the dashboard has no such file")
    return _response(request, file)


ROUTES = (
    Route(
        "GET",
        "/",
        "surfacesPage",
        "The dashboard: all surfaces.",
        None,
        _surfaces,
        content_type="text/html",
        conditional=True,
    ),
    Route(
        "GET",
        "/surfaces/{surface}",
        "surfacePage",
        "The dashboard: one surface. The page itself finds out whether there is one of this name.",
        None,
        _surface,
        content_type="text/html",
        conditional=True,
    ),
    Route(
        "GET",
        "/assets/{file}",
        "asset",
        "Scripts, styles and pictures of the dashboard.",
        None,
        _asset,
        content_type="*/*",
        problems=(NOT_FOUND,),
        conditional=True,
    ),
)
