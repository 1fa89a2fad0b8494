"""Visits of the demo are reproducible and follow the distributions of their problem."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, kstest

from banditrank._demo.surfaces import DemoSurface, home_carousel, search_ads
from banditrank._demo.visits import LATE_SHARE, LOST_SHARE, MAX_REPORT_DELAY, Visit, generate_visits

N_VISITS = 20_000
MIN_P_VALUE = 0.001  # rate of false alarms of each check, over seeds


def visits(surface: DemoSurface, **settings: int) -> list[Visit]:
    return list(islice(generate_visits(surface.problem, **{"seed": 3, **settings}), N_VISITS))


def test_the_same_seed_gives_the_same_visits() -> None:
    assert visits(search_ads()) == visits(search_ads())


@pytest.mark.parametrize("other", [{"seed": 4}, {"stream": 1}])
def test_another_seed_or_stream_gives_others(other: dict[str, int]) -> None:
    pairs = zip(visits(search_ads()), visits(search_ads(), **other), strict=True)
    assert not any(one.click_threshold == two.click_threshold for one, two in pairs)


@pytest.mark.parametrize("surface", [search_ads(), home_carousel()], ids=lambda surface: surface.name)
def test_visits_follow_the_problem(surface: DemoSurface) -> None:
    problem, drawn = surface.problem, visits(surface)
    types = np.bincount([visit.user_type for visit in drawn], minlength=problem.n_user_types)
    assert chisquare(types, N_VISITS * problem.arrival_rates).pvalue > MIN_P_VALUE
    for i, n_of_type in enumerate(types):
        positions = np.bincount([visit.examined_position for visit in drawn if visit.user_type == i])
        assert chisquare(positions, n_of_type * problem.position_preferences[i]).pvalue > MIN_P_VALUE
    assert kstest([visit.click_threshold for visit in drawn], "uniform").pvalue > MIN_P_VALUE
    assert kstest([visit.relative_interval for visit in drawn], "expon").pvalue > MIN_P_VALUE


def test_few_reports_are_late_or_lost() -> None:
    delays = [visit.report_delay for visit in visits(home_carousel())]
    late = [delay for delay in delays if delay]
    assert binomtest(delays.count(None), N_VISITS, LOST_SHARE).pvalue > MIN_P_VALUE
    assert binomtest(len(late), N_VISITS, LATE_SHARE).pvalue > MIN_P_VALUE
    assert 1 <= min(late) < max(late) <= MAX_REPORT_DELAY


def test_a_user_clicks_an_item_whose_mean_exceeds_the_threshold() -> None:
    visit = Visit(
        user_type=0, relative_interval=1.0, examined_position=0, click_threshold=0.4, report_delay=0
    )
    assert (visit.clicks(0.5), visit.clicks(0.3), visit.clicks(0.0)) == (True, False, False)
