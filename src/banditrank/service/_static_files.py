"""Static files of the dashboard and the API page, which contain no data and need no key."""

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from banditrank.service._http import REVALIDATE, Headers, Request, Response
from banditrank.service._http_errors import NOT_FOUND, HttpError
from banditrank.service._routing import Route

if TYPE_CHECKING:
    from banditrank.service._application import Application

_HTML = b"text/html; charset=utf-8"
_CONTENT_TYPES = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = (
    (b"content-security-policy", _CONTENT_SECURITY_POLICY),
    (b"referrer-policy", b"no-referrer"),
)

DIRECTORY = files("banditrank.service") / "static"
"""Directory of the files."""

SWAGGER_UI_DIRECTORY = files("banditrank.service") / "swagger_ui"
"""Directory of Swagger UI; ``tools/update_swagger_ui`` replaces its files."""


class _File(NamedTuple):
    content: bytes
    content_type: bytes
    etag: bytes


@cache
def _files() -> dict[str, _File]:
    """Return the files by name; no other file is served."""
    return _read(DIRECTORY)


@cache
def _swagger_ui_files() -> dict[str, _File]:
    """Return the files of Swagger UI by name; they are large, and read only for the API page."""
    return _read(SWAGGER_UI_DIRECTORY)


def _read(directory: Traversable) -> dict[str, _File]:
    result = {}
    for file in directory.iterdir():
        suffix = file.name.rpartition(".")[2]
        content_type = _HTML if suffix == "html" else _CONTENT_TYPES.get(suffix)
        if content_type is not None:
            content = file.read_bytes()
            etag = b'"%s"' % hashlib.blake2s(content, digest_size=12).hexdigest().encode()
            result[file.name] = _File(content, content_type, etag)
    return result


def _response(request: Request, file: _File) -> Response:
    response = Response(200, file.content, file.content_type, _HEADERS, REVALIDATE)
    return request.conditional(response, file.etag)


async def _surfaces_page(_application: "Application", request: Request) -> Response:
    return _response(request, _files()["index.html"])


async def _surface_page(_application: "Application", request: Request) -> Response:
    return _response(request, _files()["surface.html"])


async def _api_page(_application: "Application", request: Request) -> Response:
    return _response(request, _files()["docs.html"])


async def _asset(_application: "Application", request: Request) -> Response:
    name = request.parameters["file"]
    file = _files().get(name) or _swagger_ui_files().get(name)
    if file is None or file.content_type == _HTML:
        raise HttpError(NOT_FOUND, "no such file")
    return _response(request, file)


ROUTES = (
    Route(
        "GET",
        "/",
        "surfacesPage",
        "Return the page that lists all surfaces.",
        None,
        _surfaces_page,
        content_type="text/html",
        has_etag=True,
    ),
    Route(
        "GET",
        "/surfaces/{surface}",
        "surfacePage",
        "Return the dashboard page of a surface; it is the same for every name.",
        None,
        _surface_page,
        content_type="text/html",
        has_etag=True,
    ),
    Route(
        "GET",
        "/docs",
        "docs",
        "Return the API page, which describes and tries all operations.",
        None,
        _api_page,
        content_type="text/html",
        has_etag=True,
    ),
    Route(
        "GET",
        "/assets/{file}",
        "asset",
        "Return a script, style sheet or image of the pages.",
        None,
        _asset,
        content_type="*/*",
        errors=(NOT_FOUND,),
        has_etag=True,
    ),
)
