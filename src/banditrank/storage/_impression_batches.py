"""Batches of impressions without an outcome: the encoding of one row of the SQL stores."""

from collections.abc import Sequence
from typing import NamedTuple

from banditrank.storage._records import KEY_BYTES, Impression


class ImpressionBatch(NamedTuple):
    """Impressions of one surface."""

    first: bytes  # smallest key
    last: bytes  # largest key
    n_impressions: int
    packed: bytes  # key and ranking of each impression


def pack_impressions(impressions: Sequence[Impression]) -> ImpressionBatch:
    """Encode impressions of one surface, whose rankings have the same length.

    Examples
    --------
    >>> impressions = [Impression(1, bytes([byte] * 14), b"abcd") for byte in (7, 5)]
    >>> unpack_impressions(1, pack_impressions(impressions)) == impressions
    True
    """
    keys = [impression.key for impression in impressions]
    return ImpressionBatch(
        min(keys, default=b""),
        max(keys, default=b""),
        len(keys),
        b"".join([impression.key + impression.ranking for impression in impressions]),
    )


def unpack_impressions(surface_id: int, batch: ImpressionBatch) -> list[Impression]:
    """Decode the impressions of a batch."""
    packed = batch.packed
    size = len(packed) // batch.n_impressions
    return [
        Impression(surface_id, packed[start : start + KEY_BYTES], packed[start + KEY_BYTES : start + size])
        for start in range(0, len(packed), size)
    ]
