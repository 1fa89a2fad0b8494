"""Saved simulations: only the same simulation is resumed."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditrank import (
    BernoulliRewards,
    InvalidInputError,
    Oracle,
    Policy,
    Problem,
    SimulationResult,
    ThompsonRank,
    UCBRank,
    Utility,
    kdd2012,
    simulate,
)
from banditrank.model._click_models import SingleLook
from banditrank.simulation._result_store import DIGESTS

REFUSAL = "^save directory must be new or hold the same simulation, whose fingerprint differs"


class Greedy(Policy):
    """Shows the items with the most clicks, which noise changes."""

    name = "greedy"
    scale = 1.0

    def __init__(self, c: Any = 0.0) -> None:
        self.c = c

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        noise = self.scale * rng.random(counts.n_items)
        return np.argsort(-counts.rewards[user_type].sum(axis=1) - noise)[: counts.n_positions]


class Wrapping(Policy):
    """Ranks as another policy."""

    name = "greedy"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        return self.policy.rank(counts, user_type, rng=rng)


def save(policy: Any, directory: Path, replications: int = 1, **settings: Any) -> SimulationResult:
    return simulate(policy, kdd2012(), 20, replications, 3, save_to=directory, workers=1, **settings)


@pytest.mark.parametrize(
    "make",
    [Greedy, lambda c: Wrapping(Greedy(c)), lambda c: Greedy(lambda value: value + c), lambda c: Greedy([c])],
    ids=["own", "inside another", "lambda", "list"],
)
def test_own_policies_with_other_parameters_are_not_resumed(
    make: Callable[[float], Policy], tmp_path: Path
) -> None:
    """Finding 7: a saved run of other parameters is refused, one of the same parameters resumes."""
    save(make(0.0), tmp_path)
    before = (tmp_path / "summary.json").read_bytes()
    with pytest.raises(InvalidInputError, match=REFUSAL):
        save(make(1e9), tmp_path)
    assert (tmp_path / "summary.json").read_bytes() == before
    assert save(make(0.0), tmp_path, 2).replications.tolist() == [0, 1]


def test_the_error_names_the_parameter_that_differs(tmp_path: Path) -> None:
    """Finding 7: the refusal names the parameter and both values."""
    save(Greedy(0.0), tmp_path)
    with pytest.raises(InvalidInputError, match=rf"{REFUSAL} \(c is 0.5 and was 0.0\), got"):
        save(Greedy(0.5), tmp_path)


def test_own_policies_of_changed_source_are_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 7: a saved run of the class before it was changed is refused."""
    save(Greedy(), tmp_path)
    monkeypatch.setattr(Greedy, "scale", 2.0)
    reason = r" \(the parameters or the source of its policy changed\), got"
    with pytest.raises(InvalidInputError, match=REFUSAL + reason):
        save(Greedy(), tmp_path)


def test_policies_without_a_digest_are_not_saved(tmp_path: Path) -> None:
    """Finding 7: what cannot be told apart is refused before anything is written, and runs unsaved."""
    policy = Greedy(threading.Lock())
    with pytest.raises(InvalidInputError, match=r"^policy\.c must have a digest"):
        save(policy, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidInputError, match="must have a description and a fingerprint of plain values"):
        save(Described(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Described(Greedy):
    """Has a description that JSON does not have."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "c": np.zeros(1)}


class Rated(SingleLook):
    """A click model of the user's, whose name does not state its rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate


class Scaled(BernoulliRewards):
    """Rewards of the user's, whose name does not state their scale."""

    __slots__ = ("bonus",)

    def __init__(self, bonus: float) -> None:
        object.__setattr__(self, "bonus", bonus)


class Labelled(Problem):
    """A problem of the user's."""

    note = 1


@pytest.mark.parametrize(
    ("first", "second", "component"),
    [
        ({"click_model": Rated(0.1)}, {"click_model": Rated(0.2)}, "click_model"),
        ({"rewards": Scaled(0.1)}, {"rewards": Scaled(0.2)}, "rewards"),
    ],
)
def test_other_components_of_users_are_not_resumed(
    first: dict[str, Any], second: dict[str, Any], component: str, tmp_path: Path
) -> None:
    """Finding 7: own click models and rewards of one name are told apart, as own policies are."""
    save(Greedy(), tmp_path, **first)
    assert save(Greedy(), tmp_path, 2, **first).replications.tolist() == [0, 1]
    with pytest.raises(
        InvalidInputError, match=rf"{REFUSAL} \(the parameters or the source of its {component}"
    ):
        save(Greedy(), tmp_path, **second)


def test_own_problems_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 7: a problem of a class of the user's is part of what is saved."""
    problem = Labelled([1.0], [[0.6, 0.4]], [[0.9, 0.5, 0.1]])
    simulate(Greedy(), problem, 20, 1, 3, save_to=tmp_path)
    monkeypatch.setattr(Labelled, "note", 2)
    with pytest.raises(InvalidInputError, match=rf"{REFUSAL} .*source of its problem changed"):
        simulate(Greedy(), problem, 20, 1, 3, save_to=tmp_path)


def test_own_functions_of_built_in_policies_are_told_apart(tmp_path: Path) -> None:
    """Finding 7: schedules and utilities that agree where they are sampled are still different ones."""
    schedules = [lambda t: 0.5 + 0.0 * t, lambda t: 0.5 + 0.5 * (t == 7)]
    save(UCBRank(schedule=schedules[0]), tmp_path / "schedule")
    with pytest.raises(InvalidInputError, match=REFUSAL):
        save(UCBRank(schedule=schedules[1]), tmp_path / "schedule")
    functions = [lambda u: u, lambda u: u + max(0.0, 0.01 - abs(u - 0.5))]
    for function in functions:
        policy = Greedy()
        policy.treatment = "equal"
        policy.utility = Utility.from_function(function, shape="non-concave", name="mine")
        if function is functions[0]:
            save(policy, tmp_path / "utility")
        else:
            with pytest.raises(InvalidInputError, match=REFUSAL):
                save(policy, tmp_path / "utility")


def test_a_policy_that_knows_another_problem_is_not_resumed(tmp_path: Path) -> None:
    """Finding 7: parameters that a built-in policy does not describe count."""
    problem = kdd2012()
    other = Problem(problem.arrival_rates, problem.position_preferences, problem.item_means[:, ::-1])
    save(Oracle(problem), tmp_path)
    with pytest.raises(InvalidInputError, match=REFUSAL):
        save(Oracle(other), tmp_path)


def save_without_digests(policy: Any, directory: Path) -> None:
    save(policy, directory)
    summary = json.loads((directory / "summary.json").read_text())
    del summary["fingerprint"][DIGESTS]
    (directory / "summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize("policy", [UCBRank(coefficient=0.5), ThompsonRank(position_prior=(1.0, 2.0))])
def test_runs_without_digests_resume_for_built_in_policies(policy: Any, tmp_path: Path) -> None:
    """Finding 7: built-in policies resume runs that were saved before there were digests."""
    save_without_digests(policy, tmp_path)
    assert save(policy, tmp_path, 2).replications.tolist() == [0, 1]


def test_runs_without_digests_do_not_resume_for_own_policies(tmp_path: Path) -> None:
    """Finding 7: a run that states no source of an own policy is refused."""
    save_without_digests(Greedy(), tmp_path)
    with pytest.raises(InvalidInputError, match=rf"{REFUSAL} \(it states no source of own code\)"):
        save(Greedy(), tmp_path, 2)
