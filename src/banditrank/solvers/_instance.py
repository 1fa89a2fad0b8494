"""Instances of equal treatment: maximise Σ_i λ_i f(u_i) + Σ_k b_σ(k), u_i = Σ_k ρ_ik μ_i,σ(k)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank._compilation import compiled, inlined
from banditrank.errors import InvalidInputError
from banditrank.model._problem import ProblemLike
from banditrank.utilities._formulas import CompiledUtility, collective

Floats = NDArray[np.float64]

N_ITEMS, IS_RESTRICTED = range(2)  # indices of sizes: the number of items; 1 if only some cells are allowed
MAX_NUMBER = 1e100  # sums and products of such numbers stay finite


class Instance(NamedTuple):
    """An instance of equal treatment, as arrays."""

    weights: Floats  # (N,) λ
    preferences: Floats  # (N, K) ρ
    means: Floats  # (N, M) μ
    bonuses: Floats  # (M,) b

    @property
    def n_user_types(self) -> int:
        """N."""
        return int(self.means.shape[0])

    @property
    def n_items(self) -> int:
        """M."""
        return int(self.means.shape[1])

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.preferences.shape[1])


def as_instance(problem: ProblemLike, *, bonuses: ArrayLike | None = None, scale: float = 1.0) -> Instance:
    """Return the instance of a problem or of estimates.

    Parameters
    ----------
    problem
        A `Problem`, `Estimates`, or anything with arrival rates, position preferences and item means.
    bonuses
        b, shape (M,): added to the value of a ranking for each item in it; 0 by default.
    scale
        The maximum reward: means are multiplied by it (see `banditrank.model._rewards`).

    Raises
    ------
    InvalidInputError
        If an array is missing, has the wrong shape, or holds numbers outside [0, 1e100].

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> as_instance(kdd2012()).n_items
    5
    """
    for field in ("arrival_rates", "position_preferences", "item_means"):
        if not hasattr(problem, field):
            raise InvalidInputError("problem", f"must have {field}", problem)
    weights = _finite("arrival_rates", problem.arrival_rates, 1)
    if not weights.any():
        raise InvalidInputError("arrival_rates", "must not all be 0", weights.tolist())
    preferences = _finite("position_preferences", problem.position_preferences, 2)
    means = _finite("item_means", problem.item_means, 2) * check_number("scale", scale, 0.0, 1e100)
    n_items = means.shape[1]
    extra = np.zeros(n_items) if bonuses is None else _finite("bonuses", bonuses, 1)
    if extra.size != n_items:
        raise InvalidInputError("bonuses", f"must hold a number for each of the {n_items} items", extra.size)
    for field, table in (("position_preferences", preferences), ("item_means", means)):
        if len(table) != weights.size:
            rule = f"must have a row for each of the {weights.size} arrival rates"
            raise InvalidInputError(field, rule, f"{len(table)} rows")
    if not 1 <= preferences.shape[1] <= n_items:
        rule = f"must have from 1 to {n_items} columns, as many as items at most"
        raise InvalidInputError("position_preferences", rule, f"{preferences.shape[1]} columns")
    return Instance(weights, preferences, means, extra)


def smallest_instance() -> Instance:
    """Return an instance of one user type, one item and one position, to compile formulas with."""
    return Instance(np.ones(1), np.ones((1, 1)), np.ones((1, 1)), np.zeros(1))


def _finite(field: str, table: ArrayLike, dimensions: int) -> Floats:
    try:  # a copy: formulas would be compiled again for the read-only arrays of a `Problem`
        array = np.array(table, dtype=np.float64, order="C", ndmin=1)
    except (TypeError, ValueError):
        raise InvalidInputError(field, "must hold numbers only", table) from None
    if array.ndim != dimensions:
        raise InvalidInputError(field, f"must have {dimensions} dimensions", array.ndim)
    for bad in array[~((array >= 0) & (array <= MAX_NUMBER))]:
        raise InvalidInputError(field, f"must be numbers from 0 to {MAX_NUMBER:g}", float(bad))
    return array


@compiled
def values_of(instance: Instance, ranking: NDArray[np.uintp], values: Floats) -> None:
    """Write a ranking's value to each type, u, shape (N,)."""
    for i in range(values.size):
        total = 0.0
        for k in range(ranking.size):
            total += instance.preferences[i, k] * instance.means[i, ranking[k]]
        values[i] = total


@inlined
def bonus_of(instance: Instance, ranking: NDArray[np.uintp]) -> float:
    """Return Σ_k b_σ(k)."""
    total = 0.0
    for k in range(ranking.size):
        total += instance.bonuses[ranking[k]]
    return total


@inlined
def copy_instance(source: Instance, target: Instance) -> None:
    """Copy an instance into another one of the same size."""
    for j in range(source.bonuses.size):
        target.bonuses[j] = source.bonuses[j]
    for i in range(source.weights.size):
        target.weights[i] = source.weights[i]
        for k in range(source.preferences.shape[1]):
            target.preferences[i, k] = source.preferences[i, k]
        for j in range(source.means.shape[1]):
            target.means[i, j] = source.means[i, j]


@inlined
def score_cells(instance: Instance, slopes: Floats, n_items: int, scores: Floats) -> None:
    """Write V_kj = Σ_i slope_i ρ_ik μ_ij + b_j for the first items: the value of a cell for a linear f."""
    for k in range(scores.shape[0]):
        for j in range(n_items):
            scores[k, j] = instance.bonuses[j]
        for i in range(slopes.size):
            weight = slopes[i] * instance.preferences[i, k]
            for j in range(n_items):
                scores[k, j] += weight * instance.means[i, j]


def total_value(instance: Instance, utility: CompiledUtility, ranking: NDArray[np.intp]) -> float:
    """Return Γ(σ) + Σ_k b_σ(k), computed from the ranking alone."""
    values = np.zeros(instance.n_user_types)
    values_of(instance, ranking.astype(np.uintp), values)
    return float(collective(utility, instance.weights, values) + instance.bonuses[ranking].sum())
