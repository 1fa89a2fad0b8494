"""Sections of the page of a log report: sentences, tables, and names of figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from banditrank._report_page.elements import Table
from banditrank._text import list_names, plural, shorten

if TYPE_CHECKING:
    from banditrank.counts._click_cube import ClickCube
    from banditrank.estimators._click_models._fit import ClickModelFit
    from banditrank.evaluation._evaluation import Evaluation
    from banditrank.logs._report import LogReport

MAX_ITEMS = 20
"""Number of items in a table, the most appealing ones."""

MAX_TYPES = 20
"""Number of user types in a table, the most shown ones."""

NOT_IDENTIFIED = "not identified"


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the page.

    Attributes
    ----------
    id, title
        Anchor and heading.
    text
        Sentences.
    figures
        Names of figures.
    tables
        Tables.
    """

    id: str
    title: str
    text: Sequence[str]
    figures: Sequence[str] = ()
    tables: Sequence[Table] = ()


def report_sections(report: "LogReport") -> list[Section]:
    """Return the sections of the page, after the verdict."""
    return [
        _quality(report),
        _positions(report),
        _items(report),
        _user_types(report),
        _rankings(report),
        _evaluation(report),
        _drift(report),
    ]


def format_interval(
    value: float,
    low: float,
    high: float,
) -> str:
    """Return an estimate with its interval, or that it is not identified.

    Examples
    --------
    >>> format_interval(0.5, 0.41234, 0.6), format_interval(float("nan"), 0, 1), format_interval(1, 1, 1)
    ('0.500 [0.412, 0.600]', 'not identified', '1 (reference)')
    """
    if isnan(value):
        return NOT_IDENTIFIED
    if value == low == high == 1:  # what others are relative to
        return "1 (reference)"
    if isnan(low) or isnan(high):
        return f"{value:.3f}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def tabulate_positions(fit: "ClickModelFit", types: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the worth of positions, by user type unless all have the same."""
    columns = {i: shorten(fit.user_types[i]) for i in types}
    if fit.has_shared_positions and len(fit.user_types) > 1:
        columns = {fit.best_known_type: "all user types"}
    rows = [
        [
            str(k + 1),
            *(
                format_interval(float(fit.position_worth[i, k]), *map(float, fit.position_intervals[i, k]))
                for i in columns
            ),
        ]
        for k in range(fit.position_worth.shape[1])
    ]
    return ["position", *columns.values()], rows


def listed_types(cube: "ClickCube") -> list[int]:
    """Return the user types of tables: those with the most displays, in the order of the cube."""
    return most_frequent(np.bincount(cube.cells.user_type, cube.cells.displays, len(cube.type_values)))


def most_frequent(numbers: ArrayLike) -> list[int]:
    """Return the indices of the largest numbers, at most `MAX_TYPES`, in their order.

    Examples
    --------
    >>> most_frequent([2.0, *[1.0] * 19, 3.0])[-2:]
    [18, 20]
    """
    return sorted(np.argsort(-np.asarray(numbers), kind="stable")[:MAX_TYPES].tolist())


def list_ranking(items: Sequence[str]) -> str:
    """Return the items of a ranking as text, long names shortened."""
    return list_names(items, len(items))


def describe_unlisted(n_types: int) -> str:
    """Return how many user types a table lacks; empty if it lacks none."""
    if n_types <= MAX_TYPES:
        return ""
    return f"The {MAX_TYPES} most shown of {n_types:,} user types; all are in the JSON output."


def count_types(cube: "ClickCube") -> list[list[str]]:
    """Return a row for each listed user type: its name, displays, clicks, and number of items shown."""
    displays, clicks = (cube.table(values) for values in (cube.cells.displays, cube.cells.clicks))
    names = cube.user_types
    return [
        [
            shorten(names[i]),
            f"{displays[i].sum():,.0f}",
            f"{clicks[i].sum():,.0f}",
            f"{displays[i].any(axis=1).sum():,}",
        ]
        for i in listed_types(cube)
    ]


def describe_periods(cube: "ClickCube") -> tuple[str, str] | None:
    """Return the heading of the log's periods, and the first and last one; None without periods.

    Examples
    --------
    >>> from banditrank.counts import ClickCube
    >>> names = ("2026-03-01", "2026-03-02")
    >>> log = ClickCube.from_visits([0, 0], [[0, 1], [1, 0]], np.zeros((2, 2)), period=[0, 1], periods=names)
    >>> describe_periods(log)
    ('Periods', '2026-03-01 to 2026-03-02')
    """
    if len(cube.periods) < 2 and cube.metadata.get("period", "all") == "all":
        return None
    used = [cube.periods[number] for number in np.unique(cube.cells.period)]
    heading = f"{_period_noun(cube).capitalize()}s"
    return heading, used[0] if len(used) == 1 else f"{used[0]} to {used[-1]}"


def _period_noun(cube: "ClickCube") -> str:
    length = str(cube.metadata.get("period", "all"))
    return "period" if length == "all" else length


def _quality(report: "LogReport") -> Section:
    metadata = report.cube.metadata
    rows = metadata.get("rows", {})
    first = metadata.get("first_rows", {})
    tables = []
    if rows:
        body = [
            [reason if reason == "counted" else f"left out: {reason}", f"{count:,}", first.get(reason, "")]
            for reason, count in rows.items()
        ]
        body.append(["all rows", f"{sum(rows.values()):,}", ""])
        width = 3 if first else 2
        heading = ["", "rows", "first row"][:width]
        tables.append(Table("Rows of the log", heading, [row[:width] for row in body]))
    columns = metadata.get("columns", {})
    if columns:
        guessed = metadata.get("guessed", {})
        body = [
            [role.replace("_", " "), ", ".join(names), "guessed" if role in guessed else "given"]
            for role, names in columns.items()
        ]
        tables.append(Table("Columns", ["what", "column", ""], body))
    heading = ["user type", "displays", "clicks", "items"]
    note = describe_unlisted(len(report.cube.type_values))
    tables.append(Table("User types", heading, count_types(report.cube), note))
    warnings = [f"Warning: {warning}." for warning in metadata.get("warnings", [])]
    return Section("quality", "Data quality", warnings or ["No warnings."], (), tables)


def _positions(report: "LogReport") -> Section:
    fit, title = report.fit, "What a position is worth"
    if fit is None or report.withheld.positions:
        return Section("positions", title, [f"Not identified. {report.withheld.positions}"])
    text = [f"Click model: {fit.model}."]
    if fit.selection is not None:
        text.append(_sentence(fit.selection.statement))
    test = fit.goodness_of_fit
    if not isnan(test.p_value):
        found = "does not fit" if test.is_misfit else "no misfit was found"
        text.append(f"Test of the fit: {found} (p = {test.p_value:.2g}).")
    note = "" if fit.has_shared_positions else describe_unlisted(len(fit.user_types))
    heading, rows = tabulate_positions(fit, listed_types(report.cube))
    notes = " ".join(filter(None, [*fit.notes, note]))
    table = Table(f"Worth of positions: {fit.worth_meaning}", heading, rows, notes)
    return Section("positions", title, text, ["positions"], [table])


def _items(report: "LogReport") -> Section:
    fit, title = report.fit, "Items of each user type"
    if fit is None:
        return Section("items", title, [f"Not identified. {report.withheld.items}"])
    order = np.argsort(-np.nan_to_num(fit.item_appeal, nan=-1.0).max(axis=0), kind="stable")[:MAX_ITEMS]
    types = listed_types(report.cube)
    rows = [
        [
            shorten(fit.items[j]),
            *(
                format_interval(float(fit.item_appeal[i, j]), *map(float, fit.item_intervals[i, j]))
                for i in types
            ),
        ]
        for j in order
    ]
    more = len(fit.items) - len(rows)
    notes = [f"{plural(more, 'more item')} in the JSON report."] if more else []
    notes += filter(None, [describe_unlisted(len(fit.user_types))])
    heading = ["item", *(shorten(fit.user_types[i]) for i in types)]
    table = Table(f"Appeal of items: {fit.appeal_meaning}", heading, rows, " ".join(notes))
    if not fit.is_item_identified.any():
        reason = report.withheld.rankings or report.diagnosis.verdict
        return Section("items", title, [f"Not identified. {reason}"])
    return Section("items", title, (), ["items"], [table])


def _user_types(report: "LogReport") -> Section:
    assessment, title = report.user_types, "Which user types matter"
    if assessment is None:
        reason = report.withheld.rankings
        text = f"Not identified. {reason}" if reason else "The log has a single user type."
        return Section("types", title, [text])
    rows = [
        [
            ", ".join(one.columns),
            f"{one.n_user_types:,}",
            "cannot be assessed" if isnan(one.held_out_gain) else f"{one.held_out_gain:+.2f}",
            one.gain_text,
            "yes" if one.is_confounded else "no",
        ]
        for one in assessment.columns
    ]
    headings = [
        "columns",
        "user types",
        "held-out gain per 1,000 displays",
        "clicks gained per visit",
        "rankings chosen by it",
    ]
    note = (
        "Held-out gain: log-likelihood of displays that were not fitted. Clicks gained: by personalized "
        "rankings, over one ranking for all. Rankings chosen by it: users who differ in nothing else "
        "were shown other items."
    )
    return Section("types", title, [assessment.statement], (), [Table("Columns", headings, rows, note)])


def _rankings(report: "LogReport") -> Section:
    evaluation, title = report.evaluation.evaluation, "Recommended rankings and the price of equality"
    if evaluation is None or report.withheld.rankings:
        return Section("rankings", title, [f"Not identified. {report.withheld.rankings}"])
    text = [
        (
            f"Price of equality of {price.target}: "
            f"{format_percent(price.price, price.low, price.high)} of the clicks of personalized rankings."
        )
        for price in evaluation.prices
    ]
    rows, note = [], ""
    for target, types in report.rankings.items():
        distinct = set(types.values())
        if len(distinct) == 1 and len(types) > 1:
            rows.append([target, "all", list_ranking(next(iter(distinct)))])
            continue
        listed = [report.cube.user_types[i] for i in listed_types(report.cube)]
        rows += [[target, shorten(name), list_ranking(types[name])] for name in listed]
        note = describe_unlisted(len(types))
    headings = ["treatment", "user type", "items, first position first"]
    tables = [Table("Rankings", headings, rows, note)]
    if evaluation.prices and len(report.cube.type_values) > 1:
        tables.append(_losses(report, evaluation))
    return Section("rankings", title, text, (), tables)


def _losses(report: "LogReport", evaluation: "Evaluation") -> Table:
    """Return the share of its clicks that each user type loses by each ranking for all."""
    shares = [evaluation.shares_lost(price) for price in evaluation.prices]
    rows = [
        [shorten(report.cube.user_types[i]), *(format_share(float(lost[i])) for lost in shares)]
        for i in listed_types(report.cube)
    ]
    headings = ["user type", *(price.target for price in evaluation.prices)]
    caption = "Share of the clicks of personalized rankings that one ranking for all costs each user type"
    return Table(caption, headings, rows, describe_unlisted(len(report.cube.type_values)))


def format_share(value: float) -> str:
    """Return a share in percent, or that it is not identified."""
    return NOT_IDENTIFIED if isnan(value) else f"{value:.1%}"


def _evaluation(report: "LogReport") -> Section:
    known, title = report.evaluation, "What rankings would have earned"
    text = []
    if known.withheld:
        names = ", ".join(known.withheld)
        text.append(f"Not identified: {names}. {report.withheld.rankings}")
    if known.evaluation is None:
        return Section("evaluation", title, text)
    evaluation = known.evaluation
    text += [
        f"{shorten(target.name)} is not identified: {target.reason}."
        for target in evaluation
        if target.headline is None
    ]
    return Section("evaluation", title, text, ["evaluation"], [_values(evaluation)])


def _values(evaluation: "Evaluation") -> Table:
    estimators = list(evaluation.targets[0].estimates)
    rows = []
    for target in evaluation:
        cells = [
            format_interval(*target.estimates[name].total) + (" *" if name == target.headline else "")
            for name in estimators
        ]
        rows.append([shorten(target.name), *cells, f"{target.effective_visits.sum():,.0f}"])
    note = (
        "* The estimate to use. cells: click rates of cells; ips and snips: inverse propensity scores, "
        f"{evaluation.propensities}; click model: {evaluation.model.describe()}. Rankings that are "
        "learned from the log are evaluated by cross-fitting."
    )
    unpredicted = [(target.name, target.describe_unpredicted()) for target in evaluation]
    note = " ".join([note, *(f"{shorten(name)}: {why}." for name, why in unpredicted if why)])
    caption = f"Clicks per visit, with {evaluation.level:.0%} intervals"
    return Table(caption, ["target", *estimators, "effective visits"], rows, note)


def _drift(report: "LogReport") -> Section:
    drift, title = report.diagnosis.drift, "Drift"
    if drift.n_periods < 2:
        noun = _period_noun(report.cube)
        if noun == "period":
            text = "The log has a single period: drift cannot be seen. Count it with a time column (--time)."
        else:
            text = f"The log has a single {noun}: drift cannot be seen."
        return Section("drift", title, [text])
    is_single = len(report.cube.type_values) == 1
    tested = f"{drift.n_tested:,} {'items' if is_single else 'pairs of an item and a user type'}"
    over = f"with enough clicks over the {drift.n_periods} {_period_noun(report.cube)}s"
    if not drift.items:
        found = f"No change was found in any of {tested} {over}."
        text = found if drift.n_tested else "No item has enough clicks to be tested for drift."
        return Section("drift", title, [text], ["periods"])
    text = f"A change was found in {len(drift.items):,} of {tested} {over}."
    rows = [
        [shorten(one.item), shorten(one.user_type), f"{one.p_value:.2g}"] for one in drift.items[:MAX_ITEMS]
    ]
    table = Table("Items that drift", ["item", "user type", "adjusted p-value"], rows)
    return Section("drift", title, [text], ["periods"], [table])


def format_percent(value: float, low: float, high: float) -> str:
    """Return a share with its interval in percent, or that it is not identified."""
    if isnan(value):
        return NOT_IDENTIFIED
    return f"{value:.1%}" if isnan(low) else f"{value:.1%} [{low:.1%}, {high:.1%}]"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
