"""Health monitor: samples of the last hour, and the health checks computed from them."""

import time
from dataclasses import dataclass

from banditrank.dashboard._document_schemas import HealthCheckDocument
from banditrank.engine._engine import Engine
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._health_checks import HealthSample, health_checks
from banditrank.service._metrics import Metrics, ResponseStats

SAMPLE_SECONDS = 5.0
"""Seconds between two calls of `HealthMonitor.sample`."""

_MAX_SPACING_SECONDS = 60.0
_MAX_SAMPLES = 60
_RECENT_SECONDS = 30.0  # minimum length of what the texts call the last minute


@dataclass
class _History:
    """Samples of a surface: of the last hour, or since the first one; at most `_MAX_SAMPLES`.

    Counters are cumulative, so every other sample can be dropped as the history grows.
    """

    samples: list[HealthSample]
    spacing_seconds: float = SAMPLE_SECONDS

    def add(self, sample: HealthSample) -> None:
        """Add a sample unless it follows the last one too closely."""
        if sample.at - self.samples[-1].at < self.spacing_seconds - SAMPLE_SECONDS / 2:
            return
        self.samples.append(sample)
        if len(self.samples) > _MAX_SAMPLES and self.spacing_seconds < _MAX_SPACING_SECONDS:
            self.samples = self.samples[::2]
            self.spacing_seconds = min(2 * self.spacing_seconds, _MAX_SPACING_SECONDS)
        self.samples = self.samples[-_MAX_SAMPLES:]


class HealthMonitor:
    """Samples the engine and the metrics, and runs the health checks.

    Parameters
    ----------
    engine
        Engine that is monitored.
    metrics
        Metrics of its HTTP requests.
    """

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._histories: dict[int, _History] = {}  # by surface id

    def sample(self) -> None:
        """Add a sample to the history of every surface."""
        surfaces = self._engine.surfaces()
        responses = self._metrics.response_stats()  # once for all surfaces: there may be thousands
        histories = {}
        for runtime in surfaces:
            sample = self._take_sample(runtime, responses)
            history = self._histories.get(runtime.surface_id)
            if history is None:
                history = _History([sample])
            else:
                history.add(sample)
            histories[runtime.surface_id] = history
        self._histories = histories

    def checks(self, runtime: SurfaceRuntime) -> list[HealthCheckDocument]:
        """Return the results of the health checks of a surface."""
        now = self._take_sample(runtime)
        samples = [*self._history(runtime).samples, now]
        old = [sample for sample in samples if now.at - sample.at >= _RECENT_SECONDS]
        before = old[-1] if old else samples[0]
        return [check.document(samples, before) for check in health_checks(runtime, self._engine, now)]

    def _history(self, runtime: SurfaceRuntime) -> "_History":
        """Return the history of a surface, which starts here for a surface that was not sampled yet."""
        if runtime.surface_id not in self._histories:
            self._histories[runtime.surface_id] = _History([self._take_sample(runtime)])
        return self._histories[runtime.surface_id]

    def _take_sample(self, runtime: SurfaceRuntime, responses: ResponseStats | None = None) -> HealthSample:
        committer, now = self._engine.committer, time.monotonic()
        tracker, clock = runtime.feedback_tracker, self._engine.now()
        return HealthSample(
            at=now,
            counts_age_seconds=runtime.staleness_seconds,
            sync_age_seconds=max(0.0, now - self._engine.last_sync),
            queue_length=committer.queued,
            dropped=committer.dropped,
            commits=committer.groups,
            closed_windows=tracker.closed,
            unreported_windows=tracker.unreported,
            pending=tracker.pending(now=clock),
            delays=tracker.delay_quantiles(0.5, 0.95),
            responses=self._metrics.response_stats() if responses is None else responses,
        )
