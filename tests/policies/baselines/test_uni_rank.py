from itertools import combinations, pairwise

import numpy as np
import pytest
from helpers.baseline_runs import ManualRun, play
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.model._click_models import CASCADE, ClickModel, PositionBased, compile_problem
from banditrank.model._problem import Problem
from banditrank.policies._uniform import UniformRandom
from banditrank.policies.baselines._uni_rank import UniRank, init_comparisons, init_partition
from banditrank.simulation._simulate import simulate

ATTRACTION = np.array([0.1, 0.8, 0.3, 0.55, 0.15, 0.05])
EXAMINATION = np.array([1.0, 0.7, 0.4])
PROBLEM = Problem([1.0], [EXAMINATION / EXAMINATION.sum()], [ATTRACTION])
CLICK_MODELS = (CASCADE, PositionBased())


def _parts_by_trying(ahead: NDArray[np.bool_], n_positions: int) -> list[set[int]]:
    """Each part the smallest set of what is left whose members are ahead of all others left."""
    left, parts = set(range(len(ahead))), list[set[int]]()
    while sum(map(len, parts)) < n_positions:
        for size in range(1, len(left) + 1):
            sets = [
                set(part)
                for part in combinations(left, size)
                if all(ahead[i, j] for i in part for j in left - set(part))
            ]
            if sets:
                parts.append(sets[0])
                left -= sets[0]
                break
    return parts


def test_the_leader_is_made_of_the_smallest_parts_that_are_ahead() -> None:
    rng = np.random.default_rng(0)
    sizes = set()
    for case in range(300):
        strength = rng.normal(size=6) * (case % 3)
        margins = np.sign(strength[:, None] - strength + rng.normal(size=(6, 6))) * rng.integers(0, 4, (6, 6))
        margins = np.triu(margins, 1) - np.triu(margins, 1).T  # ties, cycles and orders
        partition = init_partition(1, 6, 3)
        run = ManualRun(UniRank(), n_items=6, n_positions=3)
        state = run.state._replace(
            comparisons=init_comparisons(margins[None], abs(margins[None])), leader=partition
        )
        run.state = state
        run.rank()
        ends = [0, *partition.ends[0, : partition.parts[0]]]
        found = [set(partition.items[0, a:b].tolist()) for a, b in pairwise(ends)]
        assert found == _parts_by_trying(margins > 0, 3)
        sizes.add(tuple(map(len, found)))
    assert len(sizes) > 8


def _settled(margins: list[list[int]], rounds: list[list[int]], times: int, n_positions: int) -> ManualRun:
    """Play on from where items have been compared so often and the leader has led so often."""
    run = ManualRun(UniRank(), n_items=len(margins), n_positions=n_positions)
    comparisons = init_comparisons(np.array([margins], float), np.array([rounds], float))
    run.state = run.state._replace(comparisons=comparisons)
    run.rank()  # finds the leader
    run.state.leader_counts.times[0, run.state.note[1]] = times
    return run


def test_parts_are_merged_where_the_order_is_in_doubt_by_hand() -> None:
    # 1 won 2 of 10 rounds against 0, 2 won 4 of 10 against 1: 10 d(0.2, 0.5) = 1.93, 10 d(0.4, 0.5) = 0.20.
    # ln n + 3 ln ln n is 0 at n = 2, 1.38 at n = 3 and 2.37 at n = 4.
    margins = [[0, 6, 6], [-6, 0, 2], [-6, -2, 0]]
    rounds = [[0, 10, 10], [10, 0, 10], [10, 10, 0]]
    assert _settled(margins, rounds, 1, 2).possible_rankings(200) == {(0, 1)}
    # The last part gets a newcomer.
    assert _settled(margins, rounds, 2, 2).possible_rankings(200) == {(0, 1), (0, 2)}
    # From the top; then none is left.
    assert _settled(margins, rounds, 3, 2).possible_rankings(200) == {(0, 1), (1, 0)}
    assert _settled(margins, rounds, 3, 1).possible_rankings(200) == {(0,), (1,)} | {(2,)}


def test_of_items_not_shown_the_most_promising_is_tried() -> None:
    # Against 0, item 1 won 1 of 10, item 2 won 3 of 10, item 3 won 2 of 10.
    margins = [[0, 8, 4, 6], [-8, 0, 0, 0], [-4, 0, 0, 0], [-6, 0, 0, 0]]
    rounds = [[0, 10, 10, 10], [10, 0, 0, 0], [10, 0, 0, 0], [10, 0, 0, 0]]
    assert _settled(margins, rounds, 30, 1).possible_rankings(200) == {(0,), (2,)}


def test_a_part_is_shown_in_uniformly_random_order() -> None:
    run = ManualRun(UniRank(order=((1, 0),)), n_items=3, n_positions=2)
    shown = np.array([run.rank() for _ in range(3000)])
    shares = [(shown == pair).all(axis=1).mean() for pair in ([0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1])]
    # A share of 3,000 draws is off by more than 0.05 with probability below 1e-6 (Hoeffding).
    assert shares == pytest.approx([1 / 6] * 6, abs=0.05)


def test_clicked_items_win_over_others_of_their_part() -> None:
    run = ManualRun(UniRank(order=((1, 0),)), n_items=4, n_positions=2)
    ranking = run.rank()
    first, second = int(ranking[1]), int(ranking[0])
    unshown = sorted({0, 1, 2, 3} - {first, second})
    run.observe([1, 0])  # the second is clicked
    margins = run.state.comparisons.margins[0]
    assert margins[second].tolist() == [float(j != second) for j in range(4)]
    assert (margins + margins.T == 0).all()
    assert margins[np.ix_([first, *unshown], [first, *unshown])].tolist() == [[0.0] * 3] * 3
    assert run.state.is_stale[0]


def test_rewards_of_another_ranking_are_counted_but_not_compared() -> None:
    run = ManualRun(UniRank(), n_items=4, n_positions=2)
    ranking = run.rank()
    run.observe([1, 0], ranking[::-1])
    assert not run.state.comparisons.rounds.any()
    assert run.counts.rewards_by_position.sum() == 1


@pytest.mark.parametrize("click_model", CLICK_MODELS, ids=str)
def test_comparisons_are_fair_in_both_click_models(click_model: ClickModel) -> None:
    """The paper's assumption on what random order within a part does: the better item wins more often.

    All items in one part for 8,000 rounds, fixed seed.
    """
    run, compiled = (
        ManualRun(UniRank(), n_items=6, n_positions=3),
        compile_problem(PROBLEM, click_model=click_model),
    )
    users, rewards = np.random.default_rng(1), np.zeros(3)
    for _ in range(8000):
        click_model.draw(compiled, 0, run.rank(), users, rewards)
        run.observe(rewards)
        run.state.is_stale[0] = False  # the leader stays as it is
    order = np.argsort(-ATTRACTION)
    ahead = run.state.comparisons.margins[0] > 0
    assert (ahead[np.ix_(order, order)] == np.triu(np.ones((6, 6)), 1)).all()


@pytest.mark.parametrize("click_model", CLICK_MODELS, ids=str)
def test_regret_all_but_ends_in_both_click_models(click_model: ClickModel) -> None:
    """The paper's theorem: regret grows with ln T in the cascade and in the position-based model.

    Fixed seeds. The last 2,500 of 10,000 rounds lose less than 6% of what uniformly random rankings do; in 12
    runs with other seeds they lost at most 4%.
    """
    ours, blind = (
        simulate(policy, PROBLEM, 10_000, 2, seed=1, click_model=click_model, checkpoints=[7500]).regret
        for policy in (UniRank(), UniformRandom())
    )
    assert (ours[:, 1] - ours[:, 0] < 0.06 * (blind[:, 1] - blind[:, 0])).all()


def test_comparisons_survive_items_that_come_and_go() -> None:
    problem = Problem([1.0], [[0.6, 0.4]], [[0.9, 0.1, 0.5, 0.3]])
    played = play(UniRank(), problem, 200, click_model=CASCADE)
    kept = np.array([2, -1, 0])
    state = UniRank().update_items(played.state, Counts.empty(n_user_types=1, n_items=3, n_positions=2), kept)
    before = played.state.comparisons
    assert state.comparisons.margins[0, 0, 2] == before.margins[0, 2, 0] != 0
    assert state.comparisons.rounds[0, 2, 0] == before.rounds[0, 0, 2]
    assert not state.comparisons.rounds[0, 1].any()
    assert state.comparisons.wins.tolist() == [(state.comparisons.margins[0] > 0).sum(axis=1).tolist()]
