"""Objects can be converted to data frames of pandas and Polars, one or several at a time."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from banditrank import (
    Counts,
    InvalidInputError,
    MissingDependencyError,
    UnknownNameError,
    estimate,
    kdd2012,
    pareto_frontier,
    simulate,
    solve,
    to_frame,
)

CELL = ["user_type", "position", "item"]
RATES = ["arrival_rate", "position_preference", "item_mean"]
CURVES = ["policy", "problem", "seed", "replication", "round", "regret", "optimal_rate"]


@pytest.fixture(scope="module")
def results() -> list[Any]:
    return [
        simulate(name, kdd2012(), 300, 2, 5, checkpoints=[100], keep_counts=True)
        for name in ("ucb-rank", "random")
    ]


@pytest.fixture(scope="module")
def counts(results: list[Any]) -> Counts:
    return results[1].counts[0]


def test_several_results_have_a_policy_column(results: list[Any]) -> None:
    frame = to_frame(results)
    assert list(frame.columns) == CURVES
    assert frame["policy"].unique().tolist() == [result.label for result in results]
    for result in results:
        own = frame[frame["policy"] == result.label].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, result.to_frame())
        last = own[own["round"] == 300]
        assert last["regret"].tolist() == result.final_regret.tolist()
        assert set(own["problem"]) == {"kdd2012"}
        assert set(own["seed"]) == {5}


def test_the_keys_of_a_mapping_name_the_policies(results: list[Any]) -> None:
    frame = to_frame({"mine": results[0], "yours": results[0]})
    assert list(frame.columns) == CURVES
    assert frame.groupby("policy").size().to_dict() == {"mine": 4, "yours": 4}


def test_counts_have_a_row_for_each_cell(counts: Counts) -> None:
    problem = kdd2012()
    frame = counts.to_frame(user_types=problem.user_types, items=problem.items)
    assert list(frame.columns) == [*CELL, "displays", "rewards"]
    assert len(frame) == counts.displays.size
    for row in frame.itertuples():
        index = problem.user_types.index(row.user_type), problem.items.index(row.item), row.position - 1
        assert (row.displays, row.rewards) == (counts.displays[index], counts.rewards[index])
    assert counts.to_frame()["item"].unique().tolist() == [f"item-{number}" for number in range(1, 6)]


def test_a_frame_of_counts_does_not_change_with_them() -> None:
    counts = Counts.empty(n_user_types=1, n_items=2, n_positions=1)
    frames = [counts.to_frame(), counts.to_frame(backend="polars")]
    counts.record(0, [1], rewards=[1])
    assert [frame["displays"].sum() for frame in frames] == [0, 0]


def test_problems_and_estimates_have_the_same_rows(counts: Counts) -> None:
    problem, estimates = kdd2012(), estimate(counts)
    truth = problem.to_frame()
    estimated = estimates.to_frame(user_types=problem.user_types, items=problem.items)
    assert list(truth.columns) == [*CELL, *RATES]
    assert list(estimated.columns) == [*CELL, *RATES, "exposure"]
    pd.testing.assert_frame_equal(truth[CELL], estimated[CELL])
    both = truth.merge(estimated, on=CELL, suffixes=("", "_hat"))
    for row in both.itertuples():
        i, j, k = problem.user_types.index(row.user_type), problem.items.index(row.item), row.position - 1
        assert row.item_mean == problem.item_means[i, j]
        assert row.arrival_rate == problem.arrival_rates[i]
        assert row.position_preference_hat == estimates.position_preferences[i, k]
        assert row.item_mean_hat == estimates.item_means[i, j]
        assert row.exposure == estimates.exposure[i, j]


def test_solutions_and_frontiers_name_their_items() -> None:
    assert solve(kdd2012()).to_frame().to_dict("list") == {"position": [1, 2], "item": ["ad-3", "ad-4"]}
    points = pareto_frontier(kdd2012(), alphas=[1])
    frame = to_frame(points)
    assert frame["utility"].tolist() == ["utilitarian", "nash", "maximin"]
    assert frame["total"].tolist() == [point.total for point in points]
    assert frame["price_of_equality"].tolist() == [point.price_of_equality for point in points]
    assert frame[["position_1", "position_2"]].iloc[2].tolist() == ["ad-4", "ad-3"]
    named = to_frame({"a": solve(kdd2012()), "b": solve(kdd2012(), "maximin")})
    assert named["name"].tolist() == ["a", "a", "b", "b"]


def test_polars_has_the_same_values(results: list[Any], counts: Counts) -> None:
    estimates, points = estimate(counts), pareto_frontier(kdd2012(), alphas=[])
    for one, other in [
        (to_frame(results), to_frame(results, backend="polars")),
        (to_frame(points), to_frame(points, backend="polars")),
        *(
            (thing.to_frame(), thing.to_frame(backend="polars"))
            for thing in (results[0], counts, estimates, kdd2012(), solve(kdd2012()))
        ),
    ]:
        assert isinstance(other, pl.DataFrame)
        assert other.columns == list(one.columns)
        assert other.to_dict(as_series=False) == one.to_dict("list")
        assert not set(other.dtypes) & {pl.Object, pl.Null}


def test_invalid_arguments_are_rejected(results: list[Any], counts: Counts) -> None:
    with pytest.raises(InvalidInputError, match="results must hold at least one result"):
        to_frame([])
    with pytest.raises(InvalidInputError, match="results must be objects with a method to_frame, got 7"):
        to_frame([7])
    with pytest.raises(
        InvalidInputError, match=r"results must all have the columns policy, .* got 'user_type"
    ):
        to_frame([results[0], counts])
    with pytest.raises(UnknownNameError, match=r"backend must be one of pandas, polars .*got 'panda'"):
        results[0].to_frame(backend="panda")
    with pytest.raises(InvalidInputError, match="items must hold 5 names"):
        counts.to_frame(items=["a"])
    with pytest.raises(InvalidInputError, match="user_types must hold 2 names"):
        estimate(counts).to_frame(user_types="ab")


@pytest.mark.parametrize(("backend", "extra"), [("pandas", "frames"), ("polars", "polars")])
def test_a_missing_library_names_its_extra(backend: Any, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'banditrank\[{extra}\]'"):
        kdd2012().to_frame(backend=backend)


def test_columns_have_types(results: list[Any]) -> None:
    types = results[0].to_frame().dtypes
    assert types["regret"] == np.float64
    assert types["round"] == types["replication"] == np.int64
