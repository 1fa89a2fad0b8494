"""Upper bounds on the value of the rankings that a node allows.

For any slopes g, Σ_i λ_i f(u_i) ≤ Σ_i max_v (λ_i f(v) − g_i v) + g·u, and g·u plus bonuses is at most the
optimal assignment t for the scores V_kj = Σ_i g_i ρ_ik μ_ij + b_j. Where f is concave and g_i = λ_i f'(u⁰_i),
the maximum is at the tangent point: with F = Σ_i λ_i f(u⁰_i) and G = g·u⁰ the bound is F + t − G. Without
bonuses the logarithm and the powers allow a tighter bound, the best over all multiples of g. The minimum over
types is at most g·u for any g that sums to 1.

A certificate also rests on these: t is proved by dual prices (`_solve_assignment`); where f is not concave,
the maxima over v, on the interval of a type's value, are not underestimated (`conjugate` and
`upper_bound_between` in envelope.py, `confine_values` in node.py); and cells are fixed, intervals tightened
and nodes closed only if one of these bounds is at most TARGET, the incumbent's value plus the allowed gap, or
if no ranking is left. A search therefore proves the maximum of TARGET and the bounds of the open nodes.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.solvers._assignment import assign, row_price
from banditrank.solvers._branch_and_bound.atoms import (
    MAX_STORED_ATOMS,
    add_atom,
    drop_atoms,
    improve_mixture,
    slope_at,
    store_atoms,
)
from banditrank.solvers._branch_and_bound.envelope import GRID, conjugate, fit_envelope, upper_bound_between
from banditrank.solvers._branch_and_bound.matrix_game import solve_game
from banditrank.solvers._branch_and_bound.node import Node
from banditrank.solvers._branch_and_bound.task import PLAIN, TARGET, VALUE, Incumbent, Task, update_incumbent
from banditrank.solvers._tangents import ROUNDING, Tangent, bound_at, take_tangent, total_at
from banditrank.utilities._formulas import MINIMUM

Floats = NDArray[np.float64]

_CLOSE = 0.1  # gap between bound and mixture at which to branch, relative to the mixture's lead
_CLOSE_MAXIMIN = 0.6


class RelaxationState(NamedTuple):
    """The final relaxation of the last search, from which the next one starts."""

    columns: NDArray[np.uintp]  # (MAX_STORED_ATOMS, K) items
    weights: Floats  # (MAX_STORED_ATOMS,)
    guide: Floats  # (N,)
    n_atoms: NDArray[np.int64]  # (1,) 0 if there was no search


def new_relaxation_state(n_user_types: int, n_positions: int) -> RelaxationState:
    """Allocate a state for the given sizes."""
    return RelaxationState(
        np.zeros((MAX_STORED_ATOMS, n_positions), dtype=np.uintp),
        np.zeros(MAX_STORED_ATOMS),
        np.zeros(n_user_types),
        np.zeros(1, dtype=np.int64),
    )


@internal
def restore_relaxation(task: Task, node: Node, relaxation: RelaxationState) -> None:
    """Restore the atoms and the guide of the last search."""
    atoms = node.atoms
    for i in range(node.guide.size):
        node.guide[i] = relaxation.guide[i]
    for a in range(relaxation.n_atoms[0]):
        if add_atom(task, atoms, relaxation.columns[a]):
            atoms.weights[atoms.n_atoms[0] - 1] = relaxation.weights[a]
    drop_atoms(atoms, node.base, node.slots)
    total = 0.0
    for a in range(atoms.n_atoms[0]):
        total += atoms.weights[a]
    for a in range(atoms.n_atoms[0]):
        atoms.weights[a] = atoms.weights[a] / total if total > 0.0 else 1.0 / atoms.n_atoms[0]


@internal
def store_relaxation(node: Node, relaxation: RelaxationState) -> None:
    """Store the relaxation of the root, before columns are dropped."""
    relaxation.n_atoms[0] = store_atoms(node.atoms, relaxation.columns, relaxation.weights)
    for i in range(node.guide.size):
        relaxation.guide[i] = node.best_guide[i]


class RelaxationArguments(NamedTuple):
    """Arguments of `relax`."""

    task: Task
    incumbent: Incumbent
    node: Node
    bound: Floats  # (1,)


class Relaxer(NamedTuple):
    """The relaxation of the current node, called by address."""

    memory: NDArray[np.uint64]  # the `RelaxationArguments`
    function: int
    bound: Floats  # (1,)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a relaxation cannot be copied: it contains addresses")


def bind_relaxation(task: Task, incumbent: Incumbent, node: Node) -> Relaxer:
    """Return the relaxation of the nodes of a task."""
    bound = np.zeros(1)
    native = NativeArguments(RelaxationArguments(task, incumbent, node, bound))
    return Relaxer(native.memory, native.native_function(relax), bound)


@inlined
def relax_node(relaxer: Relaxer, max_assignments: int, bound: float) -> float:
    """Return an upper bound on the current node, at most ``bound``; −∞ if the node can be pruned.

    Solves at most ``max_assignments`` assignments; each ranking may replace the incumbent.
    """
    relaxer.bound[0] = bound
    call_native(relaxer.function, relaxer.memory.ctypes.data, max_assignments, 0)
    return float(relaxer.bound[0])


def relax(pointer: Any, max_assignments: int, _: int) -> None:
    """Replace the bound of the current node: the native function of `relax_node`."""
    task, incumbent, node, best = load_arguments(pointer)[0]
    bound = best[0]
    best[0] = -np.inf
    minimum = task.utility.code == MINIMUM
    close = _CLOSE_MAXIMIN if minimum else _CLOSE
    lowest, height = np.inf, -np.inf
    tolerance = np.inf
    for _ in range(max_assignments):
        tangent = _take_tangent(task, node, min(1e-3, 0.05 * abs(bound - incumbent.levels[TARGET])))
        total = _solve_assignment(task, node)
        if total == -np.inf:
            return
        update_incumbent(task, incumbent, node.columns)
        reached = bound_at(task.utility, tangent, total, node.guide.size)
        if reached < lowest:
            lowest = reached
            bound = min(bound, reached)
            for i in range(node.guide.size):
                node.best_guide[i] = node.guide[i]
        target = incumbent.levels[TARGET]
        if bound <= target:
            return
        critical = total_at(task.utility, tangent, target, node.guide.size)
        if _fix_cells(node, total - critical):
            drop_atoms(node.atoms, node.base, node.slots)
        if task.is_spatial and not _tighten_intervals(task, node, reached - target):
            return
        new = add_atom(task, node.atoms, node.columns)
        if minimum:
            height = solve_game(node.game, node.atoms)
            for i in range(node.guide.size):
                node.guide[i] = 0.3 * node.best_guide[i] + 0.7 * node.game.prices[i]
        else:
            tolerance = 0.1 * (lowest - max(height, incumbent.levels[VALUE])) if new else 0.1 * tolerance
            height = improve_mixture(task, node.envelope, node.atoms, min(tolerance, 0.1 * abs(bound)))
            _move_guide(task, node)
        if bound - height <= close * (height - incumbent.levels[VALUE]):
            break
    best[0] = bound


@inlined
def _move_guide(task: Task, node: Node) -> None:
    """Move the guide towards the mixture."""
    for i in range(node.guide.size):
        value = node.atoms.mixture[i]
        if task.is_spatial:
            slope = task.instance.weights[i] * slope_at(task, node.envelope, i, value)[0]
            node.guide[i] = 0.7 * slope + 0.3 * node.best_guide[i]
        else:
            node.guide[i] = max(0.7 * value + 0.3 * node.best_guide[i], task.floors[i])


@internal
def _take_tangent(task: Task, node: Node, enough: float) -> Tangent:
    """Write the slopes at the guide, and return the tangent."""
    weights = task.instance.weights
    if task.utility.code == MINIMUM:
        for i in range(weights.size):
            node.slopes[i] = node.guide[i]
        return Tangent(0.0, 0.0, False)
    if task.is_spatial:
        height = 0.0
        for i in range(weights.size):
            node.slopes[i] = node.guide[i]
            share = enough / weights.size
            at_most = conjugate(task.utility, weights[i], node.guide[i], node.envelope, i, share)
            node.envelope.conjugates[i] = at_most
            height += at_most
        return Tangent(height, 0.0, False)
    return take_tangent(task.utility, weights, node.guide, task.facts[PLAIN], node.slopes)


@internal
def _solve_assignment(task: Task, node: Node) -> float:
    """Solve the assignment at the slopes; return the bound that its prices prove, −∞ if infeasible.

    For any prices v ≥ 0 of items, no assignment exceeds Σ_k max_j (V_kj − v_j) + Σ_j v_j. Required items may
    have a negative price; a large amount is added to their scores, and subtracted from the bound.
    """
    instance, scores, prices = task.instance, node.scores, node.workspace.prices
    live, n_positions = node.n_slots[0], scores.shape[0]
    _reset_prices_of_another_scale(node)
    required, largest, extra = 0, 0.0, 0.0
    for j in range(live):
        required += node.required[j]
    for k in range(n_positions):
        for j in range(live):
            scores[k, j] = node.base[k, j]
        for i in range(node.slopes.size):
            weight = node.slopes[i] * instance.preferences[i, k]
            for j in range(live):
                scores[k, j] += weight * node.means[i, j]
    if required > 0:
        for k in range(n_positions):
            for j in range(live):
                if scores[k, j] > -np.inf:
                    largest = max(largest, abs(scores[k, j]))
        extra = 2.0 * n_positions * largest + 1.0
        for j in range(live):
            if node.required[j] == 1:
                for k in range(n_positions):
                    scores[k, j] += extra
    if assign(scores, live, node.workspace, node.columns) == -np.inf:
        return -np.inf
    bound, size = 0.0, required * extra
    for j in range(live):
        bound += prices[j]
        size += prices[j]
        if node.required[j] == 1:
            if node.workspace.position_of[j] < 0:
                return -np.inf
            bound -= extra
    for k in range(n_positions):
        node.rows[k] = row_price(scores, k, live, prices)
        bound += node.rows[k]
        size += abs(node.rows[k])
        node.columns[k] = node.active[node.columns[k]]
    return float(bound + (n_positions + node.slopes.size + 8) * ROUNDING * size)


@inlined
def _reset_prices_of_another_scale(node: Node) -> None:
    """Reset the prices if their slopes were much steeper or flatter than the current ones.

    Prices far above the scores would leave only rounding errors of them.
    """
    size = 0.0
    for i in range(node.slopes.size):
        size += node.slopes[i]
    if not 0.25 * node.size[0] <= size <= 4.0 * node.size[0]:
        for j in range(node.prices.size):
            node.prices[j] = 0.0
            node.workspace.prices[j] = 0.0
        node.size[0] = size


@internal
def _fix_cells(node: Node, slack: float) -> bool:
    """Forbid cells whose reduced cost exceeds the slack; return whether there were any."""
    prices = node.workspace.prices
    found = False
    for k in range(node.rows.size):
        most = node.rows[k] - slack
        for j in range(node.n_slots[0]):
            if node.scores[k, j] - prices[j] <= most and node.base[k, j] > -np.inf:
                node.base[k, j] = -np.inf
                found = True
    return found


@internal
def _tighten_intervals(task: Task, node: Node, slack: float) -> bool:
    """Tighten the intervals to values at which a type loses at most the slack; False if one is empty."""
    envelope = node.envelope
    for i in range(envelope.low.size):
        weight, slope, heights = task.instance.weights[i], node.slopes[i], envelope.heights[i]
        low, high = envelope.low[i], envelope.high[i]
        width = (high - low) / GRID
        least = envelope.conjugates[i] - slack
        first, last = 0, GRID
        while first < last and _is_cell_below(task, weight, slope, low, width, heights, first, least):
            first += 1
        while last > first and _is_cell_below(task, weight, slope, low, width, heights, last - 1, least):
            last -= 1
        if first == last:
            return False
        if last - first < GRID:
            # Rounding outwards keeps values that were not excluded.
            if first > 0:
                envelope.low[i] = (low + first * width) * (1.0 - 1e-12)
            if last < GRID:
                envelope.high[i] = (low + last * width) * (1.0 + 1e-12)
            fit_envelope(task.utility, envelope, i)
    return True


@inlined
def _is_cell_below(
    task: Task, weight: float, slope: float, low: float, width: float, heights: Floats, c: int, least: float
) -> bool:
    a = low + c * width
    at_most = upper_bound_between(task.utility, weight, slope, a, a + width, heights[c], heights[c + 1])
    return at_most < least
