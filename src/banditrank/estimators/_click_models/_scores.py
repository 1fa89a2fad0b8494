"""Scores of click models: log-likelihood and perplexity, marginal and conditional.

The marginal probability of a click at a position depends on the ranking only, the conditional one on the
clicks above as well. The product of the conditional probabilities of a visit is its likelihood. Perplexity
is two to the average number of bits by which a click is missed: 1 is perfect, 2 a coin (Dupret and
Piwowarski, 2008).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import N_FOLDS, ClickCube
from banditrank.estimators._click_models._list_sample import MAX_SCORED_LISTS, sample_lists
from banditrank.estimators._click_models._parameters import ModelParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ModelScores:
    """Scores of a click model on a log; NaN where the log does not have what a score needs.

    Attributes
    ----------
    marginal_log_likelihood
        Natural logarithm of the marginal probabilities, per visit; per display if the log has no visits.
    log_likelihood
        Natural logarithm of the probability of all clicks of a visit, on average; −∞ if the model rules out
        a visit.
    perplexity, conditional_perplexity
        By position, shape (K,).
    """

    marginal_log_likelihood: float
    log_likelihood: float
    perplexity: Floats
    conditional_perplexity: Floats

    @property
    def overall_perplexity(self) -> float:
        """Average perplexity of the positions that were shown."""
        return _mean(self.perplexity)

    @property
    def overall_conditional_perplexity(self) -> float:
        """Average conditional perplexity of the positions that were shown."""
        return _mean(self.conditional_perplexity)


class FoldScores(NamedTuple):
    """Sums of log-probabilities by fold and position, each of shape (F, K); NaN if unknown.

    Attributes
    ----------
    marginal, conditional
        Sums of ln P(C_k = c_k), and given the clicks above.
    displays
        Number of displays they are sums of.
    visits
        Number of visits of each fold, shape (F,); displays if the log has no visits.
    """

    marginal: Floats
    conditional: Floats
    displays: Floats
    visits: Floats

    def total(self) -> ModelScores:
        """Return the scores over all folds."""
        n_visits, shown = max(self.visits.sum(), 1e-300), self.displays.sum(axis=0)
        marginal, conditional = self.marginal.sum(axis=0), self.conditional.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            perplexities = [
                np.exp(-sums / np.where(shown > 0, shown, np.nan)) for sums in (marginal, conditional)
            ]
        return ModelScores(
            float(marginal.sum() / n_visits), float(conditional.sum() / n_visits), *perplexities
        )


def score_by_fold(parameters: ModelParameters, cube: ClickCube) -> FoldScores:
    """Return the scores of a model on a log, from its ranking lists if it has any, else from its cells."""
    lists = sample_lists(cube, MAX_SCORED_LISTS)
    if not lists.fold.size:
        return _score_cells(parameters, cube)
    n_positions = lists.items.shape[1]
    is_clicked = (lists.clicks[:, None] >> np.arange(n_positions)) & 1 == 1
    is_shown = lists.items >= 0
    folds = np.maximum(lists.fold, 0)
    groups = (folds[:, None] * n_positions + np.arange(n_positions)).ravel()
    visits = np.where(is_shown, lists.visits[:, None], 0.0).ravel()

    def by_fold(values: Floats) -> Floats:
        sums = np.bincount(groups, values, N_FOLDS * n_positions)
        return np.asarray(sums, dtype=np.float64).reshape(N_FOLDS, n_positions)

    sums = []
    for chances in (
        parameters.click_probabilities(lists.user_type, lists.items),
        parameters.conditional_probabilities(lists.user_type, lists.items, lists.clicks),
    ):
        logs = _log_probability(chances, is_clicked)
        sums.append(by_fold(np.where(is_shown, logs, 0.0).ravel() * np.where(visits > 0, visits, 1.0)))
    by_visit = np.asarray(np.bincount(folds, lists.visits, N_FOLDS), dtype=np.float64)
    return FoldScores(sums[0], sums[1], by_fold(visits), by_visit)


def _score_cells(parameters: ModelParameters, cube: ClickCube) -> FoldScores:
    cells, n_positions = cube.cells, cube.n_positions
    folds = np.maximum(cells.fold, 0)
    shape = (N_FOLDS, n_positions)
    groups = folds * n_positions + cells.position

    def by_fold(values: Floats) -> Floats:
        totals = np.bincount(groups, values, N_FOLDS * n_positions)
        return np.asarray(totals, dtype=np.float64).reshape(shape)

    def sums(chances: Floats) -> Floats:
        clicked, missed = cells.clicks, np.maximum(cells.displays - cells.clicks, 0.0)
        whether = np.ones(chances.size, dtype=np.bool_)
        gained = np.where(clicked > 0, _log_probability(chances, whether) * np.maximum(clicked, 1e-300), 0.0)
        lost = np.where(missed > 0, _log_probability(chances, ~whether) * np.maximum(missed, 1e-300), 0.0)
        return by_fold(gained + lost)

    appeal = parameters.appeal[cells.user_type, cells.item]
    unknown = np.full(shape, np.nan)
    marginal = conditional = unknown
    if parameters.model in ("single-look", "position-based"):
        marginal = sums(appeal * parameters.attention[cells.user_type, cells.position])
        conditional = marginal if parameters.model == "position-based" else unknown
    elif parameters.model == "user-browsing":
        conditional = sums(appeal * parameters.attention[cells.user_type, cells.above, cells.position])
    elif parameters.model == "cascade":
        conditional = sums(np.where(cells.above == 0, appeal, 0.0))
    displays = by_fold(cells.displays)
    if cube.has_visits:
        by_visit = np.bincount(np.maximum(cube.visits.fold, 0), cube.visits.visits, N_FOLDS)
        visits = np.asarray(by_visit, dtype=np.float64)
    else:
        visits = displays.sum(axis=1)
    return FoldScores(marginal, conditional, displays, visits)


def _log_probability(chances: Floats, is_clicked: NDArray[np.bool_]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(is_clicked, chances, 1.0 - np.minimum(chances, 1.0))))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
