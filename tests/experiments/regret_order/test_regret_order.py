"""Theorems 1 to 4: regret below the bound, and of the stated order."""

import numpy as np
import pandas as pd
import pytest

from banditrank import kdd2012
from banditrank.experiments._regret_order.analysis import ORDERS, THEOREMS, analyse
from banditrank.experiments._regret_order.sweep import SIZES

ROUNDS = np.unique(np.geomspace(10, 100_000, 21).astype(np.int64))


def frame(regret: np.ndarray) -> pd.DataFrame:
    """Return two replications, whose mean is given."""
    rows = [
        (number, t, factor * value)
        for number, factor in enumerate((0.5, 1.5))
        for t, value in zip(ROUNDS, regret, strict=True)
    ]
    return pd.DataFrame(rows, columns=["replication", "round", "regret"])


def multiple(name: str, order: str = "ln t", share: float = 0.5) -> pd.DataFrame:
    """Return regret of an order that reaches a share of the theorem's bound at the end."""
    curve = ORDERS[order](ROUNDS.astype(np.float64))
    last = THEOREMS[name].bound(kdd2012(), ROUNDS)[-1]
    return frame(share * last * curve / curve[-1])


@pytest.fixture(scope="module")
def sizes() -> dict[str, pd.DataFrame]:
    regrets = dict(zip(SIZES, (10.0, 20.0, 30.0, 40.0), strict=True))
    return {
        f"{size}-{name}": pd.DataFrame({"problem": [0], "round": [100], "regret": [regret]})
        for size, regret in regrets.items()
        for name in THEOREMS
    }


def answers(data: dict[str, pd.DataFrame]) -> list[bool | None]:
    """Return for each theorem whether the bound and whether the order holds."""
    return [check.holds for check in analyse(data).checks]


def frames(sizes: dict[str, pd.DataFrame], **other: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {**sizes, **{name: multiple(name, share=0.01) for name in THEOREMS}, **other}


def test_all_checks_can_hold(sizes: dict[str, pd.DataFrame]) -> None:
    result = analyse(frames(sizes))
    assert [check.holds for check in result.checks] == [True] * 8
    assert result.agreement == "agrees"
    assert result.findings.startswith("All of the 4 bounds hold")
    assert {metrics["best_order"] for metrics in result.metrics.values()} == {"ln t"}
    assert all(cell.startswith(("2.00", "3.00", "4.00")) for row in result.tables[1].rows for cell in row[1:])


@pytest.mark.parametrize("number", range(4))
def test_a_bound_is_broken_at_any_checkpoint(number: int, sizes: dict[str, pd.DataFrame]) -> None:
    name = list(THEOREMS)[number]
    bound = THEOREMS[name].bound(kdd2012(), ROUNDS)
    over = 0.01 * bound
    over[5] = 1.01 * bound[5]
    expected = [place != 2 * number for place in range(8)]
    assert answers(frames(sizes, **{name: frame(over)})) == expected
    assert answers(frames(sizes, **{name: frame(np.where(over > bound, 0.99 * bound, over))})) == [True] * 8


@pytest.mark.parametrize("number", range(4))
def test_regret_that_grows_faster_than_the_order_is_noticed(
    number: int, sizes: dict[str, pd.DataFrame]
) -> None:
    name = list(THEOREMS)[number]
    expected = [place != 2 * number + 1 for place in range(8)]
    assert answers(frames(sizes, **{name: multiple(name, "t", 1e-3)})) == expected
    own = multiple(name, THEOREMS[name].order, 1e-3)
    own.loc[own["round"] == ROUNDS[-1], "regret"] *= 0.999  # to be on one side of rounding
    assert answers(frames(sizes, **{name: own})) == [True] * 8


def test_growth_that_chance_may_explain_is_not_decided(sizes: dict[str, pd.DataFrame]) -> None:
    name = "theorem-1"
    data = multiple(name, THEOREMS[name].order, 1e-3)
    last = data["round"] == ROUNDS[-1]
    data.loc[last & (data["replication"] == 0), "regret"] *= 1.6
    data.loc[last & (data["replication"] == 1), "regret"] *= 0.9
    check = analyse(frames(sizes, **{name: data})).checks[1]
    assert check.holds is None
    assert "95% bootstrap interval" in check.statement
    assert check.evidence.endswith("changes by a factor of 1.07 (0.90 to 1.60, not decided)")


def test_large_factors_are_written_without_an_exponent(sizes: dict[str, pd.DataFrame]) -> None:
    result = analyse(frames(sizes, **{"theorem-2": multiple("theorem-2", share=1 / 5000)}))
    assert "e+" not in " ".join([result.findings, *(check.evidence for check in result.checks)])
