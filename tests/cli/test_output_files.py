"""Output files are checked before the computation, and written completely or not at all."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, contents, run

from banditrank import kdd2012

QUICK = ["--policy", "oracle", "--horizon", "100", "--replications", "1"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kdd2012().save("problem.toml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["simulate", "--json", "a.svg", "--plot", "./a.svg"],
            "--json must not be the file of --plot, got 'a",
        ),
        (
            ["frontier", "kdd2012", "--json", "a.svg", "--plot", "a.svg"],
            "--json must not be the file of --plot",
        ),
        (["simulate", "problem.toml", "--json", "problem.toml"], "--json must not be an input file, got"),
        (["solve", "./problem.toml", "--json", "problem.toml"], "--json must not be an input file, got"),
        (["frontier", "problem.toml", "--json", "link.json"], "--json must not be an input file, got"),
        (["solve", "kdd2012", "--json", "none/a.json"], "--json must be a file in a directory that exists"),
        (["problem", "generate", "random", "-o", "."], "--output must be a file in a directory that exists"),
        (["problem", "generate", "random", "-o", ""], "-o must not be empty, got ''"),
        (["solve", ""], "argument must not be empty, got ''"),
    ],
)
def test_bad_output_files_are_refused_before_the_computation(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    Path("link.json").symlink_to("problem.toml")
    check_refusal(capsys, arguments, message)


def test_an_unwritable_directory_is_refused_before_the_computation(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    check_refusal(capsys, ["solve", "kdd2012", "--json", "a.json"], "--json must be writable, got 'a.json'")


@pytest.mark.parametrize(
    "arguments", [["simulate", *QUICK], ["frontier", "kdd2012"]], ids=lambda words: words[0]
)
def test_a_plot_without_matplotlib_is_refused_before_the_computation(
    arguments: list[str], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise AssertionError("the problem was loaded")

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("banditrank.model._catalog.load_problem", fail)
    before = contents()
    message = "banditrank: matplotlib is required for plotting: pip install 'banditrank[plots]'\n"
    assert run(capsys, *arguments, "--plot", "a.png", "--json", "a.json") == (2, "", message)
    assert contents() == before


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["pyarrow"], "pyarrow is required"),
        (["pandas"], "pandas is required"),
        (["pandas", "pyarrow"], "pandas and pyarrow are required"),
    ],
)
def test_saving_without_its_packages_is_refused_before_the_computation(
    missing: list[str], message: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise AssertionError("the simulation was compiled")

    for package in missing:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("banditrank.simulation._simulate.precompile", fail)
    before = contents()
    message = f"banditrank: {message} for saving results: pip install 'banditrank[frames]'\n"
    assert run(capsys, "simulate", *QUICK, "--save", "new/deep") == (2, "", message)
    assert contents() == before


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["simulate", *QUICK, "--json", "a"], "--json"),
        (["solve", "kdd2012", "--json", "a"], "--json"),
        (["problem", "generate", "random", "-o", "a"], "problem file"),
    ],
)
def test_a_full_disk_leaves_existing_files_unchanged(
    arguments: list[str],
    field: str,
    exists: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = Path.write_text

    def fill(path: Path, text: str, **settings: str) -> None:
        write(path, text[: len(text) // 2], **settings)
        raise OSError(errno.ENOSPC, "Full")

    if exists:
        Path("a").write_text("mine")
    before = contents()
    monkeypatch.setattr(Path, "write_text", fill)
    status, _, complaint = run(capsys, *arguments)
    assert status == 2
    assert complaint == f"banditrank: {field} must be writable (no space left on device), got 'a'\n"
    assert contents() == before


def test_a_plot_is_written_completely_or_not_at_all(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.png").write_text("mine")

    def fill(_: object, path: Path, **__: str) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "Full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fill)
    status, _, complaint = run(capsys, "simulate", *QUICK, "--plot", "a.png")
    assert (status, Path("a.png").read_text()) == (2, "mine")
    assert "plot file must be writable (no space left on device)" in complaint


def test_json_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    program = "from banditrank._cli.main import main; main(['solve', 'kdd2012', '--json', 'pipe'])"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.DEVNULL
    ) as process:
        assert '"ranking"' in (tmp_path / "pipe").read_text()
    assert process.returncode == 0


@pytest.mark.usefixtures("default_interrupt")
def test_ctrl_c_at_any_time_is_one_line(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("banditrank.experiments._reproduce.find_studies", interrupt)
    monkeypatch.setattr("banditrank.model._catalog.load_problem", interrupt)
    for command in (["reproduce"], ["solve", "kdd2012"], ["problem", "show", "kdd2012"]):
        assert run(capsys, *command) == (130, "", "banditrank: interrupted\n")
