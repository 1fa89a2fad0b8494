"""Items in order, as far as comparisons tell them apart: the nodes of UniRank's graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.policies.baselines.components.kl_ucb import kl_ucb_exceeds, kl_ucb

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]
Integers = NDArray[np.int64]


class Comparisons(NamedTuple):
    """Rounds that told two items apart: one was clicked and the other, as well placed, was not."""

    margins: Floats  # (copies, M, M) rounds that row's item won minus those that column's won
    rounds: Floats  # (copies, M, M)
    wins: Integers  # (copies, M) how many items an item has a positive margin over


class Partition(NamedTuple):
    """An ordered partition for each copy: first those parts that are shown, then all other items."""

    items: Indices  # (copies, M)
    ends: Integers  # (copies, K) where each part that is shown ends
    parts: Integers  # (copies,) how many parts are shown


def init_comparisons(margins: Floats, rounds: Floats) -> Comparisons:
    """Return comparisons with margins and rounds, shape (copies, M, M)."""
    return Comparisons(margins, rounds, (margins > 0).sum(axis=2).astype(np.int64))


def init_partition(n_copies: int, n_items: int, n_positions: int) -> Partition:
    """Return the partition that tells no items apart."""
    return Partition(
        np.tile(np.arange(n_items, dtype=np.uintp), (n_copies, 1)),
        np.full((n_copies, n_positions), n_items, dtype=np.int64),
        np.ones(n_copies, dtype=np.int64),
    )


@inlined
def compare(comparisons: Comparisons, copy: int, winner: int, loser: int) -> bool:
    """Add a round that one item won over another; return whether it changed which of them is ahead."""
    margins = comparisons.margins
    comparisons.rounds[copy, winner, loser] += 1.0
    comparisons.rounds[copy, loser, winner] += 1.0
    margins[copy, winner, loser] += 1.0
    margins[copy, loser, winner] -= 1.0
    if margins[copy, winner, loser] == 1.0:
        comparisons.wins[copy, winner] += 1
        return True
    if margins[copy, winner, loser] == 0.0:
        comparisons.wins[copy, loser] -= 1
        return True
    return False


@internal
def partition_items(comparisons: Comparisons, copy: int, partition: Partition) -> None:
    """Write the partition that the comparisons tell.

    Each part is the smallest set of the remaining items whose every member is ahead of every other remaining
    item. Its members win more than others do, for they win against all others, who lose to all members: so
    the one that wins most is a member, and so is who is not behind a member. Parts are found until they fill
    the positions.
    """
    items, ends, margins, wins = partition.items, partition.ends, comparisons.margins, comparisons.wins
    n_items, n_positions = items.shape[1], ends.shape[1]
    begin, part = 0, 0
    while begin < n_positions:
        for place in range(begin + 1, n_items):
            if wins[copy, items[copy, place]] > wins[copy, items[copy, begin]]:
                _swap(items, copy, begin, place)
        end, member = begin + 1, begin
        while member < end:
            for place in range(end, n_items):
                if margins[copy, items[copy, member], items[copy, place]] <= 0.0:
                    _swap(items, copy, end, place)
                    end += 1
            member += 1
        ends[copy, part] = end
        part += 1
        begin = end
    partition.parts[copy] = part


@inlined
def _swap(items: Indices, copy: int, first: int, second: int) -> None:
    items[copy, first], items[copy, second] = items[copy, second], items[copy, first]


@internal
def merge_parts(
    comparisons: Comparisons,
    leader: Partition,
    copy: int,
    level: float,
    rng: np.random.Generator,
    merged: Partition,
) -> None:
    """Write a leading partition with parts merged that may be in the wrong order.

    From the top down a part is merged with the next if an item of the next may be better than one of its own.
    The last part that is shown gets the one item, of those not shown, that may be better than its own by the
    most, if any may.
    """
    items = leader.items
    for place in range(items.shape[1]):
        merged.items[copy, place] = items[copy, place]
    part, parts, begin = 0, 0, 0
    while part < leader.parts[copy]:
        end = leader.ends[copy, part]
        if part + 1 < leader.parts[copy]:
            if _may_be_better(comparisons, items, copy, begin, end, leader.ends[copy, part + 1], level):
                part += 1
                end = leader.ends[copy, part]
        elif end < items.shape[1]:
            place = _most_promising(comparisons, items, copy, begin, end, level, rng)
            if place >= 0:
                _swap(merged.items, copy, end, place)
                end += 1
        merged.ends[copy, parts] = end
        parts += 1
        part += 1
        begin = end
    merged.parts[copy] = parts


@inlined
def _may_be_better(
    comparisons: Comparisons, items: Indices, copy: int, begin: int, end: int, next_end: int, level: float
) -> bool:
    """Return whether an item of places from ``end`` may be better than one of places from ``begin``.

    It may if the KL-UCB of the share of rounds that it won exceeds 1/2, which can be told without it.
    """
    for place in range(begin, end):
        for other in range(end, next_end):
            rounds = comparisons.rounds[copy, items[copy, other], items[copy, place]]
            share = _share(comparisons, copy, items[copy, other], items[copy, place])
            if kl_ucb_exceeds(share, rounds, level, 0.5):
                return True
    return False


@inlined
def _most_promising(
    comparisons: Comparisons,
    items: Indices,
    copy: int,
    begin: int,
    end: int,
    level: float,
    rng: np.random.Generator,
) -> int:
    """Return the place, from ``end``, of the item with the largest KL-UCB; −1 if none exceeds 1/2."""
    best, most, ties = -1, 0.5, 0
    for other in range(end, items.shape[1]):
        bound = 0.0
        for place in range(begin, end):
            rounds = comparisons.rounds[copy, items[copy, other], items[copy, place]]
            share = _share(comparisons, copy, items[copy, other], items[copy, place])
            bound = max(bound, kl_ucb(share, rounds, level))
        if bound > most:
            best, most, ties = other, bound, 1
        elif best >= 0 and bound == most:
            ties += 1
            if rng.random() * ties < 1.0:
                best = other
    return best


@inlined
def _share(comparisons: Comparisons, copy: int, item: int, ahead: int) -> float:
    """Return the share of rounds that an item won over one ahead of it; there are some, or it were not."""
    margin: float = comparisons.margins[copy, item, ahead]
    rounds: float = comparisons.rounds[copy, item, ahead]
    return 0.5 + 0.5 * margin / rounds


@internal
def shuffle_parts(
    partition: Partition, copy: int, rng: np.random.Generator, positions: Indices, ranking: Indices
) -> None:
    """Write a ranking that shows one part after the other, the items of each in an order drawn uniformly."""
    items = partition.items
    begin = 0
    for part in range(partition.parts[copy]):
        end = partition.ends[copy, part]
        for place in range(begin, min(end, ranking.size)):
            if end - place > 1:
                _swap(items, copy, place, place + int(rng.random() * (end - place)))
            ranking[positions[copy, place]] = items[copy, place]
        begin = end
