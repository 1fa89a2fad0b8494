"""What the service is asked, and what its answers mean: the same for both clients."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from banditrank.errors import InvalidInputError

T = TypeVar("T")

DEFAULT_ADDRESS = "http://127.0.0.1:8420"
_REPORT_SECONDS = 30.0  # reports are made one after the other, with pauses
_COMPILING_SECONDS = 120.0  # the first surface of a kind on a machine is compiled, for up to a minute


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
        did not arrive, or was not done.
    undone_after
        Statuses that say so of a request that is not repeatable.
    seconds
        That it may take, if more than the client waits for others.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, Any] | None = None
    repeatable: bool = True
    undone_after: tuple[int, ...] = ()
    seconds: float = 0.0


def rank(surface: str, user_type: str) -> Call[ShownRanking]:
    """Ask what to show.

    A ranking that was given out and got lost would count as not clicked: it is not asked for twice. It is
    refused with 503 before it is given out.
    """
    path, body = f"{_surface(surface)}/rankings", {"user_type": user_type}
    return Call("POST", path, _shown, body, repeatable=False, undone_after=(503,))


def rank_batch(surface: str, user_types: Iterable[str]) -> Call[list[ShownRanking]]:
    """Ask for a ranking for each of several users; not sent twice, as `rank`."""
    path, body = f"{_surface(surface)}/rankings/batch", {"user_types": list(user_types)}
    return Call("POST", path, _all_shown, body, repeatable=False, undone_after=(503,))


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
    body = {"name": name, **settings}
    return Call("POST", "/v1/surfaces", dict, body, repeatable=False, seconds=_COMPILING_SECONDS)


def change_surface(name: str, settings: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Change settings of a surface."""
    return Call("PATCH", _surface(name), dict, dict(settings), seconds=_COMPILING_SECONDS)


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
    return Call(
        "GET", f"{_surface(surface)}/estimates", dict, query={"level": level}, seconds=_REPORT_SECONDS
    )


def equality(surface: str) -> Call[dict[str, Any]]:
    """Ask what treating everyone equally costs."""
    return Call("GET", f"{_surface(surface)}/equality", dict, seconds=_REPORT_SECONDS)


def dashboard(surface: str) -> Call[dict[str, Any]]:
    """Ask for what the surface's page shows."""
    return Call("GET", f"{_surface(surface)}/dashboard", dict)


def explain(ranking: str) -> Call[dict[str, Any]]:
    """Ask why a ranking was made as it was."""
    return Call("GET", f"/v1/rankings/{_segment('ranking', ranking)}", dict, seconds=_REPORT_SECONDS)


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


def _all_shown(answer: Any) -> list[ShownRanking]:
    return [_shown(one) for one in answer["rankings"]]


def headers_with(key: str | None) -> dict[str, str]:
    """Return what is sent with every request."""
    return {} if key is None else {"authorization": f"Bearer {key}"}
