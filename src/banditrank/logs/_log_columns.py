"""Columns of a click log: which column is what, given or guessed by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from banditrank.errors import InvalidInputError, UnknownNameError

ColumnKind: TypeAlias = Literal[
    "integer", "number", "boolean", "text", "time", "list", "nested", "mixed", "other"
]
"""Kind of the values of a column: ``nested`` are objects, and lists of objects or lists; ``mixed`` are values
of JSON, of which some may be nested."""

Layout: TypeAlias = Literal["long", "wide", "aggregated"]
"""A row for each displayed item, for each visit, or for several displays with their number of clicks."""

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "user_type": ("user_type", "segment", "user_segment", "type", "cohort", "audience", "user_group"),
    "item": (
        *("item", "item_id", "ad", "ad_id", "product", "product_id", "article", "article_id"),
        *("doc", "doc_id", "document_id", "content_id", "creative_id", "url", "url_id"),
    ),
    "position": ("position", "pos", "rank", "slot", "place"),
    "clicked": ("clicked", "click", "is_clicked", "is_click"),
    "session": (
        *("session", "session_id", "visit", "visit_id", "request", "request_id"),
        *("impression_id", "ranking_id", "list_id", "search_id"),
    ),
    "user": ("user", "user_id", "uid", "visitor", "visitor_id", "customer_id", "device_id"),
    "time": ("time", "timestamp", "ts", "datetime", "event_time", "date", "day", "created_at"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability"),
    "displays": ("displays", "impressions", "impression", "views", "n_displays"),
    "clicks": ("clicks", "n_clicks"),
    "items": ("items", "item_ids", "shown_items", "shown", "ranking", "results"),
    "clicked_item": ("clicked_item", "clicked_items", "chosen", "chosen_item"),
}
"""Names by which columns are guessed, the first that the log has; case and underscores are ignored."""

_NUMBERED = re.compile(r"(.*?)[ _-]?0*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogColumns:
    """Names of the columns of a click log; those that are None are guessed by their name.

    An empty string means that the log has no such column, or that it is not to be used.

    Attributes
    ----------
    user_type
        One or several columns that together are the user type. Without any, all users are of one type.
    item, position, clicked
        The item of a display, its position, and whether it was clicked: 0 or 1, false or true.
    session
        Id that all rows of a visit share, by which the last click above a display is known.
    user
        Id of the user, by which rows are assigned to folds.
    time
        Time of the display: a date, a timestamp, seconds or milliseconds since 1970, or ISO 8601 text.
    propensity
        Probability with which the item was shown at the position.
    displays, clicks
        Number of displays and of clicks of a row, if rows are aggregated. With ``items``, ``clicks`` is a
        list of 0 and 1 for each item.
    items
        The list of all items of a visit, first position first, if a row is a visit; or several columns, one
        for each position.
    clicked_item
        The clicked item, or the list of clicked items, if a row is a visit.

    Examples
    --------
    >>> LogColumns(user_type=["segment", "country"], item="sku", session="").user_type
    ['segment', 'country']
    """

    user_type: str | Sequence[str] | None = None
    item: str | None = None
    position: str | None = None
    clicked: str | None = None
    session: str | None = None
    user: str | None = None
    time: str | None = None
    propensity: str | None = None
    displays: str | None = None
    clicks: str | None = None
    items: str | Sequence[str] | None = None
    clicked_item: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedColumns:
    """Columns of a log, all of which exist.

    Attributes
    ----------
    layout
        What a row is.
    user_types
        Columns of the user type.
    items
        Columns of the items of a visit: one that is a list, or one for each position; empty if not wide.
    names
        Column of each other role that the log has.
    guessed
        Column of each role that was guessed.
    """

    layout: Layout
    user_types: tuple[str, ...]
    items: tuple[str, ...]
    names: Mapping[str, str]
    guessed: Mapping[str, str]

    def describe(self) -> dict[str, list[str]]:
        """Return all columns by role."""
        many = {"user_type": list(self.user_types), "items": list(self.items)}
        return {
            **{role: each for role, each in many.items() if each},
            **{r: [n] for r, n in self.names.items()},
        }


def resolve_columns(  # noqa: C901 - a line a rule
    columns: LogColumns, available: Mapping[str, ColumnKind]
) -> ResolvedColumns:
    """Return the columns of a log: those given, and the others guessed by name.

    Parameters
    ----------
    columns
        Given names.
    available
        Columns of the log with their kinds.

    Raises
    ------
    InvalidInputError
        If the log has no column for items, positions or clicks, or one column has two roles.
    UnknownNameError
        If a given column does not exist; names the nearest one.

    Examples
    --------
    >>> log = {"Segment": "text", "item_id": "integer", "slot": "integer", "clicked": "integer"}
    >>> found = resolve_columns(LogColumns(), log)
    >>> found.layout, found.user_types, dict(found.names)
    ('long', ('Segment',), {'item': 'item_id', 'position': 'slot', 'clicked': 'clicked'})
    """
    given = {field.name: getattr(columns, field.name) for field in fields(columns)}
    chosen: dict[str, tuple[str, ...]] = {}
    for role, value in given.items():
        if value is not None:
            names = (value,) if isinstance(value, str) else tuple(value)
            chosen[role] = tuple(name for name in names if name)
            for name in chosen[role]:
                if name not in available:
                    raise UnknownNameError(f"{role} column", name, available)
    guesses = {role: guess_column(role, available) for role in USUAL_NAMES if role not in chosen}
    found = {role: column for role, column in guesses.items() if column}
    layout = _layout(chosen, found, available)
    roles = _ROLES[layout]
    result: dict[str, tuple[str, ...]] = {}
    guessed: dict[str, str] = {}
    taken = {name for names in chosen.values() for name in names}
    for role in roles:
        if role in chosen:
            result[role] = chosen[role]
        elif role == "items" and not (found.get(role) and available[found[role]] in ("list", "text")):
            result[role] = _numbered_columns(available, taken)
            if result[role]:
                guessed[role] = f"{result[role][0]} to {result[role][-1]}"
        elif role in found and found[role] not in taken:
            result[role] = (found[role],)
            guessed[role] = found[role]
        taken.update(result.get(role, ()))
    if layout == "wide" and result.get("clicked_item") and "clicks" in guessed:
        del result["clicks"], guessed["clicks"]
    for role, named in chosen.items():
        if named and role not in roles:
            raise InvalidInputError(f"{role} column", f"must not be given for {_LAYOUTS[layout]}", named[0])
    _check_roles(layout, result, available)
    single = {role: each[0] for role, each in result.items() if each and role not in ("user_type", "items")}
    return ResolvedColumns(layout, result.get("user_type", ()), result.get("items", ()), single, guessed)


_SHARED = ("session", "user", "time")
_NAME_ROLES = ("item", "items", "user_type")
_ROLES: Mapping[Layout, tuple[str, ...]] = {
    "long": ("item", "position", "clicked", *_SHARED, "propensity", "user_type"),
    "wide": ("items", "clicked_item", "clicks", *_SHARED, "user_type"),
    "aggregated": ("item", "position", "displays", "clicks", "user", "time", "user_type"),
}
_LAYOUTS: Mapping[Layout, str] = {
    "long": "a log with a row for each display",
    "wide": "a log with a row for each visit",
    "aggregated": "a log of aggregated displays",
}


def _layout(
    chosen: Mapping[str, tuple[str, ...]], found: Mapping[str, str], available: Mapping[str, ColumnKind]
) -> Layout:
    if chosen.get("items") or chosen.get("clicked_item"):
        return "wide"
    if chosen.get("displays"):
        return "aggregated"
    has_position = bool(chosen.get("position")) or "position" in found
    has_lists = "items" in found and available[found["items"]] in ("list", "text")
    if not has_position and "items" not in chosen and (has_lists or _numbered_columns(available, set())):
        return "wide"
    has_clicked = bool(chosen.get("clicked")) or ("clicked" in found and "clicked" not in chosen)
    has_amounts = "displays" in found and (bool(chosen.get("clicks")) or "clicks" in found)
    return "aggregated" if has_amounts and not has_clicked else "long"


def _check_roles(
    layout: Layout, result: Mapping[str, tuple[str, ...]], available: Mapping[str, ColumnKind]
) -> None:
    required = {
        "long": ("item", "position", "clicked"),
        "wide": ("items",),
        "aggregated": ("item", "position", "displays", "clicks"),
    }[layout]
    for role in required:
        if not result.get(role):
            usual = ", ".join(USUAL_NAMES[role][:4])
            rule = f"must be named, because no column has a usual name of it ({usual})"
            raise InvalidInputError(f"{role} column", rule, ", ".join(list(available)[:12]))
    if layout == "wide" and not result.get("clicked_item") and not result.get("clicks"):
        rule = "must be named: clicked_item with the clicked items, or clicks with a list of 0 and 1"
        raise InvalidInputError("clicked_item column", rule, ", ".join(list(available)[:12]))
    seen: dict[str, str] = {}
    for role, names in result.items():
        for name in names:
            is_list = available[name] == "list" and not (role == "items" and len(names) == 1)
            if role in _NAME_ROLES and (available[name] == "nested" or is_list):
                raise InvalidInputError(f"{role} column", "must hold names, not objects or lists", name)
            if not name.isprintable():
                raise InvalidInputError(f"{role} column", "must have a printable name", name)
            if name in seen and {role, seen[name]} != {"session", "user"}:
                raise InvalidInputError(
                    f"{role} column", f"must not be the column of {seen[name]}, too", name
                )
            seen[name] = role


def guess_column(role: str, available: Mapping[str, ColumnKind]) -> str | None:
    """Return the first column with a usual name of a role, or None.

    Examples
    --------
    >>> guess_column("user", {"UserID": "text", "Age": "integer"})
    'UserID'
    """
    by_key = {_key(name): name for name in reversed(list(available))}
    return next((by_key[_key(usual)] for usual in USUAL_NAMES[role] if _key(usual) in by_key), None)


def _numbered_columns(available: Mapping[str, ColumnKind], taken: set[str]) -> tuple[str, ...]:
    """Return columns such as item_1, item_2, … in order of their numbers; empty without two of them."""
    prefixes = {_key(name) for name in (*USUAL_NAMES["item"], *USUAL_NAMES["items"])}
    found: dict[str, dict[int, str]] = {}
    for name in available:
        match = _NUMBERED.fullmatch(name)
        if match and _key(match[1]) in prefixes and name not in taken:
            found.setdefault(match[1], {})[int(match[2])] = name
    for columns in found.values():
        numbers = sorted(columns)
        if len(numbers) >= 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return tuple(columns[number] for number in numbers)
    return ()


def _key(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
