"""Makes what a dashboard is told of how a surface fared over time."""

from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.activity import MOST_BUCKETS, Buckets, Note
from banditrank.engine.assessment import Assessment
from banditrank.engine.dashboard_document import SeriesDocument
from banditrank.engine.latest_rankings import told_time
from banditrank.engine.truth import Truth

Floats = NDArray[np.float64]
Table = TypeVar("Table", Floats, NDArray[np.int64])


def first_wanted(buckets: Buckets, since: float | None) -> int:
    """Return the number of the first bucket for whoever has all that began before a time.

    Whoever asks from a time before buckets were last made wider has narrower ones: all of them are wanted.

    Parameters
    ----------
    buckets
        What there is.
    since
        Seconds since 1970; None for whoever has nothing.
    """
    if since is None:
        return 0
    milliseconds = round(since * 1000)
    widened = buckets.start + MOST_BUCKETS // 2 * buckets.width
    if buckets.doubled and milliseconds <= widened:
        return 0
    behind = -(-(milliseconds - buckets.start) // buckets.width)
    return min(max(0, behind), len(buckets.visits))


def series_document(
    buckets: Buckets,
    notes: Sequence[Note],
    assessment: Assessment,
    truth: Truth | None,
    *,
    first: int = 0,
) -> SeriesDocument:
    """Return buckets from a first one on, and what happened meanwhile.

    Parameters
    ----------
    buckets, notes
        What there is.
    assessment
        What the best and a random ranking are worth, by estimates.
    truth
        The same in truth, if that is known.
    first
        The number of the first bucket.
    """
    n_user_types = assessment.world.n_user_types
    visits = _fitted(buckets.visits[first:], n_user_types)
    shares = _shares(visits, assessment)  # (B, N)
    values = assessment.treatments[assessment.own].values
    optimum = np.array([[end[part] for end in values] for part in range(3)])  # (3, N)
    random = assessment.world.item_means.mean(axis=1)
    if truth is not None:
        optimum, random = np.tile(truth.optimum, (3, 1)), truth.random
    best, low, high = (shares @ part for part in optimum)
    start = buckets.start + first * buckets.width
    document: SeriesDocument = {
        "start": told_time(start / 1000),
        "bucket_s": buckets.width / 1000,
        "visits": visits.tolist(),
        "clicks": _fitted(buckets.clicks[first:], n_user_types).tolist(),
        "other_item": buckets.other_item[first:].tolist(),
        "other_order": buckets.other_order[first:].tolist(),
        "optimum": best.tolist(),
        "optimum_lo": low.tolist(),
        "optimum_hi": high.tolist(),
        "random": (shares @ random).tolist(),
        "optimum_by_type": optimum[0].tolist(),
        "random_by_type": random.tolist(),
        "events": [{"at": told_time(note.at / 1000), "t": note.text} for note in notes if note.at >= start],
    }
    if truth is not None:
        regret = np.zeros(len(visits)) if buckets.regret is None else buckets.regret[first:]
        document["regret"] = regret.tolist()
    return document


def _fitted(table: Table, n_user_types: int) -> Table:
    """Return a table with a column for each user type; types may be new, or not known here yet."""
    missing = max(0, n_user_types - table.shape[1])
    return cast("Table", np.pad(table[:, :n_user_types], ((0, 0), (0, missing))))


def _shares(visits: NDArray[np.int64], assessment: Assessment) -> Floats:
    """Return what each type makes of a bucket's visits; of all visits there were, where there are none."""
    usual = np.array([one.share for one in assessment.estimates.user_types])
    totals = visits.sum(axis=1, keepdims=True)
    return np.where(totals > 0, visits / np.maximum(totals, 1), usual)
