"""Custom policies and problems take part in a comparison like built-in ones."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.blank_figures import render_blank_figures
from helpers.custom_policies import write_module

from banditrank import InvalidInputError, Policy, Problem, Timeline, UniformRandom, UnknownNameError
from banditrank.experiments import Suite, compare
from banditrank.experiments._compare.custom_suites import find_suites
from banditrank.experiments._compare.policy_variants import (
    ALL_POLICIES,
    CONTEXTUAL_POLICIES,
    find_policies,
    policy_variants,
)
from banditrank.experiments._compare.suites import SUITES
from banditrank.simulation._backends import local

SHOP = Problem([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]], name="My shop")
SMALL = {"problem": SHOP, "quick_horizon": 200, "quick_replications": 2}


class MostClicked(Policy):
    """Shows the items with the most clicks of this user type."""

    name = "most-clicked"

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002 - as users write it
        clicks = counts.rewards[user_type].sum(axis=1) + rng.uniform(0, 0.1, counts.n_items)
        return np.argsort(-clicks)[: counts.n_positions]


@dataclass(frozen=True)
class Loyal(MostClicked):
    """Has a parameter, and both treatments."""

    name = "loyal"
    weight: float = 0.5
    treatment: str = "personalized"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of a module with custom policies and problems, in the current directory."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    name = f"module_{abs(hash(tmp_path))}"
    yield write_module(tmp_path, name)
    sys.modules.pop(name, None)


def run(directory: Path, suites: list[Any], policies: list[Any], **options: Any) -> list[str]:
    """Run a comparison without figures and return the ids of the jobs that ran."""
    ran: list[tuple[str, bool]] = []
    with pytest.MonkeyPatch.context() as patch:
        render_blank_figures(patch)
        compare(suites, policies, directory, quick=True, on_job=lambda *job: ran.append(job), **options)
    return [name for name, existed in ran if not existed]


def data(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("data/*/*.parquet"))}


def test_custom_policies_and_problems_are_in_the_leaderboard(tmp_path: Path) -> None:
    suites = [
        Suite(name="shop", **SMALL),
        Suite(name="shop-nash", treatment="equal", utility="nash", **SMALL),
    ]
    ran = run(tmp_path, suites, [MostClicked, "random"])
    assert ran[0] == "shop/most-clicked"  # before built-in policies, so that its errors come first
    assert "shop-nash/most-clicked" not in ran
    summary = json.loads((tmp_path / "summary.json").read_text())
    metrics = summary["overview"]["metrics"]
    assert set(metrics["scores"]) == {"most-clicked", "random"}
    assert metrics["custom_policies"] == {"most-clicked": "MostClicked"}
    note = summary["overview"]["tables"][-1]["note"]
    assert "most-clicked in shop-nash (it has personalized treatment only)" in note
    assert summary["studies"]["shop-nash"]["tables"][0]["note"].startswith(
        "Not run here: most-clicked (it has"
    )
    assert (summary["seed"], summary["version"]) == (
        0,
        json.loads((tmp_path / "comparison.json").read_text())["version"],
    )


def test_the_same_seed_gives_the_same_data_with_one_worker_and_in_processes(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {**SMALL, "quick_horizon": 1100}  # progress is reported every 1,024 rounds
    suites, policies = [Suite(name="shop", **long)], [f"{module}:MostClicked", "random"]
    run(tmp_path / "one", suites, policies, workers=1)
    payloads = []
    monkeypatch.setattr(local, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(local, "PROCESS_START_SECONDS", -1e9)

    def run_here(experiment: Any, indices: Any, workers: int) -> Iterator[Any]:
        payloads.append(local.pickle_experiment(experiment))
        assert workers == 2
        yield from (local.replicate_pickled(payloads[-1], index) for index in indices)

    monkeypatch.setattr(local, "_run_in_processes", run_here)
    run(tmp_path / "processes", suites, policies, workers=2)
    assert data(tmp_path / "processes") == data(tmp_path / "one")
    assert payloads
    assert all(module.encode() in payload for payload in payloads)  # by its import path, not by value
    assert not any(b"argsort" in payload for payload in payloads)


@pytest.mark.campaign
def test_processes_import_a_module_of_the_current_directory(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(local, "PROCESS_START_SECONDS", -1e9)
    monkeypatch.setattr(local, "PicklingError", ZeroDivisionError)  # so that it is not caught
    long = {**SMALL, "quick_horizon": 1100}
    suites, policies = [Suite(name="shop", **long)], [f"{module}:MostClicked", "random"]
    run(tmp_path / "two", suites, policies, workers=2)
    run(tmp_path / "one", suites, policies, workers=1)
    assert data(tmp_path / "two") == data(tmp_path / "one")


def test_jobs_run_again_when_the_policy_has_changed(module: str, tmp_path: Path) -> None:
    suites, policies = [Suite(name="shop", **SMALL)], [f"{module}:MostClicked", "random"]
    assert run(tmp_path / "out", suites, policies)
    assert run(tmp_path / "out", suites, policies) == []
    file = tmp_path / f"{module}.py"
    file.write_text(file.read_text().replace("0.1", "0.2"))
    assert run(tmp_path / "out", suites, policies) == ["shop/most-clicked", "shop/time-of-most-clicked"]


def test_jobs_run_again_when_a_parameter_has_changed(tmp_path: Path) -> None:
    suites = [Suite(name="shop", **SMALL)]
    run(tmp_path, suites, [Loyal(0.25), "random"])
    assert run(tmp_path, suites, [Loyal(0.25), "random"]) == []
    assert "shop/loyal" in run(tmp_path, suites, [Loyal(0.75), "random"])


def test_a_class_is_given_the_treatment_that_it_offers() -> None:
    [loyal] = [policy for policy in find_policies([Loyal, "random"]) if policy.custom]
    assert loyal.absence(SUITES["table1-equal"], 1000) is None
    assert loyal.absence(SUITES["table1-nash"], 1000) == "it maximises utilitarian utility only"
    made = loyal.make_policy(SUITES["table1-equal"], SHOP, 1000)
    assert (made.treatment, made.weight) == ("equal", 0.5)


def test_where_problems_change_only_compiled_policies_have_a_window() -> None:
    class Shuffled(UniformRandom):
        name = "shuffled"

    policies = find_policies([MostClicked, Shuffled, "grab"])
    labels = [variant.label for variant in policy_variants(SUITES["item-jumps"], policies, 1000)]
    assert labels == ["most-clicked", "shuffled", "grab", "shuffled+window", "grab+window"]


def test_custom_policies_are_compared_with_all_built_in_ones_unless_some_are_named(module: str) -> None:
    assert [policy.name for policy in find_policies([f"{module}:MostClicked"])] == [
        "most-clicked",
        *ALL_POLICIES,
        *CONTEXTUAL_POLICIES,
    ]
    assert [policy.name for policy in find_policies([Loyal, "random"])] == ["loyal", "random"]
    assert [policy.name for policy in find_policies([Loyal, "all"])] == [
        "loyal",
        *ALL_POLICIES,
        *CONTEXTUAL_POLICIES,
    ]
    assert [policy.name for policy in find_policies([Loyal, Loyal, "random"])] == ["loyal", "random"]


def test_a_policy_without_a_name_has_that_of_its_class_function_or_variable(module: str) -> None:
    class Plain(MostClicked):
        name = Policy.name

    assert find_policies([Plain, "random"])[0].name == "Plain"
    assert find_policies([f"{module}:tuned", "random"])[0].name == "most-clicked"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Needy",
            "must need no arguments but treatment, utility, horizon, and needs epsilon, got '.*:Needy'",
        ),
        ("Grab", "must have a name of its own, and 'grab' is a built-in policy, got '.*:Grab'"),
        ("Unnamed", "must have a name of at most 64 letters, .*, got 'a policy/with a bad name'"),
        ("Failing", r"must be made without an error \(RuntimeError: no luck\), got '.*:Failing'"),
        ("number", "must return a policy, and returns int, got '.*:number'"),
        ("threshold", "must be a policy, a class derived from .*, which threshold of .* is not, got"),
        ("MostClickd", r"must be one of .*\(did you mean .*:MostClicked\?\), got '.*:MostClickd'"),
        ("", "must be an import path MODULE:NAME, got"),
    ],
)
def test_policies_that_cannot_be_compared_are_refused(name: str, message: str, module: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^policies {message}"):
        find_policies([f"{module}:{name}", "random"])


def test_modules_that_cannot_be_imported_are_refused(tmp_path: Path, module: str) -> None:
    with pytest.raises(
        InvalidInputError, match=r"^policies must be in a module .*, and there is no absent, got"
    ):
        find_policies(["absent:MyPolicy"])
    for name, source, reason in (
        ("broken", "import absent_too", "ModuleNotFoundError: No module named 'absent_too'"),
        ("wrong", "def", "SyntaxError: .*"),
    ):
        (tmp_path / f"{name}_{module}.py").write_text(source)
        with pytest.raises(InvalidInputError, match=rf"must be in a module that can be imported \({reason}"):
            find_policies([f"{name}_{module}:MyPolicy"])


def test_policies_with_the_same_name_are_refused(module: str) -> None:
    rule = "must have a name of its own, and 'most-clicked' is that of MostClicked, got '.*:Twin'"
    with pytest.raises(InvalidInputError, match=rule):
        find_policies([MostClicked, f"{module}:Twin"])
    with pytest.raises(InvalidInputError, match=r"must be a policy, a class .*, or the name of one, got 3"):
        find_policies([3])


def test_policies_with_other_parameters_have_names_of_their_own() -> None:
    """Finding 8: instances of one class take part together, by the parameters that differ."""
    found = find_policies([Loyal(0.25), Loyal(0.75), MostClicked, "random"])
    assert [policy.name for policy in found] == [
        "loyal-weight-0.25",
        "loyal-weight-0.75",
        "most-clicked",
        "random",
    ]


def test_problems_come_from_files_objects_functions_and_modules(module: str) -> None:
    def jumps(horizon: int) -> Timeline:
        return Timeline([SHOP, SHOP], [1, horizon // 2])

    given = ["my_problem.toml", SHOP, jumps, f"{module}:shop_nash", "table1", Path("my_problem.toml")]
    suites, has_reproductions = find_suites(given)
    assert [suite.name for suite in suites] == ["table1", "my-problem", "my-shop", "jumps", "shop-nash"]
    assert not has_reproductions
    assert suites[1].description == (
        "A custom problem, my_problem.toml: 2 user types, 3 items and 2 positions."
    )
    assert [suite.is_changing for suite in suites] == [False, False, False, True, False]
    assert (suites[-1].treatment, suites[-1].utility) == ("equal", "nash")
    assert find_suites(["all", SHOP]) == ([*SUITES.values(), suites[2]], True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("absent.toml", "problem file must be readable"),
        (
            "MODULE:threshold",
            "suite must be a Problem, .*, a Suite or a function .*, which threshold",
        ),
        ("MODULE:shoop", r"suite must be one of .*\(did you mean MODULE:shop\?\)"),
        ("MODULE:copy_of_cascade", "suite must have a name of its own, and 'cascade' is built in"),
        ("MODULE:number", r"suite must be a problem, or a function .* \(TypeError: number\(\) takes 0"),
        ("bad.toml", "bad.toml: item_means must be given"),
        (
            Suite(name="my-shop", problem=SHOP),
            "suite must have a name of its own, and 'my-shop' is that of My shop",
        ),
        (3, "suite must be a Problem, .*, got 3"),
    ],
)
def test_problems_that_cannot_be_compared_are_refused(given: Any, message: str, module: str) -> None:
    Path("bad.toml").write_text("arrival_rates = [1.0]\nposition_preferences = [[1.0]]\n")
    if isinstance(given, str):
        given = given.replace("MODULE", module)
    with pytest.raises(InvalidInputError, match=message.replace("MODULE", module)):
        find_suites([SHOP, given])


def test_a_suite_checks_its_values() -> None:
    for wrong in ({"name": "a/b"}, {"horizon": 0}, {"quick_replications": 0.5}):
        with pytest.raises(InvalidInputError):
            Suite(**{"name": "shop", "problem": SHOP, **wrong})
    for wrong in ({"treatment": "fair"}, {"utility": "nasch"}, {"click_model": "look"}, {"rewards": "x"}):
        with pytest.raises(InvalidInputError):
            Suite(name="shop", problem=SHOP, **wrong)
    named = Suite(name="shop", problem=SHOP, click_model="cascade", horizon=500)
    assert (named.title, str(named.click_model), named.quick_horizon) == ("shop", "cascade", 500)


def test_a_policy_that_takes_part_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match="policies must take part in one of the suites, but it has pers"
    ):
        compare(["table1-nash"], [MostClicked], tmp_path / "out")
    with pytest.raises(UnknownNameError):
        compare(["table1"], [MostClicked, "grap"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
