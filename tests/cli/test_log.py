"""``banditrank log``: analyses of a cube and of files, and logs that cannot tell."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from helpers.command_line import check_refusal, run
from helpers.csv_logs import PROBLEM, SEGMENTS, write_csv_log
from helpers.simulated_logs import simulate_visits

from banditrank import Problem
from banditrank._cli.log import source
from banditrank._cli.main import main
from banditrank.counts import ClickCube, _click_cube, load_cube


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log of 3,000 visits with random rankings, its cube, and cubes of logs that cannot tell."""
    folder = tmp_path_factory.mktemp("logs")
    rng = np.random.default_rng(5)
    visits = simulate_visits(PROBLEM, "uniform", 3000, "position-based", rng)
    types, items, clicks = visits.user_type, visits.items, visits.clicks
    write_csv_log(folder / "clicks.csv", types, items, clicks)
    n = len(types)
    fixed = np.tile([0, 1, 2], (n, 1))
    alone = np.where(np.arange(3) == (np.arange(n) % 3)[:, None], types[:, None], -1)
    shuffled = np.argsort(rng.random((n, 3)), axis=1)
    rows = np.arange(n)[:, None]
    logs = {
        "fixed": (fixed, rng.random((n, 3)) < [0.4, 0.3, 0.1]),
        "single": (items[:, :1], clicks[:, :1]),
        "alone": (alone, clicks),
        "all": (items, np.ones_like(clicks)),
        "none": (items, np.zeros_like(clicks)),
        "shuffled": (items[rows, shuffled], clicks[rows, shuffled]),
    }
    for name, (shown, clicked) in logs.items():
        ClickCube.from_visits(types, shown, clicked, user_types=SEGMENTS).save(folder / name)
    with pytest.raises(SystemExit) as stopped:
        main(["log", "count", str(folder / "clicks.csv"), "--time", "date", "-o", str(folder / "cube")])
    assert not stopped.value.code
    return folder


@pytest.fixture
def log(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], str]:
    """Return the path of a log by name, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return lambda name: str(folder / name)


Log = Callable[[str], str]


def test_files_and_cube_tell_the_same(capsys: pytest.CaptureFixture, log: Log) -> None:
    _, from_cube, complaint = run(capsys, "log", "fit", log("cube"), "--json", "-")
    assert complaint == ""
    _, from_file, said = run(capsys, "log", "fit", log("clicks.csv"), "--time", "date", "--json", "-")
    assert json.loads(from_file) == json.loads(from_cube)
    assert "guessed columns: item item, position slot, clicked clicked, session session" in said


def test_a_problem_is_written_and_solved(capsys: pytest.CaptureFixture, log: Log) -> None:
    status, output, _ = run(capsys, "log", "fit", log("cube"), "-o", "problem.toml", "--json", "fit.json")
    assert status == 0
    assert output.splitlines()[0].startswith("The log ")  # the verdict comes first
    said = re.search(
        r"problem.toml: problem of the position-based model; its click rates are .* click_scale, ([\d.]+)",
        output,
    )
    problem = Problem.load("problem.toml")
    assert (problem.user_types, problem.n_items, problem.n_positions) == (SEGMENTS, 5, 3)
    document = json.loads(Path("fit.json").read_text())
    types = document["fit"]["user_types"]
    worth, appeal = (
        np.array([[one["estimate"] for one in user_type[kind]] for user_type in types])
        for kind in ("positions", "items")
    )
    # Click rates are those of the fit, divided by the largest sum of a type's examination.
    rates = problem.position_preferences[:, :, None] * problem.item_means[:, None]
    expected = worth[:, :, None] * appeal[:, None] / worth.sum(axis=1).max()
    assert rates == pytest.approx(expected, rel=1e-6)
    assert document["problem"]["scale"] == pytest.approx(worth.sum(axis=1).max())
    assert float(said[1]) == pytest.approx(worth.sum(axis=1).max(), rel=1e-5)
    assert problem.click_scale == pytest.approx(worth.sum(axis=1).max())


def test_solve_and_frontier_print_clicks_per_visit_as_evaluate_does(
    capsys: pytest.CaptureFixture, log: Log
) -> None:
    """Finding 6: values of a problem estimated from a log are clicks per visit, as `evaluate` prints them."""
    run(capsys, "log", "fit", log("cube"), "--model", "position-based", "-o", "problem.toml")
    _, text, _ = run(capsys, "log", "evaluate", log("cube"), "--model", "position-based", "--json", "-")
    targets = json.loads(text)["evaluation"]["targets"]
    clicks = {each["name"]: each["value"] for each in targets}
    solved = json.loads(run(capsys, "solve", "problem.toml", "--json", "-")[1])
    points = json.loads(run(capsys, "frontier", "problem.toml", "--json", "-")[1])
    lottery = json.loads(run(capsys, "solve", "problem.toml", "--lottery", "--json", "-")[1])
    for value in (solved["value"], points["points"][0]["total_value"], lottery["value"]):
        assert clicks["equal:utilitarian"]["low"] <= value <= clicks["equal:utilitarian"]["high"]
    personalized = clicks["personalized"]
    assert personalized["low"] <= points["personalized"]["total_value"] <= personalized["high"]
    assert "clicks per visit" in run(capsys, "solve", "problem.toml")[1]
    assert "clicks per visit" in run(capsys, "frontier", "problem.toml")[1]


def test_items_positions_and_dates_are_selected(capsys: pytest.CaptureFixture, log: Log) -> None:
    _, output, _ = run(capsys, "log", "fit", log("cube"), "--items", "4", "--positions", "1-2", "--json", "-")
    fit = json.loads(output)["fit"]["user_types"][0]
    assert (len(fit["items"]), len(fit["positions"])) == (4, 2)
    part = ["--items", "4", "--positions", "1-2", "--since", "2026-03-02"]
    run(capsys, "log", "count", log("clicks.csv"), *part, "-o", "part", "--json", "-")
    assert load_cube("part").metadata["selection"] == [
        "the 4 most shown of 5 items",
        "positions 1 to 2",
        "from 2026-03-02",
    ]
    _, output, _ = run(
        capsys,
        "log",
        "diagnose",
        log("cube"),
        "--since",
        "2026-03-03",
        "--until",
        "2026-03-04",
        "--json",
        "-",
    )
    displays = sum(one["n_displays"] for one in json.loads(output)["user_types"])
    assert displays == 3 * 750


def test_a_log_of_too_many_items_is_refused_with_the_option_that_keeps_some(
    capsys: pytest.CaptureFixture, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_click_cube, "MAX_ANALYSED_CELLS", 80)
    rule = "LOG must have at most 80 cells, empty ones included, to be analysed: "
    remedy = (
        "keep the most shown items with --items 4 or fewer, got '2 user types x 5 items x 3 positions x 3 "
    )
    for command in ("diagnose", "fit", "types", "evaluate"):
        check_refusal(capsys, ["log", command, log("cube")], rule + remedy)
    monkeypatch.setattr(source, "_MANY_CELLS", 50)
    _, _, complaint = run(capsys, "log", "diagnose", log("cube"), "--items", "4")
    assert "2 user types x 4 items x 3 positions may take minutes\n" in complaint
    monkeypatch.setattr(source, "_FEW_ITEMS", 3)
    _, _, complaint = run(capsys, "log", "diagnose", log("cube"), "--items", "4")
    assert "2 user types x 4 items x 3 positions may take minutes: --items 3 keeps the most" in complaint


def test_long_names_are_shortened_except_in_json(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    items, types = np.argsort(rng.random((300, 3)), axis=1), np.arange(300) % 2
    clicks = rng.random((300, 3)) < [0.5, 0.3, 0.2]
    names, segments = [letter * 1000 for letter in "abc"], [letter * 1000 for letter in "xy"]
    cube = ClickCube.from_visits(types, items, clicks, user_types=segments, item_names=names)
    cube.save(tmp_path / "cube")
    for command in ("diagnose", "fit", "evaluate"):
        _, output, complaint = run(capsys, "log", command, str(tmp_path / "cube"))
        assert "xxxxx" in output
        assert max(map((output + complaint).count, "bcxy")) < 1000
    _, output, _ = run(capsys, "log", "fit", str(tmp_path / "cube"), "--json", "-")
    assert [one["item"] for one in json.loads(output)["fit"]["user_types"][0]["items"]] == names


def test_compilation_is_announced(
    capsys: pytest.CaptureFixture, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_anew(*_: object) -> tuple:
        def formula() -> int:
            return 1

        formula.__module__ = "banditrank.estimators._click_models._rank_one_tables"
        numba.njit(formula)()
        return ()

    monkeypatch.setattr("banditrank.logs._diagnosis._plan_all_swaps", compile_anew)
    _, output, complaint = run(
        capsys, "log", "diagnose", log("cube"), "--json", "-", is_announcement_kept=True
    )
    assert json.loads(output)["swaps"] == []
    assert "banditrank: compiling the click models (first use, may take a minute)\n" in complaint


def test_drift_is_looked_for_if_the_time_is_guessed(capsys: pytest.CaptureFixture, log: Log) -> None:
    _, output, said = run(capsys, "log", "diagnose", log("clicks.csv"), "--json", "-")
    assert "time date" in said
    assert json.loads(output)["drift"]["n_periods"] == 4
    _, output, _ = run(capsys, "log", "diagnose", log("clicks.csv"), "--without", "time", "--json", "-")
    assert json.loads(output)["drift"]["n_periods"] == 1


def test_drift_is_found_beside_rows_with_a_bad_date(
    capsys: pytest.CaptureFixture, log: Log, tmp_path: Path
) -> None:
    """Finding 4: a few rows with a bad date are refused or dropped, and do not switch drift off."""
    lines = Path(log("clicks.csv")).read_text(encoding="utf-8").splitlines()
    lines[7] = "n/a" + lines[7][len("2026-03-01") :]
    (tmp_path / "dirty.csv").write_text("\n".join(lines), encoding="utf-8")
    check_refusal(capsys, ["log", "diagnose", "dirty.csv"], "dirty.csv line 8: date must be a time")
    _, output, _ = run(capsys, "log", "diagnose", "dirty.csv", "--bad-rows", "drop", "--json", "-")
    found = json.loads(output)
    assert found["drift"]["n_periods"] == 4
    assert found["rows"] == {"counted": 8999, "time is not a time": 1}


def test_shared_positions_are_one_column(capsys: pytest.CaptureFixture, log: Log) -> None:
    """Finding 4: positions that all user types share are listed once."""
    _, output, _ = run(capsys, "log", "fit", log("cube"), "--shared-positions", "--model", "position-based")
    assert output.count("1 (reference)") == 1
    heading = next(line for line in output.splitlines() if line.split()[:1] == ["position"])
    assert heading.split(maxsplit=1)[1].strip() == "all user types"


def test_user_types_are_assessed(capsys: pytest.CaptureFixture, log: Log) -> None:
    status, output, _ = run(capsys, "log", "types", log("cube"))
    assert status == 0
    assert "Tell user types apart by segment." in output
    _, output, _ = run(capsys, "log", "types", log("cube"), "--json", "-")
    assert json.loads(output)["recommended"] == ["segment"]


def test_user_types_of_a_fixed_layout_are_assessed_without_rankings(
    capsys: pytest.CaptureFixture, log: Log
) -> None:
    status, output, _ = run(capsys, "log", "types", log("fixed"), "--json", "types.json")
    assert status == 0
    assert "one ranking serves all cannot be known" in " ".join(output.split())
    assert "not identified" in output
    (column,) = json.loads(Path("types.json").read_text())["columns"]
    assert (column["clicks_gained"], column["clicks_interval"]) == (None, [None, None])


def test_rankings_are_evaluated(capsys: pytest.CaptureFixture, log: Log) -> None:
    Path("candidate.json").write_text(json.dumps(["item-1", "item-2", "item-3"]))
    targets = "current,personalized,candidate.json"
    status, output, _ = run(
        capsys, "log", "evaluate", log("cube"), "--ranking", targets, "--json", "values.json"
    )
    assert status == 0
    document = json.loads(Path("values.json").read_text())
    assert document["diagnosis"]["verdict"] in output
    values = {one["name"]: one for one in document["evaluation"]["targets"]}
    assert list(values) == ["current", "personalized", "candidate"]
    assert values["personalized"]["is_cross_fitted"]
    assert values["personalized"]["value"]["value"] > values["current"]["value"]["value"]


def test_the_rankings_of_a_column_are_evaluated(
    capsys: pytest.CaptureFixture, log: Log, folder: Path
) -> None:
    rows = pd.read_csv(folder / "clicks.csv", dtype=str)
    # The candidate turns each ranking over: as the item of a row, and as the list of a visit.
    reverse = (4 - rows["slot"].astype(int)).astype(str)
    turned = rows.assign(slot=reverse)[["session", "slot", "item"]].rename(columns={"item": "candidate"})
    rows = rows.merge(turned, on=["session", "slot"])
    rows.to_csv("long.csv", index=False)
    by_visit = rows.groupby("session", sort=False)
    wide = by_visit.agg(segment=("segment", "first"), items=("item", "|".join), other=("candidate", "|".join))
    wide["clicked_items"] = ["|".join(visit.loc[visit["clicked"] == "1", "item"]) for _, visit in by_visit]
    wide.reset_index().to_csv("wide.csv", index=False)
    options = ["--model", "position-based", "--json", "-"]
    values = []
    for name, column in (("long.csv", "candidate"), ("wide.csv", "other")):
        targets = ["--ranking", f"current,column:{column}"]
        status, output, _ = run(capsys, "log", "evaluate", name, *targets, *options)
        assert status == 0
        current, candidate = json.loads(output)["evaluation"]["targets"]
        assert candidate["name"] == f"column:{column}"
        assert candidate["value"]["value"] == pytest.approx(
            current["value"]["value"], rel=0.1
        )  # random rankings
        values.append(candidate["value"]["value"])
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    missing = ["log", "evaluate", "long.csv", "--ranking", "column:candidat"]
    check_refusal(
        capsys, missing, r"--ranking: column must be one of .* \(did you mean candidate\?\)", lines=2
    )
    cube = ["log", "evaluate", log("cube"), "--ranking", "column:candidate"]
    check_refusal(capsys, cube, "--ranking must not be a column for a cube")


def test_a_surface_starts_learned(capsys: pytest.CaptureFixture, log: Log) -> None:
    settings = ["--surface", "home", "--max-visits", "500"]
    status, output, _ = run(capsys, "log", "warm-start", log("cube"), *settings, "-o", "home.json")
    assert status == 0
    assert "starts with 500 visits" in output
    assert output.endswith("Create the surface with: banditrank state import home.json\n")
    assert run(capsys, "state", "import", "home.json", "--store", "sqlite:imported.db")[0] == 0
    status, output, _ = run(capsys, "log", "warm-start", log("cube"), *settings, "--store", "sqlite:home.db")
    assert status == 0
    assert output.endswith("Serve it with: banditrank serve --store sqlite:home.db\n")
    shown = [run(capsys, "state", "show", "--store", f"sqlite:{name}.db")[1] for name in ("imported", "home")]
    assert shown[0] == shown[1]
    assert re.search(r"home +500 +5 ", shown[0])


def test_a_surface_does_not_start_from_a_log_without_click_rates(
    capsys: pytest.CaptureFixture, log: Log
) -> None:
    for name, rule in (("none", "must have clicks"), ("all", "must have displays without a click")):
        refused = ["log", "warm-start", log(name), "--surface", "home", "-o", "home.json"]
        check_refusal(capsys, refused, f"log {rule} to start a surface")
        assert not Path("home.json").exists()
    status, _, said = run(capsys, "log", "warm-start", log("fixed"), "--surface", "home", "-o", "home.json")
    assert (status, Path("home.json").exists()) == (0, True)
    assert said == (
        "banditrank: warning: no item was shown at two positions (a fixed layout): the surface cannot tell "
        "positions from items until it has shown items elsewhere\n"
    )


def test_a_policy_is_replayed(capsys: pytest.CaptureFixture, log: Log) -> None:
    status, output, _ = run(
        capsys, "log", "replay", log("cube"), "--policy", "random", "--rounds", "200", "--json", "-"
    )
    assert status == 0
    assert json.loads(output)["rounds"] == 200


@pytest.mark.parametrize("name", ["all", "none"])
def test_a_log_without_click_rates_is_not_replayed(
    capsys: pytest.CaptureFixture, log: Log, name: str
) -> None:
    given = ["log", "replay", log(name), "--policy", "random", "--rounds", "10"]
    status, output, _ = run(capsys, *given, "--json", "replay.json")
    assert (status, "clicks per visit" in output) == (0, False)
    assert "random is not replayed: without click rates no policy learns." in output
    document = json.loads(Path("replay.json").read_text())
    assert TRAPS[name][1] in document["withheld"]
    assert "clicks_per_visit" not in document
    assert json.loads(run(capsys, *given, "--json", "-")[1]) == document


def test_visits_need_no_id_if_each_is_a_row(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """Rankings, click model and worth of positions of rows without an id are those of rows with one."""
    visits = simulate_visits(PROBLEM, "uniform", 4000, "position-based", np.random.default_rng(3))
    file = tmp_path / "wide.csv"
    with file.open("w") as lines:
        lines.write("visit,segment,item_1,item_2,item_3,clicked_item\n")
        for n, (one, shown, clicked) in enumerate(
            zip(visits.user_type, visits.items, visits.clicks, strict=True)
        ):
            items = ",".join(map(str, shown))
            lines.write(f"{n},{one},{items},{'|'.join(map(str, shown[clicked > 0]))}\n")
    fits = []
    for options in ([], ["--without", "session"]):
        status, output, _ = run(capsys, "log", "fit", str(file), *options, "--json", "-")
        assert status == 0
        fits.append(json.loads(output)["fit"])
    assert fits[0]["model"] == fits[1]["model"] == "position-based"
    for one, other in zip(*(fit["user_types"] for fit in fits), strict=True):
        assert [k["estimate"] for k in other["positions"]] == pytest.approx(
            [k["estimate"] for k in one["positions"]], abs=1e-6
        )
    given = ["--without", "session", "--ranking", "personalized", "--json", "-"]
    status, output, _ = run(capsys, "log", "evaluate", str(file), *given)
    assert status == 0
    assert json.loads(output)["evaluation"]["targets"][0]["value"]["value"] > 0


# Words that the diagnosis must say, and its exit status.
TRAPS = {
    "fixed": (3, "a fixed layout"),
    "single": (3, "All displays are at position 1"),
    "alone": (1, "Each user type was shown a single item"),
    "all": (3, "displays without a click are probably missing"),
    "none": (3, "The log has no clicks"),
    "shuffled": (1, "Clicks do not depend on the position"),
}
WITHOUT_ITEMS = ("all", "none")
ADVICE = {
    "fixed": "show the swaps of items that banditrank log diagnose lists",
    "single": "it takes two positions or more",
    "all": "check the column of clicks",
    "none": "check the column of clicks",
    "shuffled": "check the column of positions",
}


@pytest.mark.parametrize("name", TRAPS)
def test_the_diagnosis_says_what_cannot_be_known(capsys: pytest.CaptureFixture, log: Log, name: str) -> None:
    wanted, words = TRAPS[name]
    status, output, _ = run(capsys, "log", "diagnose", log(name))
    assert (status, words in output) == (wanted, True)


@pytest.mark.parametrize("name", [name for name in TRAPS if name != "alone"])
def test_what_cannot_be_known_is_no_number(capsys: pytest.CaptureFixture, log: Log, name: str) -> None:
    """Of the worth of positions no number is printed, and without click rates none of items and rankings."""
    status, output, _ = run(capsys, "log", "fit", log(name), "--json", "fit.json")
    assert status == 0
    positions = re.search(r"Worth of positions.*?(?=Appeal of items)", output, re.DOTALL)[0]
    assert not re.search(r"\d\.\d", positions)
    fit = json.loads(Path("fit.json").read_text())["fit"]
    for one in fit["user_types"]:
        assert all(position["estimate"] is None for position in one["positions"])
        if name in WITHOUT_ITEMS:
            assert all(item["estimate"] is None for item in one["items"])
    check_problem = [*("log", "fit", log(name)), "-o", "problem.toml"]
    status, _, complaint = run(capsys, *check_problem)
    assert (status, Path("problem.toml").exists()) == (2, False)
    assert "is not identified" in complaint
    assert f"to make a problem: {ADVICE[name]}" in complaint


@pytest.mark.parametrize("name", ["fixed", "all", "none"])
def test_rankings_are_not_learned_from_logs_that_cannot_tell(
    capsys: pytest.CaptureFixture, log: Log, name: str
) -> None:
    status, output, _ = run(capsys, "log", "evaluate", log(name), "--json", "values.json")
    assert status == 0
    assert TRAPS[name][1] in output
    assert "Price of equality" not in output
    evaluation = json.loads(Path("values.json").read_text())["evaluation"]
    assert {"personalized", "equal"} <= set(evaluation["withheld"])
    known = [one["name"] for one in evaluation.get("targets", [])]
    assert known == ([] if name in WITHOUT_ITEMS else ["current"])


def test_rankings_are_not_learned_from_fewer_items_than_positions(
    capsys: pytest.CaptureFixture, log: Log
) -> None:
    status, output, _ = run(capsys, "log", "evaluate", log("alone"))
    assert status == 0
    assert "personalized, equal: not identified. The log has 2 items for 3 positions" in output


def test_items_of_a_single_position_are_ranked(capsys: pytest.CaptureFixture, log: Log) -> None:
    status, output, _ = run(capsys, "log", "evaluate", log("single"), "--json", "values.json")
    assert status == 0
    assert "Price of equality" in output
    evaluation = json.loads(Path("values.json").read_text())["evaluation"]
    assert evaluation["withheld"] == {}
    values = {one["name"]: one for one in evaluation["targets"]}
    counts = load_cube(log("single")).counts()
    best = [f"item-{1 + j}" for j in (counts.rewards / counts.displays)[:, :, 0].argmax(axis=1)]
    assert [items for (items,) in values["personalized"]["rankings"].values()] == best
    assert values["personalized"]["value"]["value"] > values["current"]["value"]["value"]


def test_rankings_are_learned_if_positions_make_no_difference(
    capsys: pytest.CaptureFixture, log: Log
) -> None:
    status, output, _ = run(capsys, "log", "evaluate", log("shuffled"), "--json", "values.json")
    assert status == 0
    assert "Check it before using the worth of positions or rankings" in output
    assert "Price of equality" in output
    evaluation = json.loads(Path("values.json").read_text())["evaluation"]
    assert evaluation["withheld"] == {}
    values = {one["name"]: one["value"]["value"] for one in evaluation["targets"]}
    assert values["personalized"] > values["current"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "CUBE", "--items", "0"], "--items must be one number of at least 1, got '0'"),
        (["fit", "CUBE", "--positions", "2-3"], "--positions must be a range from the first .*, got '2-3'"),
        (["fit", "CUBE", "--positions", "1-63"], "--positions must be a range .* of up to 62"),
        (["fit", "CUBE", "--item", "sku"], "--item must not be given for a cube"),
        (["fit", "CUBE", "--model", "magic"], "model .*magic"),
        (["fit", "CUBE", "--level", "2"], "--level must be .*, got 2"),
        (["fit", "CUBE", "CUBE"], "must be one cube, or files of a log"),
        (["fit", "missing.csv"], "missing.csv"),
        (["fit", "FILE", "--item", "sku"], "'sku'"),
        (["fit", "CUBE", "--since", "2027-01-01"], "--since must leave periods of the cube"),
        (["count", "CUBE", "-o", "new"], "must be files of a log, not a cube"),
        (["diagnose", "CUBE", "--target", "ten"], "--target must be a percentage such as 10%, got 'ten'"),
        (["types", "CUBE", "--among", "country"], "--among must be segment, got 'country'"),
        (["warm-start", "CUBE", "--surface", "A b", "-o", "a.json"], "--surface must be up to 64 of a-z"),
        (["evaluate", "CUBE", "--ranking", "best"], "--ranking must be one of .*, got 'best'"),
        (
            ["evaluate", "CUBE", "--ranking", "equal:nush"],
            r"--ranking must be one of .* \(did you mean equal:nash\?\), got 'equal:nush'",
        ),
        (
            ["evaluate", "CUBE", "--policy", "ucb-rang"],
            r"--policy must be one of .* \(did you mean ucb-rank\?\), got 'ucb-rang'",
        ),
        (["evaluate", "CUBE", "--utility", "magic"], "magic"),
        (["replay", "CUBE", "--rounds", "0"], "--rounds must be"),
        (
            ["warm-start", "CUBE", "--surface", "home", "-o", "a.json", "--store", "sqlite:a"],
            "--store must not",
        ),
        (["report", "CUBE", "-o", "report.pdf"], "--output must end in .html, got 'report.pdf'"),
        (
            ["report", "CUBE", "-o", "missing/report.html"],
            "--output must be a file in a directory that exists",
        ),
        (["report", "CUBE", "-o", "a.html", "--figures", "FILE"], "--figures must be a directory, got "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture, log: Log, arguments: list[str], message: str
) -> None:
    paths = {"CUBE": log("cube"), "FILE": log("clicks.csv")}
    check_refusal(capsys, ["log", *(paths.get(word, word) for word in arguments)], message)
