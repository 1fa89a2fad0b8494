"""What the documentation shows is true: examples run, every option is described, links lead somewhere."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.csv_logs import write_sample_csv
from helpers.documentation import PAGES, ROOT, page_id
from helpers.servers import free_port

BASH = shutil.which("bash") or "bash"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


PROGRAMS = [path for path in sorted((ROOT / "examples").iterdir()) if path.suffix != ".html"]


@pytest.mark.parametrize("example", PROGRAMS, ids=lambda path: path.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    program = sys.executable if example.suffix == ".py" else BASH
    text = example.read_text()
    copy = tmp_path / example.name
    copy.write_text(text.replace("8429", str(free_port())))
    assert ("8429" in text) == (example.name == "curl.sh")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**ENVIRONMENT, "TMPDIR": str(temporary)}
    done = subprocess.run(
        [program, str(copy)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(temporary.iterdir()), "temporary files are removed"


def test_types_of_examples_are_checked_at_the_lines_of_their_page() -> None:
    """Finding 15: `make types` checks the examples of the README and of docs/."""
    tool = runpy.run_path(str(ROOT / "tools" / "check_example_types.py"))
    text = "# Page\n\n>>> for x in range(2):\n...     x\n0\n1\n>>> 'y'\n'y'\n"
    lines = tool["module_of"]("README.md", text).splitlines()
    assert lines == ["", "", "for x in range(2):", "    x", "", "", "'y'", "", ""]
    assert tool["module_of"]("docs/page.md", text).startswith("# mypy: ")
    program = "# Page\n\n```python\nx = 1\n```\n\n```python\n>>> x\n```\n"
    (source,) = tool["programs_of"](program)
    assert source.splitlines()[1:] == ["", "", "x = 1"]
    assert tool["UNTYPED"] < {page_id(page) for page in PAGES} - {"README.md"}
    assert "check_example_types.py" in (ROOT / "Makefile").read_text(encoding="utf-8")


def _readme_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("banditrank")]


def test_the_readmes_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Run the commands with few rounds, in this process, because each would import everything again."""
    monkeypatch.chdir(tmp_path)
    write_sample_csv(Path("clicks.csv"))
    commands = _readme_commands()
    assert len(commands) == 18
    for command in commands:
        _, name, *words = shlex.split(re.sub(r"--horizon \d+|--replications \d+", "", command))
        if name == "simulate" and "--help" not in words:
            words += ["--horizon", "300", "--replications", "2"]
        if name == "demo":
            words += ["--rounds", "20", "--speed", "0", "--port", "0"]
        if name == "reproduce":
            words = ["table1", *words]  # the study that takes least
        if name == "compare":
            words += ["--suite", "table1", "--policies", "comb-ucb1,random"]
        status, _, complaint = run(capsys, name, *words)
        expected = (0, 1) if words[:1] == ["diagnose"] else (0,)  # 1: warnings
        assert status in expected, f"{command}: {complaint}"


def test_a_command_of_the_readme_runs_in_a_shell(tmp_path: Path) -> None:
    (command,) = [command for command in _readme_commands() if "problem show" in command]
    done = subprocess.run(
        [BASH, "-c", command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_policy_is_described() -> None:
    from banditrank.policies._catalog import ORDERED_POLICY_NAMES, POLICY_NAMES

    page = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    for name in POLICY_NAMES:
        if name not in ORDERED_POLICY_NAMES:
            assert f"`{name}`" in page, name


TOLD = {"examination": "examination probabilities", "order": "their order", "nothing": "nothing"}


def _baseline_table() -> dict[str, list[str]]:
    """Return the cells of each baseline: its paper, its knowledge of positions, its click models."""
    page = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line[:2] == "| "
    ]
    rows = [row for row in rows if len(row) == 5 and row[0].startswith("`")]
    for above, row in pairwise(rows):
        row[:] = [before if cell == "the same" else cell for before, cell in zip(above, row, strict=True)]
    return {name.strip("`"): cells for name, *cells in rows}


def test_the_number_of_baselines_is_that_of_the_catalogue() -> None:
    """Finding 11: pages that count the baselines of other papers state the number in the catalogue."""
    from banditrank.policies._catalog import BASELINES

    stated = [
        count
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for count in re.findall(
            r"([\w-]+)\s+baselines\s+(?:from|of)\s+other\s+papers", page.read_text("utf-8")
        )
    ]
    assert set(stated) == {str(len(BASELINES))}


def test_what_baselines_assume_is_described() -> None:
    from banditrank.policies._catalog import BASELINES

    table = _baseline_table()
    assert set(table) == set(BASELINES)
    for name, (_, told, made_for, candidates) in table.items():
        assert candidates == ("yes" if BASELINES[name].has_candidates else "no"), name
        assumed = BASELINES[name].assumptions
        models = [model.replace("single-look", "single look") for model in assumed.click_models]
        assert (told, sorted(made_for.split(", "))) == (TOLD[assumed.positions], sorted(models)), name


def test_baselines_cite_their_paper_and_describe_their_parameters() -> None:
    from banditrank.policies._catalog import BASELINES

    for name, (source, *_) in _baseline_table().items():
        text, parameters = BASELINES[name].__doc__, {field.name for field in fields(BASELINES[name])}
        sections = re.split(r"\n    (\w+)\n    -+\n", text)
        assert sections[1::2] == ["Parameters", "Raises", "References", "Examples"], name
        *authors, year = re.split(r",? (?=\d)|, ", source)
        assert all(author in sections[6] for author in authors), name
        assert f"({year})" in sections[6], name
        described = re.findall(r"^    (\w[\w, ]*)$", "\n" + sections[2], re.MULTILINE)
        assert {parameter for line in described for parameter in line.split(", ")} == parameters, name
