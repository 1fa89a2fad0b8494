"""Pages of the dashboard and the API, and their files, which contain no data and need no key."""

from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from banditrank.service._http_errors import NOT_FOUND, HttpError
from banditrank.service._requests import Request
from banditrank.service._routing import Handler, Route

# No other files are served.
_CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
}

# The second directory is written by tools/update_swagger_ui.
_files = StaticFiles(packages=[("banditrank.service", "static"), ("banditrank.service", "swagger_ui")])


def _page(name: str) -> Handler:
    async def page(request: Request) -> Response:
        response = await _files.get_response(name, request.scope)
        response.headers.update(_HEADERS)
        return response

    return page


async def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    content_type = _CONTENT_TYPES.get(name.rpartition(".")[2])
    if content_type is not None:
        with suppress(HTTPException):
            response = await _files.get_response(name, request.scope)
            response.headers.update(_HEADERS | {"content-type": content_type})
            return response
    raise HttpError(NOT_FOUND, "no such file")


ROUTES = (
    Route(
        "GET",
        "/",
        "surfacesPage",
        "Return the page that lists all surfaces.",
        None,
        _page("index.html"),
        content_type="text/html",
        has_etag=True,
    ),
    Route(
        "GET",
        "/surfaces/{surface}",
        "surfacePage",
        "Return the dashboard page of a surface; it is the same for every name.",
        None,
        _page("surface.html"),
        content_type="text/html",
        has_etag=True,
    ),
    Route(
        "GET",
        "/docs",
        "docs",
        "Return the API page, which describes and tries all operations.",
        None,
        _page("docs.html"),
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
