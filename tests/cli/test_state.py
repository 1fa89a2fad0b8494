"""``banditrank state``: show, export and import; bad input changes nothing."""

import json
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, contents, run
from helpers.live import a_ranker, a_surface, play

from banditrank.storage._factory import DEFAULT_STORE, open_store


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _store() -> None:
    with open_store(DEFAULT_STORE) as store, a_ranker(a_surface(), store) as ranker:
        play(ranker, 12, seed=1)
        ranker.retire_items(["b"])


@pytest.mark.usefixtures("_store")
def test_surfaces_are_listed(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "state", "show")
    assert status == 0
    assert output.strip().splitlines()[-1].split() == [
        "home",
        "12",
        "4",
        "1",
        "2",
        "2",
        "auto",
        "personalized",
        "12",
    ]
    _, output, _ = run(capsys, "state", "show", "--json", "-")
    (summary,) = json.loads(output)["surfaces"]
    assert (summary["surface"], summary["rounds"], summary["version"], summary["revision"]) == (
        "home",
        12,
        12,
        2,
    )


@pytest.mark.usefixtures("_store")
def test_the_estimates_of_a_surface_are_shown(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "state", "show", "home", "--level", "0.8")
    assert status == 0
    assert output.startswith("home: 12 rounds, version 12\n")
    assert "80% interval" in output
    assert "b (retired)" in output
    status, output, _ = run(capsys, "state", "show", "home", "--json", "-")
    report = json.loads(output)
    assert [of_type["user_type"] for of_type in report["user_types"]] == ["new", "old"]
    assert sum(of_type["arrivals"] for of_type in report["user_types"]) == report["rounds"] == 12


@pytest.mark.usefixtures("_store")
def test_an_exported_surface_can_be_imported(capsys: pytest.CaptureFixture) -> None:
    status, text, _ = run(capsys, "state", "export", "home")
    assert status == 0
    status, output, _ = run(capsys, "state", "export", "home", "-o", "home.json")
    assert (status, output.startswith("home.json: surface home, ")) == (0, True)
    assert json.loads(text)["counts"] == json.loads(Path("home.json").read_text())["counts"]
    status, output, _ = run(capsys, "state", "import", "home.json", "--name", "copy")
    assert (status, output.startswith(f"{DEFAULT_STORE}: surface copy, ")) == (0, True)
    assert run(capsys, "state", "import", "home.json", "--store", "sqlite:other.db")[0] == 0
    _, copy, _ = run(capsys, "state", "export", "home", "--store", "sqlite:other.db")
    assert json.loads(copy)["counts"] == json.loads(text)["counts"]


@pytest.mark.usefixtures("_store")
def test_reading_changes_nothing(capsys: pytest.CaptureFixture) -> None:
    for arguments in (["show"], ["show", "home"], ["export", "home"]):
        before = contents()
        assert run(capsys, "state", *arguments)[0] == 0
        assert contents() == before


def test_an_empty_store_has_no_surfaces(capsys: pytest.CaptureFixture) -> None:
    open_store(DEFAULT_STORE).close()
    assert run(capsys, "state", "show")[:2] == (0, "no surfaces\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "--store must be a store that exists, got 'sqlite:banditrank.db'"),
        (["export", "home"], "--store must be a store that exists"),
        (["show", "--store", "memory:"], "--store must outlive this command"),
        (["show", "--store", "mysql://host"], "--store must be sqlite:FILE"),
        (["show", "--store", "sqlite:"], "--store must name a file"),
        (["import", "nowhere.json"], "file must be readable"),
        (["import", "bad.json"], "format must be 'banditrank surface 1'"),
        (["import", "text.json"], "file must be JSON"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture, arguments: list[str], message: str) -> None:
    Path("bad.json").write_text("{}")
    Path("text.json").write_text("text")
    check_refusal(capsys, ["state", *arguments], message)


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "hoome"], r"surface 'hoome' does not exist \(did you mean home\?\)"),
        (["show", "home", "--level", "2"], "--level must be a number from 0.01 to"),
        (["export", "other"], "surface 'other' does not exist"),
        (["export", "home", "-o", "no/where"], "--output must be a file in a directory that exists"),
        (["import", "home.json"], "surface 'home' already exists"),
        (["import", "home.json", "--name", "A B"], "--name must be up to 64"),
        (["show", "home", "--json", "no/where"], "--json must be a file in a directory that exists"),
    ],
)
def test_input_that_conflicts_with_the_store_is_one_line(
    capsys: pytest.CaptureFixture, arguments: list[str], message: str
) -> None:
    Path("home.json").write_text(run(capsys, "state", "export", "home")[1])
    check_refusal(capsys, ["state", *arguments], message)


def test_without_a_command_help_is_printed(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "state")
    assert status == 0
    assert "import" in output
