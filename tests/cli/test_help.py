"""``--help`` is true: it repeats names and defaults, because importing them would take too long."""

import inspect
import re
from collections.abc import Callable, Iterable
from typing import get_args

import pytest
import typer

from banditrank import simulate, solve
from banditrank._cli.main import application
from banditrank.experiments._compare.custom_suites import SUITE_NAMES
from banditrank.experiments._reproduce import STUDIES
from banditrank.model._generators import FAMILIES
from banditrank.policies._base import Treatment
from banditrank.policies._catalog import BASELINES, ORDERED_SUFFIX, POLICY_NAMES
from banditrank.policies._loop_solvers import LOOP_SOLVERS
from banditrank.simulation._backends.catalog import BackendName
from banditrank.solvers._frontier import DEFAULT_ALPHAS
from banditrank.solvers._solve import SolverName

OWN_POLICIES = [name for name in POLICY_NAMES if name.removesuffix(ORDERED_SUFFIX) not in BASELINES]


def parameters(path: str) -> dict[str, object]:
    """Return the arguments and options of a command by parameter name."""
    command = typer.main.get_command(application)
    for name in path.split():
        command = command.commands[name]
    return {parameter.name: parameter for parameter in command.params}


@pytest.mark.parametrize(
    ("command", "parameter", "around", "names"),
    [
        ("solve", "solver", ("auto selects a method by the utility; or ", "."), get_args(SolverName)[1:]),
        ("simulate", "solver", ("Solver of equal treatment: ", "."), ("auto", *LOOP_SOLVERS)),
        ("simulate", "policy", ("", "; a baseline"), OWN_POLICIES),
        ("simulate", "treatment", ("", "; repeat or"), get_args(Treatment)),
        ("problem generate", "family", ("", "."), FAMILIES),
        ("reproduce", "names", ("Studies to run: ", "."), ("all", *STUDIES)),
        ("compare", "suite", ("Suites to run: ", " (of the"), SUITE_NAMES),
        ("simulate", "backend", ("Where replications run: ", "."), get_args(BackendName)),
        ("reproduce", "backend", ("Where replications run: ", "."), get_args(BackendName)),
    ],
)
def test_listed_names_are_complete(
    command: str, parameter: str, around: tuple[str, str], names: Iterable[str]
) -> None:
    before, after = map(re.escape, around)
    listed = re.search(f"^{before}(.*?){after}", parameters(command)[parameter].help)[1]
    assert sorted(re.split(", or |, | or ", listed)) == sorted(names)


@pytest.mark.parametrize(("command", "function"), [("solve", solve), ("simulate", simulate)])
def test_defaults_are_those_of_the_function(command: str, function: Callable) -> None:
    wanted = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    given = {name: option.default for name, option in parameters(command).items() if name in wanted}
    given.pop("rewards", None)  # by name here, an object there
    assert len(given) >= 3
    by_name = ("utility", "click_model")
    assert given == {name: str(wanted[name]) if name in by_name else wanted[name] for name in given}


def test_the_frontiers_alphas_are_those_of_the_function() -> None:
    assert tuple(map(float, parameters("frontier")["alphas"].default.split(","))) == DEFAULT_ALPHAS
