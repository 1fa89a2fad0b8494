"""The interface of solvers: options, progress and result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.model._rankings import Ranking
from banditrank.solvers._instance import Instance
from banditrank.utilities._utility import Utility


class Progress(NamedTuple):
    """Progress of a search."""

    nodes: int
    value: float
    upper_bound: float


def always_continue(_: Progress) -> bool:
    """Return True: the default of ``on_progress``."""
    return True


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """Stopping criteria and starting point of a solver.

    Parameters
    ----------
    target_gap
        Relative gap at which the solver may stop.
    deadline
        Reading of `time.perf_counter` at which the solver returns the best ranking so far.
    warm_start
        A ranking to start from, of allowed cells.
    share, seed
        For sampling: the share of rankings to evaluate, and the seed.
    on_progress
        Called every few nodes; if it returns False, the solver returns the best ranking so far.
    allowed
        Whether an item may be at a position, shape (K, M). Every allowed cell is in an allowed ranking, and
        there is a warm start. All cells are allowed by default.
    """

    target_gap: float
    deadline: float
    warm_start: Ranking | None
    share: float
    seed: int
    on_progress: Callable[[Progress], bool] = always_continue
    allowed: NDArray[np.bool_] | None = None


class SolverResult(NamedTuple):
    """The best ranking found, an upper bound on any ranking's value, and the number of nodes explored."""

    ranking: Ranking
    upper_bound: float
    nodes: int


def no_preparation() -> None:
    """Do nothing: the default of ``prepare``."""


class Solver(NamedTuple):
    """A solver of equal treatment."""

    unsupported_reason: Callable[[Utility, int, int], str | None]
    """Return why the solver does not support a utility, number of items and number of positions, or None."""
    run: Callable[[Instance, Utility, SolverOptions], SolverResult]
    prepare: Callable[[], None] = no_preparation
    """Compile the solver's formulas, before the time limit starts."""
