"""Errors of solver certificates are found."""

import re
from dataclasses import replace

import numpy as np
import pytest

from banditrank import NASH, solve
from banditrank.testing._certificates import find_certificate_error
from banditrank.testing._solver_problems import SolverProblem

PROBLEM = SolverProblem(np.ones(1), np.ones((1, 1)), np.array([[0.1, 0.5]]), np.array([0.0, 0.1]))
BEST = float(np.log(0.5) + 0.1)
GAP = 1e-3


def certificate_error(best: float = BEST, **changes: float) -> str | None:
    solution = replace(solve(PROBLEM, NASH, bonuses=PROBLEM.bonuses, target_gap=GAP), **changes)
    return find_certificate_error(solution, PROBLEM, NASH, best=best, target_gap=GAP)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"value": BEST + 1e-15, "upper_bound": BEST - 1e-15},  # rounding
        {"value": BEST - 0.1, "gap": 0.1, "is_certified": False},
        {"upper_bound": np.inf, "gap": np.inf, "is_certified": False},
        {"best": -np.inf, "value": -np.inf, "upper_bound": -np.inf},
        {"best": -np.inf, "value": -np.inf, "upper_bound": 0.0, "gap": np.inf, "is_certified": False},
    ],
)
def test_a_correct_certificate_has_no_error(changes: dict) -> None:
    assert certificate_error(**changes) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"upper_bound": BEST - 1e-9}, "bound .* is below the best"),
        ({"best": -np.inf}, "value .* is above the best -inf"),
        ({"value": BEST + 1e-9, "upper_bound": BEST + 1e-9}, "value .* is above the best"),
        ({"value": BEST - 0.1}, "gap 0.0 of value"),
        ({"value": BEST - 0.1, "gap": 0.09, "is_certified": False}, "gap 0.09 of value"),
        ({"upper_bound": BEST + 0.1}, "gap 0.0 of value"),
        ({"upper_bound": np.inf, "gap": 1.0, "is_certified": False}, "understates the distance inf"),
        ({"best": -np.inf, "value": -np.inf, "upper_bound": 0.0}, "understates the distance inf"),
        ({"upper_bound": BEST + 0.1, "gap": 0.2}, "certified is True with gap 0.2"),
        ({"is_certified": False}, "certified is False with gap 0.0"),
        ({"value": np.nan}, "value nan"),
        ({"upper_bound": np.nan}, "bound nan"),
        ({"gap": np.nan}, "gap nan"),
    ],
)
def test_an_incorrect_certificate_has_an_error(changes: dict, words: str) -> None:
    assert re.search(words, certificate_error(**changes) or "nothing")
