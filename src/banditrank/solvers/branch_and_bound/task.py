"""What branch and bound works on: the instance in hand, and the best ranking so far."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import internal
from banditrank.solvers.instance import Instance, bonus_of, values_of
from banditrank.solvers.solution import gap_unit
from banditrank.utilities.formulas import POWER, CompiledUtility, collective

Floats = NDArray[np.float64]
Columns = NDArray[np.uintp]

LIVE, PLAIN = range(2)  # places in Task.facts

# Places in Incumbent.levels: its value; what a better one must exceed to matter; the share of the whole value
# that does not matter; and what types that the instance leaves out add to the whole.
VALUE, TARGET, GAP, ASIDE = range(4)

_MAX_LOG_SLOPE = 500.0  # the logarithm of the largest slope of a power
_FLOOR = 1e-7  # tangent points stay above this share of what a type can get: f' may be infinite at 0


class Task(NamedTuple):
    """An instance whose items become fewer: those that no better ranking shows are dropped.

    Columns number the items that are left.
    """

    instance: Instance  # only the first facts[LIVE] items
    utility: CompiledUtility
    is_spatial: bool  # whether f is not concave
    items: Columns  # (M,) which item a column is
    facts: NDArray[np.int64]  # (2,) how many columns are left; 1 if there are no bonuses
    ceilings: Floats  # (N,) at most what any ranking is worth to a type
    floors: Floats  # (N,) the lowest tangent point


class Incumbent(NamedTuple):
    """The best ranking so far."""

    ranking: Columns  # (K,) item numbers, not columns
    levels: Floats  # (4,)
    values: Floats  # (N,) room
    columns: Columns  # (K,) room


def new_task(
    n_user_types: int, n_items: int, n_positions: int, utility: CompiledUtility, *, is_spatial: bool
) -> Task:
    """Return room for instances of a size."""
    n, m, k = n_user_types, n_items, n_positions
    return Task(
        Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m)),
        utility,
        is_spatial,
        np.zeros(m, dtype=np.uintp),
        np.zeros(2, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
    )


def new_incumbent(n_user_types: int, n_positions: int) -> Incumbent:
    """Return room for rankings of a size."""
    k = n_positions
    return Incumbent(
        np.zeros(k, dtype=np.uintp), np.zeros(4), np.zeros(n_user_types), np.zeros(k, dtype=np.uintp)
    )


@internal
def load_instance(task: Task, instance: Instance) -> None:
    """Copy an instance into the task."""
    mine = task.instance
    n_user_types, n_items = instance.means.shape
    task.facts[LIVE] = n_items
    task.facts[PLAIN] = 1
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
        task.floors[i] = _FLOOR * looks * appeal
        if task.utility.code == POWER:  # a tangent may touch anywhere, but must have finite slopes
            task.floors[i] = max(task.floors[i], np.exp(-_MAX_LOG_SLOPE / task.utility.parameter))


@internal
def reset_incumbent(incumbent: Incumbent, gap: float, aside: float) -> None:
    """Start without a ranking; ``gap`` is the share of value and ``aside`` together that does not matter."""
    incumbent.levels[VALUE] = -np.inf
    incumbent.levels[TARGET] = -np.inf
    incumbent.levels[GAP] = gap
    incumbent.levels[ASIDE] = aside


@internal
def update_incumbent(task: Task, incumbent: Incumbent, columns: Columns) -> float:
    """Return what a ranking is worth, and keep it if it is the best so far."""
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
