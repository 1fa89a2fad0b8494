"""What the choice of learned rankings adds to the variances of their values.

Two groups of folds, g and h, have different visits, but a learned target's values by them are correlated: the
clicks of g have a part in the ranking that h evaluates, and those of h in the ranking that g evaluates. Let π
be the ranking that is learned without both, and Δ_gh the change of the value by g from π to the ranking that
is learned with h. Noise of g has the mean 0 whatever h is, so that the covariance is E[Δ_gh Δ_hg].

Where the true values of these rankings differ, as under a model that does not fit, the products also estimate
the squared difference of the mean value of the rankings of all groups from that of the whole log.
"""

from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.estimators._distributions import student_quantile
from banditrank.evaluation._direct import cell_values_by_group
from banditrank.evaluation._learned_targets import LearnedTarget
from banditrank.evaluation._log_cells import LogCells
from banditrank.evaluation._log_model import EvaluationModel, LogModelFit
from banditrank.evaluation._targets import resolve_mixtures

Floats = NDArray[np.float64]

MIN_GROUPS = 3
"""Groups from which there is a log without two of them."""


def values_of_cells(fit: LogModelFit, training_fits: list[LogModelFit], log: LogCells) -> Floats:
    """Return the value of each cell by each group of folds, by the model and by cells, shape (2, G, N, M, K).

    Parameters
    ----------
    fit
        Click model with a column for each position, fitted to the log.
    training_fits
        The model fitted without each group.
    log
        Cells of the log, in G groups.

    Returns
    -------
    ndarray
        Values by cells are the click rates of the whole log. Groups differ by what the model says, with less
        noise than cells: other noise has no part in what is learned.
    """
    by_model = cell_values_by_group(fit, training_fits, log.group_shares)
    by_whole_log = np.einsum("gn,gnjk->njk", log.group_shares, by_model)
    displays, clicks = log.table(log.displays), log.table(log.clicks)
    rates = np.divide(clicks, displays, out=by_whole_log.copy(), where=displays > 0)
    values = np.stack([by_model, by_model])
    values[1] += rates - by_whole_log
    return values


def changes_of_groups(
    target: LearnedTarget,
    shares: Floats,
    log: LogCells,
    model: EvaluationModel,
    values: Floats,
    level: float,
) -> Floats:
    """Return the changes Δ_gh of a target's values by g as h joins the groups that it is learned from.

    Parameters
    ----------
    target
        The target.
    shares
        Probability of each item at each position without each group, shape (G, N, M, K).
    log
        Cells of the log, in G groups.
    model
        Click model that the target may assume.
    values
        Value of each cell by each group by each of E estimators, shape (E, G, N, M, K).
    level
        Confidence level of the intervals: that the variance is known from few groups widens them as Student's
        distribution with one degree of freedom less does.

    Returns
    -------
    ndarray
        Weighted by the share of g in the visits, shape (E, G, G, N); 0 with less than three groups.
    """
    n_groups = len(log.visits)
    changes = np.zeros((len(values), n_groups, n_groups, log.shape[0]))
    if n_groups < MIN_GROUPS:
        return changes
    weights = log.group_shares
    for pair in combinations(range(n_groups), 2):
        rest = log.without(pair[0]).without(pair[1])
        without_both = resolve_mixtures([target.learn(rest, model)], log.shape).shares[0]
        for group, joining in (pair, pair[::-1]):
            change = weights[group, :, None, None] * (shares[group] - without_both)
            changes[:, group, joining] = np.einsum("njk,enjk->en", change, values[:, group])
    tail = (1 + level) / 2
    return np.asarray(changes * (student_quantile(tail, n_groups - 1) / NormalDist().inv_cdf(tail)))
