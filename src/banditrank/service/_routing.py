"""Routes and the router."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import unquote

from banditrank.engine._api_keys import Right
from banditrank.service._http import Request, Response
from banditrank.service._http_errors import NOT_FOUND, WRONG_METHOD, HttpError, HttpErrorType
from banditrank.service._streams import StreamingResponse

if TYPE_CHECKING:
    from banditrank.service._application import Application

Handler: TypeAlias = Callable[["Application", Request], Awaitable[Response | StreamingResponse]]

_MAX_CACHED_PATHS = 10_000
_MAX_CACHED_PATH_LENGTH = 128  # bounds the memory that clients can fill


@dataclass(frozen=True)
class Parameter:
    """A parameter of a path, a query string or a header.

    Attributes
    ----------
    name
        Name of the parameter.
    description
        One sentence, for the API reference.
    schema
        JSON Schema of the value.
    """

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Route:
    """A route: the handler of a method and a path, and its OpenAPI description.

    Attributes
    ----------
    method, path
        HTTP method and path; ``{name}`` in the path is a parameter that spans one segment.
    operation_id
        OpenAPI operation id, also the label of the route in metrics and log lines.
    summary
        One sentence, for the API reference.
    right
        Right that the API key must have; None for routes without authentication.
    handler
        Coroutine function that returns the response.
    request_schema, response_schema
        Types of the JSON bodies; None without a body.
    status
        Status of a successful response.
    errors
        Types of errors of this route, besides those that every route may return.
    query
        Optional query parameters.
    content_type
        Content type of a successful response.
    events
        Types of the JSON data of server-sent events, by event name.
    has_etag
        Whether the response has an entity tag, so that ``If-None-Match`` is answered with a 304.
    scope
        ``path`` if the key must cover the surface in the path, or all surfaces if the path has none;
        ``handler`` if the handler checks which surfaces the key must cover.
    is_cancellable
        Whether the handler is cancelled when the client disconnects.
    """

    method: str
    path: str
    operation_id: str
    summary: str
    right: Right | None
    handler: Handler
    request_schema: Any = None
    response_schema: Any = None
    status: int = 200
    errors: tuple[HttpErrorType, ...] = ()
    query: tuple[Parameter, ...] = ()
    content_type: str = "application/json"
    events: Mapping[str, Any] = field(default_factory=dict)
    has_etag: bool = False
    scope: Literal["path", "handler"] = "path"
    is_cancellable: bool = False


class Router:
    """Finds the route of a request.

    Parameters
    ----------
    routes
        All routes; the first match wins.

    Attributes
    ----------
    methods
        Methods of all routes, sorted.
    """

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.methods = sorted({route.method for route in routes})
        self._methods: dict[str, dict[str, Route]] = {}
        for route in routes:
            self._methods.setdefault(route.path, {})[route.method] = route
        self._cache: dict[str, tuple[dict[str, Route], dict[str, str]]] = {}

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a request and the parameters in its path.

        Parameters
        ----------
        method
            HTTP method; HEAD finds the route of GET.
        raw_path
            Percent-encoded path: a slash within a parameter is ``%2F``.

        Raises
        ------
        HttpError
            A 404 if no route has this path, a 405 if none of them has this method.
        """
        match = self._cache.get(raw_path)
        if match is None:
            match = self._match(raw_path.split("/"))
            if len(raw_path) <= _MAX_CACHED_PATH_LENGTH:
                if len(self._cache) >= _MAX_CACHED_PATHS:
                    self._cache.clear()
                self._cache[raw_path] = match
        methods, parameters = match
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise HttpError(
                WRONG_METHOD,
                f"method {method} is not allowed, only {allowed}",
                ((b"allow", allowed.encode()),),
            )
        return route, parameters

    def _match(self, segments: list[str]) -> tuple[dict[str, Route], dict[str, str]]:
        for path, methods in self._methods.items():
            pattern = path.split("/")
            if len(pattern) == len(segments) and all(map(_matches, pattern, segments)):
                return methods, {
                    name[1:-1]: unquote(segment)
                    for name, segment in zip(pattern, segments, strict=True)
                    if name.startswith("{")
                }
        raise HttpError(NOT_FOUND, "no such path; the API is at /v1, its reference at /docs")


def _matches(pattern: str, segment: str) -> bool:
    return pattern == segment or (pattern.startswith("{") and bool(segment))
