"""Answers that are given by a call, without a task: to what pages ask all the time."""

import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from banditrank.service.messages import DirectAnswer, RawHeaders, Request, Response
from banditrank.service.operations import DirectHandler, Operation
from banditrank.service.problems import ProblemError

if TYPE_CHECKING:
    from banditrank.service.application import Application

_MOST_REMEMBERED = 1000  # paths
_LONGEST = (
    128  # characters of a path that may be answered directly: whoever sends longer ones fills no memory
)


class DirectAnswers:
    """Finds what answers a request directly.

    Whatever is wrong with a request is left to the usual way, which meets it again and says what it is.

    Parameters
    ----------
    application
        Whose requests are answered.
    """

    def __init__(self, application: "Application") -> None:
        self._application = application
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._found)

    def to(self, path: bytes) -> DirectAnswer | None:
        """Return what answers what is posted to a path, None if nothing can directly."""
        return None if len(path) > _LONGEST else self._remembered(path)

    def _found(self, path: bytes) -> DirectAnswer | None:
        try:
            operation, parameters = self._application.router.find("POST", path.decode("ascii"))
        except (ProblemError, UnicodeDecodeError):
            return None
        if operation.direct is None:
            return None
        return partial(_answer, self._application, operation, operation.direct, parameters)


def _answer(
    application: "Application",
    operation: Operation,
    handler: DirectHandler,
    parameters: Mapping[str, str],
    headers: RawHeaders,
    body: bytes,
    send: Callable[[Response], None],
) -> bool:
    """Answer a request, now or later; or return False."""
    start = time.perf_counter()

    def tell(outcome: Response | Exception) -> None:
        response = outcome
        if isinstance(response, Exception):
            response = application.refusal(operation.name, response)
        send(application.agreed(response, headers))
        application.note(operation.name, response.status, start)

    try:
        application.admit(headers, operation)
        asked = application.bodies.take(operation, headers, body)
        return handler(application, Request(parameters, {}, asked, headers), tell)
    except Exception:  # noqa: BLE001 - the usual way meets it again
        return False
