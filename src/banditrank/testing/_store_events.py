"""Test data for store checks: numbered impressions, and the stored counts."""

from collections.abc import Callable
from typing import TypeAlias

from banditrank.storage._base import Store
from banditrank.storage._cells import Totals
from banditrank.storage._records import REWARD_UNITS, Impression, Outcome, min_key, pack_ranking

OpenStore: TypeAlias = Callable[[], Store]
"""Opens the store under test, empty at first; called again, the same one as another process would."""

CLICK = Outcome.of(0, REWARD_UNITS)


def shown(
    surface: int, number: int, *, expires_at_ms: int = 1000, items: tuple[int, ...] = (3, 1)
) -> Impression:
    """Return an impression identified by a number."""
    return Impression(surface, min_key(expires_at_ms)[:6] + number.to_bytes(8, "big"), pack_ranking(1, items))


def read_totals(store: Store, surface: int, *, up_to: int | None = None) -> Totals:
    """Return the counts of a surface of two user types, four items and two positions."""
    totals = Totals(n_user_types=2, n_items=4, n_positions=2)
    snapshot = store.snapshot(surface, up_to=up_to)
    totals.add(snapshot.cells)
    for change in store.changes(surface, after=snapshot.version, limit=10_000):
        if up_to is None or change.version <= up_to:
            totals.add(change.cells)
    return totals


def read_rounds(store: Store, surface: int) -> int:
    """Return how many rankings were counted."""
    return read_totals(store, surface).counts(range(4)).rounds
