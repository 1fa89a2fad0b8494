"""The maximin mixture of rankings: a matrix game, solved by a revised simplex method.

With payoffs p_ai > 0 of atom a to type i: minimise Σ_a x_a subject to Σ_a x_a p_ai ≥ 1 for each i. The
mixture is x normalised, the value of the game the inverse of the sum of x, and the normalised duals are the
types' prices g.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import internal
from banditrank.solvers._branch_and_bound.atoms import Atoms

Floats = NDArray[np.float64]

_MAX_PIVOTS = 300
_TOLERANCE = 1e-11


class Game(NamedTuple):
    """Workspace of the simplex method, and the solution."""

    inverse: Floats  # (N, N) of the basis
    basis: NDArray[np.int64]  # (N,) atoms, or −1 − i for the surplus of type i
    solution: Floats  # (N,)
    duals: Floats  # (N,)
    entering: Floats  # (N,)
    prices: Floats  # (N,) g, on the simplex


def new_game(n_user_types: int) -> Game:
    """Allocate a game for a number of types."""
    n = n_user_types
    return Game(
        np.zeros((n, n)),
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.full(n, 1 / n),
    )


@internal
def solve_game(game: Game, atoms: Atoms) -> float:
    """Write the atoms' optimal weights and the types' prices, and return the value of the game."""
    n, count = game.solution.size, atoms.n_atoms[0]
    largest = 1e-300
    for a in range(count):
        for i in range(n):
            largest = max(largest, atoms.values[a, i] + atoms.bonuses[a])
    shift = 0.5 * largest  # makes all payoffs positive
    _begin(game, atoms, shift)
    for _ in range(_MAX_PIVOTS):
        for i in range(n):
            game.duals[i] = 0.0
        for row in range(n):
            if game.basis[row] >= 0:
                for i in range(n):
                    game.duals[i] += game.inverse[row, i]
        enters, lowest = -n - 1, -_TOLERANCE
        for a in range(count):
            cost = 1.0
            for i in range(n):
                cost -= game.duals[i] * (atoms.values[a, i] + atoms.bonuses[a] + shift)
            if cost < lowest:
                enters, lowest = a, cost
        for i in range(n):
            if game.duals[i] * largest < lowest:
                enters, lowest = -1 - i, game.duals[i] * largest
        if enters < -n:
            break
        if not _pivot(game, atoms, shift, enters):
            break
    return _read(game, atoms, shift)


@internal
def _begin(game: Game, atoms: Atoms, shift: float) -> None:
    """Start from the maximin atom, with the surplus variables of all other types in the basis."""
    n = game.solution.size
    start, worst, best = 0, 0, -np.inf
    for a in range(atoms.n_atoms[0]):
        least = 0
        for i in range(n):
            if atoms.values[a, i] < atoms.values[a, least]:
                least = i
        payoff = atoms.values[a, least] + atoms.bonuses[a]
        if payoff > best:
            start, worst, best = a, least, payoff
    held = best + shift
    for i in range(n):
        payoff = atoms.values[start, i] + atoms.bonuses[start] + shift
        for other in range(n):
            game.inverse[i, other] = 0.0
        if i == worst:
            game.basis[i] = start
            game.inverse[i, worst] = 1.0 / held
            game.solution[i] = 1.0 / held
        else:
            game.basis[i] = -1 - i
            game.inverse[i, worst] = payoff / held
            game.inverse[i, i] = -1.0
            game.solution[i] = payoff / held - 1.0


@internal
def _pivot(game: Game, atoms: Atoms, shift: float, enters: int) -> bool:
    n = game.solution.size
    leaves = -1
    shortest = np.inf
    for row in range(n):
        amount = 0.0
        if enters >= 0:
            for i in range(n):
                amount += game.inverse[row, i] * (atoms.values[enters, i] + atoms.bonuses[enters] + shift)
        else:
            amount = -game.inverse[row, -1 - enters]
        game.entering[row] = amount
        if amount > 1e-10:
            ratio = max(0.0, game.solution[row]) / amount
            if ratio < shortest:
                leaves, shortest = row, ratio
    if leaves < 0:
        return False
    pivot = game.entering[leaves]
    for i in range(n):
        game.inverse[leaves, i] /= pivot
    game.solution[leaves] = shortest
    for row in range(n):
        if row != leaves:
            amount = game.entering[row]
            if amount != 0.0:
                for i in range(n):
                    game.inverse[row, i] -= amount * game.inverse[leaves, i]
                game.solution[row] -= amount * shortest
    game.basis[leaves] = enters
    return True


@internal
def _read(game: Game, atoms: Atoms, shift: float) -> float:
    n = game.solution.size
    total = 0.0
    for a in range(atoms.n_atoms[0]):
        atoms.weights[a] = 0.0
    for row in range(n):
        if game.basis[row] >= 0:
            weight = max(0.0, game.solution[row])
            atoms.weights[game.basis[row]] = weight
            total += weight
    for a in range(atoms.n_atoms[0]):
        atoms.weights[a] /= total
    mass = 0.0
    for i in range(n):
        game.prices[i] = max(0.0, game.duals[i])
        mass += game.prices[i]
    for i in range(n):
        game.prices[i] /= mass
    return 1.0 / total - shift
