"""Policies of a comparison: all but the oracle, each with only the parameters that it needs to know."""

from collections.abc import Sequence

import pytest

from banditrank import UnknownNameError
from banditrank.experiments._compare.policy_variants import (
    ALL_POLICIES,
    CONTEXTUAL_POLICIES,
    DEFAULT_POLICY,
    ComparedPolicy,
    PolicyVariant,
    find_policies,
    policy_variants,
    position_knowledge,
)
from banditrank.experiments._compare.suites import SUITES
from banditrank.policies._catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy


def find_policy_names(names: Sequence[str] = ()) -> list[str]:
    return [policy.name for policy in find_policies(names)]


def test_all_policies_but_the_oracle_are_compared() -> None:
    assert set(POLICY_NAMES) - set(ALL_POLICIES) == {"auto", "oracle"}
    assert set(BASELINES) | set(ORDERED_POLICY_NAMES) | {"thompson-rank", "random"} <= set(ALL_POLICIES)
    assert find_policy_names() == [*ALL_POLICIES, *CONTEXTUAL_POLICIES]


def test_an_alias_and_its_policy_are_compared_once() -> None:
    assert find_policy_names(["auto"]) == find_policy_names(["auto", "thompson-rank"]) == ["thompson-rank"]


def test_names_come_once_and_in_the_catalogs_order() -> None:
    assert find_policy_names(["random", "grab", "ucb-rank", "grab"]) == ["ucb-rank", "grab", "random"]


def test_any_policy_is_compared_type_blind_if_it_is_named() -> None:
    names = ["type-blind-grab", "type-blind-top-rank-ordered", "thompson-rank", "type-blind-thompson-rank"]
    assert find_policy_names(names) == [
        *("thompson-rank", "type-blind-thompson-rank", "type-blind-grab", "type-blind-top-rank-ordered")
    ]
    assert ComparedPolicy("type-blind-top-rank-ordered").position_knowledge == "order given"


@pytest.mark.parametrize("name", ["oracle", "type-blind-oracle", "grap", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"^policies must be one of "):
        find_policy_names(["grab", name])


def test_position_knowledge_of_all_policies() -> None:
    known = {policy.name: policy.position_knowledge for policy in find_policies()}
    assert {name for name in known if known[name] == "order given"} == set(ORDERED_POLICY_NAMES)
    assert {name for name in known if known[name] == "examination known"} == {
        *("pbm-ucb", "pbm-ts", "pbm-pie"),
        *("lin-ucb", "lin-ts"),
    }
    assert {f"{name}-ordered" for name in known if known[name] == "order assumed"} == set(
        ORDERED_POLICY_NAMES
    )
    assert known["ucb-rank"] == known["grab"] == known["random"] == "nothing"


def test_where_the_problem_changes_each_policy_also_runs_with_a_window() -> None:
    names = ["ucb-rank", "grab", "random"]
    assert [each.label for each in policy_variants(SUITES["table1"], find_policies(names), 5000)] == names
    changing = policy_variants(SUITES["item-jumps"], find_policies(names), 5000)
    assert [each.label for each in changing] == [*names, "ucb-rank+window", "grab+window"]
    assert changing[-1].memory == "window:500"


def test_a_quick_run_skips_slow_policies_unless_there_are_no_others() -> None:
    suite = SUITES["many-items"]
    both, slow = find_policies(["grab", "pmed"]), find_policies(["pmed"])
    assert [each.label for each in policy_variants(suite, both, suite.horizon)] == ["grab", "pmed"]
    assert [each.label for each in policy_variants(suite, both, suite.quick_horizon)] == ["grab"]
    assert [each.label for each in policy_variants(suite, slow, suite.quick_horizon)] == ["pmed"]
    assert suite.quick_scale.endswith("rounds, without pmed")


def test_policies_receive_the_parameters_that_they_need_to_know() -> None:
    suite = SUITES["table1"]
    problem = suite.make_problem(1000)
    ordered = PolicyVariant(ComparedPolicy("top-rank-ordered")).make_policy(suite, problem, 1000)
    assert (ordered.order, ordered.horizon) == (((1, 0), (1, 0)), 1000)
    assert PolicyVariant(ComparedPolicy("top-rank")).make_policy(suite, problem, 1000).order is None
    windowed = PolicyVariant(ComparedPolicy("pbm-ucb"), "window:100").make_policy(suite, problem, 1000)
    assert str(windowed.memory) == "window:100"
    equal = SUITES["table1-nash"]
    policy = PolicyVariant(ComparedPolicy("pbm-ucb")).make_policy(equal, problem, 1000)
    assert (policy.treatment, str(policy.utility)) == ("equal", "nash")


def test_features_decide_which_policies_run() -> None:
    policies = find_policies(["grab", "lin-ucb", "thompson-rank", "thompson-rank-8-clusters", "random"])
    contextual, typed = SUITES["linear-context"], SUITES["table1"]
    labels = ["thompson-rank", "random", "lin-ucb", "thompson-rank-8-clusters"]
    assert [each.label for each in policy_variants(contextual, policies, 3000)] == labels
    assert [each.label for each in policy_variants(typed, policies, 3000)] == [
        "thompson-rank",
        "grab",
        "random",
    ]
    assert ComparedPolicy("grab").absence(contextual, 3000) == "it does not use features"
    assert ComparedPolicy("lin-ucb").absence(typed, 3000) == "it needs features"
    problem = contextual.make_problem(3000)
    informed = ComparedPolicy("lin-ucb").make_policy(contextual, problem, 3000)
    assert informed.examination == tuple(map(tuple, problem.position_preferences.tolist()))


def test_auto_is_an_alias_of_the_default_policy() -> None:
    assert make_policy("auto", SUITES["table1"].make_problem(1000)).name == DEFAULT_POLICY
    assert position_knowledge(find_policies(["auto"]))[DEFAULT_POLICY] == "nothing"
