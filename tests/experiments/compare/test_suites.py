"""Suites match their descriptions."""

import re

import numpy as np
import pytest

from banditrank import ContextualProblem, LeastExposure, kdd2012
from banditrank.errors import InvalidInputError
from banditrank.experiments._compare.jobs import sweep
from banditrank.experiments._compare.policy_variants import find_policies
from banditrank.experiments._compare.suites import ALL_SUITES, SUITES, AnyProblem, Suite, describe_size
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline
from banditrank.simulation._run import MIN_FUSED_ROUNDS

every_suite = pytest.mark.parametrize("suite", ALL_SUITES, ids=lambda suite: suite.name)


def problem(name: str) -> Problem:
    made = SUITES[name].make_problem(1000)
    assert isinstance(made, Problem)
    return made


@every_suite
def test_a_description_has_two_sentences_and_a_quick_run_is_smaller(suite: Suite) -> None:
    assert len(re.split(r"(?<=[a-z%\d)])\. (?=[A-Z])", suite.description)) == 2
    assert suite.description.endswith(".")
    assert suite.quick_horizon < suite.horizon
    assert suite.quick_replications < suite.replications
    assert f"{suite.quick_horizon:,} of {suite.horizon:,} rounds" in suite.quick_scale


@every_suite
def test_no_loop_is_compiled_for_one_suite_alone(suite: Suite) -> None:
    assert suite.horizon * suite.replications < MIN_FUSED_ROUNDS


@every_suite
def test_the_same_problem_is_made_each_time(suite: Suite) -> None:
    assert suite.make_problem(2000).to_dict() == suite.make_problem(2000).to_dict()


@every_suite
def test_a_held_out_copy_has_another_problem_or_other_seeds(suite: Suite) -> None:
    copy = suite.held_out_copy()
    made, held_out = suite.make_problem(2000), copy.make_problem(2000)
    is_same = made == held_out
    assert is_same == suite.name.startswith("table1")
    assert (copy.seed_offset > 0) == is_same
    assert describe_size(made) == describe_size(held_out)
    assert copy.title == f"{suite.title}: held out"
    jobs, others = (
        sweep(each, find_policies(["random", "contextual-thompson-rank"]), 0, quick=True)
        for each in (suite, copy)
    )
    assert {job.digest() for job in jobs}.isdisjoint(job.digest() for job in others)


@every_suite
def test_replications_share_the_items_in_several_orders(suite: Suite) -> None:
    made = suite.make_problem(2000)
    shuffled = suite.make_problems(2000, seed=1, n_replications=12)
    assert [each.to_dict() for each in shuffled] == [
        each.to_dict() for each in suite.make_problems(2000, seed=1, n_replications=12)
    ]
    assert len(suite.make_problems(2000, seed=1, n_replications=7)) == 1
    assert len(suite.make_problems(2000, seed=1, n_replications=6)) == 3
    assert len(shuffled) == 4
    if isinstance(made, ContextualProblem):
        return
    assert len({each.items for each in shuffled}) == 4
    for each in shuffled:
        for before, after in zip(states(made), states(each), strict=True):
            assert means_by_item(before) == means_by_item(after)
            assert np.array_equal(before.position_preferences, after.position_preferences)


def states(problem: AnyProblem) -> list[Problem]:
    """Return the problem at each time."""
    assert isinstance(problem, Problem | Timeline)
    return [problem] if isinstance(problem, Problem) else list(problem.problems)


def means_by_item(problem: Problem) -> dict[str, list[float]]:
    return dict(zip(problem.items, problem.item_means.T.tolist(), strict=True))


def test_custom_suites_keep_the_order_of_items_and_have_no_held_out_copy() -> None:
    suite = Suite(name="mine", problem=kdd2012())
    assert suite.make_problems(1000, seed=1, n_replications=12) == [kdd2012()]
    with pytest.raises(InvalidInputError, match=r"^suite must have a held-out problem, got 'mine'$"):
        suite.held_out_copy()
    other = problem("synthetic")
    copy = Suite(name="mine", problem=kdd2012(), held_out=other).held_out_copy()
    assert copy.make_problems(1000, seed=1, n_replications=12) == [other]


def test_guarantees_of_some_items_exclude_shuffled_items() -> None:
    # Guarantees number the items, which would be others in each order.
    settings = {"name": "mine", "problem": kdd2012(), "treatment": "equal-lottery", "utility": "nash"}
    some, every = LeastExposure(0.2, items=(0,)), LeastExposure(0.01)
    assert Suite(**settings, guarantees=(some,)).guarantees == (some,)
    assert Suite(**settings, guarantees=(every,), is_shuffled=True).guarantees == (every,)
    with pytest.raises(
        InvalidInputError, match=r"^guarantees must hold for all items if they are shuffled, "
    ):
        Suite(**settings, guarantees=(some,), is_shuffled=True)


def test_all_suites_are_there() -> None:
    assert list(SUITES) == [
        "table1",
        "table1-equal",
        "table1-nash",
        "synthetic",
        "graded",
        "low-clicks",
        "many-items",
        "long-tail",
        "conflict",
        "conflict-nash",
        "conflict-lottery",
        "maximin-lottery",
        "exposure",
        "position-based",
        "cascade",
        "item-jumps",
        "item-drift",
        "turnover",
        "linear-context",
        "logistic-context",
    ]
    assert {str(suite.click_model) for suite in ALL_SUITES} == {"single-look", "position-based", "cascade"}
    assert {(suite.treatment, suite.utility) for suite in ALL_SUITES} == {
        ("personalized", "utilitarian"),
        ("equal", "utilitarian"),
        ("equal", "nash"),
        ("equal-lottery", "nash"),
        ("equal-lottery", "maximin"),
    }


def test_problems_are_as_described() -> None:
    assert all(problem(name) == kdd2012() for name in ("table1", "table1-equal", "table1-nash"))
    assert (kdd2012().position_preferences[:, 1] > kdd2012().position_preferences[:, 0]).all()
    synthetic, rare = problem("synthetic"), problem("low-clicks")
    assert (synthetic.n_user_types, synthetic.n_items, synthetic.n_positions) == (3, 20, 4)
    assert np.allclose(rare.item_means, synthetic.item_means / 20)
    many = problem("many-items")
    assert many.n_items == 200
    assert 0.008 < np.median(many.item_means) < 0.012
    assert 0.03 < many.item_means.max() < 0.08
    conflict = problem("conflict").item_means
    assert ((conflict > 0.5).sum(axis=0) == 1).all()
    for name in ("position-based", "cascade"):
        assert (np.diff(problem(name).position_preferences, axis=1) < 0).all()
    assert str(SUITES["graded"].rewards).startswith("beta")


def test_contextual_problems_are_as_described() -> None:
    for appeal in ("linear", "logistic"):
        suite = SUITES[f"{appeal}-context"]
        made = suite.make_problem(1000)
        assert isinstance(made, ContextualProblem)
        assert (made.appeal, made.n_features, made.n_items, made.n_positions) == (appeal, 20, 100, 5)
        assert suite.is_contextual
    assert describe_size(made) == "20 features, 100 items and 5 positions."
    assert not SUITES["table1"].is_contextual


@pytest.mark.parametrize(("name", "count"), [("item-jumps", 4), ("item-drift", 200), ("turnover", 11)])
def test_problems_change_within_the_horizon(name: str, count: int) -> None:
    suite = SUITES[name]
    assert suite.is_changing
    made = suite.make_problem(5000)
    assert isinstance(made, Timeline)
    assert len(made.problems) == count
    assert max(made.starts) <= 5000
    assert {suite.name for suite in ALL_SUITES if suite.is_changing} == {
        "item-jumps",
        "item-drift",
        "turnover",
    }
