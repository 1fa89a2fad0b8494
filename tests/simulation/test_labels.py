"""Policies that are shown together have labels of their own."""

from typing import Any

import numpy as np
import pytest

from banditrank import (
    InvalidInputError,
    Policy,
    Problem,
    SimulationResult,
    UCBRank,
    UniformRandom,
    kdd2012,
    plot_regret,
    simulate,
    to_frame,
)


class Tuned(Policy):
    """Shows the first items."""

    name = "tuned"

    def __init__(self, c: Any, weights: Any = (1.0, 2.0)) -> None:
        self.c, self.weights = c, weights

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        return np.arange(counts.n_positions)


class Twin(Tuned):
    pass


def run(policy: Policy | str, problem: Problem | None = None, **settings: Any) -> SimulationResult:
    return simulate(policy, problem or kdd2012(), settings.pop("horizon", 20), 2, workers=1, **settings)


def frame_labels(results: list[SimulationResult]) -> list[str]:
    return list(dict.fromkeys(to_frame(results)["policy"]))


def legend_labels(results: list[SimulationResult]) -> list[str]:
    legends = [axes.get_legend() for axes in plot_regret(results).axes]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


@pytest.mark.parametrize(
    ("results", "suffixes"),
    [
        ([run(Tuned(0.0)), run(Tuned(1e9))], ["-c=0.0", "-c=1000000000.0"]),
        ([run(Tuned(1)), run(Twin(1))], ["-class=Tuned", "-class=Twin"]),
        ([run(Tuned(1, [3])), run(Tuned(2, [4]))], ["-c=1-weights=[3]", "-c=2-weights=[4]"]),
        ([run(Tuned(Tuned(1))), run(Tuned(Tuned(2)))], ["-c.c=1", "-c.c=2"]),
        ([run(Tuned(1)), run(Tuned(1), horizon=30)], ["-horizon=20", "-horizon=30"]),
    ],
)
def test_parameters_that_differ_are_part_of_labels(
    results: list[SimulationResult], suffixes: list[str]
) -> None:
    """Finding 8: results of one label have the parameters that differ appended, and only these."""
    assert frame_labels(results) == [f"tuned-personalized{suffix}" for suffix in suffixes]
    assert legend_labels(results) == [f"tuned{suffix}" for suffix in suffixes]
    assert frame_labels([results[0], run("random")])[0] == "tuned-personalized"


@pytest.mark.parametrize(
    ("name", "values"),
    [("delay", [0, 10]), ("click_model", ["single-look", "cascade"]), ("rewards", ["bernoulli", "beta:4:1"])],
)
def test_settings_that_differ_are_part_of_labels(name: str, values: list[Any]) -> None:
    """Finding 8: results of one policy under other settings are told apart in a data frame."""
    results = [run(UniformRandom(), **{name: value}) for value in values]
    assert frame_labels(results) == [f"random-personalized-{name}={value}" for value in values]


def test_rounded_coefficients_are_told_apart() -> None:
    """Finding 8: parameters whose labels are rounded to the same text are appended in full."""
    results = [run(UCBRank(coefficient=value)) for value in (0.12345678, 0.12345679)]
    shown = [f"ucb-rank-personalized-0.123457-coefficient={value}" for value in (0.12345678, 0.12345679)]
    assert frame_labels(results) == shown


def test_arrays_and_functions_are_told_apart() -> None:
    """Finding 8: parameters without a short text have a digest in labels."""
    for first, second in ((np.arange(99), np.arange(98)), (lambda: 1, lambda: 2)):
        labels = frame_labels([run(Tuned(first)), run(Tuned(second))])
        assert len(set(labels)) == 2
        assert all(len(label) == len("tuned-personalized-c=") + 8 for label in labels)


def test_what_still_collides_is_refused() -> None:
    """Finding 8: results that nothing tells apart are refused, and a mapping names them."""
    result = run(Tuned(1))
    renamed = Problem(
        *[getattr(kdd2012(), name) for name in ("arrival_rates", "position_preferences")],
        item_means=kdd2012().item_means[:, ::-1],
        name="kdd2012",
    )
    message = "^results must have labels of their own, and numbers 1 and 2 have the same, got 'tuned"
    for other in (result, run(Tuned(1), renamed)):
        with pytest.raises(InvalidInputError, match=message):
            to_frame([result, other])
        with pytest.raises(InvalidInputError, match=message):
            plot_regret([result, other])
        named = to_frame({"first": result, "second": other})
        assert named["policy"].unique().tolist() == ["first", "second"]


def test_columns_that_tell_results_apart_are_not_part_of_labels() -> None:
    """Finding 8: seeds and problems have columns of a data frame, and a legend names the seed."""
    results = [run(Tuned(1), seed=seed) for seed in (1, 2)]
    assert frame_labels(results) == ["tuned-personalized"]
    assert legend_labels(results) == ["tuned-seed=1", "tuned-seed=2"]
