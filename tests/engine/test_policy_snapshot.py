"""Policy snapshots: computing rankings leaks no memory and no references."""

import pytest
from helpers.live import a_surface, seeded

from banditrank.counts._counts import Counts
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.testing._leaks import assert_no_leaks

KINDS = [{}, {"policy": "ucb-rank"}, {"treatment": "equal", "utility": "nash"}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()) or "auto")
@pytest.mark.parametrize("calls", [100, pytest.param(500, marks=pytest.mark.campaign)])
def test_new_snapshots_and_rankings_leak_nothing(kind: dict[str, str], calls: int) -> None:
    surface, random_bytes = a_surface(**kind), seeded(1)
    counts = Counts.empty(n_user_types=2, n_items=5, n_positions=2)
    arrays = (counts.displays, counts.rewards, counts.arrivals)

    def refresh() -> None:
        PolicySnapshot(surface, 1, 1, counts).rank_batch([0], random_bytes)

    assert_no_leaks(refresh, arrays, calls=calls)
    snapshot = PolicySnapshot(surface, 1, 1, counts)
    assert_no_leaks(lambda: snapshot.rank_batch([0], random_bytes), arrays, snapshot._rng, calls=calls)
