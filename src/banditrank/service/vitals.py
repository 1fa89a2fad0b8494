"""Whether all is well: what is measured, its limit, and how it was over the last hour."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from banditrank.engine.dashboard_document import CheckDocument, Status
from banditrank.engine.engine import Engine
from banditrank.engine.journal import MOST_WAITING
from banditrank.engine.live_surface import LiveSurface
from banditrank.service.metrics import Answers, Metrics

SAMPLE_SECONDS = 5.0
"""Between two readings at first; more the longer the process runs, up to a minute."""

_MOST_SECONDS = 60.0
_MOST_READINGS = 60
_RECENT_SECONDS = 30.0  # what is told of the last minute is of half a minute at least

_SLOWEST_SHARE = 0.99


class Reading(NamedTuple):
    """What is measured at a moment; counters are since the process began."""

    at: float  # seconds of a clock that is never set
    age: float  # of the counts behind rankings
    store_age: float  # since the store was last read
    waiting: int
    dropped: int
    groups: int
    entries: int
    reported: int
    unreported: int
    answers: Answers


Measure: TypeAlias = Callable[[Reading, Reading], float]
"""Returns a figure for the time between two readings."""


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
        The explanation if the figure is 0, where it is another.
    """

    name: str
    measure: Measure
    told: Callable[[float], str]
    explained: str
    warns: float | None
    fails: float | None
    limit: str
    idle: str | None = None

    def document(self, readings: list[Reading], before: Reading) -> CheckDocument:
        """Return what is told of it, by readings of the last hour of which the last is of now."""
        figure = self.measure(before, readings[-1])
        hour = [round(self.measure(*two), 6) for two in pairwise(readings)]
        return {
            "n": self.name,
            "v": self.told(figure),
            "d": self.explained if figure or self.idle is None else self.idle,
            "l": self.limit,
            "s": self._status(figure),
            "hour": hour,
        }

    def _status(self, figure: float) -> Status:
        if self.fails is not None and figure > self.fails:
            return "bad"
        return "warn" if self.warns is not None and figure > self.warns else "ok"


@dataclass
class _History:
    """Readings of an hour, or since they began: as many as a small chart has room for.

    Counters tell what came between any two of them, so every other one can be left out.
    """

    readings: list[Reading]
    spacing: float = SAMPLE_SECONDS

    def add(self, reading: Reading) -> None:
        """Add a reading, unless the last was just now."""
        if reading.at - self.readings[-1].at < self.spacing - SAMPLE_SECONDS / 2:
            return
        self.readings.append(reading)
        if len(self.readings) > _MOST_READINGS and self.spacing < _MOST_SECONDS:
            self.readings = self.readings[::2]
            self.spacing = min(2 * self.spacing, _MOST_SECONDS)
        self.readings = self.readings[-_MOST_READINGS:]


class Vitals:
    """Takes readings, and tells by them whether all is well.

    Parameters
    ----------
    engine, metrics
        What is measured.
    """

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._histories: dict[int, _History] = {}  # by number of the surface

    def sample(self) -> None:
        """Take readings of all surfaces, to be remembered for an hour."""
        surfaces = self._engine.surfaces()
        self._histories = {live.number: self._history(live) for live in surfaces}
        for live in surfaces:
            self._histories[live.number].add(self._reading(live))

    def checks(self, live: LiveSurface) -> list[CheckDocument]:
        """Return whether all is well with a surface and with what all of them share."""
        now = self._reading(live)
        readings = [*self._history(live).readings, now]
        old = [one for one in readings if now.at - one.at >= _RECENT_SECONDS]
        before = old[-1] if old else readings[0]
        return [check.document(readings, before) for check in _checks(live, self._engine)]

    def _history(self, live: LiveSurface) -> "_History":
        """Return the readings of a surface; they begin when somebody first asks."""
        if live.number not in self._histories:
            self._histories[live.number] = _History([self._reading(live)])
        return self._histories[live.number]

    def _reading(self, live: LiveSurface) -> Reading:
        journal, now = self._engine.journal, time.monotonic()
        return Reading(
            at=now,
            age=live.age,
            store_age=max(0.0, now - self._engine.last_sync),
            waiting=journal.waiting,
            dropped=journal.dropped,
            groups=journal.groups,
            entries=journal.entries,
            reported=live.watch.reported,
            unreported=live.watch.unreported,
            answers=self._metrics.answers(),
        )


def _checks(live: LiveSurface, engine: Engine) -> Iterator[Check]:
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
        MOST_WAITING / 20,
        MOST_WAITING / 2,
        _whole(MOST_WAITING / 20),
    )
    yield Check(
        "Dropped",
        lambda before, now: now.dropped - before.dropped,
        _whole,
        "shown rankings were not noted in the last minute",
        0.0,
        0.0,
        "none",
    )
    yield Check("Commits", _commits, _rate, "groups of rankings and feedback are written", None, None, "none")
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
        "Unreported",
        _unreported,
        _share,
        "of rankings had no feedback when their window closed, in the last minute",
        0.05,
        None,
        "5%",
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
        "none",
    )


def _commits(before: Reading, now: Reading) -> float:
    seconds = now.at - before.at
    return (now.groups - before.groups) / seconds if seconds > 0 else 0.0


def _unreported(before: Reading, now: Reading) -> float:
    missed = now.unreported - before.unreported
    settled = missed + now.reported - before.reported
    return missed / settled if settled else 0.0


def _refused(before: Reading, now: Reading) -> float:
    answers = now.answers.since(before.answers)
    total = sum(answers.by_time)
    return answers.refused / total if total else 0.0


def _seconds(figure: float) -> str:
    return f"{figure:,.0f} s" if figure >= 10 else f"{figure:.1f} s".replace(".0 ", " ")


def _within(figure: float) -> str:
    return f"within {figure * 1000:g} ms" if figure else "none"


def _whole(figure: float) -> str:
    return f"{figure:,.0f}"


def _rate(figure: float) -> str:
    return f"{figure:,.1f} a second"


def _share(figure: float) -> str:
    return f"{figure:.1%}"
