"""What a policy has seen of a world that changes, and what it remembers of that."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.model.problem import Problem
from banditrank.model.timeline import Timeline
from banditrank.counts.counts import Counts
from banditrank.counts.forgetting import BucketedCounts, Forgetting


class Segment(NamedTuple):
    """Rounds during which neither the world changes nor anything is forgotten."""

    first: int
    last: int
    problem: int  # its number in the timeline
    forgets: bool  # whether it begins with forgetting


def segments(timeline: Timeline, forget_every: int | None, horizon: int) -> Iterator[Segment]:
    """Give the stages of so many rounds.

    Examples
    --------
    >>> world = Problem([1.0], [[1.0]], [[0.2, 0.6]])
    >>> [segment[:2] for segment in segments(Timeline([world, world], [1, 7]), 5, 12)]
    [(1, 5), (6, 6), (7, 10), (11, 12)]
    """
    forgetting = range(1, horizon + 1, forget_every) if forget_every else range(0)
    firsts = sorted({1, *forgetting, *(start for start in timeline.starts if start <= horizon)})
    numbers = np.searchsorted(timeline.starts, firsts, side="right") - 1
    for first, after, number in zip(firsts, [*firsts[1:], horizon + 1], numbers.tolist(), strict=True):
        yield Segment(first, after - 1, number, first > 1 and first in forgetting)


class TimelineCounts:
    """Counts of the items that can be shown now, and of all others for when they come back.

    Parameters
    ----------
    timeline
        The world.
    memory
        What is forgotten; nothing if there is none.
    n_user_types
        N, or 1 for a policy that does not tell types apart.
    """

    def __init__(self, timeline: Timeline, memory: Forgetting | None, n_user_types: int) -> None:
        self._numbers = {item: number for number, item in enumerate(timeline.items)}
        self._all = Counts.empty(
            n_user_types=n_user_types, n_items=len(self._numbers), n_positions=timeline.n_positions
        )
        self._at_bucket_start = self._all
        self._buckets = None if memory is None else BucketedCounts(memory)
        self._shown = self._items_of(timeline.problems[0])
        self.counts = self._all.select_items(self._shown)

    def changes(self, problem: Problem) -> bool:
        """Whether items come or go when a problem begins."""
        return not np.array_equal(self._shown, self._items_of(problem))

    def enter(self, problem: Problem) -> NDArray[np.intp]:
        """Go over to a problem's items; return each one's number until now, −1 for a new one, shape (M,)."""
        self._put_back()
        before, self._shown = self._shown, self._items_of(problem)
        self.counts = self._all.select_items(self._shown)
        until_now = np.full(len(self._numbers), -1, dtype=np.intp)
        until_now[before] = np.arange(len(before))
        return until_now[self._shown]

    def count_rounds(self) -> None:
        """Bring the number of rounds up to date: compiled loops count arrivals only."""
        self.counts.rounds = round(float(self.counts.arrivals.sum()))

    def forget(self) -> None:
        """End a bucket: from here on counts are what is remembered."""
        self._put_back()
        if self._buckets is not None:
            self._buckets.add(_difference(self._all, self._at_bucket_start))
            self._remember(self._buckets.weighted_total(self._all))

    def forget_everything(self) -> None:
        """Start afresh."""
        self._remember(self._all.scaled(0.0))

    def _remember(self, counts: Counts) -> None:
        self._all = counts
        self._at_bucket_start = counts.copy()
        self.counts = counts.select_items(self._shown)

    def _items_of(self, problem: Problem) -> NDArray[np.intp]:
        return np.array([self._numbers[item] for item in problem.items], dtype=np.intp)

    def _put_back(self) -> None:
        counts, everything = self.counts, self._all.copy()
        everything.displays_by_position[:, :, self._shown] = counts.displays_by_position
        everything.rewards_by_position[:, :, self._shown] = counts.rewards_by_position
        everything.arrivals[:] = counts.arrivals
        everything.rounds = counts.rounds
        self._all = everything


def _difference(after: Counts, before: Counts) -> Counts:
    """Return what was added; rounding must not make it negative."""
    return Counts(
        np.maximum(after.displays_by_position - before.displays_by_position, 0.0),
        np.maximum(after.rewards_by_position - before.rewards_by_position, 0.0),
        np.maximum(after.arrivals - before.arrivals, 0.0),
        max(after.rounds - before.rounds, 0),
    )
