"""What a gap is a share of, so that the method and the answer agree on whether it is certified."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from banditrank import InvalidInputError, custom, generate, solve
from banditrank.testing.worlds import World
from banditrank.utilities.utility import Utility

BELOW = custom(
    lambda u: 20 * math.sqrt(u + 0.0625) - 10,
    derivative=lambda u: 10 / math.sqrt(u + 0.0625),
    shape="concave",
    name="from −5",
)
ABOVE = custom(
    lambda u: 3 + math.sqrt(u + 1e-3),
    derivative=lambda u: 0.5 / math.sqrt(u + 1e-3),
    shape="concave",
    name="from 3",
)
STEEP = custom(lambda u: 40 * min(u, 0.25) - 5, shape="non-concave", lipschitz=40.0, name="steep")


@pytest.mark.parametrize("gap", [1e-10, 1e-3, 0.05])
@pytest.mark.parametrize("utility", [BELOW, ABOVE, STEEP], ids=str)
def test_gaps_are_a_share_of_the_whole_value_when_a_type_gets_nothing(utility: Utility, gap: float) -> None:
    # Without the fourth type, which no ranking helps, the value is of another size: 2 instead of −0.1.
    for seed in range(5):
        problem = generate("conflict", n_user_types=3, n_items=12, n_positions=4, seed=seed)
        known = SimpleNamespace(
            arrival_rates=np.array([0.2, 0.2, 0.2, 0.4]),
            position_preferences=np.vstack([problem.position_preferences, np.ones(4)]),
            item_means=np.vstack([problem.item_means, np.zeros(12)]),
        )
        solver = "spatial" if utility is STEEP else "branch-and-bound"
        solution = solve(known, utility, solver=solver, target_gap=gap)
        best = solve(known, utility, solver="enumeration").value
        assert solution.certified
        assert best - gap * max(1.0, abs(best)) <= solution.value <= best <= solution.upper_bound + 1e-12


def test_a_utility_that_is_no_number_is_refused() -> None:
    utility = custom(
        lambda u: math.log(u) if u > 0 else math.nan,
        derivative=lambda u: 1 / u if u > 0 else math.inf,
        shape="concave",
        name="hole",
    )
    world = World(np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.array([[0.0, 0.0, 0.0], [0.2, 0.4, 0.6]]))
    with pytest.raises(InvalidInputError, match="must be a number wherever a ranking may be, got nan"):
        solve(world, utility)
