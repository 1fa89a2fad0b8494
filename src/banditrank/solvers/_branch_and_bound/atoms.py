"""Mixtures of rankings, over which the relaxation maximises the concave objective.

An atom is a ranking that an assignment found. At the slopes of the best mixture of atoms, the next assignment
either finds an atom that improves the mixture, or proves that none exists (column generation).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._branch_and_bound.envelope import Envelope, envelope_height, envelope_slope
from banditrank.solvers._branch_and_bound.task import Task
from banditrank.solvers._instance import bonus_of, values_of
from banditrank.utilities._formulas import curvature_of, slope_of, utility_of

Floats = NDArray[np.float64]

MAX_ATOMS = 48
MAX_STORED_ATOMS = 16  # with a node, or for the next search
_MAX_STEPS = 120  # of improving the weights between two assignments


class Atoms(NamedTuple):
    """Rankings and their weights in the mixture."""

    columns: NDArray[np.uintp]  # (MAX_ATOMS, K)
    values: Floats  # (MAX_ATOMS, N) u
    bonuses: Floats  # (MAX_ATOMS,)
    weights: Floats  # (MAX_ATOMS,) sum to 1
    scores: Floats  # (MAX_ATOMS,) scratch
    mixture: Floats  # (N,) the weighted mean of values
    slopes: Floats  # (N,) scratch
    direction: Floats  # (N,) scratch
    n_atoms: NDArray[np.int64]  # (1,)


def new_atoms(n_user_types: int, n_positions: int) -> Atoms:
    """Allocate atoms for the given sizes."""
    n = n_user_types
    return Atoms(
        np.zeros((MAX_ATOMS, n_positions), dtype=np.uintp),
        np.zeros((MAX_ATOMS, n)),
        np.zeros(MAX_ATOMS),
        np.zeros(MAX_ATOMS),
        np.zeros(MAX_ATOMS),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(1, dtype=np.int64),
    )


@internal
def add_atom(task: Task, atoms: Atoms, columns: NDArray[np.uintp]) -> bool:
    """Add a ranking with weight 0, or 1 if it is the only one; return whether it is new.

    If there are `MAX_ATOMS` already, the atom of the smallest weight is replaced.
    """
    count = atoms.n_atoms[0]
    for a in range(count):
        same = True
        for k in range(columns.size):
            same &= atoms.columns[a, k] == columns[k]
        if same:
            return False
    place = count
    if count == MAX_ATOMS:
        place = 0
        for a in range(count):
            if atoms.weights[a] < atoms.weights[place]:
                place = a
        lost = atoms.weights[place]
        for a in range(count):
            atoms.weights[a] /= 1.0 - lost
    else:
        atoms.n_atoms[0] = count + 1
    for k in range(columns.size):
        atoms.columns[place, k] = columns[k]
    value_atom(task, atoms, place)
    atoms.weights[place] = 1.0 if count == 0 else 0.0
    return True


@internal
def value_atom(task: Task, atoms: Atoms, a: int) -> None:
    """Compute an atom's value to each type, and its bonuses."""
    values_of(task.instance, atoms.columns[a], atoms.values[a])
    atoms.bonuses[a] = bonus_of(task.instance, atoms.columns[a])


@internal
def drop_atoms(atoms: Atoms, base: Floats, slots: NDArray[np.int64]) -> None:
    """Remove atoms with a cell that is no longer allowed.

    ``slots`` holds the column of ``base`` of each item, −1 for none.
    """
    a, kept = 0, 0.0
    dropped = False
    while a < atoms.n_atoms[0]:
        allowed = True
        for k in range(atoms.columns.shape[1]):
            slot = slots[atoms.columns[a, k]]
            allowed &= slot >= 0 and base[k, slot] > -np.inf
        if allowed:
            kept += atoms.weights[a]
            a += 1
        else:
            dropped = True
            last = atoms.n_atoms[0] - 1
            atoms.n_atoms[0] = last
            for k in range(atoms.columns.shape[1]):
                atoms.columns[a, k] = atoms.columns[last, k]
            for i in range(atoms.values.shape[1]):
                atoms.values[a, i] = atoms.values[last, i]
            atoms.bonuses[a] = atoms.bonuses[last]
            atoms.weights[a] = atoms.weights[last]
    if dropped:
        for b in range(a):
            atoms.weights[b] = atoms.weights[b] / kept if kept > 1e-12 else 1.0 / a


@internal
def store_atoms(atoms: Atoms, columns: NDArray[np.unsignedinteger], weights: Floats) -> int:
    """Copy the first atoms of positive weight, as many as fit, and return their number.

    Their weights are normalised: an incomplete mixture would have too small a value.
    """
    count, kept = 0, 0.0
    for a in range(atoms.n_atoms[0]):
        if atoms.weights[a] > 0.0 and count < weights.size:
            weights[count] = atoms.weights[a]
            kept += atoms.weights[a]
            for k in range(atoms.columns.shape[1]):
                columns[count, k] = atoms.columns[a, k]
            count += 1
    for a in range(count):
        weights[a] /= kept
    return count


@internal
def mix(atoms: Atoms) -> float:
    """Write the mixture's values and return its bonuses."""
    for i in range(atoms.mixture.size):
        atoms.mixture[i] = 0.0
    bonus = 0.0
    for a in range(atoms.n_atoms[0]):
        weight = atoms.weights[a]
        if weight > 0.0:
            bonus += weight * atoms.bonuses[a]
            for i in range(atoms.mixture.size):
                atoms.mixture[i] += weight * atoms.values[a, i]
    return bonus


@inlined
def height_at(task: Task, envelope: Envelope, i: int, value: float) -> float:
    """Return f, or its envelope, at a value of type i."""
    if task.is_spatial:
        return envelope_height(envelope, i, value)
    return utility_of(task.utility, max(value, task.floors[i]))


@inlined
def slope_at(task: Task, envelope: Envelope, i: int, value: float) -> tuple[float, float]:
    """Return the slope of f, or of its envelope, at a value of type i, and the negative second derivative."""
    if task.is_spatial:
        return envelope_slope(envelope, i, value)
    point = max(value, task.floors[i])
    slope = slope_of(task.utility, point)
    return slope, curvature_of(task.utility, point, slope)


@internal
def improve_mixture(task: Task, envelope: Envelope, atoms: Atoms, tolerance: float) -> float:
    """Move weight from the worst atom to the best until the possible gain is below the tolerance.

    Return the objective of the mixture (pairwise Frank-Wolfe).
    """
    weights, u, g, d = task.instance.weights, atoms.mixture, atoms.slopes, atoms.direction
    count, n = atoms.n_atoms[0], atoms.mixture.size
    bonus = mix(atoms)
    for _ in range(_MAX_STEPS):
        for i in range(n):
            g[i] = weights[i] * slope_at(task, envelope, i, u[i])[0]
        best, worst = 0, -1
        current = 0.0
        for a in range(count):
            score = atoms.bonuses[a]
            for i in range(n):
                score += g[i] * atoms.values[a, i]
            atoms.scores[a] = score
            current += atoms.weights[a] * score
            if score > atoms.scores[best]:
                best = a
            if atoms.weights[a] > 0.0 and (worst < 0 or score < atoms.scores[worst]):
                worst = a
        if best == worst or atoms.scores[best] - current <= tolerance:
            break
        extra = atoms.bonuses[best] - atoms.bonuses[worst]
        for i in range(n):
            d[i] = atoms.values[best, i] - atoms.values[worst, i]
        step = _step_length(task, envelope, atoms, extra, atoms.weights[worst])
        atoms.weights[best] += step
        atoms.weights[worst] -= step
        if atoms.weights[worst] < 1e-12:
            atoms.weights[best] += atoms.weights[worst]
            atoms.weights[worst] = 0.0
        for i in range(n):
            u[i] += step * d[i]
        bonus += step * extra
    bonus = mix(atoms)
    total = bonus
    for i in range(n):
        total += weights[i] * height_at(task, envelope, i, u[i])
    return total


@inlined
def _step_length(task: Task, envelope: Envelope, atoms: Atoms, extra: float, longest: float) -> float:
    """Return the step length: a safeguarded Newton's method on the slope along the direction."""
    weights, u, d = task.instance.weights, atoms.mixture, atoms.direction
    low, high, step = 0.0, longest, longest
    first = 0.0
    for trial in range(14):
        at = 0.0 if trial == 0 else step
        rise, bend = extra, 0.0
        for i in range(u.size):
            slope, fall = slope_at(task, envelope, i, u[i] + at * d[i])
            rise += weights[i] * slope * d[i]
            bend += weights[i] * fall * d[i] * d[i]
        if trial == 0:
            first = rise
        elif rise >= 0.0:
            if at >= longest or rise <= 0.02 * first:
                return at
            low = at
        else:
            if -rise <= 0.02 * first:
                return at
            high = at
        step = at + rise / bend if bend > 0.0 else longest
        if trial == 0:
            step = min(step, longest)
        elif not low < step < high:
            step = 0.5 * (low + high)
    return low if low > 0.0 else step
