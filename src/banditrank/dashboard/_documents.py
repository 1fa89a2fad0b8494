"""Documents that the dashboard's pages are rendered from."""

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._assessment import CONFIDENCE_LEVEL, AssessedRanking, Assessment, TreatmentValue
from banditrank.dashboard._document_schemas import (
    BestRankingDocument,
    CompilingState,
    CountsDocument,
    EstimatesBasisDocument,
    EstimatesDocument,
    HealthCheckDocument,
    IntervalDocument,
    ItemDocument,
    LastHourDocument,
    LotteryDocument,
    PositionDocument,
    RunnerUpDocument,
    SeriesDocument,
    SurfaceDocument,
    TreatmentDocument,
    format_timestamp,
)
from banditrank.dashboard._estimated_problem import random_values
from banditrank.dashboard._last_hour import HourTotals
from banditrank.dashboard._posterior_samples import Interval
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._surface_problem import SurfaceProblem
from banditrank.dashboard._time_buckets import MAX_BUCKETS
from banditrank.dashboard._time_series import Annotation, ClosedBuckets
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime

ItemNumbers = NDArray[np.intp]
Table = TypeVar("Table", NDArray[np.float64], NDArray[np.int64])


UNKNOWN_ESTIMATES: EstimatesDocument = {
    "arrival_rates": None,
    "optimum": None,
    "is_optimum_exact": None,
    "random": None,
    "best_rankings": None,
    "positions": None,
    "items": None,
    "treatments": None,
    "lottery": None,
    "displays": None,
}
"""The estimates of a surface before any are computed."""


class Compiling(NamedTuple):
    """The surface whose code is being compiled, and for how long."""

    surface: CompilingState
    seconds: float


def counts_document(
    runtime: SurfaceRuntime,
    recent: RecentImpressions,
    last_hour: tuple[float | None, HourTotals],
    health: list[HealthCheckDocument],
    *,
    now: float,
    has_true_values: bool = False,
    estimated_from: EstimatesBasisDocument | None = None,
    compiling: Compiling | None = None,
) -> CountsDocument:
    """Return what is known of a surface at once; nothing is estimated, or compiled.

    Parameters
    ----------
    runtime
        The surface.
    recent
        The latest impressions.
    last_hour
        Start of the time series in seconds since 1970, and totals of the last hour.
    health
        Health checks of the service.
    now
        Seconds since 1970.
    has_true_values
        Whether users are simulated by a known problem.
    estimated_from
        Basis of the estimates in the same document, None if they are not known.
    compiling
        The surface whose code is being compiled, None if there is none.
    """
    surface = runtime.surface
    start, totals = last_hour
    return {
        "surface": _surface(surface),
        "as_of": format_timestamp(now),
        "compiling": None if compiling is None else compiling.surface,
        "compiling_seconds": None if compiling is None else round(compiling.seconds, 1),
        "estimated_from": estimated_from,
        "counts_age_seconds": round(runtime.staleness_seconds, 3),
        "version": runtime.version,
        "rounds": runtime.rounds,
        "level": CONFIDENCE_LEVEL,
        "has_true_values": has_true_values,
        "started_at": None if start is None else format_timestamp(start),
        "last_hour": _last_hour(totals, len(surface.user_types)),
        "latest_rankings": recent.documents(now),
        "health": health,
    }


def estimates_document(
    assessment: Assessment, problem: SurfaceProblem | None, recent: RecentImpressions
) -> EstimatesDocument:
    """Return the estimates of a surface.

    Parameters
    ----------
    assessment
        Assessment of the surface.
    problem
        The problem that simulated users act by; None for real users.
    recent
        The latest impressions.
    """
    counts = assessment.surface_counts.counts
    has_counts = counts.rounds > 0
    optimal_values, values_at_random = assessment.optimal_values, random_values(assessment.problem)
    if problem is not None:
        optimal_values = [Interval(value, value, value) for value in problem.optimal_values.tolist()]
        values_at_random = problem.random_values
    return {
        "arrival_rates": [user_type.share for user_type in assessment.estimates.user_types],
        "optimum": [_interval(value) for value in optimal_values],
        "is_optimum_exact": problem is not None or assessment.is_optimum_exact,
        "random": values_at_random.tolist(),
        "best_rankings": _best_rankings(assessment, recent) if has_counts else [],
        "positions": _positions(assessment, problem),
        "items": _items(assessment, problem),
        "treatments": _treatments(assessment, problem) if has_counts else [],
        "lottery": _lottery(assessment) if has_counts else None,
        "displays": counts.displays_by_position.astype(np.int64).tolist(),
    }


def estimates_basis(assessment: Assessment, at: float) -> EstimatesBasisDocument:
    """Return the basis of an assessment, of counts that were the latest at a time in seconds since 1970."""
    counts = assessment.surface_counts
    return {"at": format_timestamp(at), "version": counts.version, "rounds": counts.counts.rounds}


def series_document(
    buckets: ClosedBuckets,
    annotations: Sequence[Annotation],
    *,
    n_user_types: int,
    with_regret: bool,
    first: int = 0,
) -> SeriesDocument:
    """Return the document of a time series.

    Parameters
    ----------
    buckets, annotations
        The time series.
    n_user_types
        Number of user types of the surface.
    with_regret
        Whether the problem is known.
    first
        Index of the first bucket to include.
    """
    visits = _fit_user_types(buckets.visits[first:], n_user_types)
    start_ms = buckets.start_ms + first * buckets.width_ms
    document: SeriesDocument = {
        "start": format_timestamp(start_ms / 1000),
        "bucket_seconds": buckets.width_ms / 1000,
        "visits": visits.tolist(),
        "clicks": _fit_user_types(buckets.clicks[first:], n_user_types).tolist(),
        "other_item": [_nan_to_none(share) for share in buckets.other_item[first:].tolist()],
        "other_order": [_nan_to_none(share) for share in buckets.other_order[first:].tolist()],
        "events": [
            {"at": format_timestamp(one.at_ms / 1000), "text": one.text}
            for one in annotations
            if one.at_ms >= start_ms
        ],
    }
    if with_regret:
        regret = buckets.cumulative_regret
        document["regret"] = (np.zeros(len(visits)) if regret is None else regret[first:]).tolist()
    return document


def first_bucket_since(buckets: ClosedBuckets, since: float | None) -> int:
    """Return the index of the first bucket that a reader lacks.

    It is 0 if the reader stopped before the buckets were last widened: its buckets are narrower.

    Parameters
    ----------
    buckets
        The buckets.
    since
        The reader has all buckets that started before, in seconds since 1970; None if it has none.
    """
    if since is None:
        return 0
    since_ms = round(since * 1000)
    widened_at_ms = buckets.start_ms + MAX_BUCKETS // 2 * buckets.width_ms
    if buckets.is_widened and since_ms <= widened_at_ms:
        return 0
    n_known = -(-(since_ms - buckets.start_ms) // buckets.width_ms)  # rounded up
    return min(max(0, n_known), len(buckets.visits))


def _surface(surface: Surface) -> SurfaceDocument:
    return {
        "name": surface.name,
        "treatment": surface.treatment,
        "utility": surface.utility,
        "policy": surface.compiled_policy.name,
        "click_model": surface.click_model,
        "items": list(surface.items),
        "retired": list(surface.retired),
        "user_types": list(surface.user_types),
        "n_positions": surface.n_positions,
        "attribution_seconds": surface.attribution_seconds,
        "experiment": None if surface.experiment is None else surface.experiment.name,
    }


def _last_hour(totals: HourTotals, n_user_types: int) -> LastHourDocument:
    return {
        "visits": _fit_user_types(totals.visits, n_user_types).tolist(),
        "clicks": _fit_user_types(totals.clicks, n_user_types).tolist(),
        "other_item": _nan_to_none(totals.other_item),
        "other_order": _nan_to_none(totals.other_order),
    }


def _best_rankings(assessment: Assessment, recent: RecentImpressions) -> list[BestRankingDocument]:
    is_equal = assessment.current_treatment > 0
    numbers = _active_numbers(assessment)
    rankings = [numbers[best.ranking].tolist() for best in assessment.best_rankings]
    shares = recent.ranking_shares([tuple(ranking) for ranking in rankings], is_equal=is_equal)
    values = assessment.treatments[assessment.current_treatment].values
    probabilities = assessment.treatments[assessment.current_treatment].probabilities
    documents: list[BestRankingDocument] = []
    for i, (best, ranking, share) in enumerate(zip(assessment.best_rankings, rankings, shares, strict=True)):
        documents.append(
            {
                "ranking": ranking,
                "value": [value.estimate for value in values] if is_equal else values[i].estimate,
                "low": [value.low for value in values] if is_equal else values[i].low,
                "high": [value.high for value in values] if is_equal else values[i].high,
                "probability_best": None
                if best.probability_best is None
                else _interval(best.probability_best),
                "loss": None if best.loss is None else _interval(best.loss),
                "shown": share,
                "runner_up": _runner_up(best, numbers),
            }
        )
        if probabilities is not None:
            documents[-1]["probability"] = float(probabilities[i])
    return documents


def _runner_up(best: AssessedRanking, numbers: ItemNumbers) -> RunnerUpDocument | None:
    if best.runner_up is None:
        return None
    difference, low, high = best.runner_up.difference
    return {
        "ranking": numbers[best.runner_up.ranking].tolist(),
        "difference": difference,
        "low": low,
        "high": high,
        "by_user_type": best.runner_up.difference_by_user_type,
    }


def _positions(assessment: Assessment, problem: SurfaceProblem | None) -> list[list[PositionDocument]]:
    documents: list[list[PositionDocument]] = [
        [{"estimate": one.estimate, "low": one.low, "high": one.high} for one in estimates.positions]
        for estimates in assessment.estimates.user_types
    ]
    if problem is not None:
        for row, preferences in zip(documents, problem.position_preferences.tolist(), strict=True):
            for document, preference in zip(row, preferences, strict=True):
                document["true_value"] = preference
    return documents


def _items(assessment: Assessment, problem: SurfaceProblem | None) -> list[list[ItemDocument]]:
    user_types = assessment.estimates.user_types
    displays = assessment.surface_counts.counts.displays_by_position  # (N, K, M)
    preferences = np.array([[one.estimate for one in estimates.positions] for estimates in user_types])
    exposure = np.einsum("ikm,ik->im", displays, preferences).tolist()
    documents: list[list[ItemDocument]] = [
        [
            {
                "estimate": one.estimate,
                "low": one.low,
                "high": one.high,
                "expected_looks": looks,
                "clicks": one.rewards,
            }
            for one, looks in zip(estimates.items, row, strict=True)
        ]
        for estimates, row in zip(user_types, exposure, strict=True)
    ]
    if problem is not None:
        for items, means in zip(documents, problem.item_means.tolist(), strict=True):
            for document, mean in zip(items, means, strict=True):
                document["true_value"] = mean
    return documents


def _treatments(assessment: Assessment, problem: SurfaceProblem | None) -> list[TreatmentDocument]:
    numbers = _active_numbers(assessment)
    return [_treatment(treatment, numbers, problem) for treatment in assessment.treatments]


def _lottery(assessment: Assessment) -> LotteryDocument | None:
    report = assessment.lottery
    if report is None:
        return None
    numbers = {name: number for number, name in enumerate(assessment.surface_counts.surface.items)}
    return {
        "rankings": [[numbers[item] for item in one.ranking] for one in report.rankings],
        "probabilities": [one.probability for one in report.rankings],
        "user_types": [one.user_type for one in report.rankings],
        "value": report.user_type_values,
        "summary": report.summary,
        "conflict": report.conflict,
        "guarantees": [
            {
                "name": one.name,
                "level": one.level,
                "expected": one.expected,
                "price": one.price,
                "realised": one.realised,
                "low": one.low,
                "high": one.high,
                "is_kept": one.is_kept,
            }
            for one in report.guarantees
        ],
    }


def _treatment(
    treatment: TreatmentValue, numbers: ItemNumbers, problem: SurfaceProblem | None
) -> TreatmentDocument:
    rankings = numbers[treatment.rankings]  # (N, K)
    document: TreatmentDocument = {
        "treatment": treatment.treatment,
        "rankings": (rankings[:1] if treatment.treatment == "equal" else rankings).tolist(),
        "value": [value.estimate for value in treatment.values],
        "low": [value.low for value in treatment.values],
        "high": [value.high for value in treatment.values],
    }
    if treatment.utility is not None:
        document["utility"] = treatment.utility
        document["price"] = None if treatment.price is None else _interval(treatment.price)
    if problem is not None:
        true_values = np.array([problem.values(ranking) for ranking in rankings])  # (N or S, N)
        document["true_values"] = (
            np.diag(true_values) if treatment.probabilities is None else treatment.probabilities @ true_values
        ).tolist()
    if treatment.probabilities is not None:
        document["probabilities"] = treatment.probabilities.tolist()
    return document


def _active_numbers(assessment: Assessment) -> ItemNumbers:
    """Return the numbers of the active items, which the assessment's rankings are indices of."""
    return np.asarray(assessment.surface_counts.surface.active_numbers, dtype=np.intp)


def _interval(interval: Interval) -> IntervalDocument:
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}


def _fit_user_types(table: Table, n_user_types: int) -> Table:
    """Return a table with one column for each user type: zeros for those without counts yet."""
    n_missing = max(0, n_user_types - table.shape[-1])
    padding = np.array([(0, 0)] * (table.ndim - 1) + [(0, n_missing)])
    return cast("Table", np.pad(table[..., :n_user_types], padding))


def _nan_to_none(number: float) -> float | None:
    return None if isnan(number) else number
