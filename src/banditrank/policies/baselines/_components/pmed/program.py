"""The linear program of PMED: the cheapest displays of rankings that rule out all alternative models.

Minimise Σ_v w_v Δ_v over displays w_v ≥ 0 of rankings v, in units of ln t, so that every model in which the
leading ranking is not optimal is distinguished from the estimated one: Σ_v w_v Σ_r d(m, m')_r,v(r) ≥ 1. Δ_v
is the regret of ranking v. A cutting-plane method adds models as needed: the least distinguished one for each
equation of `alternatives`, until all are distinguished. `simplex` solves the program in between. Its columns
are rankings, so that the paper's decomposition of a matrix into permutations is not needed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal
from banditrank.policies.baselines._components.pmed.alternatives import (
    Alternatives,
    find_closest,
    init_alternatives,
)
from banditrank.policies.baselines._components.pmed.simplex import (
    RANKING,
    TINY,
    Basis,
    add_row,
    init_basis,
    optimise,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

SLACK = 0.03  # tolerance of the constraints; displays are scaled up by as much at the end
MAX_CUTTING_ROUNDS = 20
MAX_CUTS_PER_EQUATION = 4  # on average


class Program(NamedTuple):
    """The estimated model, the linear program so far, and its solution."""

    alternatives: Alternatives
    basis: Basis  # its rankings are by rank
    displays: Floats  # (K, M) Σ_v w_v


def init_program(n_items: int, n_positions: int) -> Program:
    """Return workspaces for a size of problem."""
    alternatives = init_alternatives(n_items, n_positions)
    n_rows = MAX_CUTS_PER_EQUATION * len(alternatives.gaps) + 1  # the last is a workspace
    basis = init_basis(n_items, n_positions, n_rows)
    return Program(alternatives, basis, np.zeros((n_positions, n_items)))


@compiled
def solve_program(program: Program, leaders: Indices) -> float:
    """Write the optimal displays to the basis, given the estimated model; return their regret, Σ_v w_v Δ_v.

    Parameters
    ----------
    program
        Program, whose alternatives hold the estimated model.
    leaders
        Leading items by rank, shape (K,).
    """
    means, basis = program.alternatives.means, program.basis
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            basis.losses[r, j] = means[r, leaders[r]] - means[r, j]
    basis.rows[0] = 0
    program.displays[:] = 0.0
    coverage = 0.0
    for cutting_round in range(MAX_CUTTING_ROUNDS + 1):
        if cutting_round > 0:
            optimise(basis)
            _sum_displays(program)
        coverage = _cut(program, leaders)
        if coverage >= 1.0 - SLACK:
            break
    loss = 0.0
    for b in range(basis.rows[0]):
        basis.levels[b] /= max(coverage, TINY)  # scales up to satisfy all constraints
        loss += basis.costs[b] * basis.levels[b] if basis.kinds[b] == RANKING else 0.0
    return loss


@internal
def _cut(program: Program, leaders: Indices) -> float:
    """Add the models that the displays do not distinguish; return the smallest left side of a constraint."""
    basis = program.basis
    least = 1.0
    for equation in range(program.alternatives.gaps.size):
        row = basis.rows[0]
        coverage = find_closest(program.alternatives, equation, program.displays, leaders, basis.gains[row])
        least = min(least, coverage)
        if coverage < 1.0 - SLACK and row < basis.costs.size - 1:
            add_row(basis, 1.0 - coverage)
    return least


@internal
def _sum_displays(program: Program) -> None:
    """Sum the rankings by cell."""
    basis = program.basis
    program.displays[:] = 0.0
    for b in range(basis.rows[0]):
        if basis.kinds[b] == RANKING:
            for r in range(program.displays.shape[0]):
                program.displays[r, basis.rankings[b, r]] += basis.levels[b]
