"""Hash table of how often each leader has led, the clock of unimodal bandits, which explore around a leader.

A leader assigns items to slots of a ranking. Its key is a Zobrist hash: the XOR of a random number for each
item in each slot, so that two leaders collide with probability 2⁻⁶³. The table has a fixed size: when all
probed entries of a leader are taken, the entry that has led least is replaced.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined

Integers = NDArray[np.int64]

_ENTRIES = 1 << 12  # a power of 2; unimodal bandits converge after far fewer leaders
_PROBES = 16  # entries probed for a leader


class LeaderCounts(NamedTuple):
    """A hash table of leaders for each copy."""

    codes: Integers  # (slots, M) random numbers
    signatures: Integers  # (copies, entries) keys
    times: NDArray[np.float64]  # (copies, entries) how often each has led; 0 for a free entry


def init_leader_counts(n_copies: int, n_items: int, n_slots: int) -> LeaderCounts:
    """Return an empty table."""
    return LeaderCounts(
        _codes(n_slots, n_items),
        np.zeros((n_copies, _ENTRIES), dtype=np.int64),
        np.zeros((n_copies, _ENTRIES)),
    )


@cache  # shared, and never written to
def _codes(n_slots: int, n_items: int) -> Integers:
    limit = np.iinfo(np.int64).max
    return np.random.default_rng(0).integers(limit, size=(n_slots, n_items), dtype=np.int64)


@inlined
def leader_slot(table: LeaderCounts, copy: int, signature: int) -> int:
    """Return the entry of a leader; a new leader takes a free entry, or replaces the one that led least."""
    rarest = -1
    fewest = np.inf
    for probe in range(_PROBES):
        slot = (signature + probe) & (_ENTRIES - 1)
        times = table.times[copy, slot]
        if times > 0.0 and table.signatures[copy, slot] == signature:
            return slot
        if times < fewest:
            rarest, fewest = slot, times
    table.signatures[copy, rarest] = signature
    table.times[copy, rarest] = 0.0
    return rarest


@inlined
def count_leader(table: LeaderCounts, copy: int, signature: int, slot: int) -> None:
    """Count a round of a leader, given the entry that it had then: another may have taken it since."""
    if table.signatures[copy, slot] != signature:
        slot = leader_slot(table, copy, signature)
    table.times[copy, slot] += 1.0
