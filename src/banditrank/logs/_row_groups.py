"""Rows of a log by reason: which are counted, which are bad, and where the first bad ones are."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._text import plural
from banditrank.errors import InvalidInputError
from banditrank.logs._count_queries import (
    MAX_AMOUNT,
    MIN_PROPENSITY,
    VISIT_DUPLICATE,
    VISIT_EMPTY,
    VISIT_INVALID_ITEM,
    VISIT_INVALID_TYPE,
    VISIT_OK,
    VISIT_SEVERAL_CLICKS,
    VISIT_UNSHOWN_CLICK,
)
from banditrank.logs._log_columns import ResolvedColumns

NOT_A_NAME = "\x01"
"""Character before nested values and texts that are not Unicode, which must not be taken for names."""

COUNTED = "counted"
OUTSIDE = "outside since and until"
BEYOND_LIMIT = "position beyond the limit"
NOT_A_POSITION = "position is not a whole number"
OUT_OF_RANGE = "position is out of range"
NOT_A_CLICK = "clicked is not 0 or 1"
NOT_A_TIME = "time is not a time"
NOT_A_PROPENSITY = "propensity is not above 0 and at most 1"
_MAX_AMOUNT = int(float(MAX_AMOUNT))
NOT_AMOUNTS = f"displays or clicks are not whole numbers from 0 to {_MAX_AMOUNT:,}"
MORE_CLICKS = "more clicks than displays"
DUPLICATE = "position or item twice in a visit"
SEVERAL_CLICKS = "several clicks in a visit"
UNSHOWN_CLICK = "click on an item that was not shown"
EMPTY_VISIT = "visit without items"


def not_a_name(role: str) -> str:
    """Return the reason of rows with a value that is not a name."""
    return f"{role} is not a printable name"


FLAG_REASONS = {
    VISIT_DUPLICATE: DUPLICATE,
    VISIT_SEVERAL_CLICKS: SEVERAL_CLICKS,
    VISIT_UNSHOWN_CLICK: UNSHOWN_CLICK,
    VISIT_EMPTY: EMPTY_VISIT,
    VISIT_INVALID_ITEM: not_a_name("item"),
    VISIT_INVALID_TYPE: not_a_name("user_type"),
}
"""Reasons of the flags of visits."""

ACCEPTED = (COUNTED, OUTSIDE, BEYOND_LIMIT)
"""Reasons of rows that are not bad."""

_WHOLE = re.compile(r"-?[0-9]+")
_MAX_PARSED_POSITION = 10**9
_NAME_RULE = "must be a non-empty printable string"
_CLICKS = {"0": 0, "1": 1, "false": 0, "true": 1, "0.0": 0, "1.0": 1}


def describe_rows(counts: Mapping[str, int], first_rows: Mapping[str, str]) -> str:
    """Return each reason with its number of rows, and the place of the first one, as text.

    Examples
    --------
    >>> describe_rows({"counted": 0, "row is too long": 2}, {"row is too long": "clicks.csv line 7"})
    'row is too long: 2 rows (first: clicks.csv line 7)'
    """
    return "; ".join(
        f"{reason}: {plural(count, 'row')}"
        + (f" (first: {first_rows[reason]})" if reason in first_rows else "")
        for reason, count in counts.items()
        if count
    )


def nothing_counted(counts: Mapping[str, int], first_rows: Mapping[str, str]) -> InvalidInputError:
    """Return the error for a log without a row that is counted, with the reasons.

    Examples
    --------
    >>> print(nothing_counted({"row is not UTF-8": 3}, {}))
    log must have a row that is counted (row is not UTF-8: 3 rows), got '0 of 3'
    """
    total, reasons = sum(counts.values()), describe_rows(counts, first_rows)
    rule = f"must have a row that is counted{f' ({reasons})' if reasons else ''}"
    return InvalidInputError("log", rule, f"0 of {total:,}" if total else 0)


@dataclass(frozen=True, slots=True)
class PositionRange:
    """Valid positions, as the log numbers them.

    Attributes
    ----------
    low, high
        First and last position that is counted.
    maximum
        Last position that is valid; those above ``high`` are beyond the limit.
    """

    low: int
    high: int
    maximum: int


class RowReasons:
    """Assigns one reason to each group of rows: the first that applies.

    Parameters
    ----------
    n_groups
        Number of groups.
    """

    def __init__(self, n_groups: int) -> None:
        self._names = [COUNTED]
        self._codes: NDArray[np.int64] = np.zeros(n_groups, dtype=np.int64)

    def mark(self, applies: NDArray[np.bool_], reason: str) -> None:
        """Assign a reason to the groups to which it applies and that have none yet."""
        if not applies.any():
            return
        if reason not in self._names:
            self._names.append(reason)
        self._codes[applies & (self._codes == 0)] = self._names.index(reason)

    @property
    def is_counted(self) -> NDArray[np.bool_]:
        """Which groups are counted, shape (n_groups,)."""
        counted: NDArray[np.bool_] = self._codes == 0
        return counted

    def count(self, n_rows: NDArray[np.int64]) -> dict[str, int]:
        """Return the number of rows of each reason, those that are counted first."""
        counts = np.bincount(self._codes, n_rows, len(self._names))
        found = {name: int(count) for name, count in zip(self._names, counts, strict=True)}
        return {name: count for name, count in found.items() if count or name == COUNTED}


def missing(role: str) -> str:
    """Return the reason of rows without a value in a column."""
    return f"{role} is missing"


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN or empty text."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def as_text(value: object) -> str:
    """Return the name of a value.

    Examples
    --------
    >>> as_text(2.0), as_text(True), as_text("a")
    ('2', 'true', 'a')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def is_name(value: object) -> bool:
    r"""Return whether a value can be the name of an item or a user type: printable, not blank, not nested.

    Examples
    --------
    >>> is_name("café 2"), is_name(7), is_name("\x1b[31m"), is_name(" "), is_name({"id": 7})
    (True, True, False, False, False)
    """
    if isinstance(value, str):
        return value.isprintable() and not value.isspace()
    return not isinstance(value, dict | list | tuple)


def parse_position(value: object) -> int | None:
    """Return a position as a whole number, clipped to ±1,000,000,000; None if it is not one.

    Examples
    --------
    >>> parse_position("3"), parse_position(2.0), parse_position("2.5"), parse_position(True)
    (3, 2, None, None)
    >>> parse_position("20000000000")
    1000000000
    """
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            return None
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    value = max(-_MAX_PARSED_POSITION, min(value, _MAX_PARSED_POSITION))
    return int(value) if value == int(value) else None


def parse_click(value: object) -> int | None:
    """Return 1 for a click, 0 for none, and None for another value.

    Examples
    --------
    >>> parse_click("True"), parse_click(0.0), parse_click(2), parse_click("yes")
    (1, 0, None, None)
    """
    if isinstance(value, str):
        return _CLICKS.get(value.lower())
    if isinstance(value, bool | int | float) and value in (0, 1):
        return int(value)
    return None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not counted.

    Attributes
    ----------
    reason
        Why.
    place
        File and line, or row.
    column
        Column with the bad value.
    rule
        What the value must be.
    value
        The value.
    """

    reason: str
    place: str
    column: str
    rule: str
    value: object

    def error(self) -> InvalidInputError:
        """Return the error of one line."""
        rule = f"{self.rule}, unless bad rows are dropped"
        value = self.value.removeprefix(NOT_A_NAME) if isinstance(self.value, str) else self.value
        return InvalidInputError(f"{self.place}: {self.column}", rule, value)


def find_bad_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    columns: ResolvedColumns,
    positions: PositionRange,
    wanted: Iterable[str],
    flagged: Mapping[str, int],
    invalid_times: Collection[str] = (),
) -> dict[str, BadRow]:
    """Return the first row of each reason, in the order of the log.

    Parameters
    ----------
    rows
        Place and values of all rows.
    columns
        Columns of the log.
    positions
        Valid positions.
    wanted
        Reasons to search for; the search ends when all are found.
    flagged
        Flags of the visits that are left out, by the text of their id.
    invalid_times
        Values of the time column that are not times, as text.
    """
    open_reasons = set(wanted)
    found: dict[str, BadRow] = {}
    judge = _RowJudge(columns, positions, flagged, frozenset(invalid_times))
    for place, row in rows:
        for bad in judge.judge(place, row):
            if bad.reason in open_reasons:
                open_reasons.discard(bad.reason)
                found[bad.reason] = bad
        if not open_reasons:
            break
    return found


class _RowJudge:
    """Applies the rules of the queries to single rows."""

    def __init__(
        self,
        columns: ResolvedColumns,
        positions: PositionRange,
        flagged: Mapping[str, int],
        invalid_times: frozenset[str],
    ) -> None:
        self._columns = columns
        self._positions = positions
        self._flagged = flagged
        self._invalid_times = invalid_times
        self._invalid_numbers = frozenset(map(_to_float, invalid_times))
        self._seen: dict[str, list[tuple[int, str]]] = {}

    def judge(self, place: str, row: Mapping[str, Any]) -> Iterator[BadRow]:
        """Yield what is bad about a row, the first reason first."""
        names = self._columns.names
        for column in self._columns.user_types:
            if is_missing(row.get(column)):
                yield BadRow(missing("user_type"), place, column, "must not be missing", row.get(column))
            elif not is_name(row[column]):
                yield BadRow(not_a_name("user_type"), place, column, _NAME_RULE, row[column])
        for role in ("item", "position", "clicked", "session"):
            if role in names and is_missing(row.get(names[role])):
                yield BadRow(missing(role), place, names[role], "must not be missing", row.get(names[role]))
        if "time" in names and not self._is_time(row.get(names["time"])):
            guessed = ", as the guessed column of the time" if "time" in self._columns.guessed else ""
            rule = f"must be a time{guessed}"
            yield BadRow(NOT_A_TIME, place, names["time"], rule, row.get(names["time"]))
        if self._columns.layout == "wide":
            yield from self._judge_visit(place, row)
            return
        yield from self._judge_values(place, row)
        if "session" in names and self._columns.layout == "long":
            yield from self._judge_session(place, row)

    def _is_time(self, value: object) -> bool:
        """Return whether a value is a time: the engine has found those that are not."""
        if is_missing(value):
            return False
        if isinstance(value, int | float):  # engines write numbers in different ways
            return float(value) not in self._invalid_numbers
        return str(value) not in self._invalid_times

    def _judge_values(self, place: str, row: Mapping[str, Any]) -> Iterator[BadRow]:  # noqa: C901 - rules
        names, allowed = self._columns.names, self._positions
        if not is_missing(row.get(names["item"])) and not is_name(row[names["item"]]):
            yield BadRow(not_a_name("item"), place, names["item"], _NAME_RULE, row[names["item"]])
        column, value = names["position"], row.get(names["position"])
        position = parse_position(value)
        if not is_missing(value):
            if position is None:
                yield BadRow(NOT_A_POSITION, place, column, "must be a whole number", value)
            elif not allowed.low <= position <= allowed.maximum:
                rule = f"must be from {allowed.low} to {allowed.maximum}"
                yield BadRow(OUT_OF_RANGE, place, column, rule, value)
        if "clicked" in names:
            value = row.get(names["clicked"])
            if not is_missing(value) and parse_click(value) is None:
                yield BadRow(NOT_A_CLICK, place, names["clicked"], "must be 0 or 1", value)
        if "propensity" in names:
            number = _number(row.get(names["propensity"]))
            if number is None or not MIN_PROPENSITY <= number <= 1:
                is_tiny = number is not None and 0 < number < 1
                rule = f"must be at least {MIN_PROPENSITY:g}" if is_tiny else "must be above 0 and at most 1"
                yield BadRow(NOT_A_PROPENSITY, place, names["propensity"], rule, row.get(names["propensity"]))
        if "displays" in names:
            amounts = [_number(row.get(names[role])) for role in ("displays", "clicks")]
            for role, amount in zip(("displays", "clicks"), amounts, strict=True):
                if amount is None or not 0 <= amount <= _MAX_AMOUNT or amount != int(amount):
                    rule = f"must be a whole number from 0 to {_MAX_AMOUNT:,}"
                    yield BadRow(NOT_AMOUNTS, place, names[role], rule, row.get(names[role]))
            if None not in amounts and amounts[1] > amounts[0]:  # type: ignore[operator]
                rule = f"must be at most {names['displays']}, {amounts[0]:g}"
                yield BadRow(MORE_CLICKS, place, names["clicks"], rule, row.get(names["clicks"]))

    def _judge_session(self, place: str, row: Mapping[str, Any]) -> Iterator[BadRow]:
        names = self._columns.names
        session = row.get(names["session"])
        flag = self._flagged.get(str(session), VISIT_OK)
        if flag == VISIT_OK:
            return
        position, item = parse_position(row.get(names["position"])), str(row.get(names["item"]))
        before = self._seen.setdefault(str(session), [])
        if flag == VISIT_DUPLICATE:
            if any(position == other for other, _ in before):
                rule = f"must be there once in visit {session}"
                yield BadRow(DUPLICATE, place, names["position"], rule, row.get(names["position"]))
            elif any(item == other for _, other in before):
                rule = f"must be there once in visit {session}"
                yield BadRow(DUPLICATE, place, names["item"], rule, row.get(names["item"]))
            before.append((position if position is not None else -1, item))
        elif parse_click(row.get(names["clicked"])):
            if before:
                rule = f"must be 1 at most once in visit {session}"
                yield BadRow(SEVERAL_CLICKS, place, names["clicked"], rule, row.get(names["clicked"]))
            before.append((0, item))

    def _judge_visit(self, place: str, row: Mapping[str, Any]) -> Iterator[BadRow]:
        names = self._columns.names
        column = self._columns.items[0]
        cells = [row.get(name) for name in self._columns.items]
        items = [
            str(one) for one in (_as_list(cells[0]) if len(cells) == 1 else cells) if not is_missing(one)
        ]
        for item in items:
            if not is_name(item):
                yield BadRow(not_a_name("item"), place, column, _NAME_RULE, item)
        if not items:
            yield BadRow(EMPTY_VISIT, place, column, "must not be empty", cells[0])
        if len(set(items)) < len(items):
            yield BadRow(DUPLICATE, place, column, "must have each item once", ", ".join(items))
        if "clicks" in names:
            given = [
                str(number)
                for number, one in enumerate(_as_list(row.get(names["clicks"])))
                if parse_click(one)
            ]
            shown, name = [str(number) for number in range(len(items))], names["clicks"]
        else:
            value = row.get(names["clicked_item"])
            given = [str(one) for one in _as_list(value) if not is_missing(one)]
            shown, name = items, names["clicked_item"]
        for one in given:
            if one not in shown:
                yield BadRow(UNSHOWN_CLICK, place, name, "must be among the items of the visit", one)
        if len(set(given)) > 1:
            yield BadRow(SEVERAL_CLICKS, place, name, "must be a single click", ", ".join(given))


def _number(value: object) -> float | None:
    number = _to_float(value)
    return number if math.isfinite(number) else None


def _to_float(value: object) -> float:
    """Return a value as a number, NaN if it is none."""
    try:
        return float(value)  # type: ignore[arg-type] # anything else is not a number
    except (TypeError, ValueError):
        return math.nan


def _as_list(value: object) -> list[object]:
    if is_missing(value):
        return []
    if isinstance(value, str):
        text = re.sub(r"[\[\]\"']", "", value).strip()
        return list(re.split(r"[|;, ]+", text)) if text else []
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
