"""What is imported when, and that machine code is kept from one process to the next."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from banditrank import UCBRank, kdd2012, simulate

HEAVY = ("numpy", "numba", "scipy", "matplotlib", "pandas", "pyarrow", "rich.progress")


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = python("import banditrank, sys; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


COMMANDS = [
    *([], ["simulate"], ["solve"], ["frontier"], ["problem", "generate"], ["data", "kdd2012"]),
    *(["reproduce"], ["compare"], ["demo"], ["state", "show"], ["state", "import"]),
    *(["log"], ["log", "count"], ["log", "report"], ["log", "evaluate"], ["log", "warm-start"]),
]


def test_help_imports_nothing_heavy() -> None:
    """One process for all commands; each is checked before the next."""
    code = (
        "import sys\nfrom banditrank._cli.main import main\n"
        f"for command in {COMMANDS}:\n"
        "    try:\n        main([*command, '--help'])\n"
        "    except SystemExit as stop:\n        assert not stop.code, command\n"
        "    print('loaded', *sys.modules)"
    )
    loaded = [line.split() for line in python(code).splitlines() if line.startswith("loaded ")]
    assert len(loaded) == len(COMMANDS)
    for command, modules in zip(COMMANDS, loaded, strict=True):
        assert not {"numpy", "numba", "scipy", "matplotlib", "pandas"} & set(modules), command


def test_simulating_imports_neither_plots_nor_frames() -> None:
    code = (
        "import sys\nfrom banditrank import UCBRank, kdd2012, simulate\n"
        "simulate(UCBRank(coefficient=0.25), kdd2012(), 100, 1, 0)\nprint(*sys.modules)"
    )
    assert not {"matplotlib", "pandas", "pyarrow"} & set(python(code).split())


# Of equal treatment: also a formula that is chosen by type, as is the solver's, must be found again.
SIMULATION = (
    "from banditrank import UCBRank, kdd2012, simulate\n"
    "import gc\n"
    "from numba.core.ccallback import CFunc\n"
    "simulate(UCBRank(coefficient=0.25, treatment='equal'), kdd2012(), 100, 1, 0)\n"
    "native = [one for one in gc.get_objects() if isinstance(one, CFunc)]\n"
    "print(len(native), sum(one.cache_hits for one in native))"
)


def test_machine_code_is_kept_for_the_next_process() -> None:
    simulate(UCBRank(coefficient=0.25, treatment="equal"), kdd2012(), 100, 1, 0)  # as other tests do
    assert python(SIMULATION) == "4 4\n"


@pytest.mark.campaign
def test_machine_code_is_kept_in_an_empty_cache(tmp_path: Path) -> None:
    assert python(SIMULATION, NUMBA_CACHE_DIR=str(tmp_path)) == "4 0\n"
    assert python(SIMULATION, NUMBA_CACHE_DIR=str(tmp_path)) == "4 4\n"


def test_without_a_writable_cache_it_still_runs(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    code = "from banditrank import NASH; print(NASH.collective([1.0], [1.0]))"
    assert python(code, NUMBA_CACHE_DIR=str(blocker)) == "0.0\n"
