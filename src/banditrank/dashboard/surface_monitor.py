"""What is noted of a surface at work, for those who look at it: latest rankings, what is best, the series."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from banditrank.dashboard.time_series import TimeSeries
from banditrank.engine.feedback_tracker import FeedbackTracker
from banditrank.dashboard.bucket_table import Standard
from banditrank.dashboard.estimated_problem import best_rankings, estimated_problem
from banditrank.engine.counts_replica import CountsReplica, SurfaceCounts
from banditrank.engine.duty_cycle import DutyCycle
from banditrank.engine.surface import Surface
from banditrank.dashboard.surface_problem import SurfaceProblem
from banditrank.model.problem import Problem
from banditrank.storage.records import Impression

MAX_RECENT = 20
MAX_SHOWN = 1000
_PASSES = 200  # of the estimator
_MAX_NAMES_LISTED = 3  # in a note: snapshots hold it
_SHARE_OF_TIME = 0.02  # that looking for what is best may take

BestRankings: TypeAlias = tuple[tuple[int, ...], ...]
"""The numbers of the items to show to each user type, in order of positions."""


class RecentImpression(NamedTuple):
    """A ranking that was given out here."""

    id: str
    at: float  # seconds since 1970
    shown: Impression
    best: BestRankings | None  # at that time


class SurfaceMonitor:
    """What is noted of a surface.

    Parameters
    ----------
    surface
        Its definition.
    clock
        Gives the time in seconds since 1970.
    bucket_seconds
        The width of the first buckets of its series.
    problem
        The true world, if there is one.

    Attributes
    ----------
    latest
        The latest rankings, as `RecentImpression` takes them: a tuple is quicker to make.
    shown
        What was shown by as many of them as shares are told of: `Impression.ranking`.
    best
        What is best at present; None until somebody looked.
    awaited
        What is known here of feedback that is to come.
    activity
        The series, which belongs to the counts that are learned.
    """

    def __init__(
        self,
        surface: Surface,
        clock: Callable[[], float],
        *,
        bucket_seconds: float = 60.0,
        problem: Problem | None = None,
    ) -> None:
        self.latest: deque[tuple[str, float, Impression, BestRankings | None]] = deque(maxlen=MAX_RECENT)
        self.shown: deque[bytes] = deque(maxlen=MAX_SHOWN)
        self.best: BestRankings | None = None
        self.feedback_tracker = FeedbackTracker(surface.attribution_seconds)
        self.time_series = TimeSeries(round(bucket_seconds * 1000), n_user_types=len(surface.user_types))
        self._clock = clock
        self._problem = problem
        self._truth: SurfaceProblem | None = None
        self._know(surface)
        self._looked_at = (0, 0)
        self._duty_cycle = DutyCycle(_SHARE_OF_TIME)

    def due_in(self, revision: int, version: int) -> float:
        """Return the number of seconds until it is time to look what is best; infinity if that is known."""
        return inf if (revision, version) == self._looked_at else self._duty_cycle.due_in

    def look(self, known: SurfaceCounts, replica: CountsReplica) -> None:
        """Find out what is best by the latest counts, and compare what comes with it."""
        surface = known.surface
        with self._duty_cycle:
            world = estimated_problem(surface, known.counts, max_passes=_PASSES)
            rankings = best_rankings(surface, world)
            numbers = np.asarray(surface.active_numbers, dtype=np.intp)[rankings]
            standard = Standard(numbers, len(surface.items))
        with replica.time_series() as time_series:
            time_series.compare_with(standard)
        self.best = tuple(map(tuple, numbers.tolist()))
        self._looked_at = known.revision, known.version

    def adopt(self, before: Surface, surface: Surface, replica: CountsReplica) -> None:
        """Take note of another definition."""
        self.note(_difference(before, surface), replica)
        if surface.attribution_seconds != before.attribution_seconds:
            self.feedback_tracker = self.feedback_tracker.with_window(surface.attribution_seconds)
        with replica.time_series() as time_series:
            time_series.fold()  # what came before is compared with what was true then
            self._know(surface)

    def note(self, text: str, replica: CountsReplica) -> None:
        """Remember that something happened now."""
        with replica.time_series() as time_series:
            time_series.note(int(self._clock() * 1000), text)

    @property
    def has_truth(self) -> bool:
        """Whether it is known what there is to learn."""
        return self._problem is not None

    def truth_of(self, surface: Surface) -> SurfaceProblem | None:
        """Return what there is to learn of a surface as it is or was defined; None if that is not known."""
        truth = self._truth
        if truth is None or self._problem is None or truth.surface == surface:
            return truth
        return SurfaceProblem(self._problem, surface)

    def _know(self, surface: Surface) -> None:
        if self._problem is not None:
            self._truth = SurfaceProblem(self._problem, surface)
            self.time_series.given_up = self._truth.given_up


def _difference(before: Surface, after: Surface) -> str:
    """Return what was changed about a surface, in a few words.

    Examples
    --------
    >>> before = Surface("home", items=["a", "b", "c", "d", "e"], n_positions=1)
    >>> _difference(before, before.with_retired(["a"]).with_items(["f", "g"]))
    'f and g added, a retired'
    >>> _difference(before, before.with_retired(["a", "b", "c", "d"]))
    'a, b and 2 more retired'
    """
    earlier, later = set(before.active_items), set(after.active_items)
    added = [item for item in after.active_items if item not in earlier]
    retired = [item for item in before.active_items if item not in later]
    said = [f"{_listed(names)} {verb}" for names, verb in ((added, "added"), (retired, "retired")) if names]
    return ", ".join(said) or "settings changed"


def _listed(names: list[str]) -> str:
    """Return up to three names in full; of more, two and the number of the others."""
    if len(names) > _MAX_NAMES_LISTED:
        names = [*names[: _MAX_NAMES_LISTED - 1], f"{len(names) - _MAX_NAMES_LISTED + 1:,} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
