"""Rankings that were shown, of one surface, in one piece: written with every group, and seldom read."""

from collections.abc import Sequence
from typing import NamedTuple

from banditrank.storage.records import KEY_BYTES, Impression


class ImpressionBatch(NamedTuple):
    """Rankings of one surface."""

    first: bytes  # the least of their keys
    last: bytes
    n_rankings: int
    packed: bytes  # of each the key, then what was shown


def packed(shown: Sequence[Impression]) -> ImpressionBatch:
    """Return rankings in one piece.

    Examples
    --------
    >>> two = [Impression(1, bytes([number] * 14), b"abcd") for number in (7, 5)]
    >>> unpacked(1, packed(two)) == two
    True
    """
    keys = [one.key for one in shown]
    return ImpressionBatch(
        min(keys, default=b""),
        max(keys, default=b""),
        len(keys),
        b"".join([one.key + one.ranking for one in shown]),
    )


def unpacked(surface: int, piece: ImpressionBatch) -> list[Impression]:
    """Return the rankings that a piece holds."""
    size = len(piece.packed) // piece.n_rankings
    return [
        Impression(
            surface, piece.packed[start : start + KEY_BYTES], piece.packed[start + KEY_BYTES : start + size]
        )
        for start in range(0, len(piece.packed), size)
    ]
