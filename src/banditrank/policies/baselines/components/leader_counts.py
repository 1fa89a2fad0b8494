"""How often each leader has led: the clock of unimodal bandits, which explore around a leader.

A leader puts items in places. It is known by its signature, an XOR of random numbers, one for each item in
each place, so that two leaders are taken for one with probability 2⁻⁶³. The table has a fixed size: when the
places where a leader may stand are taken, the one that has led least is forgotten, and its clock with it.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined

Integers = NDArray[np.int64]

_SLOTS = 1 << 12  # a power of 2; unimodal bandits settle after far fewer leaders
_PROBES = 16  # places where a leader may stand


class LeaderCounts(NamedTuple):
    """A table of leaders for each copy."""

    codes: Integers  # (places, M) random numbers
    signatures: Integers  # (copies, slots)
    times: NDArray[np.float64]  # (copies, slots) 0 where there is no leader yet


def init_leader_counts(n_copies: int, n_items: int, n_places: int) -> LeaderCounts:
    """Return a table in which nothing has led yet."""
    return LeaderCounts(
        _codes(n_places, n_items),
        np.zeros((n_copies, _SLOTS), dtype=np.int64),
        np.zeros((n_copies, _SLOTS)),
    )


@cache  # the same for all, and never written to
def _codes(n_places: int, n_items: int) -> Integers:
    limit = np.iinfo(np.int64).max
    return np.random.default_rng(0).integers(limit, size=(n_places, n_items), dtype=np.int64)


@inlined
def leader_slot(table: LeaderCounts, copy: int, signature: int) -> int:
    """Return where a leader's times are, making room for it if it has not led yet."""
    rarest = -1
    fewest = np.inf
    for probe in range(_PROBES):
        slot = (signature + probe) & (_SLOTS - 1)
        times = table.times[copy, slot]
        if times > 0.0 and table.signatures[copy, slot] == signature:
            return slot
        if times < fewest:
            rarest, fewest = slot, times
    table.signatures[copy, rarest] = signature
    table.times[copy, rarest] = 0.0
    return rarest
