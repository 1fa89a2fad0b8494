"""How often PMED must show which rankings: the cheapest displays that rule out all other models.

Minimise Σ_v w_v Δ_v over numbers w_v ≥ 0 of displays of rankings v, in units of ln t, so that every model in
which the leading ranking is not the best is told from the believed one: Σ_v w_v Σ_r d(m, m')_r,v(r) ≥ 1. Δ_v
is what ranking v loses. Models are taken in as needed: those that the displays so far tell least, one for
each equation of `alternatives`, until all are told well enough. Between, `simplex` finds displays.
They come as rankings, so the paper's decomposition of a matrix into permutations is not needed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, internal
from banditrank.policies.baselines.components.pmed.alternatives import (
    Alternatives,
    find_closest,
    init_alternatives,
)
from banditrank.policies.baselines.components.pmed.simplex import (
    RANKING,
    TINY,
    Basis,
    add_row,
    optimise,
    init_basis,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

SLACK = 0.03  # by how much a model may be told too little; the displays are scaled up by as much in the end
CUTTING_ROUNDS = 20
CUTS_PER_EQUATION = 4  # at most, on average


class Program(NamedTuple):
    """Beliefs, the linear program so far, and its solution."""

    alternatives: Alternatives
    basis: Basis  # its rankings have the slots in order of rank
    displays: Floats  # (K, M) Σ_v w_v


def init_program(n_items: int, n_positions: int) -> Program:
    """Return room for problems of a size."""
    alternatives = init_alternatives(n_items, n_positions)
    n_rows = CUTS_PER_EQUATION * len(alternatives.gaps) + 1  # the last is room to look only
    basis = init_basis(n_items, n_positions, n_rows)
    return Program(alternatives, basis, np.zeros((n_positions, n_items)))


@compiled
def solve_program(program: Program, leaders: Indices) -> float:
    """Find the displays, given beliefs; they are left in the basis. Return their loss, Σ_v w_v Δ_v.

    Parameters
    ----------
    program
        Its alternatives hold the beliefs.
    leaders
        Leading items in order of rank, shape (K,).
    """
    means, basis = program.alternatives.means, program.basis
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            basis.losses[r, j] = means[r, leaders[r]] - means[r, j]
    basis.rows[0] = 0
    program.displays[:] = 0.0
    told = _cut(program, leaders)
    for _ in range(CUTTING_ROUNDS):
        if told >= 1.0 - SLACK:
            break
        optimise(basis)
        _sum_displays(program)
        told = _cut(program, leaders)
    loss = 0.0
    for b in range(basis.rows[0]):
        basis.levels[b] /= max(told, TINY)  # what told a model too little tells it well enough
        loss += basis.costs[b] * basis.levels[b] if basis.kinds[b] == RANKING else 0.0
    return loss


@internal
def _cut(program: Program, leaders: Indices) -> float:
    """Add the models that the displays tell too little; return how well the least told one is told."""
    basis = program.basis
    least = 1.0
    for equation in range(program.alternatives.gaps.size):
        row = basis.rows[0]
        told = find_closest(program.alternatives, equation, program.displays, leaders, basis.gains[row])
        least = min(least, told)
        if told < 1.0 - SLACK and row < basis.costs.size - 1:
            add_row(basis, 1.0 - told)
    return least


@internal
def _sum_displays(program: Program) -> None:
    """Sum the rankings up by cells."""
    basis = program.basis
    program.displays[:] = 0.0
    for b in range(basis.rows[0]):
        if basis.kinds[b] == RANKING:
            for r in range(program.displays.shape[0]):
                program.displays[r, basis.rankings[b, r]] += basis.levels[b]
