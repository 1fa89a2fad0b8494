"""Figure 3: replications that find the optimum, and sub-linear regret."""

import pandas as pd
import pytest

from banditrank.experiments._kdd2012.analysis import MIN_FOUND_RATE, MIN_OPTIMAL_RATE, analyse
from banditrank.experiments._paper_policies import POLICIES

HORIZON, RUNS = 1000, 100


def frame(exponent: float = 0.5, found: int = RUNS, rate: float = 0.95) -> pd.DataFrame:
    """Return curves of a power of the round; some show the optimum at a rate, in the second half only."""
    rows = [
        (number, t, (t / HORIZON) ** exponent, shown * (t - HORIZON // 2) / t)
        for number in range(RUNS)
        for shown in [rate if number < found else 0.0]
        for t in (HORIZON // 2, HORIZON)
    ]
    return pd.DataFrame(rows, columns=["replication", "round", "regret", "optimal_rate"])


def frames(**other: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {
        **dict.fromkeys(POLICIES, frame()),
        **{name.replace("_", "-"): data for name, data in other.items()},
    }


def answers(data: dict[str, pd.DataFrame]) -> tuple[list[bool], list[bool]]:
    """Return which policies find the optimum, and which are sub-linear."""
    holds = [check.holds for check in analyse(data).checks]
    return holds[: len(POLICIES)], holds[len(POLICIES) :]


def test_all_checks_can_hold() -> None:
    assert answers(frames()) == ([True] * 4, [True] * 4)
    assert analyse(frames()).agreement == "agrees"


@pytest.mark.parametrize("number", range(4))
def test_a_policy_of_which_too_few_runs_find_the_optimum_fails(number: int) -> None:
    name = list(POLICIES)[number]
    expected = [place != number for place in range(4)]
    few = round(MIN_FOUND_RATE * RUNS) - 1
    assert answers({**frames(), name: frame(found=few)}) == (expected, [True] * 4)
    assert answers({**frames(), name: frame(found=few + 1)}) == ([True] * 4, [True] * 4)
    assert answers({**frames(), name: frame(rate=MIN_OPTIMAL_RATE - 0.01)}) == (expected, [True] * 4)


@pytest.mark.parametrize("number", range(4))
def test_a_policy_whose_regret_is_linear_fails(number: int) -> None:
    name = list(POLICIES)[number]
    expected = [place != number for place in range(4)]
    assert answers({**frames(), name: frame(exponent=0.91)}) == ([True] * 4, expected)
    assert answers({**frames(), name: frame(exponent=0.89)}) == ([True] * 4, [True] * 4)


def test_nearly_found_is_not_found() -> None:
    costly = frame(found=0).assign(regret=lambda data: data["regret"] * 100)
    greedy, ucb = "greedy-rank-equal-utilitarian", "ucb-rank-equal-utilitarian"
    result = analyse({**frames(), ucb: frame(found=0), greedy: costly})
    assert result.metrics["found"] == {**dict.fromkeys(POLICIES, 1.0), ucb: 0.0, greedy: 0.0}
    assert result.metrics["nearly_found"] == {**dict.fromkeys(POLICIES, 1.0), greedy: 0.0}
    assert result.agreement == "partly"
