"""Descriptions of routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from starlette.responses import Response

from banditrank.engine._api_keys import Right
from banditrank.service._http_errors import HttpErrorType
from banditrank.service._requests import Request

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


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
