"""With many items ThompsonRank reads the cells with displays, with the same results as from all cells."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import Counts, ThompsonRank
from banditrank.policies import _displayed_cells
from banditrank.policies._displayed_cells import find_displayed_cells

N, M, K = 2, 60, 3


def played(
    click_model: Any, monkeypatch: pytest.MonkeyPatch, *, min_cells: int, rounds: int
) -> tuple[NDArray[np.float64], Any]:
    """Return the sampled means and preferences of rounds, of which half have a click, and the posterior."""
    monkeypatch.setattr(_displayed_cells, "MIN_CELLS", min_cells)
    policy = ThompsonRank(click_model=click_model)
    kernel = policy.bind(Counts.empty(n_user_types=N, n_items=M, n_positions=K), np.random.default_rng(1))
    rng, parameters, samples = np.random.default_rng(2), policy.parameters(np.array([1]))[0], []
    for t in range(1, rounds + 1):
        user_type = int(rng.integers(N))
        ranking = kernel.rank(user_type, t, parameters)
        rewards = np.zeros(K)
        rewards[rng.integers(K)] = rng.integers(2)
        kernel.observe(user_type, t, ranking, rewards)
        sampled = policy.sampled_problem(kernel.state)
        assert sampled is not None
        samples.append(np.concatenate([sampled.item_means[0], sampled.position_preferences[0]]))
    return np.array(samples), kernel.state.posterior.posterior()


@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
def test_samples_do_not_depend_on_lists(click_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The lists of 45 cells are full after about 30 rounds.
    listed, posterior = played(click_model, monkeypatch, min_cells=1, rounds=60)
    dense, _ = played(click_model, monkeypatch, min_cells=10_000, rounds=60)
    assert listed == pytest.approx(dense, rel=1e-9)
    assert (posterior.cells.n_cells == -1).all()


def test_lists_follow_the_displays(monkeypatch: pytest.MonkeyPatch) -> None:
    _, posterior = played("single-look", monkeypatch, min_cells=1, rounds=12)
    found = find_displayed_cells(posterior.displays)
    for i in range(N):
        for cells in (posterior.cells, found):
            assert cells.n_cells[i] == np.count_nonzero(posterior.displays[i]) > 0
            listed = np.zeros((K, M), dtype=bool)
            listed[cells.positions[i, : cells.n_cells[i]], cells.items[i, : cells.n_cells[i]]] = True
            assert np.array_equal(listed, posterior.displays[i] > 0)
            items = np.sort(cells.displayed_items[i, : cells.n_items[i]])
            assert np.array_equal(items, np.flatnonzero(listed.any(axis=0)))


def test_small_problems_have_no_lists() -> None:
    cells = find_displayed_cells(np.ones((2, 4, 20)))
    assert cells.items.size == cells.displayed_items.size == 0
    assert (cells.n_cells == -1).all()


def test_full_counts_are_not_listed() -> None:
    displays = np.zeros((2, 20, 1000))
    displays[0] = 1.0
    displays[1, 3, :7] = 2.0
    cells = find_displayed_cells(displays)
    assert cells.n_cells.tolist() == [-1, 7]
    assert cells.n_items.tolist() == [1000, 7]
