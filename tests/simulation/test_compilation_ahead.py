"""Later simulations are compiled in other processes while this one compiles."""

import subprocess
import sys

import numba
import pytest

from banditrank import GreedyRank, ThompsonRank, UCBRank, kdd2012
from banditrank.simulation import _compilation_ahead
from banditrank.simulation._compilation_ahead import compile_ahead
from banditrank.simulation._replication import Experiment
from banditrank.simulation._simulate import make_experiment


@pytest.fixture
def experiments() -> list[Experiment]:
    policies = (ThompsonRank(), GreedyRank(coefficient=0.25), UCBRank(coefficient=0.25))
    return [make_experiment(policy, kdd2012(), 100) for policy in policies]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the names of the policies of each process that would have been started."""
    names: list[list[str]] = []

    def start(later: list[Experiment]) -> "subprocess.Popen[bytes]":
        names.append([one.policy.name for one in later])
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])

    monkeypatch.setattr(_compilation_ahead, "_start_compiler", start)
    monkeypatch.setattr(_compilation_ahead, "available_cpus", lambda: 3)
    return names


def compile_something(module: str) -> None:
    def twice(number: int) -> int:
        return 2 * number

    twice.__module__ = module
    assert numba.njit(twice)(2) == 4


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (None, [["ucb-rank"], ["greedy-rank"]]),
        (2, [["ucb-rank", "greedy-rank"]]),
        (1, []),
    ],
)
def test_the_last_is_compiled_first_and_the_first_here(
    experiments: list[Experiment], started: list[list[str]], workers: int | None, expected: list[list[str]]
) -> None:
    with compile_ahead(lambda: experiments, workers):
        compile_something("banditrank.policies._test")
        compile_something("banditrank.policies._test")
    assert started == expected  # and nothing is left running, which is checked after each session


def test_nothing_starts_unless_a_policy_is_compiled(
    experiments: list[Experiment], started: list[list[str]]
) -> None:
    with compile_ahead(lambda: experiments, None):
        compile_something("banditrank.solvers._test")
    assert started == []


def test_a_policy_that_cannot_be_pickled_is_left_to_this_process(
    experiments: list[Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compilation_ahead, "available_cpus", lambda: 2)
    monkeypatch.setattr(Experiment, "__reduce__", lambda _: 1 / 0)
    with compile_ahead(lambda: experiments, None):
        compile_something("banditrank.policies._test")


def test_a_compiler_runs_experiments_that_it_gets_by_standard_input(experiments: list[Experiment]) -> None:
    compiler = _compilation_ahead._start_compiler(experiments[:1])
    assert compiler.wait() == 0
