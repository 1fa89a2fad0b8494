"""What a method of solving is, so that each can be called by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from banditrank.model.rankings import Ranking
from banditrank.solvers.instance import Instance
from banditrank.utilities.utility import Utility


class Progress(NamedTuple):
    """How far a search has come."""

    nodes: int
    value: float
    upper_bound: float


def always_continue(_: Progress) -> bool:
    """Let a search go on."""
    return True


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How much work a solver may do, and where it starts.

    Parameters
    ----------
    target_gap
        It may stop when it is this close to the best.
    deadline
        It must stop at this reading of `time.perf_counter`, with the best that it has.
    warm_start
        A ranking to start from.
    share, seed
        For sampling: the share of rankings to try, and the seed of its randomness.
    on_progress
        Called every few nodes of a search, which stops with the best that it has if False is returned.
    """

    target_gap: float
    deadline: float
    warm_start: Ranking | None
    share: float
    seed: int
    on_progress: Callable[[Progress], bool] = always_continue


class SolverResult(NamedTuple):
    """What a method found."""

    ranking: Ranking
    upper_bound: float
    nodes: int


def no_preparation() -> None:
    """Prepare nothing."""


class Solver(NamedTuple):
    """A way to solve equal treatment."""

    unsupported_reason: Callable[[Utility, int, int], str | None]
    """Return why it cannot solve a utility with that many items and positions, in words, or nothing."""
    run: Callable[[Instance, Utility, SolverOptions], SolverResult]
    prepare: Callable[[], None] = no_preparation
    """Compile what takes long to compile, before the clock starts."""
