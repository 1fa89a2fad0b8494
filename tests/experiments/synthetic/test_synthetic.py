"""Figure 2: sub-linear regret, and significant differences between policies."""

import numpy as np
import pandas as pd
import pytest

from banditrank.experiments._study import Check
from banditrank.experiments._synthetic.analysis import POLICIES, analyse
from banditrank.experiments._synthetic.sweep import BASELINE, EQUAL

HORIZON, RUNS = 1000, 8
PROPOSED = [name for name in POLICIES if name != BASELINE]
FINAL = {"greedy-rank-equal-utilitarian": 50.0, "ucb-rank-equal-nash": 50.0, BASELINE: 400.0}  # others 100


def frame(final: float, exponent: float = 0.5, spread: float = 0.1) -> pd.DataFrame:
    factors = np.linspace(1 - spread, 1 + spread, RUNS)
    rows = [
        (number, t, factor * final * (t / HORIZON) ** exponent)
        for number, factor in enumerate(factors)
        for t in (HORIZON // 10, HORIZON)
    ]
    return pd.DataFrame(rows, columns=["replication", "round", "regret"])


def checks(**other: pd.DataFrame) -> list[Check]:
    """Return the checks of data that confirm all of them, with some jobs replaced."""
    data = {name: frame(FINAL.get(name, 100.0), 1.0 if name == BASELINE else 0.5) for name in POLICIES}
    data |= {
        f"other-problems-{name}": pd.DataFrame({"regret": [FINAL.get(name, 100.0)] * 3}) for name in EQUAL
    }
    return list(analyse(data | {name.replace("_", "-"): frame for name, frame in other.items()}).checks)


def answers(**other: pd.DataFrame) -> list[bool | None]:
    """Return whether all are sub-linear, the baseline worse, GreedyRank better, and worse by Nash's."""
    return [check.holds for check in checks(**other)]


def test_all_checks_can_hold() -> None:
    assert answers() == [True, True, True, True]
    assert [check.claimed_by for check in checks()] == ["paper", "implementation", "paper", "paper"]
    assert "less in 3 of 3 other problems" in checks()[2].evidence
    assert "less in 0 of 3 other problems" in checks()[3].evidence


@pytest.mark.parametrize("name", PROPOSED)
def test_one_linear_policy_is_too_many(name: str) -> None:
    assert answers(**{name: frame(FINAL.get(name, 100.0), 0.91)})[0] is False
    assert answers(**{name: frame(FINAL.get(name, 100.0), 0.89)})[0] is True


@pytest.mark.parametrize(
    ("baseline", "holds"),
    [
        (frame(400.0, 0.89), False),  # not linear
        (frame(50.0, 1.0), False),  # below the others
        (frame(100.0, 1.0), None),  # like the others
    ],
)
def test_the_baseline_is_linear_and_above_the_others(baseline: pd.DataFrame, holds: bool | None) -> None:  # noqa: FBT001
    assert answers(**{BASELINE: baseline}) == [True, holds, True, True]


def test_greedy_rank_is_better_by_one_criterion_and_worse_by_the_other() -> None:
    assert answers(greedy_rank_equal_utilitarian=frame(200.0)) == [True, True, False, True]
    assert answers(greedy_rank_equal_nash=frame(25.0)) == [True, True, True, False]


def test_a_difference_that_may_be_chance_decides_nothing() -> None:
    close = {
        "greedy_rank_equal_utilitarian": frame(95.0, spread=0.5),
        "greedy_rank_equal_nash": frame(55.0, spread=0.5),
    }
    assert answers(**close) == [True, True, None, None]
    for check in checks(**close)[2:]:
        assert "at the 5% level" in check.statement
        assert ", not decided; less in" in check.evidence
