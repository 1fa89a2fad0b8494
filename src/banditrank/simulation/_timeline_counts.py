"""Counts of a simulation whose problem changes, and the segments between changes."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.counts._forgetting import Forgetting
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline
from banditrank.policies._forgetful import ForgettingCounts


class Segment(NamedTuple):
    """Rounds during which the problem does not change and the policy forgets nothing."""

    first: int  # round
    last: int  # round
    problem: int  # index in the timeline
    forgets: bool  # whether the policy forgets before the first round


def segments(timeline: Timeline, forget_every: int | None, horizon: int) -> Iterator[Segment]:
    """Yield the segments of a simulation.

    Parameters
    ----------
    timeline
        The problem and its changes.
    forget_every
        Rounds between two forgetting steps; None if the policy forgets nothing.
    horizon
        Number of rounds.

    Examples
    --------
    >>> problem = Problem([1.0], [[1.0]], [[0.2, 0.6]])
    >>> [segment[:2] for segment in segments(Timeline([problem, problem], [1, 7]), 5, 12)]
    [(1, 5), (6, 6), (7, 10), (11, 12)]
    """
    forgetting = range(1, horizon + 1, forget_every) if forget_every else range(0)
    firsts = sorted({1, *forgetting, *(start for start in timeline.starts if start <= horizon)})
    problems = np.searchsorted(timeline.starts, firsts, side="right") - 1
    for first, after, problem in zip(firsts, [*firsts[1:], horizon + 1], problems.tolist(), strict=True):
        yield Segment(first, after - 1, problem, first > 1 and first in forgetting)


class TimelineCounts:
    """Counts of the items of the current problem; those of other items are kept until they return.

    Parameters
    ----------
    timeline
        The problem and its changes.
    memory
        Memory of the policy; None if it forgets nothing.
    n_user_types
        N, or 1 for a policy that does not distinguish user types.

    Attributes
    ----------
    counts
        Counts of the items of the current problem.
    """

    def __init__(self, timeline: Timeline, memory: Forgetting | None, n_user_types: int) -> None:
        self._item_indices = {item: index for index, item in enumerate(timeline.items)}
        self._all = Counts.empty(
            n_user_types=n_user_types, n_items=len(self._item_indices), n_positions=timeline.n_positions
        )
        self._forgetting = None if memory is None else ForgettingCounts(memory, self._all)
        self._current = self._items_of(timeline.problems[0])
        self.counts = self._all.select_items(self._current)

    def has_other_items(self, problem: Problem) -> bool:
        """Return whether a problem has other items than the current one."""
        return not np.array_equal(self._current, self._items_of(problem))

    def switch_to(self, problem: Problem) -> NDArray[np.intp]:
        """Switch to the items of a problem.

        Returns
        -------
        ndarray
            Previous index of each item, −1 for a new one, shape (M,).
        """
        self._write_back()
        before, self._current = self._current, self._items_of(problem)
        self.counts = self._all.select_items(self._current)
        previous = np.full(len(self._item_indices), -1, dtype=np.intp)
        previous[before] = np.arange(len(before))
        return previous[self._current]

    def update_rounds(self) -> None:
        """Set the number of rounds from the arrivals, which compiled loops count."""
        self.counts.rounds = round(float(self.counts.arrivals.sum()))

    def forget(self) -> None:
        """End a time bucket; the counts become what the policy remembers."""
        self._write_back()
        if self._forgetting is not None:
            self._replace(self._forgetting.end_bucket(self._all))

    def reset(self) -> None:
        """Set all counts to zero."""
        self._replace(self._all.scaled(0.0))

    def _replace(self, counts: Counts) -> None:
        self._all = counts
        self.counts = counts.select_items(self._current)

    def _items_of(self, problem: Problem) -> NDArray[np.intp]:
        return np.array([self._item_indices[item] for item in problem.items], dtype=np.intp)

    def _write_back(self) -> None:
        counts, everything = self.counts, self._all.copy()
        everything.displays_by_position[:, :, self._current] = counts.displays_by_position
        everything.rewards_by_position[:, :, self._current] = counts.rewards_by_position
        everything.arrivals[:] = counts.arrivals
        everything.rounds = counts.rounds
        self._all = everything
