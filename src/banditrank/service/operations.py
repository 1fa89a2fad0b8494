"""What can be asked: a table from which requests are routed and the OpenAPI document is made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import unquote

from banditrank.engine.api_keys import Right
from banditrank.service.messages import Request, Response
from banditrank.service.problems import NOT_FOUND, WRONG_METHOD, Kind, ProblemError
from banditrank.service.streams import Stream

if TYPE_CHECKING:
    from banditrank.service.application import Application

Handler: TypeAlias = Callable[["Application", Request], Awaitable[Response | Stream]]

_MOST_REMEMBERED = 10_000  # paths whose operations are not looked for again
_LONGEST_REMEMBERED = 128  # characters of such a path: whoever sends longer ones shall not fill the memory


@dataclass(frozen=True)
class Parameter:
    """A parameter of a path or a query."""

    name: str
    description: str
    schema: dict[str, Any]
    example: Any = None


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    Attributes
    ----------
    method, path
        Where; ``{name}`` in a path stands for a parameter, a segment of its own.
    name, summary
        For programs and for people.
    right
        What an API key must allow; None if no key is needed.
    handler
        Gives the response.
    body, answer
        Types of the request's and the response's JSON; None without any.
    status
        Of the response if all goes well.
    problems
        What else may come of it, beside what may come of any request.
    query
        Parameters that may be given.
    content_type
        Of a response that is not JSON.
    events
        Types of the JSON that the events of a stream hold, by their names.
    conditional
        Whether a client that sends the entity tag of what it has is told if that is still the same.
    scope
        ``path`` if the path names the surface that a key must cover, or a key must cover all surfaces;
        ``handler`` if the handler finds out which surfaces are concerned.
    cancellable
        Whether the handler is cancelled when the client disconnects.
    """

    method: str
    path: str
    name: str
    summary: str
    right: Right | None
    handler: Handler
    body: Any = None
    answer: Any = None
    status: int = 200
    problems: tuple[Kind, ...] = ()
    query: tuple[Parameter, ...] = ()
    content_type: str = "application/json"
    events: Mapping[str, Any] = field(default_factory=dict)
    conditional: bool = False
    scope: Literal["path", "handler"] = "path"
    cancellable: bool = False


class Router:
    """Finds operations by method and path."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._methods: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            self._methods.setdefault(operation.path, {})[operation.method] = operation
        self._found: dict[str, tuple[dict[str, Operation], dict[str, str]]] = {}

    def find(self, method: str, raw_path: str) -> tuple[Operation, dict[str, str]]:
        """Return an operation and the parameters in the path, or raise a problem.

        Parameters
        ----------
        method
            HEAD stands for GET.
        raw_path
            As it was sent: a slash within a parameter is written %2F.
        """
        found = self._found.get(raw_path)
        if found is None:
            found = self._match(raw_path.split("/"))
            if len(raw_path) <= _LONGEST_REMEMBERED:  # pages ask for the same few paths over and over
                if len(self._found) >= _MOST_REMEMBERED:  # of which most may be asked for once
                    self._found.clear()
                self._found[raw_path] = found
        methods, parameters = found
        operation = methods.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join(sorted(methods))
            raise ProblemError(
                WRONG_METHOD, f"it can be {allowed}, not {method}", ((b"allow", allowed.encode()),)
            )
        return operation, parameters

    def _match(self, segments: list[str]) -> tuple[dict[str, Operation], dict[str, str]]:
        for path, methods in self._methods.items():
            pattern = path.split("/")
            if len(pattern) == len(segments) and all(map(_fits, pattern, segments)):
                return methods, {
                    name[1:-1]: unquote(given)
                    for name, given in zip(pattern, segments, strict=True)
                    if name.startswith("{")
                }
        raise ProblemError(NOT_FOUND, "the API begins at /v1, its description is at /docs")


def _fits(expected: str, given: str) -> bool:
    return expected == given or (expected.startswith("{") and bool(given))
