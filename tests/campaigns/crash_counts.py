"""Comparison of a store with the acknowledgements of its clients."""

import json
import time
from collections import Counter
from itertools import chain

from banditrank.counts._counts import Counts
from banditrank.engine._ranking_ids import RankingIdSigner
from banditrank.storage._base import Store
from banditrank.storage._cells import Totals
from banditrank.storage._factory import open_store
from campaigns.crash_clients import ITEMS, N_POSITIONS, USER_TYPES, WINDOW, Client

_ALWAYS = 1 << 47  # milliseconds since 1970
_SETTLING_SECONDS = 120.0  # until all expired impressions are counted


def wait_until_settled(address: str) -> None:
    """Wait until services have counted all expired impressions; fail after a timeout."""
    time.sleep(WINDOW)  # until the last impressions expire
    until = time.monotonic() + _SETTLING_SECONDS
    with open_store(address) as store:
        surface = surface_id_of(store)
        while store.pending_impressions(surface, since_ms=0, until_ms=_ALWAYS, limit=1):
            assert time.monotonic() < until, "rankings whose window closed are still open"
            time.sleep(0.2)


def check(address: str, clients: list[Client], *, expiring: bool) -> None:
    """Assert that the store holds exactly the acknowledged feedback."""
    displays: Counter[tuple[str, str, int]] = Counter()
    rewards: Counter[tuple[str, str, int]] = Counter()
    rankings = list(chain(*(client.rankings for client in clients)))
    for ranking in rankings:
        for position, item in enumerate(ranking.items if ranking.acknowledged else ()):
            displays[ranking.user_type, item, position] += 1
        for item, reward in ranking.rewards.items():
            rewards[ranking.user_type, item, ranking.items.index(item)] += reward
    acknowledged = sum(ranking.acknowledged for ranking in rankings)
    with open_store(address) as store:
        counts = counts_of(store)
        for i, user_type in enumerate(USER_TYPES):
            for j, item in enumerate(ITEMS):
                for k in range(N_POSITIONS):
                    place = user_type, item, k
                    assert counts.rewards[i, j, k] == rewards[place], place
                    assert counts.displays[i, j, k] >= displays[place], place
        if not expiring:
            assert counts.rounds == acknowledged, f"{counts.rounds} counted, {acknowledged} acknowledged"
            return
        surface, signer = surface_id_of(store), RankingIdSigner(store.secret())
        assert store.pending_impressions(surface, since_ms=0, until_ms=_ALWAYS) == []
        n_with_outcome = 0
        for ranking in rankings:
            outcome = store.outcome(surface, signer.verify(ranking.id).impression.key)
            assert outcome is not None or not (ranking.acknowledged or ranking.rewards)
            n_with_outcome += outcome is not None
        unanswered = sum(client.asked for client in clients) - len(rankings)
        assert n_with_outcome <= counts.rounds <= n_with_outcome + unanswered, (
            "a ranking was counted twice, or not at all"
        )


def surface_id_of(store: Store) -> int:
    """Return the id of the surface."""
    surface = store.find_surface("crash")
    assert surface is not None
    assert json.loads(surface.definition)["items"] == list(ITEMS)
    return surface.surface_id


def counts_of(store: Store) -> Counts:
    """Return the counts, and assert that no version is missing."""
    surface = surface_id_of(store)
    totals = Totals(n_user_types=len(USER_TYPES), n_items=len(ITEMS), n_positions=N_POSITIONS)
    snapshot = store.snapshot(surface)
    totals.add(snapshot.cells)
    version = snapshot.version
    while changes := store.changes(surface, after=version):
        for change in changes:
            assert change.version == version + 1, "versions have a gap"
            version = change.version
            totals.add(change.cells)
    return totals.counts(range(len(ITEMS)))
