"""The choice of a click model by its held-out likelihood.

Visits are divided by fold, so that all visits of a user are on one side. The marginal likelihood decides: it
scores how well clicks on other rankings are predicted. Models between which it does not decide are compared
by the conditional likelihood of whole visits, and if that does not decide either, the one with the fewest
parameters is chosen.

Visits that differ in activity have correlated clicks, which browsing models describe better than independent
positions do, and from which they predict other rankings wrongly. So the conditional likelihood of the
position-based model is that with the activity of visits, estimated from the other visits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._frames import Columns, Tabular
from banditrank.counts._click_cube import N_FOLDS, ClickCube
from banditrank.estimators._click_models._estimates_of_model import (
    cell_tables,
    has_single_position,
    lacks_misses,
)
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._models import MODELS
from banditrank.estimators._click_models._parameters import ClickModelName, ModelParameters
from banditrank.estimators._click_models._position_based import fit_position_based, with_activity
from banditrank.estimators._click_models._scores import FoldScores, ModelScores, score_by_fold
from banditrank.estimators._distributions import student_quantile

Floats = NDArray[np.float64]

N_GROUPS = 5
"""Number of parts of a log, each of which is held out once."""

_LEVEL = 0.95
_MIN_EXPECTED_VISITS = 3.0  # with two clicks under the position-based model, to rule it out by having none


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """A model against the chosen one on held-out visits: differences of log-likelihoods per visit.

    Attributes
    ----------
    model
        Name of the model.
    marginal_log_likelihood, log_likelihood
        Held-out scores per visit; NaN if unknown.
    marginal_difference, conditional_difference
        Chosen model less this one.
    marginal_interval, conditional_interval
        95% intervals of the differences, from the folds.
    """

    model: ClickModelName
    marginal_log_likelihood: float
    log_likelihood: float
    marginal_difference: float
    marginal_interval: tuple[float, float]
    conditional_difference: float
    conditional_interval: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class ClickModelSelection(Tabular):
    """The chosen click model, and how sure the choice is. ``to_frame`` returns a row for each candidate.

    Attributes
    ----------
    model
        The chosen model.
    is_sure
        Whether held-out visits rule out each other candidate.
    describing_model
        The candidate of the largest conditional likelihood: it describes visits best, which need not be the
        model that predicts clicks on other rankings best.
    statement
        How sure the choice is, in words.
    candidates
        Comparisons, the chosen model first.
    held_out
        Held-out scores of the chosen model; None if nothing was held out.
    activity_variance
        Variance of the activity of visits, whose mean is 1, if ``position-based`` is chosen; 0 if visits do
        not differ.
    """

    model: ClickModelName
    is_sure: bool
    describing_model: ClickModelName
    statement: str
    candidates: tuple[ModelComparison, ...]
    held_out: ModelScores | None
    activity_variance: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as values of JSON."""
        return {
            "model": self.model,
            "is_sure": self.is_sure,
            "describing_model": self.describing_model,
            "statement": self.statement,
            "activity_variance": self.activity_variance,
            "candidates": [
                {
                    "model": one.model,
                    "marginal_log_likelihood": as_json(one.marginal_log_likelihood),
                    "log_likelihood": as_json(one.log_likelihood),
                    "marginal_difference": as_json(one.marginal_difference),
                    "marginal_interval": [as_json(end) for end in one.marginal_interval],
                    "conditional_difference": as_json(one.conditional_difference),
                    "conditional_interval": [as_json(end) for end in one.conditional_interval],
                }
                for one in self.candidates
            ],
        }

    def _columns(self) -> Columns:
        names = (
            *("model", "marginal_log_likelihood", "log_likelihood"),
            *("marginal_difference", "conditional_difference"),
        )
        return {name: [getattr(one, name) for one in self.candidates] for name in names}


def as_json(value: float) -> float | None:
    """Return a number, or None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def select_click_model(cube: ClickCube) -> ClickModelSelection:
    """Choose a click model by its held-out likelihood.

    Parameters
    ----------
    cube
        The counts of a log.

    Returns
    -------
    ClickModelSelection
        The choice. Without visits, a log does not tell the models apart: ``position-based`` is returned as an
        assumption. Where no visit has two clicks, ``single-look`` and ``cascade`` are the candidates.

    Raises
    ------
    InvalidInputError
        If the log has too many cells.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items = np.argsort(rng.random((4000, 3)), axis=1)
    >>> clicks = rng.random((4000, 3)) < np.array([0.3, 0.2, 0.1])
    >>> select_click_model(ClickCube.from_visits(np.zeros(4000), items, clicks)).model
    'position-based'
    """
    cube.check_analysed()
    assumption = _assumption(cube)
    if assumption is not None:
        return ClickModelSelection("position-based", False, "position-based", assumption, (), None)
    has_several = bool(cube.visits.visits[cube.visits.n_clicks > 1].any())
    names: tuple[ClickModelName, ...] = (
        ("position-based", "dependent-click", "user-browsing") if has_several else ("cascade", "single-look")
    )
    scores = held_out_scores(cube, names)
    if scores is None:
        statement = "too few visits to hold some out: the model is an assumption"
        model = names[0] if has_several else names[-1]
        return ClickModelSelection(model, False, model, statement, (), None)
    chosen, reason, is_sure = _choose(scores)
    order = sorted(names, key=lambda name: name != chosen)
    comparisons = tuple(_compare(scores[chosen], scores[name], name) for name in order)
    describing = max(names, key=lambda name: scores[name].conditional.sum())
    statement = _statement(chosen, comparisons[1:], reason)
    if not has_several:
        statement += ". " + _single_click_statement(cube)
    variance = 0.0
    if chosen == "position-based":
        variance = with_activity(fit_position_based(cube), cube).activity.variance
    if variance > 0:
        statement += f". {describe_activity(variance)}"
    held_out = scores[chosen].total()
    return ClickModelSelection(chosen, is_sure, describing, statement, comparisons, held_out, variance)


def describe_activity(variance: float) -> str:
    """Return in words that users of a type differ in activity.

    Examples
    --------
    >>> describe_activity(0.25)
    'Users of a type differ in activity, by a factor of about 1 ± 0.5: clicks of a visit are correlated'
    """
    factor = f"1 ± {math.sqrt(variance):.1g}"
    return (
        f"Users of a type differ in activity, by a factor of about {factor}: clicks of a visit are correlated"
    )


def held_out_scores(
    cube: ClickCube, models: Sequence[ClickModelName]
) -> dict[ClickModelName, FoldScores] | None:
    """Return the scores of each fold by the fits to the other groups of folds; None if there is one group.

    The fit to one group starts from that to the group before. Conditional scores of ``position-based`` are
    those with the activity of visits.
    """
    cube = cube.merge_periods().split_folds(np.random.default_rng(0))
    groups = [range(group, N_FOLDS, N_GROUPS) for group in range(N_GROUPS)]
    used = set(np.unique(cube.cells.fold).tolist())
    groups = [group for group in groups if used & set(group)]
    if len(groups) < 2:
        return None
    totals: dict[ClickModelName, FoldScores] = {}
    fits: dict[ClickModelName, ModelParameters] = {}
    for group in groups:
        training, held_out = (cube.select(folds=folds) for folds in (sorted(used - set(group)), list(group)))
        for model in models:
            fits[model] = MODELS[model].fit(training, fits.get(model))
            scored = fits[model]
            if model == "position-based":
                scored = with_activity(scored, training)
            scores = score_by_fold(scored.smoothed(), held_out)
            if model in totals:
                scores = FoldScores(*(a + b for a, b in zip(totals[model], scores, strict=True)))
            totals[model] = scores
    return totals


def _assumption(cube: ClickCube) -> str | None:
    """Return why a log cannot tell the models apart, or None."""
    displays, clicks = cell_tables(cube)
    if lacks_misses(displays, clicks):
        return "every display was clicked: any click model fits this log, and none can be chosen"
    if has_single_position(displays):
        return "the log has a single position: click models do not differ, and appeal is a click rate"
    largest = 0
    for i in range(displays.shape[0]):
        components = find_components(displays[i], clicks[i])
        largest = max(largest, len(components.columns(0)))
    if largest < 2:
        return (
            "no clicked item was shown at two positions: any click model fits this log, and none can be "
            "chosen"
        )
    if not cube.has_visits:
        return (
            "the log has no visits: single-look and position-based have the same click rates and cannot be "
            "told apart; position-based is an assumption"
        )
    return None


def _choose(scores: dict[ClickModelName, FoldScores]) -> tuple[ClickModelName, str, bool]:
    """Return the chosen model, what decided, and whether all others are ruled out."""
    left = list(scores)
    for kind in ("marginal", "conditional"):
        best = max(left, key=lambda name: _total(scores[name], kind))
        left = [name for name in left if name == best or not _is_better(scores[best], scores[name], kind)]
        if len(left) == 1:
            return best, kind, True
    simplest = min(left, key=list(MODELS).index)
    return simplest, "parameters", False


def _total(scores: FoldScores, kind: str) -> float:
    total = float(getattr(scores, kind).sum())
    return total if not math.isnan(total) else -math.inf


def _is_better(one: FoldScores, other: FoldScores, kind: str) -> bool:
    _, (low, _) = _difference(one, other, kind)
    return low > 0


def _difference(one: FoldScores, other: FoldScores, kind: str) -> tuple[float, tuple[float, float]]:
    """Return the difference per visit and its interval, over folds."""
    first, second = (getattr(scores, kind).sum(axis=1) for scores in (one, other))
    is_used = one.visits > 0
    if not np.isfinite(first[is_used]).all() or not np.isfinite(second[is_used]).all():
        with np.errstate(invalid="ignore"):  # if both rule out a visit
            total = float(first.sum() - second.sum()) if one is not other else 0.0
        return total, (total, total)
    weights = one.visits[is_used] / one.visits[is_used].sum()
    differences = (first - second)[is_used] / one.visits[is_used]
    mean = float(weights @ differences)
    n = int(is_used.sum())
    spread = math.sqrt(float(weights**2 @ (differences - mean) ** 2) * n / max(n - 1, 1))
    half = student_quantile((1 + _LEVEL) / 2, max(n - 1, 1)) * spread
    return mean, (mean - half, mean + half)


def _compare(chosen: FoldScores, other: FoldScores, name: ClickModelName) -> ModelComparison:
    marginal, marginal_interval = _difference(chosen, other, "marginal")
    conditional, conditional_interval = _difference(chosen, other, "conditional")
    scores = other.total()
    return ModelComparison(
        name,
        scores.marginal_log_likelihood,
        scores.log_likelihood,
        marginal,
        marginal_interval,
        conditional,
        conditional_interval,
    )


def _statement(chosen: ClickModelName, others: tuple[ModelComparison, ...], reason: str) -> str:
    parts = []
    for other in others:
        kind, difference, (low, _) = "marginal", other.marginal_difference, other.marginal_interval
        if low <= 0 or not math.isfinite(difference):
            kind, difference, (low, _) = (
                "conditional",
                other.conditional_difference,
                other.conditional_interval,
            )
        half = difference - low
        if math.isinf(difference):
            parts.append(f"{other.model} rules out visits that occurred")
        elif math.isnan(difference):
            parts.append(f"{other.model} cannot be compared without ranking lists")
        elif low > 0:
            parts.append(f"better than {other.model} by {difference:.2g} ± {half:.1g} ({kind})")
        else:
            parts.append(f"not told from {other.model}: {difference:+.2g} ± {half:.1g} ({kind})")
    how = {
        "marginal": "by held-out marginal log-likelihood per visit",
        "conditional": "by held-out log-likelihood per visit, where marginal likelihoods do not decide",
        "parameters": "as the candidate with the fewest parameters that is not worse on held-out visits",
    }[reason]
    return f"{chosen} is chosen {how}: {'; '.join(parts)}"


def _single_click_statement(cube: ClickCube) -> str:
    """Say whether chance explains that no visit has two clicks."""
    displays, _ = cell_tables(cube)
    fit = fit_position_based(cube)
    rates = np.minimum(fit.appeal[:, :, None] * fit.attention[:, None, :], 1.0)
    per_position = (displays * rates).sum(axis=1) / np.maximum(displays.sum(axis=1), 1.0)  # (N, K)
    none = np.prod(1 - per_position, axis=1)
    odds = per_position / np.maximum(1 - per_position, 1e-12)
    visits = displays.sum(axis=1).max(axis=1)
    expected = float((visits * np.maximum(1 - none - none * odds.sum(axis=1), 0.0)).sum())
    if expected < _MIN_EXPECTED_VISITS:
        return (
            "No visit has two clicks, but with so few clicks that may be chance: position-based is not ruled "
            "out"
        )
    return (
        f"No visit has two clicks; independent positions would have made about {expected:,.0f} such visits, "
        "so that position-based, dependent-click and user-browsing are ruled out"
    )
