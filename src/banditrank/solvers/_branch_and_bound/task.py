"""The current instance of branch and bound, and the incumbent."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._instance import Instance, bonus_of, values_of
from banditrank.solvers._solution import gap_unit
from banditrank.solvers._tangents import lowest_point
from banditrank.utilities._formulas import CompiledUtility, collective

Floats = NDArray[np.float64]
Columns = NDArray[np.uintp]

LIVE, PLAIN, RESTRICTED = range(3)  # indices of Task.facts

# Indices of Incumbent.levels: its value; the value plus the allowed gap; the allowed relative gap; and the
# constant utility of types that the instance excludes.
VALUE, TARGET, GAP, ASIDE = range(4)


class Task(NamedTuple):
    """An instance from which items that no better ranking contains are removed.

    Columns are the indices of the remaining items.
    """

    instance: Instance  # only the first facts[LIVE] items
    utility: CompiledUtility
    is_spatial: bool  # whether f is not concave
    items: Columns  # (M,) the item of each column
    facts: NDArray[
        np.int64
    ]  # (3,) the number of columns; 1 if there are no bonuses; 1 if cells are restricted
    ceilings: Floats  # (N,) upper bounds on the types' values
    floors: Floats  # (N,) minimum tangent points
    allowed: NDArray[np.int8]  # (K, M) by column: 1 for allowed cells, if they are restricted


class Incumbent(NamedTuple):
    """The best ranking so far."""

    ranking: Columns  # (K,) items, not columns
    levels: Floats  # (4,)
    values: Floats  # (N,) scratch
    columns: Columns  # (K,) scratch


def new_task(
    n_user_types: int, n_items: int, n_positions: int, utility: CompiledUtility, *, is_spatial: bool
) -> Task:
    """Allocate a task for the given sizes."""
    n, m, k = n_user_types, n_items, n_positions
    return Task(
        Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m)),
        utility,
        is_spatial,
        np.zeros(m, dtype=np.uintp),
        np.zeros(3, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
        np.ones((k, m), dtype=np.int8),
    )


def new_incumbent(n_user_types: int, n_positions: int) -> Incumbent:
    """Allocate an incumbent for the given sizes."""
    k = n_positions
    return Incumbent(
        np.zeros(k, dtype=np.uintp), np.zeros(4), np.zeros(n_user_types), np.zeros(k, dtype=np.uintp)
    )


@internal
def load_instance(task: Task, instance: Instance, n_items: int, is_restricted: int) -> None:
    """Copy the first ``n_items`` items of an instance into the task."""
    mine = task.instance
    n_user_types = instance.means.shape[0]
    task.facts[LIVE] = n_items
    task.facts[PLAIN] = 1
    task.facts[RESTRICTED] = is_restricted
    for j in range(n_items):
        task.items[j] = j
        mine.bonuses[j] = instance.bonuses[j]
        if instance.bonuses[j] != 0.0:
            task.facts[PLAIN] = 0
    for i in range(n_user_types):
        mine.weights[i] = instance.weights[i]
        appeal = 0.0
        for j in range(n_items):
            mine.means[i, j] = instance.means[i, j]
            appeal = max(appeal, instance.means[i, j])
        looks = 0.0
        for k in range(instance.preferences.shape[1]):
            mine.preferences[i, k] = instance.preferences[i, k]
            looks += instance.preferences[i, k]
        task.ceilings[i] = looks * appeal
        task.floors[i] = lowest_point(task.utility, looks, appeal)


@inlined
def is_forbidden(task: Task, k: int, j: int) -> bool:
    """Return whether a restriction forbids column j at position k."""
    return bool(task.facts[RESTRICTED] == 1 and task.allowed[k, j] == 0)


@internal
def reset_incumbent(incumbent: Incumbent, gap: float, aside: float) -> None:
    """Clear the incumbent; ``gap`` is the allowed gap relative to the value plus ``aside``."""
    incumbent.levels[VALUE] = -np.inf
    incumbent.levels[TARGET] = -np.inf
    incumbent.levels[GAP] = gap
    incumbent.levels[ASIDE] = aside


@internal
def update_incumbent(task: Task, incumbent: Incumbent, columns: Columns) -> float:
    """Return the value of a ranking, and store it if it is the best so far."""
    instance = task.instance
    values_of(instance, columns, incumbent.values)
    total = collective(task.utility, instance.weights, incumbent.values) + bonus_of(instance, columns)
    if total > incumbent.levels[VALUE]:
        incumbent.levels[VALUE] = total
        unit = gap_unit(task.utility, total + incumbent.levels[ASIDE])
        incumbent.levels[TARGET] = total + incumbent.levels[GAP] * unit
        for k in range(columns.size):
            incumbent.ranking[k] = task.items[columns[k]]
    return total
