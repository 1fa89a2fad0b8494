"""What may go wrong: how it is measured, and its limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from banditrank.dashboard.document_schemas import HealthCheckDocument, HealthStatus
from banditrank.engine.engine import Engine
from banditrank.engine.feedback_tracker import Pending
from banditrank.engine.group_commit import MAX_QUEUED
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.service.metrics import Answers

_SLOWEST_SHARE = 0.99
_NEARLY = 0.8  # of an attribution window: feedback that takes longer is about to come too late


class Reading(NamedTuple):
    """What is measured at a moment; counters are since the process began."""

    at: float  # seconds of a clock that is never set
    age: float  # of the counts behind rankings
    store_age: float  # since the store was last read
    waiting: int
    dropped: int
    groups: int
    entries: int
    closed: int
    missed: int
    pending: Pending
    delays: list[float]  # of half of the latest feedback and of 95%; nothing if there was none
    answers: Answers


Measure: TypeAlias = Callable[[Reading, Reading], float | None]
"""Returns a figure for the time between two readings; None if there was nothing to measure."""


@dataclass(frozen=True)
class Check:
    """Something that may go wrong.

    Attributes
    ----------
    name
        For people.
    measure
        Gives the figure.
    told, explained
        Make texts of the figure.
    warns, fails
        Beyond which it is not well, or bad; None if it never is.
    limit
        The first of these for people.
    idle
        The explanation if the figure is 0, or there is none, where it is another.
    """

    name: str
    measure: Measure
    told: Callable[[float], str]
    explained: str
    warns: float | None = None
    fails: float | None = None
    limit: str = "no limit"
    idle: str | None = None

    def document(self, readings: list[Reading], before: Reading) -> HealthCheckDocument:
        """Return what is told of it, by readings of the last hour of which the last is of now."""
        figure = self.measure(before, readings[-1])
        return {
            "n": self.name,
            "v": "none" if figure is None else self.told(figure),
            "d": self.explained if figure or self.idle is None else self.idle,
            "l": self.limit,
            "s": self._status(figure or 0.0),
            "hour": [_rounded(self.measure(*two)) for two in pairwise(readings)],
        }

    def _status(self, figure: float) -> HealthStatus:
        if self.fails is not None and figure > self.fails:
            return "bad"
        return "warn" if self.warns is not None and figure > self.warns else "ok"


AGES = ("Ranking age", "Store")
"""Checks whose figures are ages, which change all the time while nothing happens."""


def checks_of(live: SurfaceRuntime, engine: Engine, now: Reading) -> Iterator[Check]:
    """Return what is checked of a surface, and of what all of them share."""
    yield from _checks_of_engine(live, engine)
    yield from _checks_of_requests()
    yield from _checks_of_feedback(live, now)


def _checks_of_engine(live: SurfaceRuntime, engine: Engine) -> Iterator[Check]:
    oldest = max(5.0, 4 * live.surface.refresh_seconds)
    yield Check(
        "Ranking age",
        lambda _, now: now.age,
        _seconds,
        "behind the newest counts",
        oldest,
        10 * oldest,
        _seconds(oldest),
    )
    longest = max(5.0, 20 * engine.sync_seconds)
    yield Check(
        "Store",
        lambda _, now: now.store_age,
        _seconds,
        "since it was last read",
        longest,
        6 * longest,
        _seconds(longest),
    )
    yield Check(
        "Waiting",
        lambda _, now: now.waiting,
        _whole,
        "rankings and feedback wait to be written",
        MAX_QUEUED / 20,
        MAX_QUEUED / 2,
        _whole(MAX_QUEUED / 20),
    )
    yield Check(
        "Dropped",
        lambda before, now: now.dropped - before.dropped,
        _whole,
        "shown rankings were not noted in the last minute",
        0.0,
        0.0,
        "0",
    )
    yield Check("Commits", _commits, _rate, "groups of rankings and feedback are written")


def _checks_of_requests() -> Iterator[Check]:
    yield Check(
        "Answers",
        lambda before, now: now.answers.since(before.answers).slowest(_SLOWEST_SHARE),
        _within,
        "for 99% of rankings and feedback in the last minute",
        0.1,
        1.0,
        "100 ms",
        idle="were asked for in the last minute",
    )
    yield Check(
        "Refused",
        _refused,
        _share,
        "of rankings and feedback were refused in the last minute",
        0.01,
        0.5,
        "1%",
    )
    yield Check(
        "Failed",
        lambda before, now: now.answers.since(before.answers).failed,
        _whole,
        "requests failed in the last minute",
        0.0,
        10.0,
        "0",
    )


def _checks_of_feedback(live: SurfaceRuntime, now: Reading) -> Iterator[Check]:
    longest = _NEARLY * live.surface.attribution_seconds
    half = _time(now.delays[0]) if now.delays else ""
    yield Check(
        "Feedback delay",
        lambda _, now: now.delays[1] if now.delays else None,
        _time,
        f"within which 95% of the latest feedback came, half of it within {half}",
        longest,
        None,
        _time(longest),
        idle="came here so far",
    )
    if live.has_other_writers:  # feedback may have come to others
        return
    yield Check(
        "Pending",
        lambda _, now: now.pending.number,
        _whole,
        f"rankings wait for feedback, the oldest for {_time(now.pending.oldest_seconds)}",
        idle="rankings wait for feedback",
    )
    yield Check(
        "Unreported",
        _unreported,
        _share,
        "of the rankings whose window closed in the last minute had no feedback",
        0.05,
        None,
        "5%",
        idle="of the windows that closed in the last minute were without feedback",
    )


def _commits(before: Reading, now: Reading) -> float:
    seconds = now.at - before.at
    return (now.groups - before.groups) / seconds if seconds > 0 else 0.0


def _unreported(before: Reading, now: Reading) -> float | None:
    closed = now.closed - before.closed
    return (now.missed - before.missed) / closed if closed > 0 else None


def _refused(before: Reading, now: Reading) -> float:
    answers = now.answers.since(before.answers)
    total = sum(answers.by_time)
    return answers.refused / total if total else 0.0


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)


def _seconds(figure: float) -> str:
    return f"{figure:,.0f} s" if figure >= 10 else f"{figure:.1f} s".replace(".0 ", " ")


def _time(figure: float) -> str:
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if figure >= 2 * seconds:
            return f"{figure / seconds:,.0f} {unit}"
    return _seconds(figure)


def _within(figure: float) -> str:
    return f"within {figure * 1000:g} ms" if figure else "none"


def _whole(figure: float) -> str:
    return f"{figure:,.0f}"


def _rate(figure: float) -> str:
    return f"{figure:,.1f} a second"


def _share(figure: float) -> str:
    return f"{figure:.1%}"
