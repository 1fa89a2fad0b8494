"""The core works without optional packages, and what needs one names the extra that installs it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from banditrank._extras import PACKAGES
from banditrank.errors import MissingDependencyError

OPTIONAL = (
    *(
        "matplotlib",
        "pandas",
        "polars",
        "pyarrow",
        "jinja2",
        "httpx",
        "msgspec",
        "uvicorn",
        "httptools",
        "uvloop",
    ),
    *("prometheus_client", "duckdb", "ray", "highspy", "psycopg", "redis", "scipy"),
)
BLOCK = f"""
import sys
for name in {OPTIONAL}:
    sys.modules[name] = None
"""
CORE = """
from banditrank import NASH, Ranker, Surface, ThompsonRank, kdd2012, simulate, solve

with Ranker(Surface("home", items=["a", "b", "c"], n_positions=2)) as ranker:
    shown = ranker.rank("everybody")
    assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"
    assert ranker.estimates().rounds == 1
assert simulate(ThompsonRank(), kdd2012(), horizon=50, replications=1).final_regret.shape == (1,)
assert solve(kdd2012(), NASH).is_certified
"""
RESULT = "simulate(GreedyRank(), kdd2012(), horizon=9, replications=1)"
NEEDS = {
    "plots": f"from banditrank import *; plot_regret([{RESULT}])",
    "frames": f"from banditrank import *; {RESULT}.to_frame()",
    "polars": "from banditrank import *; kdd2012().to_frame(backend='polars')",
    "client": "from banditrank.client import Client",
    "service": "from banditrank.service import serve",
    "logs": "from banditrank.logs._duckdb_session import open_session; open_session().__enter__()",
    "reports": """
import tempfile
from banditrank.experiments import find_studies, reproduce
with tempfile.TemporaryDirectory() as directory:
    reproduce(find_studies(["lemmas"]), directory, quick=True)
""",
}


def run_without_optional_packages(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_ranking_simulating_and_solving_need_no_optional_package() -> None:
    result = run_without_optional_packages(CORE)
    assert result.returncode == 0, result.stderr


def test_a_missing_package_names_its_extra() -> None:
    """One process for all extras, because each imports the compiler."""
    code = f"""
for extra, code in {NEEDS}.items():
    try:
        exec(code, {{}})
    except Exception as error:
        print(extra, type(error).__name__, error)
    else:
        print(extra, "is not needed")
"""
    result = run_without_optional_packages(code)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == len(NEEDS)
    for extra, line in zip(NEEDS, lines, strict=True):
        assert line.startswith(f"{extra} MissingDependencyError "), line
        assert line.endswith(f"pip install 'banditrank[{extra}]'")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("serve", "uvloop is required for banditrank serve: pip install 'banditrank[service]'"),
        ("demo", "httpx is required for banditrank demo: pip install 'banditrank[client]'"),
    ],
)
def test_a_command_without_its_packages_names_the_extra(command: str, message: str) -> None:
    code = f"sys.argv = ['banditrank', '{command}']\nfrom banditrank._cli.main import main\nsys.exit(main())"
    result = run_without_optional_packages(code)
    assert (result.returncode, result.stderr.strip()) == (2, f"banditrank: {message}")


def test_packages_of_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    requirements = project["optional-dependencies"]
    requirements["reports"] += [*requirements["frames"], *requirements["plots"]]
    for extra, packages in PACKAGES.items():
        names = {requirement.split(">=")[0] for requirement in requirements[extra]}
        assert set(packages) == names - {"banditrank[frames,plots]"}


def test_the_message_agrees_with_the_number_of_packages() -> None:
    one = MissingDependencyError("data frames", ["pyarrow"], ["frames"])
    assert str(one) == "pyarrow is required for data frames: pip install 'banditrank[frames]'"
    three = MissingDependencyError("the report", ["duckdb", "jinja2", "pandas"], ["logs", "reports"])
    assert str(three) == (
        "duckdb, jinja2 and pandas are required for the report: pip install 'banditrank[logs,reports]'"
    )
