"""Makes what a dashboard is told of how a surface fared over time."""

from collections.abc import Sequence
from math import isnan
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.document_schemas import SeriesDocument
from banditrank.dashboard.recent_impressions import format_timestamp
from banditrank.dashboard.time_buckets import MAX_BUCKETS
from banditrank.dashboard.time_series import Annotation, ClosedBuckets

Floats = NDArray[np.float64]
Table = TypeVar("Table", Floats, NDArray[np.int64])


def first_bucket_since(buckets: ClosedBuckets, since: float | None) -> int:
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
    widened = buckets.start_ms + MAX_BUCKETS // 2 * buckets.width_ms
    if buckets.is_widened and milliseconds <= widened:
        return 0
    behind = -(-(milliseconds - buckets.start_ms) // buckets.width_ms)
    return min(max(0, behind), len(buckets.visits))


def series_document(
    buckets: ClosedBuckets,
    notes: Sequence[Annotation],
    *,
    n_user_types: int,
    with_regret: bool,
    first: int = 0,
) -> SeriesDocument:
    """Return buckets from a first one on, and what happened meanwhile.

    Parameters
    ----------
    buckets, notes
        What there is.
    n_user_types
        That the surface has.
    with_regret
        Whether the truth is known.
    first
        The number of the first bucket.
    """
    visits = _fit_user_types(buckets.visits[first:], n_user_types)
    start_ms = buckets.start_ms + first * buckets.width_ms
    document: SeriesDocument = {
        "start": format_timestamp(start_ms / 1000),
        "bucket_s": buckets.width_ms / 1000,
        "visits": visits.tolist(),
        "clicks": _fit_user_types(buckets.clicks[first:], n_user_types).tolist(),
        "other_item": [_nan_to_none(share) for share in buckets.other_item[first:].tolist()],
        "other_order": [_nan_to_none(share) for share in buckets.other_order[first:].tolist()],
        "events": [
            {"at": format_timestamp(note.at_ms / 1000), "t": note.text}
            for note in notes
            if note.at_ms >= start_ms
        ],
    }
    if with_regret:
        regret = (
            np.zeros(len(visits)) if buckets.cumulative_regret is None else buckets.cumulative_regret[first:]
        )
        document["regret"] = regret.tolist()
    return document


def _fit_user_types(table: Table, n_user_types: int) -> Table:
    """Return a table with a column for each user type; types may be new, or not known here yet."""
    missing = max(0, n_user_types - table.shape[-1])
    padding = np.array([(0, 0)] * (table.ndim - 1) + [(0, missing)])
    return cast("Table", np.pad(table[..., :n_user_types], padding))


def _nan_to_none(number: float) -> float | None:
    """Return a number, None for NaN."""
    return None if isnan(number) else number
