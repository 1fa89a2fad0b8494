"""The cause of a lock-in follows from the final counts."""

import numpy as np
import pytest

from banditrank import Counts, Problem, simulate
from banditrank.experiments._lock_in.estimate_losses import losses_by_estimator
from banditrank.policies._greedy_rank import GreedyRank

# Users examine the first position most often, and item 1 is the best.
PROBLEM = Problem([1.0], [[0.8, 0.2]], [[0.6, 0.4, 0.3, 0.3, 0.3]])


def counts(rare_clicks: tuple[float, float]) -> Counts:
    """Return counts that are as expected of items 1 and 2, and a few displays of the others."""
    displays = np.array([[[1000.0, 1000.0], [1000.0, 1000.0], [5.0, 5.0], [5.0, 5.0], [5.0, 5.0]]])
    rewards = PROBLEM.item_means[:, :, None] * PROBLEM.position_preferences[:, None, :] * displays
    rewards[0, 2:] = rare_clicks
    return Counts.from_arrays(displays, rewards, [2015])


@pytest.mark.parametrize("equal", [True, False])
def test_counts_as_expected_lead_to_the_best_ranking(equal: bool) -> None:  # noqa: FBT001
    expected = counts((5 * 0.3 * 0.8, 5 * 0.3 * 0.2))
    assert losses_by_estimator(PROBLEM, expected, equal=equal) == pytest.approx(
        dict.fromkeys(("estimated", "known_positions", "without_rare", "likelihood"), 0.0)
    )


@pytest.mark.parametrize("equal", [True, False])
def test_rarely_shown_items_distort_the_position_preferences(equal: bool) -> None:  # noqa: FBT001
    unlucky = counts((0.0, 1.0))  # one click each, all at the position that is rarely examined
    losses = losses_by_estimator(PROBLEM, unlucky, equal=equal)
    swapped = 1 - (0.8 * 0.4 + 0.2 * 0.6) / (0.8 * 0.6 + 0.2 * 0.4)
    assert losses["estimated"] >= swapped - 1e-12
    assert losses["known_positions"] == pytest.approx(0.0)
    assert losses["without_rare"] == pytest.approx(0.0)
    assert losses["likelihood"] == pytest.approx(0.0)


def test_long_runs_estimate_the_best_ranking() -> None:
    result = simulate(GreedyRank(coefficient=5.0), PROBLEM, 20_000, 3, 1, keep_counts=True)
    for seen in result.counts:
        assert losses_by_estimator(PROBLEM, seen, equal=False)["likelihood"] < 0.01
