"""Summaries of demo surfaces that were switched to lotteries."""

import asyncio
from dataclasses import asdict
from typing import Any

import pytest

from banditrank import LeastExposure, Ranker, Surface, solve_lottery
from banditrank._cli.demo import _print_result
from banditrank._demo.demo import DemoResult
from banditrank._demo.regret_tracker import RegretTracker
from banditrank._demo.summary import SurfaceSummary, summarise
from banditrank._demo.surfaces import DemoSurface, home_carousel, search_ads
from banditrank.storage._memory import MemoryStore

FLOOR = {"kind": "least-exposure", "level": 0.05}


class Reports:
    """The calls of a client that a summary makes, answered by a ranker."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    async def estimates(self, _: str) -> dict[str, Any]:
        return asdict(self.ranker.estimates())

    async def equality(self, _: str) -> dict[str, Any]:
        return asdict(self.ranker.equality())

    async def surface(self, _: str) -> dict[str, Any]:
        return self.ranker.surface.to_dict()


def summary_of(surface: DemoSurface, **settings: Any) -> SurfaceSummary:
    problem, tracker = surface.problem, RegretTracker(surface)
    definition = Surface.from_dict({"name": surface.name, **surface.definition, **settings})
    with Ranker(definition, store=MemoryStore()) as ranker:
        for number in range(40):
            user_type = number % problem.n_user_types
            shown = ranker.rank(problem.user_types[user_type])
            ranking = [problem.items.index(item) for item in shown.items]
            is_clicked = number % 3 == 0
            ranker.feedback(shown.id, clicked=shown.items[0] if is_clicked else None)
            tracker.record(user_type, ranking, clicked=is_clicked)
        return asyncio.run(summarise(Reports(ranker), tracker))


def test_a_lottery_is_compared_with_the_best_lottery(capsys: pytest.CaptureFixture) -> None:
    surface = home_carousel()
    summary = summary_of(surface, treatment="equal-lottery", guarantees=[FLOOR])
    best = solve_lottery(surface.problem, "nash", guarantees=[LeastExposure(0.05)])
    (lottery,) = summary.lotteries
    assert (summary.treatment, summary.rankings, summary.regret) == ("equal-lottery", (), None)
    assert lottery.best_click_rate == pytest.approx(surface.problem.arrival_rates @ best.user_type_values)
    assert summary.optimal_click_rate == pytest.approx(lottery.best_click_rate)
    assert len(lottery.best) == len(best.rankings)
    for one in (lottery.best, lottery.learned):
        assert sum(ranking.probability for ranking in one) == pytest.approx(1)
    _print_result(DemoResult(1, 40, 0.0, "0", is_interrupted=False, surfaces=(summary,)))
    output = capsys.readouterr().out
    assert "home-carousel: equal-lottery under nash, 40 visits" in output
    assert "Learned lotteries and the best ones" in output
    assert "regret: not measured under a lottery" in output


def test_personalized_lotteries_are_compared_with_those_of_each_type() -> None:
    surface = search_ads()
    summary = summary_of(surface, guarantees=[FLOOR])
    best = solve_lottery(surface.problem, guarantees=[LeastExposure(0.05)], treatment="personalized")
    assert [one.user_type for one in summary.lotteries] == ["male", "female"]
    rates = [one.best_click_rate for one in summary.lotteries]
    assert rates == pytest.approx(best.user_type_values)
    assert summary.optimal_click_rate == pytest.approx(best.value)
