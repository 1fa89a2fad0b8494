from banditrank._compilation import compiled
from banditrank.policies.baselines._components.leader_counts import (
    LeaderCounts,
    init_leader_counts,
    leader_slot,
)


@compiled
def _slot(table: LeaderCounts, copy: int, signature: int) -> int:
    return leader_slot(table, copy, signature)


def test_leaders_have_clocks_of_their_own() -> None:
    table = init_leader_counts(2, 5, 3)
    signatures = [12345 + (n << 20) for n in range(10)]  # they want the same slot
    for times, signature in enumerate(signatures, start=1):
        table.times[1, _slot(table, 1, signature)] += times
    assert [table.times[1, _slot(table, 1, signature)] for signature in signatures] == list(range(1, 11))
    assert table.times[0].sum() == 0


def test_the_leader_that_led_least_is_forgotten() -> None:
    table = init_leader_counts(1, 5, 3)
    signatures = [n << 20 for n in range(17)]  # one more than there are places
    for n, signature in enumerate(signatures[:16]):
        table.times[0, _slot(table, 0, signature)] = 20 - n
    assert table.times[0, _slot(table, 0, signatures[16])] == 0
    table.times[0, _slot(table, 0, signatures[16])] = 50
    assert [table.times[0, _slot(table, 0, signature)] for signature in signatures[:15]] == list(
        range(20, 5, -1)
    )
    assert table.times[0].sum() == sum(range(6, 21)) + 50
