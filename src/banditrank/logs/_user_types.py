"""Which columns of a log are worth being user types.

A column is compared with telling no users apart, on visits that were held out. Appeal by value of the
column is shrunk to that of all users, as strongly as the values are alike, so that a column of noise gains
nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._frames import Columns, Tabular
from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._long_tail import find_tail, shrink_means
from banditrank.estimators._click_models._rank_one import fit_rank_one_tables
from banditrank.estimators._distributions import chi_square_survival, student_quantile

Floats = NDArray[np.float64]

_LEVEL = 0.95
_SIGNIFICANT = 0.01
_MIN_EXPECTED = 1.0  # displays of a cell in the test of the logging policy
_MAX_APPEAL = 1 - 1e-9
_MIN_CHANCE = 1e-9


@dataclass(frozen=True, slots=True)
class ColumnAssessment:
    """What telling users apart by some columns gains over telling none apart.

    Attributes
    ----------
    columns
        Names of the columns.
    n_user_types
        Number of user types that they make.
    p_value
        Of the likelihood ratio test that all types have the same positions and items.
    held_out_gain
        Gain of the log-likelihood of held-out displays, per 1,000 displays.
    held_out_interval
        Its 95% interval, from the folds; NaN if all folds have the same gain.
    clicks_gained
        Clicks per visit that a personalized ranking gains over one ranking for all, both learned on all folds
        but one, and valued on that one by the position-based model. NaN if some positions cannot be compared,
        as with a fixed layout, no item was shown to two types, or there are fewer items than positions.
    clicks_interval
        Its 95% interval; NaN if both rankings are the same in each fold.
    is_confounded
        Whether rankings were chosen by the columns: the logging policy showed different items to users who
        differ in them, but not in the other columns of the log. Not so of a pair if one of its columns
        explains this.
    logging_p_value
        Of the test that it did not show different items to users who differ in these columns only.
    """

    columns: tuple[str, ...]
    n_user_types: int
    p_value: float
    held_out_gain: float
    held_out_interval: tuple[float, float]
    clicks_gained: float
    clicks_interval: tuple[float, float]
    is_confounded: bool
    logging_p_value: float

    @property
    def is_useful(self) -> bool:
        """Whether held-out displays are predicted better, beyond doubt."""
        return self.held_out_interval[0] > 0

    @property
    def gain_text(self) -> str:
        """Clicks gained with their interval as text, or why there are none."""
        if math.isnan(self.clicks_gained):
            return "not identified"
        low, high = self.clicks_interval
        if math.isnan(low):
            return "none: the same ranking"
        return f"{self.clicks_gained:+.4f} [{low:+.4f}, {high:+.4f}]"

    @property
    def logging_text(self) -> str:
        """What follows if rankings were chosen by the columns."""
        subject = "it" if len(self.columns) == 1 else "them"
        return (
            f"rankings were chosen by {subject}, so that leaving {subject} out biases the worth of positions"
        )

    def __str__(self) -> str:
        name = " and ".join(self.columns)
        if math.isnan(self.held_out_gain):
            text = f"{name}: cannot be assessed"
        elif self.is_useful:
            gain = f"clicks per visit that personalized rankings gain: {self.gain_text}"
            text = f"{name}: tells users apart; {gain}"
        else:
            text = f"{name}: no gain on held-out visits"
        if self.is_confounded:
            text += f"; {self.logging_text}"
        return text


@dataclass(frozen=True, slots=True)
class UserTypeAssessment(Tabular):
    """Assessment of candidate columns, the most useful first. ``to_frame`` returns a row for each.

    Attributes
    ----------
    columns
        Each column, and pairs of columns.
    recommended
        Columns of the largest held-out gain that is beyond doubt; none if there is no such gain.
    """

    columns: tuple[ColumnAssessment, ...]
    recommended: tuple[str, ...]

    @property
    def statement(self) -> str:
        """What to do, in a sentence or two."""
        if self.recommended:
            return f"Tell user types apart by {' and '.join(self.recommended)}."
        assessed = [each for each in self.columns if not math.isnan(each.held_out_gain)]
        if not assessed:
            return "No column can be assessed."
        if all(math.isnan(each.clicks_gained) for each in assessed):
            return (
                "No column tells users apart on held-out visits. Whether one ranking serves all cannot be "
                "known from this log."
            )
        return (
            "No column tells users apart on held-out visits: as far as the log tells, one ranking serves all."
        )

    def without_gains(self) -> "UserTypeAssessment":
        """Return the assessment of a log that does not teach rankings: without the clicks gained."""
        unknown = (math.nan, math.nan)
        columns = (replace(each, clicks_gained=math.nan, clicks_interval=unknown) for each in self.columns)
        return replace(self, columns=tuple(columns))

    def summary(self) -> str:
        """Return the assessment as text."""
        return "\n".join([self.statement, *(f"- {each}" for each in self.columns)])

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as values of JSON."""
        return {
            "recommended": list(self.recommended),
            "columns": [
                {
                    "columns": list(each.columns),
                    "n_user_types": each.n_user_types,
                    "p_value": _finite(each.p_value),
                    "held_out_gain": _finite(each.held_out_gain),
                    "held_out_interval": [_finite(end) for end in each.held_out_interval],
                    "clicks_gained": _finite(each.clicks_gained),
                    "clicks_interval": [_finite(end) for end in each.clicks_interval],
                    "is_useful": each.is_useful,
                    "is_confounded": each.is_confounded,
                    "logging_p_value": _finite(each.logging_p_value),
                }
                for each in self.columns
            ],
        }

    def _columns(self) -> Columns:
        return {
            "columns": [", ".join(each.columns) for each in self.columns],
            "n_user_types": np.array([each.n_user_types for each in self.columns]),
            "p_value": np.array([each.p_value for each in self.columns]),
            "held_out_gain": np.array([each.held_out_gain for each in self.columns]),
            "clicks_gained": np.array([each.clicks_gained for each in self.columns]),
            "clicks_lower": np.array([each.clicks_interval[0] for each in self.columns]),
            "clicks_upper": np.array([each.clicks_interval[1] for each in self.columns]),
            "is_useful": np.array([each.is_useful for each in self.columns]),
            "is_confounded": np.array([each.is_confounded for each in self.columns]),
        }


def assess_user_types(
    cube: ClickCube, among: Sequence[str] | None = None, *, pairs: bool = True
) -> UserTypeAssessment:
    """Assess which columns of a log are worth being user types.

    Parameters
    ----------
    cube
        The counts of the log, by all candidate columns.
    among
        Candidate columns; all type columns of the cube by default.
    pairs
        Whether to assess pairs of columns, too.

    Raises
    ------
    InvalidInputError
        If the log has no displays or too many cells, or there is no candidate column.
    UnknownNameError
        If the cube has no such column.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> types, items = rng.integers(0, 2, 4000), np.argsort(rng.random((4000, 3)), axis=1)
    >>> clicks = rng.random((4000, 3)) < np.array([[0.5, 0.3, 0.1], [0.1, 0.3, 0.5]])[types[:, None], items]
    >>> assess_user_types(ClickCube.from_visits(types, items, clicks)).recommended
    ('user_type',)
    """
    names = cube.type_columns if among is None else tuple(among)
    if not names:
        raise InvalidInputError("among", "must name at least one column", names)
    for name in names:
        if name not in cube.type_columns:
            raise UnknownNameError("among", name, cube.type_columns)
    if not cube.cells.displays.any():
        raise InvalidInputError("cube", "must have displays", "none")
    candidates = [(name,) for name in names] + (list(combinations(names, 2)) if pairs else [])
    logging = _test_all_logging(cube, candidates)
    cube = cube.split_folds(np.random.default_rng(0)).regroup(names)
    cube.check_analysed()
    assessed = [_assess(cube, columns, logging[columns]) for columns in candidates]
    found = sorted(assessed, key=lambda each: (math.isnan(each.held_out_gain), -each.held_out_gain))
    useful = [each for each in found if each.is_useful]
    recommended = useful[0].columns if useful else ()
    for each in useful:  # a single column that is as good as the best pair
        if len(each.columns) < len(recommended) and each.held_out_gain >= useful[0].held_out_interval[0]:
            recommended = each.columns
    return UserTypeAssessment(tuple(found), recommended)


class _Tables(NamedTuple):
    """Displays and clicks, both of shape (N, M, K)."""

    displays: Floats
    clicks: Floats


class _Fit(NamedTuple):
    """Position-based fit: κ, shape (N, K), and μ, shape (N, M)."""

    kappa: Floats
    appeal: Floats


def _assess(cube: ClickCube, columns: tuple[str, ...], logging: "_LoggingTest") -> ColumnAssessment:
    by_type = cube.regroup(columns)
    cells = by_type.cells
    whole = _tables(by_type, np.ones(cells.fold.size, dtype=np.bool_))
    together = _pool(whole)
    n_types = len(by_type.type_values)
    unknown = (math.nan, math.nan)
    folds = np.unique(cells.fold[cells.displays > 0])
    if n_types < 2 or folds.size < 2 or not whole.clicks.any():
        return ColumnAssessment(
            *(columns, n_types, math.nan, math.nan, unknown, math.nan, unknown),
            *(logging.is_confounded, logging.p_value),
        )
    fitted = _fit(whole)
    deviations, spreads = np.zeros((2, folds.size, n_types))
    is_comparable = _is_comparable(whole, together)
    gains, weights, clicks_gained, leave_one_out = (np.zeros(folds.size) for _ in range(4))
    all_users = _fit_all_users(together)
    rankings = _best_rankings(_shrink(whole, all_users), all_users)
    for number, fold in enumerate(folds):
        test = _tables(by_type, cells.fold == fold)
        training = _Tables(whole.displays - test.displays, whole.clicks - test.clicks)
        all_users = _fit_all_users(_pool(training))
        shrunk = _shrink(training, all_users)
        gains[number] = _log_likelihood(test, shrunk) - _log_likelihood(test, _repeat(all_users, n_types))
        weights[number] = test.displays.sum()
        deviations[number], spreads[number] = _deviations(test, fitted)
        learned = _best_rankings(shrunk, all_users)
        clicks_gained[number] = learned.gain(shrunk, _held_out_appeal(shrunk, test, whole), whole)
        leave_one_out[number] = rankings.gain(shrunk, shrunk.appeal, training)
    dispersion = float((deviations**2).sum() / max(spreads.sum(), 1e-300)) * folds.size / (folds.size - 1)
    p_value = _likelihood_ratio(whole, together, max(dispersion, 1.0))
    gain, interval = _mean_interval(1000 * gains / weights, weights)
    clicks, clicks_interval = math.nan, unknown
    if is_comparable:
        # All folds are valued by nearly the same worth of positions; only the jackknife includes its error.
        jackknife = math.sqrt((folds.size - 1) * float(np.var(leave_one_out)))
        clicks, clicks_interval = _mean_interval(clicks_gained, weights, jackknife)
    return ColumnAssessment(
        columns,
        n_types,
        p_value,
        gain,
        interval,
        clicks,
        clicks_interval,
        logging.is_confounded,
        logging.p_value,
    )


def _is_comparable(whole: _Tables, together: _Tables) -> bool:
    """Return whether a log tells rankings by type from one ranking for all.

    Positions must be comparable, there must be enough items for a ranking, and one of them must have been
    shown to two types: otherwise the taste of a type cannot be separated from the items that it was shown.
    """
    n_types_shown = whole.displays.any(axis=2).sum(axis=0)  # (M,)
    return (
        find_components(together.displays[0], together.clicks[0]).n_components == 1
        and int((n_types_shown > 0).sum()) >= whole.displays.shape[2]
        and int(n_types_shown.max()) > 1
    )


def _tables(cube: ClickCube, is_used: NDArray[np.bool_]) -> _Tables:
    return _Tables(cube.table(cube.cells.displays * is_used), cube.table(cube.cells.clicks * is_used))


def _pool(tables: _Tables) -> _Tables:
    """Return the tables of all users together, shape (1, M, K)."""
    return _Tables(*(table.sum(axis=0, keepdims=True) for table in tables))


def _fit(tables: _Tables) -> _Fit:
    fit = fit_rank_one_tables(tables.displays, tables.clicks)
    return _Fit(fit.gamma, fit.means)


def _fit_all_users(tables: _Tables) -> _Fit:
    """Return the fit of all users, with the appeal of the long tail shrunk: it is 0 or 1 by chance."""
    fit = _fit(tables)
    is_tail = find_tail(tables.displays, fit.kappa) & tables.displays.any(axis=2)
    if not is_tail.any():
        return fit
    appeal, looks = fit.appeal.copy(), np.einsum("ijk,ik->ij", tables.displays, fit.kappa)
    is_tail &= looks > 0
    appeal[is_tail] = np.minimum(
        shrink_means(tables.clicks.sum(axis=2)[is_tail], looks[is_tail]), _MAX_APPEAL
    )
    return fit._replace(appeal=appeal)


def _repeat(fit: _Fit, n_types: int) -> _Fit:
    return _Fit(np.repeat(fit.kappa, n_types, axis=0), np.repeat(fit.appeal, n_types, axis=0))


def _shrink(tables: _Tables, all_users: _Fit) -> _Fit:
    """Return the fit by type, shrunk to that of all users.

    The clicks of a type on an item are taken for Poisson with a mean of its expectation under the fit of all
    users times a gamma variable of mean 1, whose variance is estimated by moments; positions likewise.
    """
    rates = all_users.appeal[0][:, None] * all_users.kappa[0]  # (M, K)
    expected = tables.displays * rates
    by_item = _posterior_factors(tables.clicks.sum(axis=2), expected.sum(axis=2))
    appeal = np.minimum(all_users.appeal * by_item, _MAX_APPEAL)
    expected = tables.displays * (appeal[:, :, None] * all_users.kappa[0])
    by_position = _posterior_factors(tables.clicks.sum(axis=1), expected.sum(axis=1))
    return _Fit(all_users.kappa * by_position, appeal)


def _posterior_factors(clicks: Floats, expected: Floats) -> Floats:
    excess = ((clicks - expected) ** 2 - clicks).sum()
    variance = max(float(excess / max((expected**2).sum(), 1e-300)), 0.0)
    if variance < 1e-9:
        return np.ones_like(clicks)
    return np.asarray((clicks + 1 / variance) / (expected + 1 / variance))


def _log_likelihood(tables: _Tables, fit: _Fit) -> float:
    chances = np.clip(fit.appeal[:, :, None] * fit.kappa[:, None, :], _MIN_CHANCE, 1 - _MIN_CHANCE)
    misses = tables.displays - tables.clicks
    return float((tables.clicks * np.log(chances) + misses * np.log1p(-chances)).sum())


def _deviations(tables: _Tables, fit: _Fit) -> tuple[Floats, Floats]:
    """Return the clicks of each type less those expected, and their variance if clicks are independent."""
    chances = np.clip(fit.appeal[:, :, None] * fit.kappa[:, None, :], _MIN_CHANCE, 1 - _MIN_CHANCE)
    expected = tables.displays * chances
    return (tables.clicks - expected).sum(axis=(1, 2)), (expected * (1 - chances)).sum(axis=(1, 2))


def _likelihood_ratio(whole: _Tables, together: _Tables, dispersion: float) -> float:
    """Return the p-value of the test that types do not differ.

    The clicks of a type vary more than independent ones do if users differ in activity: their part of the
    statistic is divided by ``dispersion``, the ratio of the variances in the folds of users.
    """
    is_tail = find_tail(together.displays[0], _fit(together).kappa[0])
    whole, together = (  # items with few looks have no chi-square distribution
        _Tables(displays[:, ~is_tail], clicks[:, ~is_tail]) for displays, clicks in (whole, together)
    )
    by_type, pooled = _fit(whole), _repeat(_fit(together), whole.displays.shape[0])
    statistic = 2 * (_log_likelihood(whole, by_type) - _log_likelihood(whole, pooled))
    deviations, spreads = _deviations(whole, pooled)
    of_totals = float((deviations**2 / np.maximum(spreads, 1e-300)).sum())
    statistic -= min(of_totals, statistic) * (1.0 - 1.0 / dispersion)
    degrees = _n_parameters(whole) - _n_parameters(together)
    return chi_square_survival(max(statistic, 0.0), degrees) if degrees > 0 else math.nan


def _n_parameters(tables: _Tables) -> int:
    total = 0
    for displays, clicks in zip(tables.displays, tables.clicks, strict=True):
        components = find_components(displays, clicks)
        vertices = (components.of_column >= 0).sum() + (components.of_item >= 0).sum()
        total += int(vertices) - components.n_components
    return total


class _RankingPairs(NamedTuple):
    """Rankings by type and one ranking for all, both of shape (N, K)."""

    personalized: NDArray[np.int64]
    shared: NDArray[np.int64]

    def added_looks(self, fit: _Fit) -> Floats:
        """Return the looks at each item in a visit that the ranking by type adds, shape (N, M)."""
        looks = np.zeros_like(fit.appeal)
        rows = np.arange(fit.kappa.shape[0])[:, None]
        np.add.at(looks, (rows, self.personalized), fit.kappa)
        np.add.at(looks, (rows, self.shared), -fit.kappa)
        return looks

    def gain(self, fit: _Fit, appeal: Floats, tables: _Tables) -> float:
        """Return the clicks per visit that rankings by type gain, by a fit and the appeal of items."""
        arrivals = tables.displays.sum(axis=1).max(axis=1)  # (N,)
        return float(arrivals @ (self.added_looks(fit) * appeal).sum(axis=1) / arrivals.sum())


def _best_rankings(shrunk: _Fit, all_users: _Fit) -> _RankingPairs:
    return _RankingPairs(_rankings(shrunk), np.repeat(_rankings(all_users), shrunk.kappa.shape[0], axis=0))


def _held_out_appeal(fit: _Fit, test: _Tables, whole: _Tables) -> Floats:
    """Return the appeal by a fit to other folds, corrected by the residuals of this fold.

    Weights are the looks at an item that the log has for a fold of this size, so that the corrections of all
    folds are right on average even if a fold lacks the item.
    """
    looks = (whole.displays * fit.kappa[:, None]).sum(axis=2)  # (N, M)
    looks *= test.displays.sum() / whole.displays.sum()
    residuals = test.clicks.sum(axis=2) - fit.appeal * (test.displays * fit.kappa[:, None]).sum(axis=2)
    return np.asarray(fit.appeal + np.divide(residuals, looks, out=np.zeros_like(looks), where=looks > 0))


def _rankings(fit: _Fit) -> NDArray[np.int64]:
    """Return the ranking of each type, shape (N, K): the most appealing item at the most examined position.

    Items repeat if there are too few, which is not reported.
    """
    n_types, n_positions = fit.kappa.shape
    order = np.argsort(-fit.appeal, axis=1, kind="stable")
    best = order[:, np.arange(n_positions) % order.shape[1]]
    rankings = np.empty((n_types, n_positions), dtype=np.int64)
    np.put_along_axis(rankings, np.argsort(-fit.kappa, axis=1, kind="stable"), best, axis=1)
    return rankings


class _LoggingTest(NamedTuple):
    """Result of the test that rankings were not chosen by some columns."""

    p_value: float
    is_confounded: bool


def _test_all_logging(
    cube: ClickCube, candidates: Sequence[tuple[str, ...]]
) -> dict[tuple[str, ...], _LoggingTest]:
    """Return the tests of columns and of pairs of them, which must come after their columns."""
    found: dict[tuple[str, ...], _LoggingTest] = {}
    for columns in candidates:
        p_value = _test_logging(cube, columns)
        is_confounded = p_value < _SIGNIFICANT
        if len(columns) > 1:  # columns that stand for each other explain nothing alone
            alone = {found[name,].is_confounded for name in columns}
            is_confounded &= len(alone) == 1
        found[columns] = _LoggingTest(p_value, is_confounded)
    return found


def _test_logging(cube: ClickCube, columns: Sequence[str]) -> float:
    """Return the p-value of the test that displays at each position do not depend on some columns.

    Users are compared with those of the same values in all other type columns of the cube: a column that is
    merely correlated with the one by which rankings were chosen does not matter then. Displays at one
    position are of different visits. The p-value is the smallest of the positions, times their number.
    """
    cells = cube.cells
    is_tested = np.array([name in columns for name in cube.type_columns], dtype=np.bool_)
    group, stratum = (_number_types(cube, is_used)[cells.user_type] for is_used in (is_tested, ~is_tested))
    order = np.lexsort((stratum, cells.position))
    changes = np.diff(cells.position[order]) | np.diff(stratum[order])
    statistics, degrees = np.zeros(cube.n_positions), np.zeros(cube.n_positions, dtype=np.int64)
    for rows in np.split(order, np.flatnonzero(changes) + 1):
        statistic, n_degrees = _compare_displays(group[rows], cells.item[rows], cells.displays[rows])
        position = cells.position[rows[0]]
        statistics[position] += statistic
        degrees[position] += n_degrees
    tested = np.flatnonzero(degrees)
    p_values = [chi_square_survival(float(statistics[k]), int(degrees[k])) for k in tested]
    return min(1.0, min(p_values, default=1.0) * max(tested.size, 1))


def _number_types(cube: ClickCube, is_used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for each user type, the same for those that are alike in some columns, shape (N,)."""
    numbers: dict[tuple[str, ...], int] = {}
    kept = (tuple(compress(values, is_used)) for values in cube.type_values)
    return np.array([numbers.setdefault(values, len(numbers)) for values in kept], dtype=np.int64)


def _compare_displays(
    group: NDArray[np.int64], item: NDArray[np.int64], displays: Floats
) -> tuple[float, int]:
    """Return the chi-square statistic of groups and items, and its degrees of freedom; rare items are merged.

    With fixed numbers of displays of each group and item, the expectation of the statistic is exactly the
    degrees of freedom, however few displays there are.
    """
    groups, row = np.unique(group, return_inverse=True)
    items, column = np.unique(item, return_inverse=True)
    if groups.size < 2 or items.size < 2:
        return 0.0, 0
    cell = row.ravel() * items.size + column.ravel()
    table = np.bincount(cell, displays, groups.size * items.size).reshape(groups.size, items.size)
    table = table[np.ix_(table.any(axis=1), table.any(axis=0))]
    if min(table.shape) < 2:
        return 0.0, 0
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    common = (expected >= _MIN_EXPECTED).all(axis=0)
    merged = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    merged = merged[:, merged.any(axis=0)]
    expected = np.outer(merged.sum(axis=1), merged.sum(axis=0)) / total
    statistic = float(((merged - expected) ** 2 / expected).sum())
    return statistic * (total - 1) / total, (merged.shape[0] - 1) * (merged.shape[1] - 1)


def _mean_interval(
    values: Floats, weights: Floats, min_error: float = 0.0
) -> tuple[float, tuple[float, float]]:
    """Return the weighted mean of folds and its interval, with a standard error of at least ``min_error``.

    The interval is NaN if the standard error is 0: all folds have the same value.
    """
    shares = weights / weights.sum()
    mean = float(shares @ values)
    n = values.size
    error = max(math.sqrt(float(shares**2 @ (values - mean) ** 2) * n / (n - 1)), min_error)
    if error == 0:
        return mean, (math.nan, math.nan)
    half = student_quantile((1 + _LEVEL) / 2, n - 1) * error
    return mean, (mean - half, mean + half)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
