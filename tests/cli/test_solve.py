"""``banditrank solve`` and ``banditrank frontier``."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from helpers.command_line import check_refusal, contents, run

from banditrank import Problem, __version__, equality_report, kdd2012, make_problem, pareto_frontier, solve
from banditrank.solvers._branch_and_bound import search
from banditrank.solvers._solve import SOLVERS

FIELDS = (
    *("ranking", "value", "upper_bound", "gap", "is_certified", "solver", "nodes", "seconds"),
    *("user_type_values", "personalized_values", "price_of_equality"),
)


def strict(text: str) -> dict:
    """Parse standard JSON, without NaN and Infinity."""

    def unsupported_reason(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=unsupported_reason)


@pytest.fixture
def conflict(tmp_path: Path) -> Path:
    path = tmp_path / "conflict.toml"
    make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=1).save(path)
    return path


def test_solve_prints_the_ranking_its_certificate_and_the_price_of_equality(
    capsys: pytest.CaptureFixture, conflict: Path
) -> None:
    status, output, complaint = run(capsys, "solve", str(conflict), "--utility", "nash")
    problem = Problem.load(conflict)
    solution = solve(problem, "nash")
    report = equality_report(problem, solution.ranking)
    assert (status, complaint) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for position, item in enumerate(solution.ranking, start=1):
        assert f"{position} {problem.items[item]}" in lines
    assert f"value {solution.value:.6g}" in lines
    assert "gap 0, certified" in lines
    assert any(line.startswith("solver enumeration, nodes 120, seconds") for line in lines)
    for i, name in enumerate(problem.user_types):
        figures = f"{report.user_type_values[i]:.4f} {report.personalized_values[i]:.4f}"
        lost = f"{report.shares_lost[i]:.2%}"
        assert f"{name} {problem.arrival_rates[i]:.3f} {figures} {lost}" in lines
    assert f"price of equality {report.price_of_equality:.2%}" in lines


def test_the_json_of_solve_is_the_only_output(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "solve", "kdd2012", "--utility", "maximin", "--json", "-")
    document = strict(output)
    assert status == 0
    assert tuple(document) == ("problem", "utility", "version", *FIELDS)
    solution = solve(kdd2012(), "maximin")
    report = equality_report(kdd2012(), solution.ranking)
    assert document == {
        "problem": "kdd2012",
        "utility": "maximin",
        "version": __version__,
        "ranking": ["ad-4", "ad-3"],
        "value": solution.value,
        "upper_bound": solution.upper_bound,
        "gap": 0,
        "is_certified": True,
        "solver": solution.solver,
        "nodes": solution.nodes,
        "seconds": document["seconds"],
        "user_type_values": pytest.approx(solution.user_type_values.tolist()),
        "personalized_values": report.personalized_values.tolist(),
        "price_of_equality": report.price_of_equality,
    }
    assert document["seconds"] > 0


def test_sampling_is_not_certified_and_shows_share_and_seed(
    capsys: pytest.CaptureFixture, conflict: Path
) -> None:
    sampling = ["--solver", "sampling", "--share", "0.2", "--seed", "3"]
    documents = [strict(run(capsys, "solve", str(conflict), *sampling, "--json", "-")[1]) for _ in range(2)]
    first = documents[0]
    assert tuple(first) == ("problem", "utility", "version", "share", "seed", *FIELDS)
    assert (first["share"], first["seed"], first["is_certified"]) == (0.2, 3, False)
    assert first["upper_bound"] is None
    assert first["gap"] is None
    assert first["ranking"] == documents[1]["ranking"]
    assert "gap ∞, not certified" in " ".join(run(capsys, "solve", str(conflict), *sampling)[1].split())


def test_a_value_of_minus_infinity_is_null_and_arbitrary(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "nothing.toml"
    Problem([0.5, 0.5], [[1.0], [1.0]], [[0.0, 0.0], [0.8, 0.4]]).save(path)
    document = strict(run(capsys, "solve", str(path), "--utility", "nash", "--json", "-")[1])
    assert document["value"] is None
    assert document["upper_bound"] is None
    status, output, _ = run(capsys, "solve", str(path), "--utility", "nash")
    assert status == 0
    assert "the ranking is arbitrary: its value is −∞" in output
    assert "arbitrary" in run(capsys, "frontier", str(path))[1]


def test_frontier_prints_a_row_for_each_utility_and_one_to_compare_with(
    capsys: pytest.CaptureFixture, conflict: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents()
    status, output, complaint = run(capsys, "frontier", str(conflict), "--alphas", "2,1")
    assert (status, complaint) == (0, "")
    rows = [line.split()[0] for line in output.splitlines() if re.search(r"\d%$", line.strip())]
    utilities = ["utilitarian", "nash", "alpha:2", "maximin"]
    assert rows == [*utilities, *utilities, "personalized"]  # rankings, then lotteries
    assert output.count("certified") == 8
    assert output.count("lottery") == 4, "also where it gains nothing"
    assert contents() == before


def test_the_json_and_plot_of_frontier(capsys: pytest.CaptureFixture, conflict: Path, tmp_path: Path) -> None:
    document_file, plot = tmp_path / "frontier.json", tmp_path / "frontier.png"
    files = ["--json", str(document_file), "--plot", str(plot)]
    status, output, _ = run(capsys, "frontier", str(conflict), *files, "--time-limit", "20")
    assert status == 0
    assert "personalized" in output
    assert plot.stat().st_size > 5000
    document = strict(document_file.read_text())
    problem = Problem.load(conflict)
    points = pareto_frontier(problem)
    assert tuple(document) == ("problem", "version", "personalized", "points")
    assert document["personalized"]["total_value"] == points[0].equality.personalized_total
    for entry, point in zip(document["points"], points, strict=True):
        keys = ("utility", "total_value", "worst_value", "worst_user_type", *FIELDS, "lottery")
        assert tuple(entry) == keys
        assert entry["lottery"]["worst_value"] == point.lottery_worst
        assert sum(entry["lottery"]["probabilities"]) == pytest.approx(1.0)
        assert (entry["utility"], entry["total_value"], entry["worst_value"], entry["price_of_equality"]) == (
            *(str(point.utility), point.total, point.worst, point.price_of_equality),
        )
        assert entry["worst_user_type"] == problem.user_types[point.equality.worst_type]
    _, alone, _ = run(capsys, "frontier", str(conflict), "--json", "-")
    assert len(strict(alone)["points"]) == 6


def test_long_rankings_are_shortened_and_names_are_unchanged(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "long.toml"
    names = ["[bold]x[/bold]", *(f"thing {number}" for number in range(6))]
    means = [[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]]
    Problem([1.0], [[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]], means, items=names, user_types=["[red]"]).save(path)
    _, output, _ = run(capsys, "frontier", str(path))
    assert "[bold]x[/bold], thing 0, thing 1, thing 2, … (6 items)" in output
    assert "[red]" in output
    assert "[bold]x[/bold]" in run(capsys, "solve", str(path))[1]


BAD = [
    (["solve"], "Missing argument 'PROBLEM'"),
    (
        ["solve", "kdd2013"],
        "problem must be kdd2012, carousel:DIRECTORY or the path of a TOML file, got 'kdd2013'",
    ),
    (["solve", "kdd2012", "--utility", "nahs"], "--utility must be one of .*did you mean nash.*got 'nahs'"),
    (
        ["solve", "kdd2012", "--utility", "alpha:x"],
        "--utility must be alpha with numbers after colons, got 'alpha:x'",
    ),
    (["solve", "kdd2012", "--solver", "magic"], "--solver must be one of .*got 'magic'"),
    (["solve", "kdd2012", "--solver", "assignment", "--utility", "nash"], "needs a linear utility, got nash"),
    (["solve", "big.toml", "--solver", "enumeration"], "supports at most 1,000,000 rankings, got 100 items"),
    (["solve", "kdd2012", "--time-limit", "-1"], r"--time-limit must be a number from 0 to .*got -1\.0"),
    (["solve", "kdd2012", "--time-limit", "nan"], "--time-limit must be a number from 0 to .*got nan"),
    (["solve", "kdd2012", "--time-limit", "soon"], "--time-limit must be a number, got 'soon'"),
    (["solve", "kdd2012", "--target-gap", "0"], r"--target-gap must be a number from 1e-12 to 1, got 0\.0"),
    (
        ["solve", "kdd2012", "--solver", "sampling", "--share", "2"],
        "--share must be a number from 0 to 1, got 2",
    ),
    (
        ["solve", "kdd2012", "--solver", "sampling", "--seed", "-1"],
        "--seed must be at least 0, got '-1'",
    ),
    (["solve", "kdd2012", "--json", "missing/x.json"], "--json must be a file in a directory that exists"),
    (["solve", "kdd2012", "--json", "."], "--json must be a file in a directory that exists"),
    (["solve", "kdd2012", "--json", "/dev/full"], r"--json must be writable \(no space left on device\)"),
    (["frontier", "kdd2012", "--alphas", "1,two"], "--alphas must be numbers with commas between.*'1,two'"),
    (["frontier", "kdd2012", "--alphas", ""], "--alphas must not be empty, got ''"),
    (["frontier", "kdd2012", "--alphas", "-2"], r"alpha must be a number from 0 to 1,000, got -2\.0"),
    (["frontier", "kdd2012", "--time-limit", "-1"], "--time-limit must be a number from 0 to"),
    (["frontier", "kdd2012", "--plot", "figure.gif"], "plot file must end in .png, .svg or .pdf"),
    (["frontier", "kdd2012", "--plot", "missing/x.png"], "--plot must be a file in a directory that exists"),
    (["frontier", "kdd2012", "--json", "missing/x.json"], "--json must be a file in a directory that exists"),
    (["frontier", "kdd2012", "--utility", "nash"], "No such option: --utility"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Problem([1.0], [[0.1] * 10], [[0.5] * 100]).save("big.toml")
    check_refusal(capsys, arguments, message)


@pytest.mark.parametrize("command", ["solve", "frontier"])
def test_ctrl_c_is_status_130_without_a_traceback(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("banditrank.solvers._solve.solve", interrupted)
    monkeypatch.setattr("banditrank.solvers._frontier.solve", interrupted)
    status, output, complaint = run(capsys, command, "kdd2012")
    assert (status, output, complaint) == (130, "", "banditrank: interrupted\n")


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    """Return a problem that needs branch and bound, which is compiled."""
    path = tmp_path / "searched.toml"
    problem = make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)
    problem.save(path)
    solve(problem, "nash")
    return path


WAITING = [("solve", "--utility", "nash"), ("frontier", "--alphas", "1,2")]


@pytest.mark.parametrize("command", WAITING, ids=lambda words: words[0])
def test_compilation_is_announced_once(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, searched: Path, command: tuple[str, ...]
) -> None:
    def compile_anew() -> None:
        def formula() -> int:
            return 1

        formula.__module__ = search.__name__
        numba.njit(formula)()

    monkeypatch.setitem(SOLVERS, "branch-and-bound", search.SOLVER._replace(prepare=compile_anew))
    status, output, complaint = run(capsys, *command, str(searched), "--json", "-", is_announcement_kept=True)
    assert (status, strict(output)["version"]) == (0, __version__)
    assert complaint == "banditrank: compiling the solver (first use, may take a minute)\n"


COLD = """
import sys
from numba.core import event
from banditrank import kdd2012, solve
from banditrank._cli.main import main
from banditrank.solvers._solve import SOLVERS

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

def run(*arguments):
    print(len(compiled) > 0, file=sys.stderr)
    compiled.clear()
    return solver.run(*arguments)

compiled, solver = [], SOLVERS[sys.argv[4]]
SOLVERS[sys.argv[4]] = solver._replace(run=run)
with event.install_listener("numba:compile", Listener()):
    try:
        main()
    finally:
        print(compiled, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "solver",
    [
        "permutation-lp",
        pytest.param("assignment", marks=pytest.mark.campaign),  # each compiles with an empty cache
        pytest.param("enumeration", marks=pytest.mark.campaign),
    ],
)
def test_compilation_is_announced_and_not_counted_as_time_to_solve(solver: str, tmp_path: Path) -> None:
    """With an empty cache: all formulas are compiled before the solver runs, and none after."""
    words = [sys.executable, "-c", COLD, "solve", "kdd2012", "--solver", solver, "--json", "-"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert strict(done.stdout)["solver"] == solver
    announced = "banditrank: compiling the solver (first use, may take a minute)"
    assert done.stderr.splitlines() == [announced, "True", "[]"]


@pytest.mark.parametrize("command", WAITING, ids=lambda words: words[0])
def test_nothing_is_announced_if_code_is_cached(searched: Path, command: tuple[str, ...]) -> None:
    """In a new process, so that code is loaded from disk."""
    code = "from banditrank._cli.main import main; main()"
    words = [sys.executable, "-c", code, *command, str(searched), "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert strict(done.stdout)["version"] == __version__
    assert done.stderr == ""


def test_bad_input_is_refused_before_anything_is_compiled(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, searched: Path, tmp_path: Path
) -> None:
    def fail() -> None:
        raise AssertionError("compiled")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(SOLVERS, "branch-and-bound", search.SOLVER._replace(prepare=fail))
    for option, value in (("--target-gap", "0"), ("--time-limit", "-1"), ("--share", "2")):
        message = f"{option} must be a number from"
        check_refusal(capsys, ["solve", str(searched), "--utility", "nash", option, value], message)
