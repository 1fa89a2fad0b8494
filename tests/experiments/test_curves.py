"""Values, exponents and plots of regret curves."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from banditrank.experiments._curves import (
    at_round,
    curve,
    draw_curves,
    group_by,
    growth_exponents,
    rate_between,
)

ROUNDS = [10, 100, 1000]


def frame(*regrets: list[float]) -> pd.DataFrame:
    rows = [
        {"problem": number % 2, "replication": number // 2, "round": t, "regret": regret, "optimal_rate": 0.5}
        for number, curve in enumerate(regrets)
        for t, regret in zip(ROUNDS, curve, strict=True)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=1)  # in any order


def test_a_curve_has_a_row_per_problem_and_replication() -> None:
    rounds, values = curve(frame([1, 2, 3], [4, 5, 6], [7, 8, 9]))
    assert rounds.tolist() == ROUNDS
    assert values.tolist() == [[1, 2, 3], [7, 8, 9], [4, 5, 6]]


def test_values_at_a_round_are_those_of_all_replications() -> None:
    assert sorted(at_round(frame([1, 2, 3], [4, 5, 6]), 100)) == [2, 5]


def test_a_rate_between_rounds_follows_from_the_rates_up_to_them() -> None:
    data = pd.DataFrame({"round": [50, 100], "optimal_rate": [0.2, 0.5]})
    assert rate_between(data, 50, 100).tolist() == [pytest.approx(0.8)]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_growth_is_the_exponent(exponent: float) -> None:
    data = frame([3 * t**exponent for t in ROUNDS])
    assert growth_exponents(data, 10, 1000) == pytest.approx([exponent])


def test_no_regret_does_not_grow() -> None:
    assert growth_exponents(frame([0, 0, 0]), 10, 1000).tolist() == [0.0]


def test_groups_come_in_the_order_of_the_rows_with_plain_keys() -> None:
    data = pd.DataFrame({"rate": [1.0, 0.5, 1.0], "value": [1, 2, 3]})
    found = group_by(data, "rate")
    assert {key: group["value"].tolist() for key, group in found.items()} == {1.0: [1, 3], 0.5: [2]}
    assert [type(key) for key in found] == [float, float]


def test_curves_are_drawn_as_a_median_in_a_band() -> None:
    axes = Figure().subplots()
    regrets = [[k, 2 * k, 4 * k] for k in range(1, 12)]
    draw_curves(axes, {"a": frame(*regrets), "b": frame(*regrets)}, per_round=True)
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert np.allclose(axes.lines[0].get_ydata(), [6 / 10, 12 / 100, 24 / 1000])
    band = axes.collections[0].get_paths()[0].vertices
    assert {round(y * 10) for x, y in band if x == 10} == {2, 10}


def test_averages_on_a_linear_axis_start_after_a_hundredth_of_the_rounds() -> None:
    data = frame([1, 2, 3]).assign(round=lambda rows: rows["round"].replace({10: 9}))
    for scale, column, per_round, first in (
        *(("linear", "regret", True, 100), ("linear", "optimal_rate", False, 100)),
        *(("log", "regret", True, 9), ("linear", "regret", False, 9)),
    ):
        axes = Figure().subplots()
        axes.set_xscale(scale)
        draw_curves(axes, {"a": data}, column, per_round=per_round)
        assert axes.lines[0].get_xdata()[0] == first


def test_a_policy_has_the_same_colour_in_every_panel() -> None:
    left, right = Figure().subplots(1, 2)
    data = frame([1, 2, 3])
    draw_curves(left, {"a": data, "b": data}, policies={"a": "greedy-rank", "b": "ucb-rank"})
    draw_curves(right, {"c": data}, policies={"c": "ucb-rank"})
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()


def test_ticks_have_commas_between_thousands() -> None:
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, per_round in zip(figure.subplots(1, 2), (False, True), strict=True):
        draw_curves(axes, {"a": frame([0, 1000, 40_000], [0, 2000, 60_000])}, per_round=per_round)
        figure.canvas.draw()
        rounds = [tick.get_text() for tick in axes.get_xticklabels()]
        assert "1,000" in rounds
        assert len(rounds) <= 7
        values = [tick.get_text() for tick in axes.get_yticklabels()]
        assert ("20,000" in values) is not per_round
