"""Diagnosis of a click log: what it can tell before any estimate is read.

Position worth and item appeal can be told apart only if items moved between positions. The diagnosis looks at
the graph of clicked items and positions of each user type, at the width of the intervals, and for signs that
the log is not what it seems.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._frames import Columns, Tabular
from banditrank._text import MAX_DESCRIPTION, list_names, plural, shorten
from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._estimates_of_model import cell_tables, lacks_misses
from banditrank.estimators._click_models._fit import unconverged_notes
from banditrank.estimators._click_models._goodness_of_fit import (
    MISFIT_P_VALUE,
    UNTESTED,
    GoodnessOfFit,
    assess_fit,
)
from banditrank.estimators._click_models._item_position_graph import find_components, joining_items
from banditrank.estimators._click_models._long_tail import (
    MIN_LOOKS,
    find_tail,
    informative_rates,
    share_log_likelihood,
)
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._click_models._position_based import fit_position_based, with_activity
from banditrank.estimators._click_models._selection import describe_activity, select_click_model
from banditrank.estimators._distributions import chi_square_survival
from banditrank.estimators._position_based_intervals import eliminate_means
from banditrank.logs._count_warnings import find_wrong_propensities, is_suspicious
from banditrank.logs._drift import Drift, find_drift
from banditrank.logs._row_groups import ACCEPTED, describe_rows
from banditrank.logs._swap_plan import MIN_FACTOR, FittedType, SwapProposal, plan_swaps

Floats = NDArray[np.float64]

Severity: TypeAlias = Literal["fine", "warning", "unknowable"]
"""How serious a finding is."""

EXIT_CODES: dict[Severity, int] = {"fine": 0, "warning": 1, "unknowable": 3}
"""Exit code of each severity; 2 is that of invalid input."""

MAX_LISTED = 10
"""Number of findings of a kind, and of swaps, that are printed."""

_FUTILE = ("no-clicks", "all-clicked", "positions-are-noise")  # findings that swaps would not mend
_LEVEL = 0.95
_SIGNIFICANT = 0.01
_RARE_TYPE = 0.01  # share of displays
_MIN_VISITS = 50
_MIN_CERTAIN_DISPLAYS = 20  # of a cell in which each display was clicked


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding in words.

    Attributes
    ----------
    code
        What was found: ``no-clicks``, ``fixed-layout``, …
    severity
        ``fine``, ``warning`` or ``unknowable``.
    text
        A sentence or two.
    """

    code: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class UserTypeDiagnosis:
    """What the log tells of one user type.

    Attributes
    ----------
    user_type
        Name.
    n_displays, n_clicks
        Totals.
    n_items
        Number of items that were shown.
    components
        Groups of positions that can be compared, from 0, the one with most clicks first.
    is_position_known
        Whether each position can be compared with the most examined one, shape (K,).
    overlap
        Share of the information about a position that remains when the appeal of items is unknown, shape
        (K,): 0 with a fixed ranking; one less the position's share of the information with random rankings.
        NaN without clicks.
    effective_overlap
        The same of the worst comparison of positions: the smallest positive eigenvalue of the normalised
        Laplacian; 0 if some positions cannot be compared.
    condition
        Ratio of its largest and smallest positive eigenvalues.
    joining_items
        Items each of which alone connects some positions.
    n_empty_cells
        Number of shown items and positions that never met.
    half_widths
        Of the 95% intervals of the logarithm of relative examination, shape (K,); infinite if not known.
    data_factor
        How many times as much data of this kind, in total, the target takes; infinite if none suffices.
    """

    user_type: str
    n_displays: float
    n_clicks: float
    n_items: int
    components: tuple[tuple[int, ...], ...]
    is_position_known: NDArray[np.bool_]
    overlap: Floats
    effective_overlap: float
    condition: float
    joining_items: tuple[str, ...]
    n_empty_cells: int
    half_widths: Floats
    data_factor: float


@dataclass(frozen=True, slots=True, eq=False)
class LogDiagnosis(Tabular):
    """What a log can tell. ``to_frame`` returns a row for each user type and position.

    Attributes
    ----------
    verdict
        One sentence.
    severity
        The worst of the findings: ``fine``, ``warning`` or ``unknowable``.
    findings
        Findings, the worst first.
    user_types
        Figures of each user type.
    swaps
        An experiment plan: swaps after which position worth would be known to the target.
    drift
        Items that change from period to period.
    goodness_of_fit
        Test of whether click rates are products of item and position.
    target
        Relative precision that is asked for.
    rows
        Number of rows that were counted, and that were left out by reason; empty if the cube does not tell.
    first_rows
        Place of the first row of each reason.
    """

    verdict: str
    severity: Severity
    findings: tuple[Finding, ...]
    user_types: tuple[UserTypeDiagnosis, ...]
    swaps: tuple[SwapProposal, ...]
    drift: Drift
    goodness_of_fit: GoodnessOfFit
    target: float
    rows: Mapping[str, int]
    first_rows: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """0 if nothing was found, 1 with warnings, 3 if position worth cannot be known from the log."""
        return EXIT_CODES[self.severity]

    @property
    def plan_heading(self) -> str:
        """Sentence above the swaps."""
        return (
            f"To know the worth of positions to ±{self.target:.0%}, swap items in some visits, and leave "
            "them where they are in at least as many (those of the log count):"
        )

    def summary(self) -> str:
        """Return the diagnosis as text."""
        lines = [self.verdict]
        lines += [f"- {finding.text}" for finding in self.listed_findings()]
        if self.swaps:
            lines.append(self.plan_heading)
            lines += [f"- {swap}" for swap in self.listed_swaps()]
        return "\n".join(lines)

    def listed_findings(self) -> list[Finding]:
        """Return the first findings of each kind, and in place of the others how many there are."""
        by_code: dict[str, list[Finding]] = {}
        for finding in self.findings:
            by_code.setdefault(finding.code, []).append(finding)
        listed: list[Finding] = []
        for code, found in by_code.items():
            listed += found[:MAX_LISTED]
            more = len(found) - MAX_LISTED
            if more > 0:
                text = f"The same for {more:,} more user types ({code}); the JSON output lists all."
                listed.append(Finding(code, found[-1].severity, text))
        return listed

    def listed_swaps(self) -> list[str]:
        """Return the first swaps, and how many there are besides."""
        more = len(self.swaps) - MAX_LISTED
        rest = [f"{more:,} more swaps, which the JSON output lists"] if more > 0 else []
        return [*map(str, self.swaps[:MAX_LISTED]), *rest]

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as values of JSON; None stands for what is not known."""
        return {
            "verdict": self.verdict,
            "severity": self.severity,
            "exit_code": self.exit_code,
            "target": self.target,
            "findings": [
                {"code": one.code, "severity": one.severity, "text": one.text} for one in self.findings
            ],
            "user_types": [_type_dict(one) for one in self.user_types],
            "swaps": [
                {
                    "user_type": one.user_type,
                    "first_item": one.first_item,
                    "first_position": one.first_position + 1,
                    "second_item": one.second_item,
                    "second_position": one.second_position + 1,
                    "n_visits": one.n_visits,
                }
                for one in self.swaps
            ],
            "drift": {
                "n_periods": self.drift.n_periods,
                "n_tested": self.drift.n_tested,
                "items": [
                    {"user_type": one.user_type, "item": one.item, "p_value": one.p_value}
                    for one in self.drift.items
                ],
            },
            "misfit_p_value": _finite(self.goodness_of_fit.p_value),
            "rows": dict(self.rows),
            "first_rows": dict(self.first_rows),
        }

    def _columns(self) -> Columns:
        width = self.user_types[0].half_widths.size if self.user_types else 0
        return {
            "user_type": [one.user_type for one in self.user_types for _ in range(width)],
            "position": np.tile(np.arange(1, width + 1), len(self.user_types)),
            "is_known": np.concatenate([one.is_position_known for one in self.user_types]),
            "overlap": np.concatenate([one.overlap for one in self.user_types]),
            "half_width": np.concatenate(
                [np.where(np.isfinite(one.half_widths), one.half_widths, np.nan) for one in self.user_types]
            ),
        }


def diagnose(cube: ClickCube, target: float = 0.10) -> LogDiagnosis:
    """Diagnose what a log can tell of positions and items.

    Parameters
    ----------
    cube
        The counts of the log.
    target
        Relative precision of the worth of positions that is wanted.

    Raises
    ------
    InvalidInputError
        If the log has no displays or too many cells, or the target is out of range.

    Examples
    --------
    A fixed layout does not tell whether an item or its position earns the clicks:

    >>> rng = np.random.default_rng(0)
    >>> items = np.tile([0, 1, 2], (1000, 1))
    >>> clicks = rng.random((1000, 3)) < [0.3, 0.2, 0.1]
    >>> diagnosis = diagnose(ClickCube.from_visits(np.zeros(1000), items, clicks))
    >>> diagnosis.severity, diagnosis.exit_code
    ('unknowable', 3)
    >>> print(diagnosis.verdict)
    The log cannot tell what a position is worth.
    """
    cube.check_analysed()
    target = check_number("target", target, 1e-3, 10.0)
    displays, clicks = cell_tables(cube)
    if not displays.any():
        raise InvalidInputError("cube", "must have displays", "none")
    parameters = fit_position_based(cube)
    compared = np.zeros_like(clicks) if lacks_misses(displays, clicks) else clicks  # rates need misses
    types = tuple(
        _diagnose_type(name, cube.items, i, displays[i], compared[i], parameters, target)
        for i, name in enumerate(cube.user_types)
    )
    types = tuple(
        replace(one, n_clicks=float(clicked.sum())) for one, clicked in zip(types, clicks, strict=True)
    )
    unconverged = unconverged_notes(parameters, cube)
    is_tail = find_tail(displays, parameters.attention)
    goodness = assess_fit(parameters, cube)
    drift = find_drift(cube)
    missing = _find_missing(cube, displays, clicks)
    equal = _find_equal_positions(displays, clicks, parameters, types, target)
    is_futile = any(one.code in _FUTILE for one in (*missing, *equal))
    swaps = () if is_futile else _plan_all_swaps(cube.items, displays, clicks, parameters, types, target)
    findings = [
        *(Finding("not-converged", "warning", _sentence(note)) for note in unconverged),
        *missing,
        *_find_unknowable(displays, types),
        *_find_imprecise(types, target, swaps),
        *equal,
        *_find_suspicious(cube, displays, clicks),
        *_find_long_tail(displays, clicks, parameters, is_tail),
        *_find_bad_rows(cube),
        *_find_propensities(cube),
    ]
    is_testable = not any(one.code in {"no-clicks", "all-clicked"} for one in findings)
    if is_testable and goodness.is_misfit:
        findings.append(_find_misfit(goodness, _assess_without(is_tail, cube)))
    elif is_testable:
        findings += _find_activity(cube, parameters)
    if drift.items:
        names = list_names(
            [f"{shorten(one.item)} ({shorten(one.user_type)})" for one in drift.items],
            max_length=MAX_DESCRIPTION,
        )
        findings.append(
            Finding(
                "drift",
                "warning",
                f"{len(drift.items)} of {drift.n_tested} items drift from period to period: {names}.",
            )
        )
    order: tuple[Severity, ...] = ("unknowable", "warning", "fine")
    findings.sort(key=lambda one: order.index(one.severity))
    severity: Severity = findings[0].severity if findings else "fine"
    codes = {one.code for one in findings}
    return LogDiagnosis(
        _verdict(severity, codes, types, target),
        severity,
        tuple(findings),
        types,
        swaps,
        drift,
        goodness,
        target,
        dict(cube.metadata.get("rows", {})),
        dict(cube.metadata.get("first_rows", {})),
    )


def _verdict(severity: Severity, codes: set[str], types: tuple[UserTypeDiagnosis, ...], target: float) -> str:
    if severity == "warning" and "positions-are-noise" in codes:
        return "The position in the log makes no difference to clicks."
    if severity == "unknowable":
        if any(one.is_position_known.any() for one in types):
            return "The log tells the worth of some positions only."
        return "The log cannot tell what a position is worth."
    if severity == "warning":
        return "The log can tell positions and items apart, with reservations."
    return f"The log tells positions and items apart: the worth of positions is known to ±{target:.0%}."


def _diagnose_type(
    name: str,
    items: Sequence[str],
    user_type: int,
    displays: Floats,
    clicks: Floats,
    parameters: ModelParameters,
    target: float,
) -> UserTypeDiagnosis:
    """Return the figures of a user type from its displays and clicks, shape (M, K)."""
    n_positions = displays.shape[1]
    components = find_components(displays, clicks)
    groups = tuple(tuple(components.columns(number)) for number in range(components.n_components))
    main = np.array(groups[0] if groups and len(groups[0]) > 1 else (), dtype=np.int64)
    is_known = np.isin(np.arange(n_positions), main)
    overlap = np.full(n_positions, np.nan)
    half_widths = np.full(n_positions, np.inf)
    effective, condition = 0.0, math.inf
    kappa, means = parameters.attention[user_type], np.minimum(parameters.appeal[user_type], 1.0)
    if groups:
        overlap, effective, condition = _overlap(displays, kappa, means, len(groups))
    if main.size:
        rows = displays[:, main].any(axis=1)
        cells = np.ix_(rows, main)
        rates = informative_rates(displays[cells], clicks[cells], kappa[main], means[rows])
        information = eliminate_means(displays[cells], kappa[main], rates.means, rates.chances)
        top = int(kappa[main].argmax())
        covariance = information.covariance
        variances = np.diag(covariance) + covariance[top, top] - 2 * covariance[top]
        is_clicked = clicks[:, main].any(axis=0)
        half_widths[main] = np.where(
            is_clicked, NormalDist().inv_cdf((1 + _LEVEL) / 2) * np.sqrt(variances.clip(0.0)), np.inf
        )
    shown = displays.any(axis=0)
    worst = float(half_widths[shown].max(initial=0.0)) if shown.sum() > 1 else math.inf
    is_shown_item = displays.any(axis=1)
    return UserTypeDiagnosis(
        name,
        float(displays.sum()),
        float(clicks.sum()),
        int(is_shown_item.sum()),
        groups,
        is_known,
        overlap,
        effective,
        condition,
        tuple(items[j] for j in joining_items(displays, clicks)),
        int((displays[np.ix_(is_shown_item, shown)] == 0).sum()),
        half_widths,
        (worst / math.log1p(target)) ** 2,
    )


def _overlap(
    displays: Floats, kappa: Floats, means: Floats, n_components: int
) -> tuple[Floats, float, float]:
    """Return the overlap of each position, that of the worst comparison, and the condition."""
    chances = np.minimum(means[:, None] * kappa, 1.0 - 0.5 / (displays + 1.0))
    weights = displays * chances / (1.0 - chances)
    of_items = weights.sum(axis=1)
    shares = np.divide(weights, of_items[:, None], out=np.zeros_like(weights), where=of_items[:, None] > 0)
    at_positions = weights.sum(axis=0)
    used = np.flatnonzero(at_positions > 0)
    laplacian = (np.diag(at_positions) - weights.T @ shares)[np.ix_(used, used)]
    overlap = np.full(kappa.size, np.nan)
    overlap[used] = (np.diag(laplacian) / at_positions[used]).clip(0.0, 1.0)
    roots = np.sqrt(at_positions[used])
    eigenvalues = np.linalg.eigvalsh(laplacian / np.outer(roots, roots))
    if n_components != 1 or used.size < 2 or eigenvalues[1] < 1e-12:
        return overlap, 0.0, math.inf
    return overlap, float(min(eigenvalues[1], 1.0)), float(eigenvalues[-1] / eigenvalues[1])


def _find_missing(cube: ClickCube, displays: Floats, clicks: Floats) -> list[Finding]:
    if clicks.sum() == 0:
        text = (
            "The log has no clicks: neither positions nor items can be compared. Check the column of clicks."
        )
        return [Finding("no-clicks", "unknowable", text)]
    if lacks_misses(displays, clicks):
        text = (
            "Every display was clicked: displays without a click are probably missing from the log. Without "
            "them there are no click rates, and neither positions nor items can be compared."
        )
        return [Finding("all-clicked", "unknowable", text)]
    without = cube.visits.visits[cube.visits.n_clicks == 0].sum()
    if cube.has_visits and cube.n_visits >= _MIN_VISITS and without == 0:
        text = (
            "Every visit has a click: visits without one are probably missing from the log. Click rates are "
            "too high, then, and compare items within such visits only."
        )
        return [Finding("all-visits-clicked", "warning", text)]
    return []


def _find_unknowable(displays: Floats, types: tuple[UserTypeDiagnosis, ...]) -> list[Finding]:
    """Return findings about positions and items that cannot be compared."""
    findings: list[Finding] = []
    shown = displays.sum(axis=(0, 1)) > 0
    clicked = [one for one in types if one.components]
    if not clicked:
        return findings
    if shown.sum() == 1:
        position = int(np.flatnonzero(shown)[0]) + 1
        text = (
            f"All displays are at position {position}: the log says nothing about the worth of positions. "
            "The click rates of items compare them at this position."
        )
        findings.append(Finding("single-position", "unknowable", text))
    else:
        fixed = [one for one in clicked if not one.is_position_known.any()]
        if len(fixed) == len(clicked):
            text = (
                "No clicked item was shown at two positions (a fixed layout): a high click rate may be due "
                "to the item or to its position, and no amount of such data can tell which."
            )
            findings.append(Finding("fixed-layout", "unknowable", text))
        else:
            if fixed:
                names = list_names([one.user_type for one in fixed])
                text = f"Positions cannot be compared for user types whose items never moved: {names}."
                findings.append(Finding("fixed-layout-of-type", "unknowable", text))
            findings += _find_separate(displays, types)
    single = [one for one in types if one.n_items == 1]
    if single:
        is_each = len(single) == len(types)
        who = (
            "Each user type was"
            if is_each
            else f"User types {list_names([one.user_type for one in single])} were"
        )
        text = f"{who} shown a single item: the log says nothing about other items for them."
        findings.append(Finding("one-item-per-type", "warning" if shown.sum() > 1 else "unknowable", text))
    return findings


def _find_separate(displays: Floats, types: tuple[UserTypeDiagnosis, ...]) -> list[Finding]:
    findings = []
    for i, one in enumerate(types):
        name = shorten(one.user_type)
        unknown = displays[i].any(axis=0) & ~one.is_position_known
        if one.is_position_known.any() and unknown.any():
            known = list_names([str(k + 1) for k in np.flatnonzero(one.is_position_known)])
            others = list_names([str(k + 1) for k in np.flatnonzero(unknown)])
            noun = "position" if unknown.sum() == 1 else "positions"
            text = (
                f"User type {name}: positions {known} can be compared with each other, {noun} "
                f"{others} cannot be compared with them, because no clicked item was shown at both."
            )
            findings.append(Finding("separate-positions", "unknowable", text))
        elif one.joining_items and one.is_position_known.any() and one.n_items > 1:
            names = list_names(list(one.joining_items))
            text = f"User type {name}: a single item alone connects some positions ({names})."
            findings.append(Finding("joining-item", "warning", text))
    return findings


def _find_imprecise(
    types: tuple[UserTypeDiagnosis, ...], target: float, swaps: tuple[SwapProposal, ...]
) -> list[Finding]:
    findings = []
    listed = {swap.user_type for swap in swaps[:MAX_LISTED]}
    planned = {swap.user_type for swap in swaps}
    for one in types:
        if not one.is_position_known.any():
            continue
        name = shorten(one.user_type)
        known = np.where(one.is_position_known, one.half_widths, 0.0)
        worst = int(known.argmax())
        if not np.isfinite(known[worst]):
            text = f"User type {name}: position {worst + 1} was never clicked; only a bound is known."
            findings.append(Finding("unclicked-position", "warning", text))
        elif (factor := (known[worst] / math.log1p(target)) ** 2) > MIN_FACTOR:
            where = "below" if one.user_type in listed else "in the JSON output"
            alternative = f", or the swaps {where}" if one.user_type in planned else ""
            text = (
                f"User type {name}: the worth of position {worst + 1} is known to "
                f"{_precision(known[worst])} only; ±{target:.0%} takes about {_times(factor)} as much data "
                f"in total{alternative}."
            )
            findings.append(Finding("imprecise", "warning", text))
    return findings


def _find_equal_positions(
    displays: Floats,
    clicks: Floats,
    parameters: ModelParameters,
    types: tuple[UserTypeDiagnosis, ...],
    target: float,
) -> list[Finding]:
    """Return a finding if clicks do not depend on the position, by a likelihood ratio test."""
    statistic, degrees, worst = 0.0, 0, 0.0
    for i, one in enumerate(types):
        if not one.is_position_known.any():
            continue
        main = one.is_position_known
        rows = clicks[i][:, main].any(axis=1)
        part, clicked = displays[i][np.ix_(rows, main)], clicks[i][np.ix_(rows, main)]
        kappa = parameters.attention[i, main]
        if i in parameters.long_tails:
            in_tail = find_tail(part, kappa)
            tail, of_tail, part, clicked = part[in_tail], clicked[in_tail], part[~in_tail], clicked[~in_tail]
            rows = np.flatnonzero(rows)[~in_tail]
            fitted, flat = (
                share_log_likelihood(tail, of_tail, gamma) for gamma in (kappa, np.ones(kappa.size))
            )
            statistic += 2 * (fitted - flat)
        full = np.minimum(parameters.appeal[i, rows, None] * kappa, 1.0)
        equal = (clicked.sum(axis=1) / part.sum(axis=1))[:, None]
        statistic += 2 * (_log_likelihood(part, clicked, full) - _log_likelihood(part, clicked, equal))
        degrees += int(main.sum()) - 1
        worst = max(worst, float(one.half_widths[main].max()))
    if degrees == 0 or chi_square_survival(max(statistic, 0.0), degrees) < _SIGNIFICANT:
        return []
    if worst <= math.log1p(max(3 * target, 0.3)):
        text = (
            "Clicks do not depend on the position: items earn the same at all positions. Either positions do "
            "not matter on this page, or the position column is not what users saw (shuffled, or a rank from "
            "before the page was laid out). Check it before using the worth of positions or rankings."
        )
        return [Finding("positions-are-noise", "warning", text)]
    text = "The log is too small to see a difference between positions."
    return [Finding("positions-not-told-apart", "warning", text)]


def _log_likelihood(displays: Floats, clicks: Floats, chances: Floats) -> float:
    chances = np.clip(np.broadcast_to(chances, displays.shape), 1e-12, 1 - 1e-12)
    return float((clicks * np.log(chances) + (displays - clicks) * np.log1p(-chances)).sum())


def _find_suspicious(cube: ClickCube, displays: Floats, clicks: Floats) -> list[Finding]:
    findings = []
    total = displays.sum()
    if clicks.sum() == 0 or lacks_misses(displays, clicks):
        return []
    user_types = cube.user_types  # the property joins all names at each call
    shares = displays.sum(axis=(1, 2)) / total
    rare = [name for name, share in zip(user_types, shares, strict=True) if share < _RARE_TYPE]
    if rare:
        text = f"User types with less than {_RARE_TYPE:.0%} of the displays: {list_names(rare)}."
        findings.append(Finding("rare-user-types", "warning", text))
    certain = (displays >= _MIN_CERTAIN_DISPLAYS) & (clicks >= displays)
    if certain.any():
        where = [
            f"{shorten(cube.items[j])} at position {k + 1} ({shorten(user_types[i])})"
            for i, j, k in np.argwhere(certain)
        ]
        listed = list_names(where, max_length=MAX_DESCRIPTION)
        text = f"Suspicious rows: each display was clicked of {listed}."
        findings.append(Finding("certain-clicks", "warning", text))
    if cube.has_visits and cube.n_positions >= 3:
        visits = cube.visits
        everything = visits.visits[visits.n_clicks >= cube.n_positions].sum()
        rates = clicks.sum(axis=(0, 1)) / np.maximum(displays.sum(axis=(0, 1)), 1.0)
        expected = cube.n_visits * float(rates.max()) ** cube.n_positions
        if everything > max(10.0, 10 * expected, 0.001 * cube.n_visits):
            text = f"Suspicious rows: {everything:,.0f} visits clicked every position, as programs do."
            findings.append(Finding("every-position-clicked", "warning", text))
    several = cube.visits.visits[cube.visits.n_clicks > 1].sum()
    if several > 0:
        share = several / cube.n_visits
        text = f"{share:.1%} of the visits have several clicks: the single-look model does not hold."
        findings.append(Finding("several-clicks", "fine", text))
    return findings


def _find_activity(cube: ClickCube, parameters: ModelParameters) -> list[Finding]:
    """Return a finding if clicks of a visit are correlated because users differ in activity."""
    if not with_activity(parameters, cube).activity.variance:
        return []
    variance = select_click_model(cube).activity_variance  # 0 if a browsing model explains it better
    if not variance:
        return []
    text = f"{describe_activity(variance)}. The click rates of items and positions hold nevertheless."
    return [Finding("activity", "fine", text)]


def _find_bad_rows(cube: ClickCube) -> list[Finding]:
    """Return findings about rows that were left out, and about a user with too many rows."""
    findings = []
    rows, first = (cube.metadata.get(name, {}) for name in ("rows", "first_rows"))
    bad = {reason: count for reason, count in rows.items() if count and reason not in ACCEPTED}
    if bad:
        n_bad, n_rows = sum(bad.values()), plural(sum(rows.values()), "row")
        left_out = f"{n_bad:,} of {n_rows} {'was' if n_bad == 1 else 'were'} left out."
        text = f"{left_out} {_sentence(describe_rows(bad, first))}"
        findings.append(Finding("bad-rows", "warning", text))
    busiest = cube.metadata.get("busiest_user")
    if busiest is not None and is_suspicious(busiest):
        text = (
            f"Suspicious rows: a user has {busiest['rows']:,} rows, where users have "
            f"{busiest['mean_rows']:,.1f} on average, as programs do."
        )
        findings.append(Finding("busy-user", "warning", text))
    return findings


def _find_propensities(cube: ClickCube) -> list[Finding]:
    if not cube.has_propensities:
        return []
    wrong = find_wrong_propensities(cube)
    if wrong:
        return [Finding("wrong-propensities", "warning", _sentence(wrong))]
    text = "Propensities are logged, and their inverses add up to the number of items at each position."
    return [Finding("propensities", "fine", text)]


def _find_long_tail(
    displays: Floats, clicks: Floats, parameters: ModelParameters, is_tail: NDArray[np.bool_]
) -> list[Finding]:
    """Return a finding if items with few looks have an appeal at its bound of 1."""
    in_tail = is_tail & clicks.any(axis=2)
    at_bound = in_tail & (parameters.appeal >= 1.0) & ((displays > 0).sum(axis=2) > 1)
    if not at_bound.any() and not parameters.long_tails:
        return []
    share = displays[is_tail].sum() / displays.sum()
    text = (
        f"Long tail: {int((is_tail & displays.any(axis=2)).sum()):,} items have fewer than {MIN_LOOKS:.0f} "
        f"looks ({share:.0%} of the displays), and {int(at_bound.sum()):,} of them an appeal at its bound, 1."
    )
    if parameters.long_tails:
        text += " They would bias the worth of positions: their clicks are compared within each item only."
    return [Finding("long-tail", "fine", text)]


def _assess_without(is_tail: NDArray[np.bool_], cube: ClickCube) -> GoodnessOfFit:
    """Return the test of the fit to the items outside of the tail alone."""
    if not is_tail.any():
        return UNTESTED
    cells = cube.cells
    factors = np.where(is_tail[cells.user_type, cells.item], 0.0, 1.0)
    kept = cells._replace(displays=cells.displays * factors, clicks=cells.clicks * factors)
    return assess_fit(fit_position_based(replace(cube, cells=kept)), cube, ~is_tail)


def _find_misfit(goodness: GoodnessOfFit, without_tail: GoodnessOfFit) -> Finding:
    """Return the finding of a misfit with its likely causes."""
    text = f"Click rates are not products of item and position (p = {goodness.p_value:.1g}): "
    if without_tail.p_value >= MISFIT_P_VALUE:
        text += (
            f"the cause is the long tail, items with fewer than {MIN_LOOKS:.0f} looks, whose appeal may be "
            f"at its bound, 1; the other items fit (p = {without_tail.p_value:.1g})."
        )
    else:
        text += (
            "clicks may depend on the other items of a visit, the log may mix user types by a column that "
            "was not given, or rates may change over time."
        )
    return Finding("misfit", "warning", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _plan_all_swaps(
    items: tuple[str, ...],
    displays: Floats,
    clicks: Floats,
    parameters: ModelParameters,
    types: tuple[UserTypeDiagnosis, ...],
    target: float,
) -> tuple[SwapProposal, ...]:
    """Return the swaps of all user types whose positions are not known to the target."""
    swaps: list[SwapProposal] = []
    for i, one in enumerate(types):
        if one.data_factor > MIN_FACTOR:
            worth, appeal = parameters.attention[i], np.minimum(parameters.appeal[i], 1.0)
            fitted = FittedType(one.user_type, items, displays[i], clicks[i], worth, appeal, one.components)
            swaps += plan_swaps(fitted, target)
    return tuple(swaps)


def _precision(half_width: float) -> str:
    return f"±{math.expm1(half_width):.0%}" if half_width < math.log(3) else "a factor of three or worse"


def _times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < 10 else f"{factor:,.0f} times"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _type_dict(one: UserTypeDiagnosis) -> dict[str, Any]:
    return {
        "user_type": one.user_type,
        "n_displays": one.n_displays,
        "n_clicks": one.n_clicks,
        "n_items": one.n_items,
        "components": [[k + 1 for k in group] for group in one.components],
        "overlap": [_finite(value) for value in one.overlap],
        "effective_overlap": one.effective_overlap,
        "condition": _finite(one.condition),
        "joining_items": list(one.joining_items),
        "n_empty_cells": one.n_empty_cells,
        "half_widths": [_finite(value) for value in one.half_widths],
        "data_factor": _finite(one.data_factor),
    }
