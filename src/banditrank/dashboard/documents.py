"""Makes what a dashboard is told of a surface."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.assessment import LEVEL, Assessment, Choice, TreatmentValue
from banditrank.dashboard.document_schemas import (
    CheckDocument,
    DashboardDocument,
    FairDocument,
    HourDocument,
    IntervalDocument,
    ItemDocument,
    NowDocument,
    PositionDocument,
    SurfaceFacts,
)
from banditrank.dashboard.last_hour import HourTotals
from banditrank.dashboard.recent_impressions import RecentImpressions, format_time
from banditrank.dashboard.posterior_samples import Interval
from banditrank.dashboard.series_document import fitted, known_number
from banditrank.engine.surface import Surface
from banditrank.dashboard.surface_problem import SurfaceProblem

Numbers = NDArray[np.intp]


def dashboard_document(
    assessment: Assessment,
    truth: SurfaceProblem | None,
    latest: RecentImpressions,
    last_hour: tuple[float | None, HourTotals],
    health: list[CheckDocument],
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
    known = assessment.known
    counts = known.counts
    something = counts.rounds > 0
    optimum, random = assessment.optimum, assessment.world.item_means.mean(axis=1)
    if truth is not None:
        optimum, random = [Interval(value, value, value) for value in truth.optimum.tolist()], truth.random
    began, totals = last_hour
    return {
        "surface": _facts(known.surface),
        "as_of": format_time(now),
        "counts_age_s": round(counts_age, 3),
        "version": known.version,
        "rounds": counts.rounds,
        "level": LEVEL,
        "truth": truth is not None,
        "began": None if began is None else format_time(began),
        "last_hour": _hour(totals, len(known.surface.user_types)),
        "optimum": [_interval(ends) for ends in optimum],
        "optimum_of_all": truth is not None or assessment.optimum_of_all,
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


def _facts(surface: Surface) -> SurfaceFacts:
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


def _hour(totals: HourTotals, n_user_types: int) -> HourDocument:
    return {
        "visits": fitted(totals.visits, n_user_types).tolist(),
        "clicks": fitted(totals.clicks, n_user_types).tolist(),
        "other_item": known_number(totals.other_item),
        "other_order": known_number(totals.other_order),
    }


def _now(assessment: Assessment, latest: RecentImpressions) -> list[NowDocument]:
    equal = assessment.own > 0
    numbers = _numbers(assessment)
    rankings = [numbers[choice.ranking].tolist() for choice in assessment.choices]
    shares = latest.shares_shown([tuple(ranking) for ranking in rankings], equal=equal)
    values = assessment.treatments[assessment.own].values
    documents = []
    for place, (choice, ranking, share) in enumerate(zip(assessment.choices, rankings, shares, strict=True)):
        worth = values if equal else values[place : place + 1]
        estimate, low, high = ([end[part] for end in worth] for part in range(3))
        document: NowDocument = {
            "ranking": ranking,
            "value": estimate if equal else estimate[0],
            "lo": low if equal else low[0],
            "hi": high if equal else high[0],
            "p_best": None if choice.p_best is None else _interval(choice.p_best),
            "shown": share,
            "runner_up": None,
        }
        _add_runner_up(document, choice, numbers)
        documents.append(document)
    return documents


def _add_runner_up(document: NowDocument, choice: Choice, numbers: Numbers) -> None:
    if choice.runner_up is not None:
        delta, low, high = choice.runner_up.delta
        document["runner_up"] = {
            "ranking": numbers[choice.runner_up.ranking].tolist(),
            "delta": delta,
            "lo": low,
            "hi": high,
            "by_type": choice.runner_up.by_type,
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
    displays = assessment.known.counts.displays_by_position  # (N, K, M)
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


def _fair(assessment: Assessment, truth: SurfaceProblem | None) -> list[FairDocument]:
    numbers = _numbers(assessment)
    return [_treatment(treatment, numbers, truth) for treatment in assessment.treatments]


def _treatment(treatment: TreatmentValue, numbers: Numbers, truth: SurfaceProblem | None) -> FairDocument:
    rankings = numbers[treatment.rankings]  # (N, K)
    told = rankings if treatment.utility is None else rankings[:1]
    document: FairDocument = {
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
    return np.asarray(assessment.known.surface.active_numbers, dtype=np.intp)


def _interval(ends: Interval) -> IntervalDocument:
    return cast("IntervalDocument", dict(zip(("m", "lo", "hi"), ends, strict=True)))
