"""Whether all is well: readings of now and of the last hour, and what they say."""

import time
from dataclasses import dataclass

from banditrank.dashboard.document_schemas import HealthCheckDocument
from banditrank.engine.engine import Engine
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.service.health_checks import Reading, checks_of
from banditrank.service.metrics import Answers, Metrics

SAMPLE_SECONDS = 5.0
"""Between two readings at first; more the longer the process runs, up to a minute."""

_MOST_SECONDS = 60.0
_MOST_READINGS = 60
_RECENT_SECONDS = 30.0  # what is told of the last minute is of half a minute at least


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
        answers = self._metrics.answers()  # once: there may be thousands of surfaces
        histories = {}
        for live in surfaces:
            reading = self._reading(live, answers)
            history = self._histories.get(live.surface_id)
            if history is None:
                history = _History([reading])
            else:
                history.add(reading)
            histories[live.surface_id] = history
        self._histories = histories

    def checks(self, live: SurfaceRuntime) -> list[HealthCheckDocument]:
        """Return whether all is well with a surface and with what all of them share."""
        now = self._reading(live)
        readings = [*self._history(live).readings, now]
        old = [one for one in readings if now.at - one.at >= _RECENT_SECONDS]
        before = old[-1] if old else readings[0]
        return [check.document(readings, before) for check in checks_of(live, self._engine, now)]

    def _history(self, live: SurfaceRuntime) -> "_History":
        """Return the readings of a surface; they begin when somebody first asks."""
        if live.surface_id not in self._histories:
            self._histories[live.surface_id] = _History([self._reading(live)])
        return self._histories[live.surface_id]

    def _reading(self, live: SurfaceRuntime, answers: Answers | None = None) -> Reading:
        committer, now = self._engine.committer, time.monotonic()
        feedback_tracker, clock = live.feedback_tracker, self._engine.now()
        return Reading(
            at=now,
            age=live.staleness_seconds,
            store_age=max(0.0, now - self._engine.last_sync),
            waiting=committer.queued,
            dropped=committer.dropped,
            groups=committer.groups,
            entries=committer.events,
            closed=feedback_tracker.closed,
            missed=feedback_tracker.unreported,
            pending=feedback_tracker.pending(now=clock),
            delays=feedback_tracker.delay_quantiles(0.5, 0.95),
            answers=self._metrics.answers() if answers is None else answers,
        )
