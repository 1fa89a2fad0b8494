"""Makes what a dashboard is told of how a surface fared over time."""

from collections.abc import Sequence
from math import isnan
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.time_series import Buckets, Note
from banditrank.dashboard.document_schemas import SeriesDocument
from banditrank.dashboard.recent_impressions import format_time
from banditrank.dashboard.time_buckets import MAX_BUCKETS

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
    widened = buckets.start + MAX_BUCKETS // 2 * buckets.width
    if buckets.doubled and milliseconds <= widened:
        return 0
    behind = -(-(milliseconds - buckets.start) // buckets.width)
    return min(max(0, behind), len(buckets.visits))


def series_document(
    buckets: Buckets, notes: Sequence[Note], *, n_user_types: int, with_regret: bool, first: int = 0
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
    visits = fitted(buckets.visits[first:], n_user_types)
    start = buckets.start + first * buckets.width
    document: SeriesDocument = {
        "start": format_time(start / 1000),
        "bucket_s": buckets.width / 1000,
        "visits": visits.tolist(),
        "clicks": fitted(buckets.clicks[first:], n_user_types).tolist(),
        "other_item": [known_number(share) for share in buckets.other_item[first:].tolist()],
        "other_order": [known_number(share) for share in buckets.other_order[first:].tolist()],
        "events": [{"at": format_time(note.at / 1000), "t": note.text} for note in notes if note.at >= start],
    }
    if with_regret:
        regret = np.zeros(len(visits)) if buckets.regret is None else buckets.regret[first:]
        document["regret"] = regret.tolist()
    return document


def fitted(table: Table, n_user_types: int) -> Table:
    """Return a table with a column for each user type; types may be new, or not known here yet."""
    missing = max(0, n_user_types - table.shape[-1])
    padding = np.array([(0, 0)] * (table.ndim - 1) + [(0, missing)])
    return cast("Table", np.pad(table[..., :n_user_types], padding))


def known_number(number: float) -> float | None:
    """Return a number, None for NaN."""
    return None if isnan(number) else number
