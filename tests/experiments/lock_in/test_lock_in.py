"""Lock-in: linear runs, the bound on the initial phase, and an independent measurement."""

from collections.abc import Sequence

import pandas as pd
import pytest

from banditrank.experiments._lock_in.analysis import INDEPENDENT_ROUNDS, REMEDIES, _bounds, analyse
from banditrank.experiments._lock_in.sweep import PROBLEMS
from banditrank.experiments._paper_policies import COEFFICIENTS
from banditrank.experiments._study import Check

RUNS = 100
RATES = (1.0, 0.5)


def runs(name: str, linear: int = 0, coefficient: float | None = None) -> pd.DataFrame:
    """Return runs of a policy: so many grow with exponent 0.95, the others with 0.5."""
    growth = [2**0.95] * linear + [2**0.5] * (RUNS - linear)
    return pd.DataFrame(
        {
            "coefficient": COEFFICIENTS[name] if coefficient is None else coefficient,
            "regret_halfway": 100.0,
            "regret": [100.0 * factor for factor in growth],
            "loss_estimated": [0.2] * linear + [0.0] * (RUNS - linear),
            **{f"loss_{remedy}": 0.0 for remedy in REMEDIES},
        }
    )


def phases(rate: float, rounds: Sequence[float], *, ended: bool = True) -> pd.DataFrame:
    return pd.DataFrame({"rate": rate, "initial_rounds": rounds, "ended": ended})


def around(mean: float, error: float) -> list[float]:
    """Return four numbers with a mean and a standard error of it."""
    return [mean + factor * error * 3**0.5 for factor in (-1, 1, -1, 1)]


def checks(**other: pd.DataFrame) -> list[Check]:
    """Return the checks of data that confirm the paper, with some jobs replaced."""
    data = {f"{name}-own": runs(name) for name in COEFFICIENTS}
    for problem in PROBLEMS:
        for rate, bound in zip(RATES, _bounds(problem, RATES), strict=True):
            data[f"initial-phase-{problem}-{rate:g}"] = phases(rate, around(bound / 2, 0.01 * bound))
    return list(analyse(data | other).checks)


def answers(**other: pd.DataFrame) -> list[bool | None]:
    """Return the answers of the paper's checks: four policies and two problems."""
    return [check.holds for check in checks(**other) if check.claimed_by == "paper"]


def test_all_the_papers_checks_can_hold() -> None:
    assert answers() == [True] * 6
    [measured] = [check for check in checks() if check.claimed_by == "implementation"]
    assert "an independent implementation (docs/explanation/fidelity.md)" in measured.statement
    assert measured.holds is False  # the independent measurement is beyond the bound


@pytest.mark.parametrize("number", range(4))
def test_more_than_one_linear_run_in_a_hundred_is_too_many(number: int) -> None:
    name = list(COEFFICIENTS)[number]
    expected = [place != number for place in range(6)]
    assert answers(**{f"{name}-own": runs(name, linear=1)}) == [True] * 6
    assert answers(**{f"{name}-own": runs(name, linear=2)}) == expected


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_runs_with_another_coefficient_decide_nothing(name: str) -> None:
    assert answers(**{f"{name}-other": runs(name, linear=RUNS, coefficient=64.0)}) == [True] * 6


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("number", range(2))
def test_a_phase_beyond_the_bound_at_any_click_rate_is_noticed(number: int, rate: float) -> None:
    problem = list(PROBLEMS)[number]
    [bound] = _bounds(problem, [rate])
    job = f"initial-phase-{problem}-{rate:g}"
    for ended in (True, False):  # a mean that is too small and yet beyond the bound is beyond it
        found = answers(**{job: phases(rate, around(1.01 * bound, 1.0), ended=ended)})
        assert found[4:6] == [place != number for place in range(2)]
    found = answers(**{job: phases(rate, around(0.99 * bound, 1.0), ended=False)})
    assert found[4:6] == [None if place == number else True for place in range(2)]


@pytest.mark.parametrize(
    ("mean", "error", "holds"),
    [
        (1.0, 0.01, True),
        (1.4, 0.03, True),
        (1.4, 0.04, None),
        (1.6, 0.04, None),
        (1.6, 0.03, False),
        (0.4, 0.03, False),
        (0.6, 0.03, True),
        (1.0, 0.2, None),  # too few phases to decide
    ],
)
def test_the_phase_is_compared_within_three_standard_errors(
    mean: float,
    error: float,
    holds: bool | None,  # noqa: FBT001
) -> None:
    seen = phases(1.0, around(mean * INDEPENDENT_ROUNDS, error * INDEPENDENT_ROUNDS))
    assert checks(**{"initial-phase-synthetic-1": seen})[-1].holds is holds


def test_causes_are_given_of_linear_runs_only() -> None:
    data = {f"{name}-own": runs(name) for name in COEFFICIENTS}
    data |= {f"initial-phase-{problem}-1": phases(1.0, [10.0, 20.0]) for problem in PROBLEMS}
    assert "estimate a wrong ranking" not in analyse(data).findings
    data["ucb-rank-equal-utilitarian-own"] = runs("ucb-rank-equal-utilitarian", linear=2)
    assert (
        "100% estimate a wrong ranking to be the best, and of these 100% would not" in analyse(data).findings
    )
