"""Who is compared: everybody but the oracle, each told what it takes for known and no more."""

import pytest

from banditrank import UnknownNameError
from banditrank.experiments.compare.line_up import (
    EVERYBODY,
    OURS,
    Entrant,
    entrants,
    find_names,
    knowledge,
    make_variant_policy,
)
from banditrank.experiments.compare.suites import SUITES
from banditrank.policies.catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy


def test_everybody_takes_part_but_the_oracle() -> None:
    assert set(POLICY_NAMES) - set(EVERYBODY) == {"auto", "oracle"}
    assert set(BASELINES) | set(ORDERED_POLICY_NAMES) | {"thompson-rank", "random"} <= set(EVERYBODY)
    assert find_names() == list(EVERYBODY)


def test_two_names_of_one_policy_take_part_once() -> None:
    assert find_names(["auto"]) == find_names(["auto", "thompson-rank"]) == ["thompson-rank"]


def test_names_come_once_and_in_the_catalogs_order() -> None:
    assert find_names(["random", "grab", "ucb-rank", "grab"]) == ["ucb-rank", "grab", "random"]


@pytest.mark.parametrize("name", ["oracle", "grap", "", "all"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"^policies must be one of "):
        find_names(["grab", name])


def test_what_is_known_of_positions_is_said_for_all() -> None:
    known = {name: knowledge(name) for name in EVERYBODY}
    assert {name for name in known if known[name] == "order given"} == set(ORDERED_POLICY_NAMES)
    assert {name for name in known if known[name] == "examination known"} == {"pbm-ucb", "pbm-ts", "pbm-pie"}
    assert {f"{name}-ordered" for name in known if known[name] == "order assumed"} == set(
        ORDERED_POLICY_NAMES
    )
    assert known["ucb-rank"] == known["grab"] == known["random"] == "nothing"


def test_where_worlds_change_each_policy_also_enters_with_a_window() -> None:
    names = ["ucb-rank", "grab", "random"]
    assert [each.label for each in entrants(SUITES["table1"], names, 5000)] == names
    make_timeline = entrants(SUITES["item-jumps"], names, 5000)
    assert [each.label for each in make_timeline] == [*names, "ucb-rank+window", "grab+window"]
    assert make_timeline[-1].memory == "window:500"


def test_a_quick_run_leaves_out_who_is_too_slow_unless_nobody_else_is_there() -> None:
    suite = SUITES["many-items"]
    names = ["grab", "pmed"]
    assert [each.name for each in entrants(suite, names, suite.horizon)] == names
    assert [each.name for each in entrants(suite, names, suite.quick_horizon)] == ["grab"]
    assert [each.name for each in entrants(suite, ["pmed"], suite.quick_horizon)] == ["pmed"]
    assert suite.cut.endswith("rounds, without pmed")


def test_policies_are_told_of_the_world_what_they_take_for_known() -> None:
    suite = SUITES["table1"]
    problem = suite.make(1000)
    told = make_variant_policy(Entrant("top-rank-ordered"), suite, problem, 1000)
    assert (told.order, told.horizon) == (((1, 0), (1, 0)), 1000)
    assert make_variant_policy(Entrant("top-rank"), suite, problem, 1000).order is None
    forgetful = make_variant_policy(Entrant("pbm-ucb", "window:100"), suite, problem, 1000)
    assert str(forgetful.memory) == "window:100"
    equal = SUITES["table1-nash"]
    policy = make_variant_policy(Entrant("pbm-ucb"), equal, problem, 1000)
    assert (policy.treatment, str(policy.utility)) == ("equal", "nash")


def test_the_default_policy_is_what_auto_stands_for() -> None:
    assert make_policy("auto", SUITES["table1"].make(1000)).name == OURS
    assert knowledge(OURS) == "nothing"
