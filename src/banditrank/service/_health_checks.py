"""Health checks: their metrics, limits and texts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from banditrank.dashboard._document_schemas import HealthCheckDocument, HealthStatus
from banditrank.engine._engine import Engine
from banditrank.engine._feedback_tracker import Pending
from banditrank.engine._group_commit import MAX_QUEUED
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._metrics import ResponseStats

_LATENCY_QUANTILE = 0.99
_LATE_SHARE = 0.8  # of the attribution window: feedback that takes longer is close to being rejected


class HealthSample(NamedTuple):
    """State of a surface and its process at one moment; counters are since the process started.

    Attributes
    ----------
    at
        Time of a monotonic clock in seconds.
    counts_age_seconds
        Age of the counts that rankings are made from.
    sync_age_seconds
        Time since the last sync with the store.
    queue_length
        Number of events that wait for a commit.
    dropped
        Number of impressions that were not recorded.
    commits
        Number of group commits.
    closed_windows, unreported_windows
        Number of attribution windows that closed, and of those without feedback.
    pending
        Rankings that wait for feedback.
    delays
        Median and 95% quantile of the delay of the latest feedback in seconds; empty without feedback.
    responses
        Statistics of HTTP responses.
    """

    at: float
    counts_age_seconds: float
    sync_age_seconds: float
    queue_length: int
    dropped: int
    commits: int
    closed_windows: int
    unreported_windows: int
    pending: Pending
    delays: list[float]
    responses: ResponseStats


CheckMetric: TypeAlias = Callable[[HealthSample, HealthSample], float | None]
"""Returns the value of a metric between two samples; None if there was nothing to measure."""


@dataclass(frozen=True)
class HealthCheck:
    """A metric with limits.

    Attributes
    ----------
    name
        Name, for people.
    metric
        Returns the value.
    format
        Formats the value.
    description
        Text that follows the value.
    warn_above, fail_above
        Limits beyond which the status is ``warn`` or ``bad``; None for no limit.
    limit
        Text for `warn_above`.
    idle_description
        Text that follows a value of 0 or none; `description` if None.
    """

    name: str
    metric: CheckMetric
    format: Callable[[float], str]
    description: str
    warn_above: float | None = None
    fail_above: float | None = None
    limit: str = "no limit"
    idle_description: str | None = None

    def document(self, samples: list[HealthSample], before: HealthSample) -> HealthCheckDocument:
        """Return the check as it is part of the dashboard document.

        Parameters
        ----------
        samples
            Samples of the last hour, the last of them of now.
        before
            Sample since which the current value is computed.
        """
        value = self.metric(before, samples[-1])
        return {
            "name": self.name,
            "value": "none" if value is None else self.format(value),
            "description": self.description
            if value or self.idle_description is None
            else self.idle_description,
            "limit": self.limit,
            "status": self._status(value or 0.0),
            "last_hour": [_rounded(self.metric(*two)) for two in pairwise(samples)],
        }

    def _status(self, value: float) -> HealthStatus:
        if self.fail_above is not None and value > self.fail_above:
            return "bad"
        return "warn" if self.warn_above is not None and value > self.warn_above else "ok"


AGE_CHECKS = ("Counts age", "Store sync")
"""Checks whose values are ages, which grow while nothing happens."""


def health_checks(runtime: SurfaceRuntime, engine: Engine, now: HealthSample) -> Iterator[HealthCheck]:
    """Return the health checks of a surface and of the process that serves it."""
    yield from _engine_checks(runtime, engine)
    yield from _request_checks()
    yield from _feedback_checks(runtime, now)


def _engine_checks(runtime: SurfaceRuntime, engine: Engine) -> Iterator[HealthCheck]:
    max_age = max(5.0, 4 * runtime.surface.refresh_seconds)
    yield HealthCheck(
        "Counts age",
        lambda _, now: now.counts_age_seconds,
        _format_seconds,
        "behind the latest counts",
        max_age,
        10 * max_age,
        _format_seconds(max_age),
    )
    max_sync_age = max(5.0, 20 * engine.sync_seconds)
    yield HealthCheck(
        "Store sync",
        lambda _, now: now.sync_age_seconds,
        _format_seconds,
        "since the last sync with the store",
        max_sync_age,
        6 * max_sync_age,
        _format_seconds(max_sync_age),
    )
    yield HealthCheck(
        "Commit queue",
        lambda _, now: now.queue_length,
        _format_count,
        "rankings and feedback wait for a commit",
        MAX_QUEUED / 20,
        MAX_QUEUED / 2,
        _format_count(MAX_QUEUED / 20),
    )
    yield HealthCheck(
        "Dropped",
        lambda before, now: now.dropped - before.dropped,
        _format_count,
        "impressions were not recorded in the last minute",
        0.0,
        0.0,
        "0",
    )
    yield HealthCheck("Commits", _commit_rate, _format_rate, "group commits of rankings and feedback")


def _request_checks() -> Iterator[HealthCheck]:
    yield HealthCheck(
        "Latency",
        lambda before, now: now.responses.since(before.responses).latency_quantile(_LATENCY_QUANTILE),
        _format_latency,
        "for 99% of rankings and feedback in the last minute",
        0.1,
        1.0,
        "100 ms",
        idle_description="requested in the last minute",
    )
    yield HealthCheck(
        "Refused",
        _refused_share,
        _format_share,
        "of rankings and feedback were refused in the last minute",
        0.01,
        0.5,
        "1%",
    )
    yield HealthCheck(
        "Failed",
        lambda before, now: now.responses.since(before.responses).failed,
        _format_count,
        "requests failed in the last minute",
        0.0,
        10.0,
        "0",
    )


def _feedback_checks(runtime: SurfaceRuntime, now: HealthSample) -> Iterator[HealthCheck]:
    max_delay = _LATE_SHARE * runtime.surface.attribution_seconds
    median = _format_duration(now.delays[0]) if now.delays else ""
    yield HealthCheck(
        "Feedback delay",
        lambda _, now: now.delays[1] if now.delays else None,
        _format_duration,
        f"or less for 95% of the latest feedback, {median} or less for half of it",
        max_delay,
        None,
        _format_duration(max_delay),
        idle_description="received by this process so far",
    )
    if runtime.has_other_writers:  # other processes may have received feedback
        return
    yield HealthCheck(
        "Pending",
        lambda _, now: now.pending.n_impressions,
        _format_count,
        f"rankings wait for feedback, the oldest for {_format_duration(now.pending.oldest_seconds)}",
        idle_description="rankings wait for feedback",
    )
    yield HealthCheck(
        "Unreported",
        _unreported_share,
        _format_share,
        "of the rankings whose window closed in the last minute had no feedback",
        0.05,
        None,
        "5%",
        idle_description="of the windows that closed in the last minute lacked feedback",
    )


def _commit_rate(before: HealthSample, now: HealthSample) -> float | None:
    seconds = now.at - before.at
    return (now.commits - before.commits) / seconds if seconds > 0 else None


def _unreported_share(before: HealthSample, now: HealthSample) -> float | None:
    closed = now.closed_windows - before.closed_windows
    return (now.unreported_windows - before.unreported_windows) / closed if closed > 0 else None


def _refused_share(before: HealthSample, now: HealthSample) -> float | None:
    responses = now.responses.since(before.responses)
    total = sum(responses.latencies)
    return responses.refused / total if total else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _format_seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 10 else f"{value:.1f} s".replace(".0 ", " ")


def _format_duration(value: float) -> str:
    for seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if value >= 2 * seconds:
            return f"{value / seconds:,.0f} {unit}"
    return _format_seconds(value)


def _format_latency(value: float) -> str:
    return f"within {value * 1000:g} ms"


def _format_count(value: float) -> str:
    return f"{value:,.0f}"


def _format_rate(value: float) -> str:
    return f"{value:,.1f} per second"


def _format_share(value: float) -> str:
    return f"{value:.1%}"
