"""The problem of simulated users: its regret is that of the simulator."""

import numpy as np
import pytest
from helpers.live import ITEMS, TYPES, a_surface

from banditrank import Problem
from banditrank.dashboard._surface_problem import SurfaceProblem
from banditrank.dashboard._time_series import TimeSeries
from banditrank.simulation._regret import equal_regret, personalized_regret
from banditrank.storage._cells import decode_cells, encode_cells
from banditrank.storage._records import NOT_CLICKED, Event, Impression, pack_ranking
from banditrank.utilities._utility import NASH

WIDTH = 1000  # milliseconds
START = 10**12


def shown_event(user_type: int, items: tuple[int, ...]) -> Event:
    return Event(Impression(1, b"", pack_ranking(user_type, items)), NOT_CLICKED)


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_regret_is_that_of_the_simulator_and_none_if_the_problem_is_unknown(treatment: str) -> None:
    rng = np.random.default_rng(5)
    problem = Problem(
        [0.3, 0.7], rng.dirichlet([3, 3], 2), rng.random((2, 5)), user_types=TYPES, items=ITEMS
    )  # fmt: skip
    rankings = [tuple(rng.permutation(5)[:2].tolist()) for _ in range(40)]
    user_types = rng.integers(2, size=40).tolist()
    time_series = TimeSeries(WIDTH, n_user_types=2)
    time_series.add(START, encode_cells([shown_event(0, (0, 1))]))
    assert time_series.closed_buckets(START + 1000).cumulative_regret is None
    utility = "utilitarian" if treatment == "personalized" else "nash"
    time_series.regret_of = SurfaceProblem(problem, a_surface(treatment=treatment, utility=utility)).regret
    for number, (user_type, ranking) in enumerate(zip(user_types, rankings, strict=True), start=1):
        time_series.add(START + number * WIDTH, encode_cells([shown_event(user_type, ranking)]))
    regret = time_series.closed_buckets(START + 41 * WIDTH).cumulative_regret[1:]
    expected = (
        personalized_regret(problem, user_types, rankings)
        if treatment == "personalized"
        else equal_regret(problem, rankings, NASH)
    )
    assert regret == pytest.approx(expected)


def test_the_regret_of_rankings_in_one_commit_is_the_sum_of_their_regrets() -> None:
    problem = Problem(
        [0.5, 0.5], [[0.6, 0.4]] * 2, np.random.default_rng(1).random((2, 5)), user_types=TYPES, items=ITEMS
    )
    surface_problem = SurfaceProblem(problem, a_surface(treatment="equal", utility="nash"))
    events = [
        shown_event(0, (0, 1)),
        shown_event(1, (0, 1)),
        shown_event(1, (0, 1)),
        shown_event(0, (1, 2)),
    ]
    regrets = [surface_problem.regret(decode_cells(encode_cells([event]))) for event in events]
    assert surface_problem.regret(decode_cells(encode_cells(events))) == pytest.approx(sum(regrets))


def test_the_regret_of_a_ranking_without_value_is_finite() -> None:
    problem = Problem([0.5, 0.5], [[0.6, 0.4]] * 2, [[0.5, 0.4, 0, 0, 0]] * 2, user_types=TYPES, items=ITEMS)
    surface_problem = SurfaceProblem(problem, a_surface(treatment="equal", utility="nash"))
    assert 0 < surface_problem.regret(decode_cells(encode_cells([shown_event(0, (3, 4))]))) < 100
