"""Users of the demo are drawn from their seed, and come, look, click and report as their world says."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, kstest

from banditrank.demo.surfaces import KnownSurface, home_carousel, search_ads
from banditrank.demo.users import LATE_SHARE, LATEST, NEVER_SHARE, Visit, users_of

NUMBER = 20_000
LEAST_P = 0.001  # the share of right users that each check would refuse, if its seed were drawn anew


def users(known: KnownSurface, **settings: int) -> list[Visit]:
    return list(islice(users_of(known.world, **{"seed": 3, **settings}), NUMBER))


def test_the_same_seed_gives_the_same_users() -> None:
    assert users(search_ads()) == users(search_ads())


@pytest.mark.parametrize("other", [{"seed": 4}, {"stream": 1}])
def test_another_seed_or_stream_gives_others(other: dict[str, int]) -> None:
    pairs = zip(users(search_ads()), users(search_ads(), **other), strict=True)
    assert not any(one.reluctance == two.reluctance for one, two in pairs)


@pytest.mark.parametrize("known", [search_ads(), home_carousel()], ids=lambda known: known.name)
def test_users_are_as_their_world_says(known: KnownSurface) -> None:
    world, came = known.world, users(known)
    types = np.bincount([visit.user_type for visit in came], minlength=world.n_user_types)
    assert chisquare(types, NUMBER * world.arrival_rates).pvalue > LEAST_P
    for i, number in enumerate(types):
        looks = np.bincount([visit.look for visit in came if visit.user_type == i])
        assert chisquare(looks, number * world.position_preferences[i]).pvalue > LEAST_P
    assert kstest([visit.reluctance for visit in came], "uniform").pvalue > LEAST_P
    assert kstest([visit.pause for visit in came], "expon").pvalue > LEAST_P


def test_few_reports_are_late_or_lost() -> None:
    fates = [visit.report_after for visit in users(home_carousel())]
    late = [fate for fate in fates if fate]
    assert binomtest(fates.count(None), NUMBER, NEVER_SHARE).pvalue > LEAST_P
    assert binomtest(len(late), NUMBER, LATE_SHARE).pvalue > LEAST_P
    assert 1 <= min(late) < max(late) <= LATEST


def test_who_is_less_reluctant_than_an_item_is_liked_clicks_it() -> None:
    visit = Visit(user_type=0, pause=1.0, look=0, reluctance=0.4, report_after=0)
    assert (visit.clicks(0.5), visit.clicks(0.3), visit.clicks(0.0)) == (True, False, False)
