"""Rank-one click models of a log: click probabilities μ_j γ_c of items j and columns c.

Columns are the positions for ``single-look`` and ``position-based``, and the pairs of a position and the last
click above it for ``user-browsing`` (Dupret and Piwowarski 2008). The maximum of the likelihood is that of
`banditrank.estimators`, whatever the columns are.

The information about log γ, with log μ eliminated, is the Laplacian of the graph of columns that share items,
L = diag(w_·c) − Wᵀ diag(1 / w_j·) W with w = T p (Poisson) or T p / (1 − p) (binomial). Its null space is
what the log does not identify.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.estimators._click_models._goodness_of_fit import (
    chi_square_p_value,
    parameters_of_tested_cells,
)
from banditrank.estimators._click_models._long_tail import informative_rates, shrink_means
from banditrank.estimators._click_models._rank_one import fit_rank_one_tables
from banditrank.estimators._click_models._single_look import fit_shares
from banditrank.evaluation._log_cells import LogCells, sum_by

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

EvaluationModel: TypeAlias = Literal["single-look", "position-based", "user-browsing"]
"""Click model of a direct method."""

_SINGULAR = 1e-9  # eigenvalues below this share of the largest are taken for 0
_MIN_EXPECTED = 1.0  # expected clicks, and misses, of the cells of the misfit test


class ColumnInformation(NamedTuple):
    """Information about the logarithms of one type's γ."""

    covariance: Floats  # (C, C) pseudo-inverse
    null_space: Floats  # (C, C) projection on what is not identified


class LogModelFit(NamedTuple):
    """A fitted rank-one model of a log.

    Attributes
    ----------
    model
        Name of the click model.
    examination
        γ, shape (N, C); NaN for columns that were not shown with an item that was clicked.
    means
        μ, shape (N, M); NaN for items that were not shown at a column that is examined.
    displays, clicks
        T and S, shape (N, C, M).
    n_positions
        K. Under ``user-browsing``, column c is position c mod K with the last click above c // K.
    """

    model: EvaluationModel
    examination: Floats
    means: Floats
    displays: Floats
    clicks: Floats
    n_positions: int

    @property
    def is_binomial(self) -> bool:
        """Whether clicks of a cell are binomial, not a Poisson count."""
        return self.model != "single-look"

    def probabilities(self, user_type: int) -> Floats:
        """Return the click probability of each cell of a type, shape (C, M); 0 where it is unknown."""
        gamma, mu = (np.nan_to_num(factors[user_type]) for factors in (self.examination, self.means))
        return np.outer(gamma, mu)

    def information_weights(self, user_type: int) -> Floats:
        """Return w, shape (C, M): the information of each cell about log γ_c + log μ_j."""
        displays, chances = self.displays[user_type], self.probabilities(user_type)
        if not self.is_binomial:
            return np.asarray(displays * chances)
        gamma, mu = (np.nan_to_num(factors[user_type]) for factors in (self.examination, self.means))
        rates = informative_rates(displays.T, self.clicks[user_type].T, gamma, mu)
        chances = np.minimum(rates.chances.T, 1.0 - 0.5 / (displays + 1.0))  # or it would be infinite
        return np.asarray(displays * np.outer(gamma, rates.means) / (1.0 - chances))

    def column_information(self, user_type: int) -> ColumnInformation:
        """Return the information about log γ of a type, with log μ eliminated."""
        weights = self.information_weights(user_type)  # (C, M)
        by_item, by_column = weights.sum(axis=0), weights.sum(axis=1)
        shares = weights / np.maximum(by_item, 1e-300)
        used = np.flatnonzero(by_column > 0)
        n = by_column.size
        covariance, null_space = np.zeros((n, n)), np.eye(n)
        if used.size:
            laplacian = np.diag(by_column[used]) - weights[used] @ shares[used].T
            values, directions = np.linalg.eigh(laplacian)
            is_known = values > _SINGULAR * by_column.max()
            inverse = np.where(is_known, 1.0 / np.where(is_known, values, 1.0), 0.0)
            block = np.ix_(used, used)
            covariance[block] = (directions * inverse) @ directions.T
            null = directions[:, ~is_known]
            null_space[block] = null @ null.T
        return ColumnInformation(covariance, null_space)

    def shrunken(self) -> "LogModelFit":
        """Return the model with item means shrunk to the mean of their user type, and no γ of 0.

        Items that were rarely shown have extreme estimates, and a learned ranking would select them. Means
        have a gamma prior whose mean and variance are those of the type's items (empirical Bayes, by
        moments). A column without clicks gets half a click.
        """
        gamma = np.nan_to_num(self.examination)
        looks = np.einsum("ncj,nc->nj", self.displays, gamma)
        clicks = self.clicks.sum(axis=1)
        means = np.full(looks.shape, np.nan)
        for i in range(len(means)):
            is_shown = looks[i] > 0
            if is_shown.any():
                means[i, is_shown] = shrink_means(clicks[i, is_shown], looks[i, is_shown])
        expected = np.einsum("ncj,nj->nc", self.displays, np.nan_to_num(means))
        least = np.divide(0.5, expected, out=np.full_like(gamma, np.nan), where=expected > 0)
        return self._replace(examination=np.maximum(gamma, least), means=means)

    def misfit(self) -> float:
        """Return the p-value of Pearson's test of the model on cells with enough expected clicks.

        Returns
        -------
        float
            NaN if no degree of freedom is left.
        """
        statistic, freedom = 0.0, 0.0
        tested: list[tuple[Floats, Floats]] = []  # rates and variances
        for i in range(len(self.displays)):
            displays, chances = self.displays[i], self.probabilities(i)
            expected = displays * chances
            is_large = expected >= _MIN_EXPECTED
            if self.is_binomial:
                is_large &= displays - expected >= _MIN_EXPECTED
            spread = expected * (1.0 - chances) if self.is_binomial else expected
            differences = (self.clicks[i] - expected)[is_large] ** 2 / spread[is_large]
            information = np.divide(expected**2, spread, out=np.zeros_like(spread), where=spread > 0)
            n_parameters = parameters_of_tested_cells(information, is_large)
            if is_large.sum() > n_parameters + 0.5:
                statistic += float(differences.sum())
                freedom += float(is_large.sum() - n_parameters)
                rates = chances if self.is_binomial else np.zeros_like(chances)
                tested.append((rates[is_large], spread[is_large]))
        if not freedom:
            return float("nan")
        rates, variances = (np.concatenate(parts) for parts in zip(*tested, strict=True))
        return chi_square_p_value(statistic, freedom, rates, variances)


def column_of(log: LogCells, model: EvaluationModel) -> Indices:
    """Return the column of each cell of a log."""
    if model == "user-browsing":
        return np.asarray(log.above * log.shape[2] + log.position)
    return log.position


def fit_log_model(log: LogCells, model: EvaluationModel, start: LogModelFit | None = None) -> LogModelFit:
    """Fit a rank-one click model to a log by maximum likelihood, each user type on its own.

    Parameters
    ----------
    log
        Cells of the log.
    model
        Name of the click model.
    start
        Fit of the same model to a similar log, to start from.
    """
    displays, clicks = _tables(log, model)
    return _fit_tables(model, displays, clicks, log.shape[2], start)


def fit_without_group(fit: LogModelFit, log: LogCells, group: int) -> LogModelFit:
    """Return the fit of the model of a whole log to all of its groups of folds but one.

    Parameters
    ----------
    fit
        Fit to the whole log.
    log
        Cells of the log, in groups.
    group
        Number of the group to leave out.
    """
    displays, clicks = _tables(log.only(group), fit.model)
    rest = np.maximum(fit.displays - displays, 0.0), np.maximum(fit.clicks - clicks, 0.0)
    return _fit_tables(fit.model, *rest, fit.n_positions, fit)


def _tables(log: LogCells, model: EvaluationModel) -> tuple[Floats, Floats]:
    """Return displays and clicks by column, shape (N, C, M) each."""
    n, n_items, n_positions = log.shape
    shape = (n, n_positions**2 if model == "user-browsing" else n_positions, n_items)
    index = np.ravel_multi_index((log.user_type, column_of(log, model), log.item), shape)
    displays, clicks = (
        sum_by(index, values, int(np.prod(shape))).reshape(shape)
        for values in (log.displays, np.minimum(log.clicks, log.displays))
    )
    return displays, clicks


def _fit_tables(
    model: EvaluationModel, displays: Floats, clicks: Floats, n_positions: int, start: LogModelFit | None
) -> LogModelFit:
    """Return the fit of a model to displays and clicks by column."""
    n, _, n_items = displays.shape
    by_item = displays.transpose(0, 2, 1), clicks.transpose(0, 2, 1)
    if model == "single-look":
        examination = np.stack([fit_shares(*tables)[0] for tables in zip(*by_item, strict=True)])
        looks = np.einsum("ncj,nc->nj", displays, examination)
        means = np.divide(clicks.sum(axis=1), looks, out=np.zeros((n, n_items)), where=looks > 0)
    else:
        first = None if start is None else np.nan_to_num(start.examination, nan=1.0)
        examination, means, *_ = fit_rank_one_tables(*by_item, first)
    is_fitted = np.einsum("ncj,nj->nc", displays, means) > 0
    has_looks = np.einsum("ncj,nc->nj", displays, np.where(is_fitted, examination, 0.0)) > 0
    return LogModelFit(
        model,
        np.where(is_fitted, examination, np.nan),
        np.where(has_looks, means, np.nan),
        displays,
        clicks,
        n_positions,
    )
