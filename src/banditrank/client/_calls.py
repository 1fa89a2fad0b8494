"""API calls: the requests of both clients, and how their responses are parsed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.client._default_rankings import IGNORED
from banditrank.client._errors import problem_error
from banditrank.errors import InvalidInputError

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8420"
_REPORT_TIMEOUT_SECONDS = 30.0  # the service makes one report at a time, with pauses
_COMPILATION_TIMEOUT_SECONDS = 120.0  # the first surface of its kind on a machine compiles code


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """A request to the service.

    Attributes
    ----------
    method, path, body, query
        The HTTP request; the body is sent as JSON.
    parse
        Returns the result from the decoded body of the response.
    is_retryable
        Whether the request may be sent again in any case; other requests only if they certainly had no
        effect.
    retry_statuses
        Statuses after which a request that is not retryable certainly had no effect.
    min_timeout_seconds
        Minimum timeout for the response.
    """

    method: str
    path: str
    parse: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, Any] | None = None
    is_retryable: bool = True
    retry_statuses: tuple[int, ...] = ()
    min_timeout_seconds: float = 0.0


def rank(surface: str, user_type: str, **options: Any) -> ApiCall[list[ShownRanking]]:
    """Return the call for a ranking, as a list of one; the options are those of `Client.rank`.

    It is not retryable: a ranking whose response is lost would count as not clicked. A 503 precedes the
    ranking.
    """
    path, body = f"{_surface_path(surface)}/rankings", {"user_type": user_type, **_present(options)}
    return ApiCall(
        "POST",
        path,
        lambda response: _parse_rankings(dict(response) | {"rankings": [response]}),
        body,
        is_retryable=False,
        retry_statuses=(503,),
    )


def _present(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, as JSON-compatible values."""
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name == "visitor":
            values |= {} if value is None else {name: value}
        elif name == "pinned" and value:
            values[name] = {str(position): item for position, item in value.items()}
        elif value or (name == "candidates" and value is not None):
            values[name] = list(value)
    return values


def rank_batch(surface: str, user_types: list[str], **options: Any) -> ApiCall[list[ShownRanking]]:
    """Return the call for several rankings; not retryable, like `rank`."""
    path = f"{_surface_path(surface)}/rankings/batch"
    body = {"user_types": user_types, **_present(options)}
    return ApiCall("POST", path, _parse_rankings, body, is_retryable=False, retry_statuses=(503,))


def feedback(feedback: Feedback) -> ApiCall[str]:
    """Return the call that sends feedback."""
    body = _feedback_body(feedback)
    return ApiCall("POST", "/v1/feedback", lambda response: str(response["status"]), body)


def _feedback_body(feedback: Feedback) -> dict[str, Any]:
    clicked = feedback.clicked if isinstance(feedback.clicked, str | None) else list(feedback.clicked)
    body = {"ranking": feedback.ranking_id, "clicked": clicked, "reward": feedback.reward}
    return body if feedback.final is None else body | {"final": feedback.final}


def feedback_batch(feedback: Iterable[Feedback]) -> ApiCall[list[str | Exception]]:
    """Return the call that sends feedback for several rankings.

    Feedback for default rankings is not part of the body, and its result is ``ignored``.
    """
    feedback = list(feedback)
    for one in feedback:
        if not isinstance(one, Feedback):
            raise InvalidInputError("feedback", "must consist of Feedback tuples", one)
    batch = [_feedback_body(one) for one in feedback if one.ranking_id]

    def parse(response: Any) -> list[str | Exception]:
        results = iter(_parse_feedback_results(response))
        return [next(results) if one.ranking_id else IGNORED for one in feedback]

    return ApiCall("POST", "/v1/feedback/batch", parse, {"feedback": batch})


def surfaces() -> ApiCall[list[dict[str, Any]]]:
    """Return the call for all surfaces."""
    return ApiCall("GET", "/v1/surfaces", lambda response: list(response["surfaces"]))


def surface(name: str) -> ApiCall[dict[str, Any]]:
    """Return the call for a surface."""
    return ApiCall("GET", _surface_path(name), dict)


def create_surface(name: str, settings: Mapping[str, Any]) -> ApiCall[dict[str, Any]]:
    """Return the call that creates a surface."""
    return ApiCall(
        "POST",
        "/v1/surfaces",
        dict,
        {"name": name, **settings},
        is_retryable=False,
        min_timeout_seconds=_COMPILATION_TIMEOUT_SECONDS,
    )


def update_surface(name: str, settings: Mapping[str, Any]) -> ApiCall[dict[str, Any]]:
    """Return the call that updates settings of a surface."""
    return ApiCall(
        "PATCH",
        _surface_path(name),
        dict,
        dict(settings),
        min_timeout_seconds=_COMPILATION_TIMEOUT_SECONDS,
    )


def delete_surface(name: str) -> ApiCall[None]:
    """Return the call that deletes a surface."""
    return ApiCall("DELETE", _surface_path(name), lambda _: None, is_retryable=False)


def add_items(surface: str, items: Iterable[str]) -> ApiCall[dict[str, Any]]:
    """Return the call that adds items."""
    return ApiCall("POST", f"{_surface_path(surface)}/items", dict, {"items": _item_list(items)})


def sync_items(surface: str, items: Iterable[str]) -> ApiCall[dict[str, Any]]:
    """Return the call that adds, revives and retires items."""
    return ApiCall("PUT", f"{_surface_path(surface)}/items", dict, {"items": _item_list(items)})


def retire_items(surface: str, items: Iterable[str]) -> list[ApiCall[dict[str, Any]]]:
    """Return the calls that retire items, one for each item.

    Raises
    ------
    InvalidInputError
        If there is no item.
    """
    path = f"{_surface_path(surface)}/items"
    retire = [
        ApiCall("DELETE", f"{path}/{_segment('item', item)}", dict, is_retryable=False)
        for item in _item_list(items)
    ]
    if not retire:
        raise InvalidInputError("items", "must not be empty", [])
    return retire


def estimates(surface: str, level: float) -> ApiCall[dict[str, Any]]:
    """Return the call for the estimates."""
    path = f"{_surface_path(surface)}/estimates"
    return ApiCall("GET", path, dict, query={"level": level}, min_timeout_seconds=_REPORT_TIMEOUT_SECONDS)


def equality(surface: str) -> ApiCall[dict[str, Any]]:
    """Return the call for the equality report."""
    path = f"{_surface_path(surface)}/equality"
    return ApiCall("GET", path, dict, min_timeout_seconds=_REPORT_TIMEOUT_SECONDS)


def experiment(surface: str) -> ApiCall[dict[str, Any]]:
    """Return the call for the results of an experiment."""
    path = f"{_surface_path(surface)}/experiment"
    return ApiCall("GET", path, dict, min_timeout_seconds=_REPORT_TIMEOUT_SECONDS)


def dashboard(surface: str) -> ApiCall[dict[str, Any]]:
    """Return the call for the dashboard document."""
    return ApiCall("GET", f"{_surface_path(surface)}/dashboard", dict)


def explain(ranking_id: str) -> ApiCall[dict[str, Any]]:
    """Return the call for the explanation of a ranking."""
    path = f"/v1/rankings/{_segment('ranking_id', ranking_id)}"
    return ApiCall("GET", path, dict, min_timeout_seconds=_REPORT_TIMEOUT_SECONDS)


def _item_list(items: Iterable[str]) -> list[str]:
    """Return items as a list, unless they are a single name: a string is a sequence of characters."""
    if isinstance(items, str):
        raise InvalidInputError("items", "must be a list of names", items)
    return list(items)


def _surface_path(name: str) -> str:
    return f"/v1/surfaces/{_segment('surface', name)}"


def _segment(field: str, name: str) -> str:
    """Return a name as a percent-encoded segment of a path.

    Raises
    ------
    InvalidInputError
        If the segment would change the path.

    Examples
    --------
    >>> _segment("item", "ad/2")
    'ad%2F2'
    >>> _segment("item", "..")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: item must not be empty, . or .., got '..'
    """
    if name in ("", ".", ".."):
        raise InvalidInputError(field, "must not be empty, . or ..", name)
    return quote(name, safe="")


def _parse_rankings(response: Any) -> list[ShownRanking]:
    """Return the rankings of a response to `rank_batch`.

    Raises
    ------
    KeyError, TypeError, ValueError
        If they are not rankings.
    """
    rankings = response["rankings"]
    ignored = _names(response.get("ignored", []))  # an older service sends none
    return [
        ShownRanking(
            _names([ranking["id"]])[0],
            _names(ranking["items"]),
            datetime.fromisoformat(ranking["expires_at"]),
            arm=ranking.get("arm"),
            ignored=ignored,
        )
        for ranking in rankings
    ]


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError("a ranking has an id and lists of names")
    return tuple(value)


def _parse_feedback_results(response: Any) -> list[str | Exception]:
    return [
        problem_error(one["problem"]) if one["status"] == "rejected" else str(one["status"])
        for one in response["results"]
    ]


def check_base_url(url: str) -> str:
    """Return the URL of a service. A default order would hide that requests cannot be sent to another.

    Raises
    ------
    InvalidInputError
        If it has another scheme than http and https, or no host.

    Examples
    --------
    >>> check_base_url("shop:8420")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: base_url must be a URL such as http://127.0.0.1:8420, got 'shop:8420'
    """
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (AttributeError, TypeError, ValueError):  # not text, or not a port
        is_valid = False
    if not is_valid:
        raise InvalidInputError("base_url", f"must be a URL such as {DEFAULT_URL}", url)
    return url


def auth_headers(api_key: str | None) -> dict[str, str]:
    """Return the headers that authenticate requests; none without a key.

    Raises
    ------
    InvalidInputError
        If the key cannot be sent in a header.
    """
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise InvalidInputError("api_key", "must consist of printable ASCII characters", "…")
    return {} if api_key is None else {"authorization": f"Bearer {api_key}"}
