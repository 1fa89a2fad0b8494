"""``banditrank data kdd2012``."""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers.handwritten_log import GOOD, PROFILES, row, write_log

from banditrank import Problem, __version__, kdd2012
from banditrank._cli.main import main
from banditrank.logs.kdd2012._diagnosis import diagnose
from banditrank.logs.kdd2012._extraction import extract
from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    streams = capsys.readouterr()
    return stopped.value.code, streams.out, streams.err


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> SampleLog:
    return write_sample_log(kdd2012(), tmp_path_factory.mktemp("log"), n_rows=5000, seed=4)


def command(log: SampleLog, *more: str) -> list[str]:
    files = ["--training", str(log.training), "--profiles", str(log.profiles)]
    return ["data", "kdd2012", *files, *more]


def test_it_prints_rows_cells_and_estimates_beside_table_1(
    capsys: pytest.CaptureFixture, log: SampleLog
) -> None:
    status, output, complaint = run(capsys, *command(log))
    assert (status, complaint) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    diagnosis = diagnose(extract(log.training, log.profiles))
    found = diagnosis.extraction
    for group in found.row_groups:
        what = group.reason if group.reason == "counted" else f"left out: {group.reason}"
        assert f"{what} {group.rows:,} {group.impressions:,} {group.clicks:,}" in lines
    assert f"all rows 5,000 {found.total.impressions:,} {found.total.clicks:,}" in lines
    for j, name in enumerate(found.items):
        cells = [(i, j, k) for i in (0, 1) for k in (0, 1)]
        figures = (f"{found.counts.rewards[c]:,.0f} / {found.counts.displays[c]:,.0f}" for c in cells)
        assert f"{name} {' '.join(figures)}" in lines
        problems = (diagnosis.paper.problem, diagnosis.likelihood.problem, kdd2012())
        means = (f"{problem.item_means[i, j]:.3f}" for i in (0, 1) for problem in problems)
        assert f"{name} {' '.join(means)}" in lines
    assert "every cell has displays" in lines
    assert f"banditrank {__version__}" in lines[0]


@pytest.mark.parametrize("estimator", ["paper", "likelihood"])
def test_the_problem_is_written_and_can_be_used(
    capsys: pytest.CaptureFixture, log: SampleLog, tmp_path: Path, estimator: str
) -> None:
    path = tmp_path / "problem.toml"
    status, output, _ = run(capsys, *command(log, "--output", str(path), "--estimator", estimator))
    assert status == 0
    assert f"problem.toml: problem estimated by {estimator}" in output
    diagnosis = diagnose(extract(log.training, log.profiles))
    assert Problem.load(path) == getattr(diagnosis, estimator).problem
    assert run(capsys, "solve", str(path))[0] == 0


def test_json_on_standard_output_is_alone_and_complete(
    capsys: pytest.CaptureFixture, log: SampleLog, tmp_path: Path
) -> None:
    settings = ["--ads", "3", "--positions", "3,1", "--memory-limit", "200MB", "--workers", "1"]
    arguments = command(log, *settings, "--temporary-directory", str(tmp_path), "--json", "-")
    status, output, complaint = run(capsys, *arguments)
    document = json.loads(output)
    assert (status, complaint) == (0, "")
    expected = diagnose(extract(log.training, log.profiles, n_ads=3, positions=(3, 1)))
    assert {key: document[key] for key in expected.to_dict()} == json.loads(json.dumps(expected.to_dict()))
    assert document["table_1"] == kdd2012().to_dict()
    assert document["version"] == __version__
    assert (document["training_file"], document["profile_file"]) == (str(log.training), str(log.profiles))
    assert document["profiles_found"] == 250
    assert document["notes"] == expected.notes()
    assert not list(tmp_path.iterdir())


def test_empty_cells_are_reported(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    written = write_log(tmp_path, [line for line in GOOD if line != row(2, 2, 1)])
    status, output, _ = run(capsys, *command(written, "--ads", "2"))
    assert status == 0
    assert "ad-2 0 / 1 empty 0 / 1 0 / 1" in " ".join(output.split())
    assert "empty cells: male ad-2 at position 2" in output


def test_other_positions_and_more_ads_have_no_figures_in_table_1(
    capsys: pytest.CaptureFixture, log: SampleLog
) -> None:
    _, output, _ = run(capsys, *command(log, "--ads", "6", "--positions", "1,3"))
    figures = [line.split() for line in output.splitlines() if re.match(r" position 3 ", line)]
    assert len(figures[0]) == 2 + 4
    assert "0.323" not in output.split("Estimates")[1].split("ad-1")[0]


BAD = [
    (
        ["--training", "none.txt"],
        r"training file must be readable \(no such file or directory\), got 'none.txt'",
    ),
    (["--profiles", "."], "profile file must be a file, got '.'"),
    (["--training", "bad.txt"], "bad.txt line 9: Click must be at most the line's Impression, 1, got 3"),
    (["--training", "userid_profile.txt"], "line 1 must have 12 columns with tabs between them, got 3"),
    (["--profiles", "training.txt"], "line 1 must have 3 columns with tabs between them, got 12"),
    (
        ["--estimator", "papr"],
        r"estimator must be one of paper, likelihood \(did you mean paper\?\), got 'papr'",
    ),
    (["--ads", "0"], "--ads must be a whole number of at least 1, got 0"),
    (["--ads", "3"], "--ads must be at most the ads .*, 2, got 3"),
    (["--ads", "many"], "banditrank: --ads must be a whole number, got 'many'$"),
    (["--positions", "1,two"], "--positions must be whole numbers with commas between them, got '1,two'"),
    (["--positions", "1,4"], "--positions must be different ones of 1, 2 and 3, got '1,4'$"),
    (["--positions", "4"], "--positions must be different ones of 1, 2 and 3, got '4'$"),
    (["--memory-limit", "1"], "--memory-limit must be from 100MB to 1000TB, written like 2GB, got '1'"),
    (["--memory-limit", "99999999999999TB"], "--memory-limit must be from 100MB to 1000TB, .*, got '9"),
    (["--workers", "0"], "--workers must be a whole number from 1 to 1,024, got 0"),
    (["--workers", "999999"], "--workers must be a whole number from 1 to 1,024, got 999999"),
    (["--workers", "9" * 23], "--workers must be a whole number from 1 to 1,024, got 9"),
    (["--workers", "x"], "banditrank: --workers must be a whole number, got 'x'$"),
    (["--temporary-directory", "none"], r"--temporary-directory must be writable .*, got 'none'"),
    (["--output", ""], "--output must not be empty, got ''"),
    (["--json", ""], "--json must not be empty, got ''"),
    (["--output", "a.toml", "--json", "./a.toml"], "--json must not be the file of --output, got 'a.toml'"),
    (["--output", "none/p.toml"], "--output must be a file in a directory that exists, got 'none/p.toml'"),
    (["--output", "."], "--output must be a file in a directory that exists, got '.'"),
    (["--output", "training.txt"], "--output must not be an input file, got 'training.txt'"),
    (["--json", "./userid_profile.txt"], "--json must not be an input file"),
    (["--json", "none/x.json"], "--json must be a file in a directory that exists"),
]


@pytest.mark.parametrize(("more", "message"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path, [*GOOD, row(click=3)]).training.rename("bad.txt")
    write_log(tmp_path, GOOD, PROFILES)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = {"--training": "training.txt", "--profiles": "userid_profile.txt", "--ads": "2"}
    options = {**given, **dict(zip(more[::2], more[1::2], strict=True))}
    status, output, complaint = run(
        capsys, "data", "kdd2012", *(word for pair in options.items() for word in pair)
    )
    assert status == 2
    assert output == ""
    assert complaint.count("\n") == 1
    assert complaint.startswith("banditrank: ")
    assert re.search(message, complaint), complaint
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before, "bad input must change nothing"


def test_without_duckdb_it_says_how_to_install_it(
    capsys: pytest.CaptureFixture, log: SampleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    status, output, complaint = run(capsys, *command(log))
    assert (status, output) == (2, "")
    assert (
        complaint == "banditrank: duckdb is required for reading click logs: pip install 'banditrank[logs]'\n"
    )


def test_help_names_the_command(capsys: pytest.CaptureFixture) -> None:
    assert "kdd2012" in run(capsys, "data")[1]
    assert "--memory-limit" in run(capsys, "data", "kdd2012", "--help")[1]
