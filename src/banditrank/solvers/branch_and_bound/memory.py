"""What one search leaves for the next, of a similar instance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import internal
from banditrank.solvers.branch_and_bound.atoms import MAX_STORED_ATOMS, add_atom, drop_atoms, store_atoms
from banditrank.solvers.branch_and_bound.node import Node
from banditrank.solvers.branch_and_bound.task import Task

Floats = NDArray[np.float64]


class RelaxationState(NamedTuple):
    """Where the last search's relaxation ended."""

    columns: NDArray[np.uintp]  # (KEPT, K) item numbers
    weights: Floats  # (KEPT,)
    guide: Floats  # (N,)
    n_atoms: NDArray[np.int64]  # (1,) 0 if there was no search


def new_relaxation_state(n_user_types: int, n_positions: int) -> RelaxationState:
    """Return room for searches of a size."""
    return RelaxationState(
        np.zeros((MAX_STORED_ATOMS, n_positions), dtype=np.uintp),
        np.zeros(MAX_STORED_ATOMS),
        np.zeros(n_user_types),
        np.zeros(1, dtype=np.int64),
    )


@internal
def restore_relaxation(task: Task, node: Node, relaxation: RelaxationState) -> None:
    """Start from where the last search's relaxation ended."""
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
    """Note where the relaxation of the whole instance ended, before items are dropped from it."""
    relaxation.n_atoms[0] = store_atoms(node.atoms, relaxation.columns, relaxation.weights)
    for i in range(node.guide.size):
        relaxation.guide[i] = node.best_guide[i]
