import re
from dataclasses import replace

import numpy as np
import pytest

from banditrank import NASH, solve
from banditrank.testing.honesty import complaint
from banditrank.testing.worlds import World

WORLD = World(np.ones(1), np.ones((1, 1)), np.array([[0.1, 0.5]]), np.array([0.0, 0.1]))
BEST = float(np.log(0.5) + 0.1)
GAP = 1e-3


def judged(best: float = BEST, **changes: float) -> str | None:
    solution = replace(solve(WORLD, NASH, bonuses=WORLD.bonuses, target_gap=GAP), **changes)
    return complaint(solution, WORLD, NASH, best=best, target_gap=GAP)


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
def test_a_correct_solution_has_no_complaint(changes: dict) -> None:
    assert judged(**changes) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"upper_bound": BEST - 1e-9}, "bound .* below the best"),
        ({"best": -np.inf}, "value .* above the best -inf"),
        ({"value": BEST + 1e-9, "upper_bound": BEST + 1e-9}, "value .* above the best"),
        ({"value": BEST - 0.1}, "gap 0.0 for a value"),
        ({"value": BEST - 0.1, "gap": 0.09, "is_certified": False}, "gap 0.09 for a value"),
        ({"upper_bound": BEST + 0.1}, "gap 0.0 for a value"),
        ({"upper_bound": np.inf, "gap": 1.0, "is_certified": False}, "that may miss inf"),
        ({"best": -np.inf, "value": -np.inf, "upper_bound": 0.0}, "that may miss inf"),
        ({"upper_bound": BEST + 0.1, "gap": 0.2}, "certified is True with gap 0.2"),
        ({"is_certified": False}, "certified is False with gap 0.0"),
        ({"value": np.nan}, "value nan"),
        ({"upper_bound": np.nan}, "bound nan"),
        ({"gap": np.nan}, "gap nan"),
    ],
)
def test_an_incorrect_solution_is_reported(changes: dict, words: str) -> None:
    assert re.search(words, judged(**changes) or "nothing")
