"""What one search leaves for the next, of a similar instance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import internal
from banditrank.solvers.branch_and_bound.atoms import KEPT, add_atom, drop_atoms, keep_atoms
from banditrank.solvers.branch_and_bound.node import Node
from banditrank.solvers.branch_and_bound.task import Task

Floats = NDArray[np.float64]


class Memory(NamedTuple):
    """Where the last search's relaxation ended."""

    columns: NDArray[np.uintp]  # (KEPT, K) item numbers
    weights: Floats  # (KEPT,)
    guide: Floats  # (N,)
    n_atoms: NDArray[np.int64]  # (1,) 0 if there was no search


def new_memory(n_user_types: int, n_positions: int) -> Memory:
    """Return room for searches of a size."""
    return Memory(
        np.zeros((KEPT, n_positions), dtype=np.uintp),
        np.zeros(KEPT),
        np.zeros(n_user_types),
        np.zeros(1, dtype=np.int64),
    )


@internal
def remember(task: Task, node: Node, memory: Memory) -> None:
    """Start from where the last search's relaxation ended."""
    atoms = node.atoms
    for i in range(node.guide.size):
        node.guide[i] = memory.guide[i]
    for a in range(memory.n_atoms[0]):
        if add_atom(task, atoms, memory.columns[a]):
            atoms.weights[atoms.n_atoms[0] - 1] = memory.weights[a]
    drop_atoms(atoms, node.base, node.slots)
    total = 0.0
    for a in range(atoms.n_atoms[0]):
        total += atoms.weights[a]
    for a in range(atoms.n_atoms[0]):
        atoms.weights[a] = atoms.weights[a] / total if total > 0.0 else 1.0 / atoms.n_atoms[0]


@internal
def memorise(node: Node, memory: Memory) -> None:
    """Note where the relaxation of the whole instance ended, before items are dropped from it."""
    memory.n_atoms[0] = keep_atoms(node.atoms, memory.columns, memory.weights)
    for i in range(node.guide.size):
        memory.guide[i] = node.best_guide[i]
