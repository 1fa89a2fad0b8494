"""Shell completion, and ``python -m banditrank``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from banditrank import __version__

BASH = shutil.which("bash") or "bash"
COMPLETE = """
eval "$(_BANDITRANK_COMPLETE=source_bash banditrank)"
COMP_WORDS=(banditrank "$@")
COMP_CWORD=$#
_banditrank_completion banditrank
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which ``banditrank`` runs this package as a module."""
    program = tmp_path / "banditrank"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m banditrank "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def run(environment: dict[str, str], *command: str, **variables: str) -> str:
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_module_is_the_command_line(environment: dict[str, str]) -> None:
    assert run(environment, "banditrank", "--version") == f"banditrank {__version__}\n"
    assert run(environment, "banditrank").startswith("Usage: banditrank [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["si"], ["simulate"]),
        (["problem", ""], ["generate", "show", "validate"]),
        (["solve", "kdd2012", "--ut"], ["--utility"]),
        (["nothing"], []),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_and_options(
    words: list[str], found: list[str], environment: dict[str, str]
) -> None:
    completed = run(environment, BASH, "--norc", "-c", COMPLETE, "bash", *words)
    assert sorted(completed.split()) == found


@pytest.mark.parametrize(
    ("shell", "variables", "found"),
    [
        ("zsh", {}, """_arguments '*: :(("simulate":"Simulate policies and compare their regret."))'"""),
        (
            "fish",
            {"_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "simulate\tSimulate policies and compare their regret.",
        ),
    ],
)
def test_other_shells_have_scripts_that_request_completions(
    shell: str, variables: dict[str, str], found: str, environment: dict[str, str]
) -> None:
    script = run(environment, "banditrank", _BANDITRANK_COMPLETE=f"source_{shell}")
    assert f"_BANDITRANK_COMPLETE=complete_{shell}" in script
    assert all(name in script for name in ["_TYPER_COMPLETE_ARGS", *variables])
    request = {"_BANDITRANK_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "banditrank si"}
    assert run(environment, "banditrank", **request, **variables) == f"{found}\n"
