"""Makes what a dashboard is told of a surface."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.assessment import CONFIDENCE_LEVEL, AssessedRanking, Assessment, TreatmentValue
from banditrank.dashboard.document_schemas import (
    BestRankingDocument,
    DashboardDocument,
    HealthCheckDocument,
    IntervalDocument,
    ItemDocument,
    LastHourDocument,
    PositionDocument,
    SurfaceDocument,
    TreatmentDocument,
)
from banditrank.dashboard.last_hour import HourTotals
from banditrank.dashboard.posterior_samples import Interval
from banditrank.dashboard.recent_impressions import RecentImpressions, format_timestamp
from banditrank.dashboard.series_document import _fit_user_types, _nan_to_none
from banditrank.dashboard.surface_problem import SurfaceProblem
from banditrank.engine.surface import Surface

Numbers = NDArray[np.intp]


def dashboard_document(
    assessment: Assessment,
    truth: SurfaceProblem | None,
    latest: RecentImpressions,
    last_hour: tuple[float | None, HourTotals],
    health: list[HealthCheckDocument],
    *,
    now: float,
    counts_age: float,
) -> DashboardDocument:
    """Return what a dashboard shows.

    Parameters
    ----------
    assessment
        What the counts say.
    truth
        What is so, if that is known.
    latest
        Rankings that were given out.
    last_hour
        When visits began to come, in seconds since 1970, and which did within the last hour.
    health
        What may go wrong.
    now
        Seconds since 1970.
    counts_age
        By how many seconds the counts behind rankings are behind those learned.
    """
    surface_counts = assessment.surface_counts
    counts = surface_counts.counts
    something = counts.rounds > 0
    optimal_values, random = assessment.optimal_values, assessment.problem.item_means.mean(axis=1)
    if truth is not None:
        optimal_values, random = (
            [Interval(value, value, value) for value in truth.optimal_values.tolist()],
            truth.random_values,
        )
    began, totals = last_hour
    return {
        "surface": _facts(surface_counts.surface),
        "as_of": format_timestamp(now),
        "counts_age_s": round(counts_age, 3),
        "version": surface_counts.version,
        "rounds": counts.rounds,
        "level": CONFIDENCE_LEVEL,
        "truth": truth is not None,
        "began": None if began is None else format_timestamp(began),
        "last_hour": _hour(totals, len(surface_counts.surface.user_types)),
        "optimum": [_interval(ends) for ends in optimal_values],
        "optimum_of_all": truth is not None or assessment.is_optimum_exact,
        "random": random.tolist(),
        "arrivals": [one.share for one in assessment.estimates.user_types],
        "now": _now(assessment, latest) if something else [],
        "recent": latest.documents(now),
        "positions": _positions(assessment, truth),
        "items": _items(assessment, truth),
        "fair": _fair(assessment, truth) if something else [],
        "displays": counts.displays_by_position.astype(np.int64).tolist(),
        "health": health,
    }


def _facts(surface: Surface) -> SurfaceDocument:
    return {
        "name": surface.name,
        "treatment": surface.treatment,
        "utility": surface.utility,
        "policy": surface.compiled_policy.name,
        "items": list(surface.items),
        "retired": list(surface.retired),
        "types": list(surface.user_types),
        "n_positions": surface.n_positions,
        "window_s": surface.attribution_seconds,
    }


def _hour(totals: HourTotals, n_user_types: int) -> LastHourDocument:
    return {
        "visits": _fit_user_types(totals.visits, n_user_types).tolist(),
        "clicks": _fit_user_types(totals.clicks, n_user_types).tolist(),
        "other_item": _nan_to_none(totals.other_item),
        "other_order": _nan_to_none(totals.other_order),
    }


def _now(assessment: Assessment, latest: RecentImpressions) -> list[BestRankingDocument]:
    equal = assessment.current_treatment > 0
    numbers = _numbers(assessment)
    rankings = [numbers[choice.ranking].tolist() for choice in assessment.best_rankings]
    shares = latest.shares_shown([tuple(ranking) for ranking in rankings], equal=equal)
    values = assessment.treatments[assessment.current_treatment].values
    documents = []
    for place, (choice, ranking, share) in enumerate(
        zip(assessment.best_rankings, rankings, shares, strict=True)
    ):
        worth = values if equal else values[place : place + 1]
        estimate, low, high = ([end[part] for end in worth] for part in range(3))
        document: BestRankingDocument = {
            "ranking": ranking,
            "value": estimate if equal else estimate[0],
            "lo": low if equal else low[0],
            "hi": high if equal else high[0],
            "p_best": None if choice.probability_best is None else _interval(choice.probability_best),
            "shown": share,
            "runner_up": None,
        }
        _add_runner_up(document, choice, numbers)
        documents.append(document)
    return documents


def _add_runner_up(document: BestRankingDocument, choice: AssessedRanking, numbers: Numbers) -> None:
    if choice.runner_up is not None:
        delta, low, high = choice.runner_up.delta
        document["runner_up"] = {
            "ranking": numbers[choice.runner_up.ranking].tolist(),
            "delta": delta,
            "lo": low,
            "hi": high,
            "by_type": choice.runner_up.delta_by_user_type,
        }


def _positions(assessment: Assessment, truth: SurfaceProblem | None) -> list[list[PositionDocument]]:
    documents: list[list[PositionDocument]] = [
        [{"m": one.estimate, "lo": one.low, "hi": one.high} for one in told.positions]
        for told in assessment.estimates.user_types
    ]
    if truth is not None:
        for row, true in zip(documents, truth.position_preferences.tolist(), strict=True):
            for document, value in zip(row, true, strict=True):
                document["t"] = value
    return documents


def _items(assessment: Assessment, truth: SurfaceProblem | None) -> list[list[ItemDocument]]:
    displays = assessment.surface_counts.counts.displays_by_position  # (N, K, M)
    looks = np.einsum(
        "ikm,ik->im",
        displays,
        np.array([[one.estimate for one in told.positions] for told in assessment.estimates.user_types]),
    ).tolist()
    documents: list[list[ItemDocument]] = [
        [
            {"m": one.estimate, "lo": one.low, "hi": one.high, "n": expected, "c": one.rewards}
            for one, expected in zip(told.items, row, strict=True)
        ]
        for told, row in zip(assessment.estimates.user_types, looks, strict=True)
    ]
    if truth is not None:
        for items, true in zip(documents, truth.item_means.tolist(), strict=True):
            for document, value in zip(items, true, strict=True):
                document["t"] = value
    return documents


def _fair(assessment: Assessment, truth: SurfaceProblem | None) -> list[TreatmentDocument]:
    numbers = _numbers(assessment)
    return [_treatment(treatment, numbers, truth) for treatment in assessment.treatments]


def _treatment(
    treatment: TreatmentValue, numbers: Numbers, truth: SurfaceProblem | None
) -> TreatmentDocument:
    rankings = numbers[treatment.rankings]  # (N, K)
    told = rankings if treatment.utility is None else rankings[:1]
    document: TreatmentDocument = {
        "treatment": treatment.treatment,
        "rankings": told.tolist(),
        "value": [ends.estimate for ends in treatment.values],
        "lo": [ends.low for ends in treatment.values],
        "hi": [ends.high for ends in treatment.values],
    }
    if treatment.utility is not None:
        document["utility"] = treatment.utility
        document["price"] = None if treatment.price is None else _interval(treatment.price)
    if truth is not None:
        document["true"] = [float(truth.values(ranking)[i]) for i, ranking in enumerate(rankings)]
    return document


def _numbers(assessment: Assessment) -> Numbers:
    """Return the numbers of the items that can be shown, which rankings are places in."""
    return np.asarray(assessment.surface_counts.surface.active_numbers, dtype=np.intp)


def _interval(ends: Interval) -> IntervalDocument:
    return cast("IntervalDocument", dict(zip(("m", "lo", "hi"), ends, strict=True)))
