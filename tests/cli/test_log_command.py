"""``banditrank log count`` and ``banditrank log merge``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.click_logs import assert_same_cube, draw_visits, to_wide, write_lines
from helpers.command_line import check_refusal, run

from banditrank import __version__
from banditrank.counts import load_cube
from banditrank.logs import count_log

LOG = draw_visits().drop(columns=["ts", "user_id"])


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    LOG.to_csv("log.csv", index=False)
    write_lines(tmp_path / "wide.jsonl", to_wide(LOG))
    Path("bad.csv").write_text("segment,item,slot,clicked\nnew,a,1,0\nnew,b,2,1\nold,b,1,7\n")
    return tmp_path


@pytest.mark.usefixtures("directory")
def test_a_log_is_counted_and_the_guesses_are_said(capsys: pytest.CaptureFixture) -> None:
    status, output, complaint = run(capsys, "log", "count", "log.csv", "--workers", "1", "-o", "cube")
    assert (status, complaint) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert lines[0].startswith(
        "cube: 240 displays, 80 clicks, 60 visits, 2 user types, 6 items, 4 positions, "
    )
    assert lines[0].endswith(f"banditrank {__version__}")
    guessed = "item item, position position, clicked clicked, session session, user_type segment"
    assert lines[1] == f"guessed columns: {guessed}"
    assert {"counted 240", "all rows 240"} <= set(lines)
    assert_same_cube(load_cube("cube"), count_log("log.csv", threads=1))


@pytest.mark.usefixtures("directory")
def test_columns_are_given_and_dropped_rows_are_listed(capsys: pytest.CaptureFixture) -> None:
    options = ["--type", "segment", "--position", "slot", "--bad-rows", "drop", "--json", "-"]
    status, output, _ = run(capsys, "log", "count", "bad.csv", *options, "-o", "cube")
    document = json.loads(output)
    assert status == 0
    assert document["rows"] == {"counted": 2, "clicked is not 0 or 1": 1}
    assert document["first_rows"] == {"clicked is not 0 or 1": "bad.csv line 4"}
    assert (document["displays"], document["clicks"], document["visits"]) == (2, 1, None)
    _, output, _ = run(capsys, "log", "count", "bad.csv", *options[:-2], "-o", "cube")
    assert "left out: clicked is not 0 or 1 1 bad.csv line 4" in " ".join(output.split())
    _, _, complaint = run(capsys, "log", "diagnose", "bad.csv", *options[:-2])
    assert "left out of 3 rows: clicked is not 0 or 1: 1 row (first: bad.csv line 4)\n" in complaint


MAPPING = """
type = "segment"
position = "place"
without = ["user", "time"]
first-position = 1
bad-rows = "drop"
"""


@pytest.mark.usefixtures("directory")
def test_a_mapping_names_columns_and_the_command_line_takes_precedence(capsys: pytest.CaptureFixture) -> None:
    Path("log.toml").write_text(MAPPING)
    given = ["--mapping", "log.toml", "--position", "slot", "--json", "-"]
    status, output, _ = run(capsys, "log", "count", "bad.csv", *given, "-o", "cube")
    document = json.loads(output)
    assert status == 0
    assert document["columns"]["position"] == ["slot"]
    assert document["columns"]["user_type"] == ["segment"]
    assert set(document["guessed"]) == {"item", "clicked"}
    assert document["rows"]["clicked is not 0 or 1"] == 1
    check_refusal(
        capsys, ["log", "fit", "cube", "--mapping", "log.toml"], "--mapping must not be given for a cube"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("itm = 'a'", r"option in log.toml must be one of .* \(did you mean item\?\), got 'itm'"),
        ("item = 3", "log.toml: item must be text, got 3"),
        ("type = 3", "log.toml: type must be text or a list of texts, got 3"),
        ("first-position = 'one'", "log.toml: first-position must be a whole number, got 'one'"),
        ("item =", r"--mapping must be a TOML file \(.*\), got 'log.toml'"),
        ("item = " + "[" * 5000, r"--mapping must be a TOML file \(.*\), got 'log.toml'"),
        (None, r"--mapping must be readable \(no such file or directory\), got 'log.toml'"),
    ],
)
@pytest.mark.usefixtures("directory")
def test_a_bad_mapping_is_one_line(capsys: pytest.CaptureFixture, text: str | None, message: str) -> None:
    if text is not None:
        Path("log.toml").write_text(text)
    check_refusal(capsys, ["log", "count", "log.csv", "--mapping", "log.toml", "--output", "cube"], message)


@pytest.mark.usefixtures("directory")
def test_cubes_are_merged(capsys: pytest.CaptureFixture) -> None:
    run(capsys, "log", "count", "log.csv", "-o", "a")
    given = ["--items", "items", "--clicked-item", "clicked_items", "--without", "clicks"]
    assert run(capsys, "log", "count", "wide.jsonl", *given, "-o", "b")[0] == 0
    status, output, _ = run(capsys, "log", "merge", "a", "b", "--output", "c")
    assert status == 0
    assert output.startswith("c: 480 displays")
    assert load_cube("c").n_visits == 120


REFUSALS = [
    (["none.csv"], "log must be a file, a directory or a glob that matches a file, got 'none.csv'"),
    (["bad.csv"], "bad.csv line 4: clicked must be 0 or 1, unless bad rows are dropped, got '7'"),
    (["log.csv", "--item", "itm"], r"item column must be one of .* \(did you mean item\?\), got 'itm'"),
    (["log.csv", "--first-position", "3"], "--first-position must be a whole number from 0 to 1, got 3"),
    (
        ["log.csv", "--positions", "0"],
        "--positions must be a range from the first position of up to 62, such as 1-5, got '0'",
    ),
    (["log.csv", "--bad-rows", "keep"], "--bad-rows must be one of refuse, drop"),
    (["log.csv", "--engine", "dask"], "--engine must be one of duckdb, spark"),
    (["log.csv", "--memory-limit", "2"], "--memory-limit must be from 100MB to 1000TB"),
    (["log.csv", "--without", "everything"], "--without must be options of columns"),
    (["log.csv", "--since", "2026-01-01"], "time column must be named for period, since and until"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSALS, ids=lambda value: str(value)[:50])
@pytest.mark.usefixtures("directory")
def test_bad_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture, arguments: list[str], message: str
) -> None:
    check_refusal(capsys, ["log", "count", *arguments, "--output", "cube"], message)


@pytest.mark.usefixtures("directory")
def test_nothing_but_a_cube_is_replaced_or_merged(capsys: pytest.CaptureFixture) -> None:
    message = "--output must be a new directory or an earlier cube, got 'log.csv'"
    check_refusal(capsys, ["log", "count", "log.csv", "--output", "log.csv"], message)
    check_refusal(
        capsys, ["log", "merge", "log.csv", "--output", "c"], "cube must be a directory with cube.json"
    )


def test_the_help_imports_no_numpy() -> None:
    code = (
        "import sys; from banditrank._cli.main import main\n"
        "try: main(['log', 'count', '--help'])\n"
        "except SystemExit: assert 'numpy' not in sys.modules and 'duckdb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
