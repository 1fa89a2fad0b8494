"""What the documentation shows is true: examples run, every option is described, links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from banditrank.cli.main import application

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BASH = shutil.which("bash") or "bash"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("example", sorted((ROOT / "examples").iterdir()), ids=lambda path: path.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    program = sys.executable if example.suffix == ".py" else BASH
    done = subprocess.run(
        [program, str(example)], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readmes_shell_lines_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("banditrank")]
    assert len(lines) == 12
    for line in lines:
        short = re.sub(r"--horizon \d+|--replications \d+", "", line)
        if "simulate" in line and "--help" not in line:
            words = shlex.split(short.split("#")[0].split(">")[0])
            short = shlex.join([*words, "--horizon", "300", "--replications", "2"])
        if "reproduce" in line:
            short = short.replace("reproduce", "reproduce table1")  # the study that takes least
        if "compare" in line:
            short = short.replace("compare", "compare --suite table1 --policies comb-ucb1,random")
        done = subprocess.run(
            [BASH, "-c", short], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_every_command_and_option_is_described() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()

    def visit(command: object, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            assert f"`{path} {name}" in page or getattr(inner, "commands", None), f"{path} {name}"
            visit(inner, f"{path} {name}")
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert f"`{option}`" in page or f"{option}`" in page, option

    visit(typer.main.get_command(application), "banditrank")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_policy_is_described() -> None:
    from banditrank.policies.catalog import ORDERED_NAMES, POLICY_NAMES

    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    for name in POLICY_NAMES:
        if name not in ORDERED_NAMES:
            assert f"`{name}`" in page, name
