"""The theorems' bounds, against values computed by hand and gaps from enumerating all rankings."""

import math
from itertools import permutations

import numpy as np
import pytest

from banditrank import Problem, kdd2012, make_problem
from banditrank.experiments._regret_order import bounds
from banditrank.model._values import user_type_values

# N = M = K = 2. Type 1 gets .75·.8 + .25·.4 = .7 from its best ranking and .25·.8 + .75·.4 = .5 from the
# other; type 2 gets .5·.5 + .5·.9 = .7 from both.
SMALL = Problem([0.25, 0.75], [[0.75, 0.25], [0.5, 0.5]], [[0.8, 0.4], [0.5, 0.9]])
LEANING = Problem([0.25, 0.75], [[0.75, 0.25], [0.6, 0.4]], [[0.8, 0.4], [0.5, 0.9]])
T = np.array([100, 10_000])
INITIAL = 4 / (0.25 * 0.8) + 4 / (0.25 * 0.4) + 4 / (0.75 * 0.5) + 4 / (0.75 * 0.9)


def test_constants_of_a_small_problem() -> None:
    assert bounds.initial_phase(SMALL) == pytest.approx(INITIAL)
    assert bounds.displays_per_examination(SMALL) == 4
    # Type 2 of the leaning problem: .6·.9 + .4·.5 = .74 and .6·.5 + .4·.9 = .66.
    assert bounds.personalized_gaps(LEANING) == pytest.approx([0.2, 0.08])
    # All users: .25·.7 + .75·.66 = .67 and .25·.5 + .75·.74 = .68.
    assert bounds.equal_gap(LEANING) == pytest.approx(0.01)


def test_bounds_of_a_small_problem() -> None:
    for t, first, second, third, fourth in zip(
        T.tolist(),
        bounds.theorem_1(LEANING, T),
        bounds.theorem_2(LEANING, T),
        bounds.theorem_3(LEANING, T),
        bounds.theorem_4(LEANING, T),
        strict=True,
    ):
        log = math.log(t)
        assert first == pytest.approx(
            4 * math.sqrt(t)
            + 8 * 4 * 4 / 0.5 * log * (math.sqrt(0.25 * t) / 0.4 + math.sqrt(0.75 * t) / 0.5)
            + INITIAL
        )
        assert second == pytest.approx(
            2 * 4 * 4 * (math.sqrt(0.25 * t * log) / 0.2 + math.sqrt(0.75 * t * log) / 0.08) + INITIAL
        )
        assert third == pytest.approx(4 * math.sqrt(t) + 8 * 4 * 8 / 0.5 / 0.4 * math.sqrt(t) * log + INITIAL)
        assert fourth == pytest.approx(2 * 4 * 16 * math.sqrt(t * log) / 0.01 + INITIAL + 2 * log)


RANDOM = [make_problem("random", n_user_types=3, n_items=5, n_positions=3, seed=seed) for seed in range(5)]


@pytest.mark.parametrize("problem", [kdd2012(), *RANDOM], ids=lambda problem: problem.name)
def test_gaps_are_those_of_all_rankings(problem: Problem) -> None:
    values = np.array(
        [
            user_type_values(problem, np.array(ranking))
            for ranking in permutations(range(problem.n_items), problem.n_positions)
        ]
    )
    personalized = [np.diff(np.sort(column))[-1] for column in values.T]
    assert bounds.personalized_gaps(problem) == pytest.approx(personalized)
    assert bounds.equal_gap(problem) == pytest.approx(np.diff(np.sort(values @ problem.arrival_rates))[-1])


def test_rankings_that_are_as_good_leave_no_gap() -> None:
    tied = Problem([1.0], [[0.5, 0.5]], [[0.9, 0.6, 0.2]])
    assert bounds.personalized_gaps(tied) == pytest.approx([0.5 * (0.6 - 0.2)])
