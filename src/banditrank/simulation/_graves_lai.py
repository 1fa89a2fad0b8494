"""The Graves–Lai constant: the least regret per ln t that any consistent policy has in the long run.

A policy is consistent if its regret grows more slowly than any power of the rounds, on every problem. It must
show rankings other than the best one often enough to rule out every problem in which the best ranking is
another. Minimise Σ_v w_v Δ_v over displays w_v ≥ 0 of rankings v, in units of ln t, so that Σ_v w_v KL_v ≥ 1
for every such problem, where KL_v is the divergence of the clicks on v. The minimum is the constant
(T. L. Graves and T. L. Lai 1997).

The cells of the best ranking are shown in nearly all rounds, so that their click probabilities are known. The
other problems have item means μ_j exp(u_j), and position preferences that follow. Clicks on a ranking under
single looks are multinomial: at most one position is clicked. A cutting-plane method adds the closest problem
of each kind until all are ruled out: one where an item becomes as good as the last one shown, where two
consecutive items become equally good, or two consecutive positions equally examined.
"""

from collections.abc import Iterable
from itertools import permutations
from math import perm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank.errors import InvalidInputError, UnsolvableError
from banditrank.model._click_models import SINGLE_LOOK, ClickModel, PositionBased, SingleLook, as_click_model
from banditrank.model._problem import Problem

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

MAX_RANKINGS = 2_000  # of all items; above, rankings near the best one are considered
MIN_TIE = 1e-9  # smaller differences are ties, which make two rankings optimal
MIN_MEAN, MAX_MEAN = 1e-4, 0.999
_MAX_CUTTING_ROUNDS = 60
_MAX_NEWTON_STEPS = 60
_TOLERANCE = 1e-4  # of the constraints; displays are scaled up by as much at the end
_MAX_DIVERGENCE = 50.0  # of a ranking that would be clicked with probability 1
_MIN_COVERAGE = 0.9  # of the constraints; displays are scaled up if the program does not converge
_MAX_RESIDUAL = 1e-3  # of a constraint in the linear program
_FREE_COSTS = (0.0, 1e-7, 1e-5, 1e-3)  # of rankings without a loss, which may be shown without limit


def graves_lai_constant(
    problem: Problem,
    *,
    click_model: ClickModel | str = SINGLE_LOOK,
    min_gap: float = 0.0,
    knows_positions: bool = False,
) -> Floats:
    """Return the least slope of regret per ln t that any consistent policy can have, by user type.

    Their sum is the slope of the problem's regret under personalized treatment. It is asymptotic: a policy
    that has not yet ruled out a near-tie has a smaller slope. Compare slopes, not C ln T with regret.

    Under the position-based model with unknown positions it is found to 3%. Under single looks it is found to
    0.01% if there are at most 2,000 rankings. With more, only those count that differ from the best one by a
    swap, a new item, or both: an upper bound of the constant. Where many rankings are equally good, the
    program may not converge, and an upper bound within 11% of its solution is returned; it differs by some
    per cent between processors, because rounding errors decide which of equal rankings is shown.

    Parameters
    ----------
    problem
        Problem.
    click_model
        ``single-look`` or ``position-based``. Clicks are not graded.
    min_gap
        Smallest difference of item means, or of position preferences, that has to be detected; nearer ones
        are treated as ties: their exchange costs nothing, and need not be ruled out.
    knows_positions
        Whether policies know the position preferences.

    Returns
    -------
    NDArray
        Shape (N,).

    Raises
    ------
    InvalidInputError
        If the click model is another one, or ``min_gap`` is not a number from 0 to 1.
    UnsolvableError
        If the program of a user type does not converge.

    Examples
    --------
    >>> from banditrank import kdd2012
    >>> graves_lai_constant(kdd2012(), min_gap=0.005).round(1)  # men and women
    array([26.6,  9.1])
    """
    model = as_click_model(click_model)
    gap = check_number("min_gap", min_gap, 0.0, 1.0)
    if model.name not in (SingleLook.name, PositionBased.name):
        raise InvalidInputError("click_model", "must be single-look or position-based", str(model))
    weights = model.position_weights(problem)
    constants = np.zeros(problem.n_user_types)
    for i in range(problem.n_user_types):
        instance = _sorted_instance(problem.item_means[i], weights[i], gap)
        if model.name == SingleLook.name:
            constants[i] = _single_look(instance, problem.user_types[i], knows_positions=knows_positions)
        elif knows_positions:
            constants[i] = _known_examination(instance)
        else:
            constants[i] = _position_based(instance)
    return constants


class _Instance(NamedTuple):
    """A user type with items and positions by decreasing mean and preference: the best ranking is 0, …, K."""

    items: Floats  # (M,)
    positions: Floats  # (K,)
    raised: (
        Integers  # (E,) items of the equations u_raised − u_lowered = gap that make another ranking optimal
    )
    lowered: Integers  # (E,)
    gaps: Floats  # (E,)
    is_of_positions: NDArray[np.bool_]  # (E,) whether two positions become equal
    tied_items: Floats  # (M,) with near-ties replaced by their mean, so that an exchange costs nothing
    tied_positions: Floats  # (K,)


def _sorted_instance(items: Floats, positions: Floats, min_gap: float) -> _Instance:
    least = max(min_gap, MIN_TIE)
    items = np.clip(-np.sort(-items), MIN_MEAN, MAX_MEAN)
    positions = np.maximum(-np.sort(-positions), MIN_MEAN)
    k = positions.size
    found: list[tuple[int, int, float, bool]] = [
        (j, k - 1, np.log(items[k - 1] / items[j]), False)
        for j in range(k, items.size)
        if items[k - 1] - items[j] >= least
    ]
    for r in range(k - 1):
        if items[r] - items[r + 1] >= least:
            found.append((r + 1, r, np.log(items[r] / items[r + 1]), False))
        if positions[r] - positions[r + 1] >= least:
            found.append((r, r + 1, np.log(positions[r] / positions[r + 1]), True))
    raised, lowered, gaps, kinds = zip(*found, strict=True) if found else ((), (), (), ())
    return _Instance(
        *(items, positions, np.array(raised, dtype=np.intp), np.array(lowered, dtype=np.intp)),
        *(np.array(gaps, dtype=np.float64), np.array(kinds, dtype=np.bool_)),
        *(_tied(items, least), _tied(positions, least)),
    )


def _tied(values: Floats, min_gap: float) -> Floats:
    """Return decreasing values with runs of nearer ones replaced by their mean.

    Examples
    --------
    >>> _tied(np.array([0.6, 0.5, 0.498, 0.3]), 0.01)
    array([0.6  , 0.499, 0.499, 0.3  ])
    """
    runs = np.concatenate([[0], np.cumsum(-np.diff(values) >= min_gap)])
    return np.array([values[runs == run].mean() for run in runs])


def _known_examination(instance: _Instance) -> float:
    """Return the constant of Lagrée, Vernade and Cappé (2016): the best position to explore each item in."""
    items, positions = instance.items, instance.positions
    k, best = positions.size, float((positions * items[: positions.size]).sum())
    total = 0.0
    for j in instance.raised[instance.raised >= k]:
        costs = []
        for r in range(k):
            explored = np.insert(items[: k - 1], r, items[j])
            mean, other = positions[r] * items[j], min(positions[r] * items[k - 1], MAX_MEAN)
            divergence = mean * np.log(mean / other) + (1 - mean) * np.log((1 - mean) / (1 - other))
            costs.append((best - float((positions * explored).sum())) / divergence)
        total += min(costs)
    return total


def _position_based(instance: _Instance) -> float:
    """Return the value of the program that PMED solves."""
    from banditrank.policies.baselines._components.pmed.alternatives import (  # noqa: PLC0415 - compiles
        set_beliefs,
    )
    from banditrank.policies.baselines._components.pmed.program import (  # noqa: PLC0415
        init_program,
        solve_program,
    )

    if instance.gaps.size == 0:
        return 0.0
    program = init_program(instance.items.size, instance.positions.size)
    leaders = np.arange(instance.positions.size, dtype=np.uintp)
    set_beliefs(program.alternatives, instance.tied_items, instance.tied_positions, leaders, leaders)
    alternatives = program.alternatives._replace(  # without the ties
        raised=instance.raised,
        lowered=instance.lowered,
        gaps=instance.gaps,
        from_below=instance.is_of_positions.astype(np.intp),
    )
    return float(solve_program(program._replace(alternatives=alternatives), leaders))


class _Clicks(NamedTuple):
    """Click probabilities of rankings under single looks."""

    rankings: Integers  # (V, K) items by rank
    clicks: Floats  # (V, K) probability of a click on each
    nothing: Floats  # (V,) of no click
    losses: Floats  # (V,) Δ


def _single_look(instance: _Instance, user_type: str, *, knows_positions: bool) -> float:
    """Return the constant by cutting planes: a linear program over rankings, with the closest problems.

    Rankings that lose nothing make the program degenerate. Where it does not converge they cost a little.

    Raises
    ------
    UnsolvableError
        If the program converges with none of these costs.
    """
    clicks = _ranking_clicks(instance)
    wanted = range(instance.gaps.size)
    if knows_positions:
        wanted = np.flatnonzero(instance.raised >= instance.positions.size)  # type: ignore[assignment]
    if len(wanted) == 0:
        return 0.0
    bound = np.inf
    for free_cost in _FREE_COSTS:
        costs = np.maximum(clicks.losses, free_cost * clicks.losses.max(initial=0.0))
        cost, coverage = _cut_planes(instance, clicks, wanted, costs, knows_positions=knows_positions)
        if coverage >= _MIN_COVERAGE:
            bound = min(bound, cost / coverage)
        if coverage >= 1.0 - _TOLERANCE:
            break
    if not np.isfinite(bound):
        raise UnsolvableError(
            f"the Graves–Lai constant of user type {user_type} was not found: its program did not converge "
            f"in {_MAX_CUTTING_ROUNDS} steps"
        )
    return bound


def _cut_planes(
    instance: _Instance, clicks: _Clicks, wanted: Iterable[int], costs: Floats, *, knows_positions: bool
) -> tuple[float, float]:
    """Return the loss of the displays of least cost, and the least divergence from another problem.

    The divergence is 1 if the program converged.
    """
    displays, coverage = np.zeros(len(costs)), 0.0
    rows: list[Floats] = []
    for step in range(_MAX_CUTTING_ROUNDS):
        coverage = 1.0
        for equation in wanted:
            shifts = _closest(instance, clicks, equation, displays, knows_positions=knows_positions)
            divergences = _divergences(clicks, instance.positions.size, shifts)
            covered = float(displays @ divergences)
            coverage = min(coverage, covered)
            if covered < 1.0 - _TOLERANCE:
                rows.append(divergences)
        if coverage >= 1.0 - _TOLERANCE or step == _MAX_CUTTING_ROUNDS - 1:
            break
        gains = np.array(rows)
        cheapest = _least_cost(costs, gains)[0]
        if (gains @ cheapest).min() < 1.0 - _MAX_RESIDUAL:  # rounding errors, which more rows would not undo
            break
        displays = cheapest
    return float(clicks.losses @ displays), coverage


def _ranking_clicks(instance: _Instance) -> _Clicks:
    items, positions = instance.items, instance.positions
    m, k = items.size, positions.size
    best = np.arange(k)
    if perm(m, k) <= MAX_RANKINGS:
        listed = list(permutations(range(m), k))
    else:
        listed = [tuple(row) for row in _near_rankings(m, k)]
    rankings = np.array([row for row in listed if row != tuple(best)], dtype=np.intp).reshape(-1, k)
    clicks = positions * items[rankings]  # (V, K)
    losses = (instance.tied_positions * (instance.tied_items[:k] - instance.tied_items[rankings])).sum(axis=1)
    losses[losses < MIN_TIE] = 0.0
    return _Clicks(rankings, clicks, 1.0 - clicks.sum(axis=1), losses)


def _near_rankings(n_items: int, n_positions: int) -> list[list[int]]:
    """Return the rankings that differ from the best one by a swap, a new item, or a swap and a new item."""
    best = list(range(n_positions))
    swapped = [best]
    for first in range(n_positions):
        for second in range(first + 1, n_positions):
            ranking = best.copy()
            ranking[first], ranking[second] = ranking[second], ranking[first]
            swapped.append(ranking)
    found = list(swapped)
    for ranking in swapped:
        for rank in range(n_positions):
            found += [[*ranking[:rank], item, *ranking[rank + 1 :]] for item in range(n_positions, n_items)]
    return found


def _divergences(clicks: _Clicks, n_positions: int, shifts: Floats) -> Floats:
    """Return the multinomial divergence of each ranking's clicks from those of shifted items, shape (V,)."""
    moved = shifts[clicks.rankings] - shifts[:n_positions]  # (V, K) of the logarithms of click probabilities
    other = 1.0 - (clicks.clicks * np.exp(moved)).sum(axis=1)
    safe = np.maximum(other, 1e-12)
    found = -(clicks.clicks * moved).sum(axis=1) + clicks.nothing * np.log(clicks.nothing / safe)
    return np.where(other > 0.0, np.clip(found, 0.0, _MAX_DIVERGENCE), _MAX_DIVERGENCE)


def _closest(
    instance: _Instance, clicks: _Clicks, equation: int, displays: Floats, *, knows_positions: bool
) -> Floats:
    """Return u of the problem on an equation that the displays distinguish least, shape (M,).

    The divergence is convex in u; Newton's method minimises it, with the raised item tied to the lowered one.
    """
    m, k = instance.items.size, instance.positions.size
    raised, lowered, gap = instance.raised[equation], instance.lowered[equation], instance.gaps[equation]
    shifts = np.zeros(m)
    if instance.is_of_positions[equation]:
        shifts[lowered] = -gap
    else:
        shifts[raised] = gap
    shown = np.flatnonzero(displays > 0.0)
    if knows_positions or shown.size == 0:
        return shifts
    weights, probabilities, nothing = displays[shown], clicks.clicks[shown], clicks.nothing[shown]
    signs = np.zeros((shown.size, k, m))  # of u in the logarithm of each click probability
    np.put_along_axis(signs, clicks.rankings[shown][:, :, None], 1.0, axis=2)
    signs[:, np.arange(k), np.arange(k)] -= 1.0
    signs[:, :, lowered] += signs[:, :, raised]  # they move together
    signs[:, :, raised] = 0.0
    value = weights @ _divergences(clicks, k, shifts)[shown]
    for _ in range(_MAX_NEWTON_STEPS):
        moved = probabilities * np.exp(shifts[clicks.rankings[shown]] - shifts[:k])
        left = 1.0 - moved.sum(axis=1)
        slopes = weights[:, None] * (moved * (nothing / left)[:, None] - probabilities)  # (S, K)
        bends = np.einsum("sk,sl->skl", moved, moved) / left[:, None, None] + moved[:, :, None] * np.eye(k)
        bends *= (weights * nothing / left)[:, None, None]
        gradient = np.einsum("skm,sk->m", signs, slopes)
        hessian = np.einsum("ska,skl,slb->ab", signs, bends, signs)
        hessian[np.diag_indices(m)] += 1e-9 * (1.0 + np.trace(hessian))  # some u may not matter
        step = -np.linalg.solve(hessian, gradient)
        step[raised] = step[lowered]
        share = min(1.0, 1.0 / max(np.abs(step).max(), 1e-12))
        while share > 1e-6:
            trial = shifts + share * step
            next_value = weights @ _divergences(clicks, k, trial)[shown]
            if next_value <= value:
                break
            share *= 0.5
        else:
            break
        gain, shifts, value = value - next_value, trial, next_value
        if gain <= 1e-10 * (1.0 + value):
            break
    return shifts


def _least_cost(costs: Floats, gains: Floats) -> tuple[Floats, float]:
    """Return w ≥ 0 that minimises costs · w so that every row of gains @ w is at least 1, and the minimum.

    The dual is solved, max Σ y so that gains.T @ y ≤ costs, by the simplex method: y = 0 is feasible.

    Parameters
    ----------
    costs
        Shape (V,), not negative.
    gains
        Shape (R, V), not negative.

    Examples
    --------
    >>> _least_cost(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [1.0, 2.0]]))
    (array([1., 0.]), 1.0)
    """
    n_rows, n_columns = gains.shape
    tableau = np.zeros((n_columns + 1, n_rows + 1))
    tableau[:-1, :-1], tableau[:-1, -1], tableau[-1, :-1] = gains.T, costs, -1.0
    basic = np.arange(n_rows, n_rows + n_columns)  # y are numbered first, then the slacks
    nonbasic = np.arange(n_rows)
    for pivot in range(50 * (n_rows + n_columns)):
        candidates = np.flatnonzero(tableau[-1, :-1] < -1e-10)
        if candidates.size == 0:
            break
        entering = candidates[np.argmin(tableau[-1, candidates])] if pivot < 5_000 else candidates[0]
        column = tableau[:-1, entering]
        ratios = np.full(n_columns, np.inf)
        np.divide(tableau[:-1, -1], column, out=ratios, where=column > 1e-12)
        leaving = int(np.argmin(ratios))
        if not np.isfinite(ratios[leaving]):
            break
        pivot_value = tableau[leaving, entering]
        row, old = tableau[leaving] / pivot_value, tableau[:, entering].copy()
        tableau -= np.outer(old, row)
        tableau[leaving] = row
        tableau[:, entering] = -old / pivot_value
        tableau[leaving, entering] = 1.0 / pivot_value
        basic[leaving], nonbasic[entering] = nonbasic[entering], basic[leaving]
    displays = np.zeros(n_columns)
    is_slack = nonbasic >= n_rows
    displays[nonbasic[is_slack] - n_rows] = tableau[-1, :-1][is_slack]
    return np.maximum(displays, 0.0), float(tableau[-1, -1])
