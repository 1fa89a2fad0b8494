import numpy as np
import pytest
from helpers.baseline_runs import ManualRun, play

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.policies.baselines._bubble_rank import BubbleRank


def _wrong_pairs(ranking: list[int]) -> int:
    """Return how many pairs are in the wrong order, where lower numbers are better."""
    return sum(before > after for place, before in enumerate(ranking) for after in ranking[place + 1 :])


def test_neighbours_are_other_ones_in_odd_and_even_rounds() -> None:
    run = ManualRun(BubbleRank(), n_items=4, n_positions=4)
    assert run.possible_rankings() == {(0, 1, 2, 3), (0, 2, 1, 3)}  # round 1: second and third
    run.observe([0, 0, 0, 0])
    assert run.possible_rankings() == {(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)}
    run.observe([0, 0, 0, 0])
    assert run.possible_rankings() == {(0, 1, 2, 3), (0, 2, 1, 3)}


def test_neighbours_change_places_once_the_lead_exceeds_the_bound() -> None:
    """With δ = 10⁻⁴ and n differences, all in favour, n > 2 √(9.21 n) from n = 37 on."""
    run = ManualRun(BubbleRank(horizon=10), n_items=2, n_positions=2)
    for clicks in range(1, 38):
        run.show([0, 1])
        run.observe([0, 0])  # odd rounds have no pair
        assert run.possible_rankings() == {(0, 1), (1, 0)}
        run.show([0, 1])
        run.observe([0, 1])
        assert run.state.lists.items[0].tolist() == ([0, 1] if clicks < 37 else [1, 0])
    run.observe([0, 0])
    assert run.possible_rankings() == {(1, 0)}


def test_only_pairs_of_the_round_are_compared() -> None:
    run = ManualRun(BubbleRank(), n_items=4, n_positions=4)
    run.show([0, 2, 1, 3])
    run.observe([1, 1, 0, 1])
    assert np.argwhere(run.state.lists.wins[0]).tolist() == [[2, 1]]
    run.show([1, 0, 2, 3])
    run.observe([0, 1, 1, 1])
    assert np.argwhere(run.state.lists.wins[0]).tolist() == [[0, 1], [2, 1]]


def test_what_is_shown_is_never_much_worse_than_the_base_list() -> None:
    """Its safety: at most K/2 more pairs in the wrong order than in the base list, in all rounds.

    With probability at least 1 − √δ K² n, here 1 − 36 · 4,000 / 4,000². Random rankings break the rule.
    """
    means, looks = np.array([0.95, 0.5, 0.4, 0.3, 0.2, 0.1]), np.array([0.9, 0.7, 0.5, 0.4, 0.3, 0.2])
    base = (1, 0, 2, 3, 5, 4)
    run = ManualRun(BubbleRank(horizon=4000, base_list=(base,)), n_items=6, n_positions=6)
    rng = np.random.default_rng(1)
    worst, worst_random = 0, 0
    for _ in range(4000):
        shown = run.rank()
        worst = max(worst, _wrong_pairs(shown.tolist()))
        worst_random = max(worst_random, _wrong_pairs(rng.permutation(6).tolist()))
        run.observe(rng.random(6) < means[shown] * looks)  # several may be clicked
    allowed = _wrong_pairs(list(base)) + 3
    assert worst <= allowed < worst_random
    assert run.state.lists.items[0, :2].tolist() == [0, 1]  # and it has got better


@pytest.mark.parametrize("n_positions", [1, 2, 3])
def test_hidden_items_appear_in_the_last_place_only_and_replace_it_when_better(n_positions: int) -> None:
    means = np.array([[0.05, 0.1, 0.15, 0.9, 0.6, 0.35]])
    looks = np.array([0.5, 0.3, 0.2])[:n_positions]
    problem = Problem([1.0], [looks / looks.sum()], means)
    policy = BubbleRank(horizon=1000)
    run = ManualRun(policy, n_items=6, n_positions=n_positions)
    ever = set()
    for _ in range(2):
        for ranking in run.possible_rankings(200):
            assert set(ranking[:-1]) <= set(range(n_positions))
            ever.add(ranking[-1])
        run.observe(np.zeros(n_positions))
    assert ever >= set(range(n_positions, 6))
    state = play(policy, problem, 200_000).state
    assert state.lists.items[0, :n_positions].tolist() == [3, 4, 5][:n_positions]


def test_of_the_last_and_its_rival_the_one_shown_wins_if_clicked() -> None:
    run = ManualRun(BubbleRank(base_list=((2,),)), n_items=3, n_positions=1)
    run.observe([0])  # odd rounds have no pair
    for _ in range(400):
        run.state.lists.wins[:] = 0
        shown = int(run.rank()[0])
        rival = int(run.state.note[2])
        run.observe([1])
        winner, loser = (2, rival) if shown == 2 else (rival, 2)
        assert shown in {2, rival}
        assert np.argwhere(run.state.lists.wins[0]).tolist() == [[winner, loser]]
        run.rank()
        run.observe([1])
        assert run.state.lists.wins[0].sum() == 1


def test_a_hidden_item_known_to_be_better_takes_the_last_place_wherever_it_hides() -> None:
    run = ManualRun(BubbleRank(), n_items=5, n_positions=2)
    run.state.lists.wins[0, 4, 1] = run.state.lists.wins[0, 4, 3] = 1000
    run.observe([0, 0])
    assert run.state.lists.items[0].tolist() == [0, 4, 2, 3, 1]


def test_an_item_moves_up_one_place_a_round() -> None:
    run = ManualRun(BubbleRank(), n_items=3, n_positions=3)
    run.state.lists.wins[0, 2, :2] = 1000
    for expected in ([0, 2, 1], [2, 0, 1], [2, 0, 1]):
        run.observe([0, 0, 0])
        assert run.state.lists.items[0].tolist() == expected


def test_the_base_list_is_the_one_given_or_that_of_the_counts() -> None:
    counts = Counts.from_arrays([[[10], [10], [10]]] * 2, [[[3], [4], [3]], [[1], [0], [2]]], [30, 30])
    assert BubbleRank().init_state(counts, None).lists.items.tolist() == [[1, 0, 2], [2, 0, 1]]
    assert BubbleRank(base_list=((2, 1),)).init_state(counts, None).lists.items.tolist() == [[2, 1, 0]] * 2
    assert BubbleRank(base_list=((2,), (1,))).init_state(counts, None).lists.items.tolist() == [
        [2, 0, 1],
        [1, 0, 2],
    ]
    assert BubbleRank(base_list=((2,),)).describe()["base_list"] == [[2]]


@pytest.mark.parametrize("base", [((0, 0),), ((-1, 0),), ((),), ((0,),), ((0, 9),), ((0, 1),) * 3])
def test_a_base_list_must_be_one(base: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InvalidInputError, match="base_list"):
        BubbleRank(base_list=base).init_state(Counts.empty(n_user_types=2, n_items=4, n_positions=2), None)


def test_what_is_known_survives_items_that_come_and_go() -> None:
    policy = BubbleRank(base_list=((3, 1, 0, 2),))
    run = ManualRun(policy, n_items=4, n_positions=2)
    run.state.lists.wins[0, 1, 0] = 5.0
    kept = np.array([-1, 2, 1, 0])  # 3 left, 0 is new
    counts = Counts.empty(n_user_types=1, n_items=4, n_positions=2)
    state = policy.update_items(run.state, counts, kept)
    assert state.lists.items[0].tolist() == [2, 3, 1, 0]
    assert np.argwhere(state.lists.wins[0]).tolist() == [[2, 3]]
