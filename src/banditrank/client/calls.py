"""What the service is asked, and what its answers mean: the same for both clients."""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from banditrank.errors import (
    BanditRankError,
    ContradictionError,
    InvalidInputError,
    LapsedRankingError,
    UnknownRankingError,
)

T = TypeVar("T")

DEFAULT_ADDRESS = "http://127.0.0.1:8420"
_PREFIX = "urn:banditrank:problem:"
_ERRORS: dict[str, type[BanditRankError]] = {
    "contradiction": ContradictionError,
    "lapsed": LapsedRankingError,
    "unknown-ranking": UnknownRankingError,
}
_PASSING = (429, 502, 504)  # statuses after which the same request may do better
_NOTHING_DONE = 503  # as the service says: any request may be sent again
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds


class ServiceError(BanditRankError):
    """The service refused a request, or could not be reached.

    Attributes
    ----------
    status
        Of the response; None if there was none.
    kind
        What the problem document says of itself, such as ``unknown-surface``.
    """

    def __init__(self, message: str, status: int | None = None, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ShownRanking:
    """What to show to one user: items in order of positions."""

    id: str
    items: tuple[str, ...]
    expires: datetime


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request and how its answer is read.

    Attributes
    ----------
    repeatable
        Whether sending it twice is the same as sending it once. Otherwise it is only sent again if it surely
        did not arrive.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, Any] | None = None
    repeatable: bool = True


def rank(surface: str, user_type: str) -> Call[ShownRanking]:
    """Ask what to show.

    A ranking that was given out and got lost would count as not clicked: it is not asked for twice.
    """
    return Call("POST", f"{_surface(surface)}/rankings", _shown, {"user_type": user_type}, repeatable=False)


def feedback(ranking: str, clicked: str | None, reward: float) -> Call[str]:
    """Tell what became of a ranking."""
    body = {"ranking": ranking, "clicked": clicked, "reward": reward}
    return Call("POST", "/v1/feedback", lambda answer: str(answer["status"]), body)


def feedback_batch(feedback: Iterable[Mapping[str, Any]]) -> Call[list[dict[str, Any]]]:
    """Tell what became of several rankings."""
    body = {"feedback": [dict(one) for one in feedback]}
    return Call("POST", "/v1/feedback/batch", lambda answer: list(answer["results"]), body)


def surfaces() -> Call[list[dict[str, Any]]]:
    """Ask for all surfaces."""
    return Call("GET", "/v1/surfaces", lambda answer: list(answer["surfaces"]))


def surface(name: str) -> Call[dict[str, Any]]:
    """Ask for a surface."""
    return Call("GET", _surface(name), dict)


def create_surface(name: str, settings: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Create a surface."""
    return Call("POST", "/v1/surfaces", dict, {"name": name, **settings}, repeatable=False)


def change_surface(name: str, settings: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Change settings of a surface."""
    return Call("PATCH", _surface(name), dict, dict(settings))


def delete_surface(name: str) -> Call[None]:
    """Delete a surface."""
    return Call("DELETE", _surface(name), lambda _: None, repeatable=False)


def add_items(surface: str, items: Iterable[str]) -> Call[dict[str, Any]]:
    """Show items from now on."""
    return Call("POST", f"{_surface(surface)}/items", dict, {"items": list(items)}, repeatable=False)


def retire_item(surface: str, item: str) -> Call[dict[str, Any]]:
    """Show an item no more."""
    return Call("DELETE", f"{_surface(surface)}/items/{_segment('item', item)}", dict, repeatable=False)


def estimates(surface: str, level: float) -> Call[dict[str, Any]]:
    """Ask what was learned."""
    return Call("GET", f"{_surface(surface)}/estimates", dict, query={"level": level})


def equality(surface: str) -> Call[dict[str, Any]]:
    """Ask what treating everyone equally costs."""
    return Call("GET", f"{_surface(surface)}/equality", dict)


def dashboard(surface: str) -> Call[dict[str, Any]]:
    """Ask for what the surface's page shows."""
    return Call("GET", f"{_surface(surface)}/dashboard", dict)


def explain(ranking: str) -> Call[dict[str, Any]]:
    """Ask why a ranking was made as it was."""
    return Call("GET", f"/v1/rankings/{_segment('ranking', ranking)}", dict)


def _surface(name: str) -> str:
    return f"/v1/surfaces/{_segment('surface', name)}"


def _segment(what: str, name: str) -> str:
    """Return a name as a segment of a path, or raise an error if it would stand for another place.

    Examples
    --------
    >>> _segment("item", "ad/2")
    'ad%2F2'
    >>> _segment("item", "..")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: item must not be empty, . or .., got '..'
    """
    if name in ("", ".", ".."):
        raise InvalidInputError(what, "must not be empty, . or ..", name)
    return quote(name, safe="")


def _shown(answer: Any) -> ShownRanking:
    return ShownRanking(answer["id"], tuple(answer["items"]), datetime.fromisoformat(answer["expires"]))


def headers_with(key: str | None) -> dict[str, str]:
    """Return what is sent with every request."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def error_of(status: int, text: str) -> BanditRankError:
    """Return the error that a response is."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "detail" not in document:
        return ServiceError(f"the service answered {status}: {text[:200]}", status)
    kind = str(document.get("type", "")).removeprefix(_PREFIX)
    if kind in _ERRORS:
        return _ERRORS[kind](document["detail"])
    return ServiceError(f"{document.get('title')}: {document['detail']}", status, kind)


def may_repeat(call: Call[Any], *, status: int | None, arrived: bool) -> bool:
    """Return whether a request may be sent again.

    Parameters
    ----------
    call
        The request.
    status
        Of the response, None without one.
    arrived
        Whether it may have arrived.
    """
    if status is not None:
        return status == _NOTHING_DONE or (status in _PASSING and call.repeatable)
    return call.repeatable or not arrived


def wait_before(attempt: int, retry_after: str | None) -> float:
    """Return how many seconds to wait before an attempt after the first."""
    longest = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT)
    if retry_after is not None and retry_after.isdigit():
        longest = max(longest, min(float(retry_after), _LONGEST_WAIT))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - so that clients do not come back all at once
