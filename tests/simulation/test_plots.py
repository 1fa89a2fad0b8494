"""Figures of results: their scales can be read."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from banditrank import kdd2012, simulate
from banditrank.simulation._plots import plot_final_regret
from banditrank.simulation._result import SimulationResult


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    return simulate("random", kdd2012(), 100, 3)


@pytest.mark.parametrize("regrets", [(601, 616), (0.2, 0.3), (90, 120), (3, 4000), (0, 0), (0, 5000)])
def test_final_regrets_of_any_spread_have_a_scale(
    result: SimulationResult, regrets: tuple[float, float]
) -> None:
    axes = Figure().add_subplot()
    ends = np.array([regrets[0], np.mean(regrets), regrets[1]])
    plot_final_regret([replace(result, regret=np.tile(ends[:, None], result.regret.shape[1]))], axes)
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2
