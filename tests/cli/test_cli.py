import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run
from helpers.live import MAX_WAIT_SECONDS, wait_until

from banditrank import Policy, Problem, __version__, kdd2012, make_contextual_problem
from banditrank.policies._base import policy_label
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import Experiment, Replication
from banditrank.simulation._run import replicate

QUICK = ["--horizon", "400", "--replications", "3", "--seed", "7"]


def test_simulate_prints_a_table_of_the_default_policies(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "simulate", "kdd2012", *QUICK)
    assert status == 0
    for label in (
        "greedy-rank-personalized-0.25",
        "ucb-rank-personalized-0.25",
        "type-blind-ucb-personalized-0.25",
        "greedy-rank-equal-utilitarian-0.5",
        "ucb-rank-equal-utilitarian-0.5",
    ):
        assert label in output
    assert f"seed 7, banditrank {__version__}" in output


def test_the_share_of_steep_runs_is_printed_where_it_is_known(capsys: pytest.CaptureFixture) -> None:
    """Finding 10: the table and the JSON have the share of steep runs, and mark where it is unknown."""
    policies = ("--policy", "random", "--treatment", "personalized,equal", "--horizon", "4000")
    _, output, _ = run(capsys, "simulate", "kdd2012", *QUICK, *policies)
    assert "steep" in output
    assert re.search(r"random-personalized.* 100\.0% ", output)
    assert re.search(r"random-equal.* – ", output)
    assert "–: unknown" in output
    _, output, _ = run(capsys, "simulate", "kdd2012", *QUICK, *policies, "--json", "-")
    assert [each["steep_share"] for each in json.loads(output)["runs"]] == [1.0, None]
    _, output, _ = run(capsys, "simulate", "--policy", "random", "--click-model", "cascade", *QUICK)
    assert "steep" not in output


def test_json_on_standard_output_is_alone_and_complete(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(
        capsys,
        *("simulate", "kdd2012", "--policy", "ucb-rank", "--treatment", "equal", "--utility", "nash"),
        *("--coefficient", "0.5", "--workers", "2", *QUICK, "--json", "-"),
    )
    document = json.loads(output)
    assert status == 0
    assert {key: document[key] for key in ("problem", "seed", "horizon", "replications", "version")} == {
        "problem": "kdd2012",
        "seed": 7,
        "horizon": 400,
        "replications": 3,
        "version": __version__,
    }
    (only,) = document["runs"]
    assert (only["policy"], only["treatment"], only["utility"], only["coefficient"]) == (
        *("ucb-rank", "equal", "nash", 0.5),
    )
    count = len(only["checkpoints"])
    assert only["checkpoints"][-1] == 400
    assert {key: len(values) for key, values in only["regret"].items()} == dict.fromkeys(
        ("mean", "median", "standard_deviation", "percentile_10", "percentile_90"), count
    )
    for key in ("final_regret", "optimal_rate", "initial_rounds"):
        assert len(only[key]) == 3
    assert only["rounds_per_second"] > 0
    assert only["seconds"] > 0


def test_the_same_seed_gives_the_same_numbers_whatever_the_workers(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    finals = []
    for workers in ("1", "3"):
        path = tmp_path / f"{workers}.json"
        status, _, _ = run(
            capsys, "simulate", "--policy", "greedy-rank", *QUICK, "--workers", workers, "--json", str(path)
        )
        assert status == 0
        finals.append(json.loads(path.read_text())["runs"][0]["final_regret"])
    assert finals[0] == finals[1]


def test_policies_and_treatments_are_combined(capsys: pytest.CaptureFixture) -> None:
    _, output, _ = run(
        capsys,
        *("simulate", "--policy", "random,oracle", "--policy", "ucb-rank"),
        *("--treatment", "personalized,equal", *QUICK, "--json", "-"),
    )
    pairs = [(each["policy"], each["treatment"]) for each in json.loads(output)["runs"]]
    assert len(pairs) == 6
    assert len(set(pairs)) == 6


def labels(output: str) -> list[str]:
    """Return the policy labels of a table."""
    return re.findall(r"^ ?(\S+-(?:personalized|equal)\S*)", output, re.MULTILINE)


def test_without_a_policy_the_default_ones_that_accept_the_options_run(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated: list[str] = []

    def record(policies: list[Policy], *_: object, **__: object) -> list:
        simulated[:] = [policy_label(policy.describe()) for policy in policies]
        return []

    monkeypatch.setattr("banditrank._cli.simulate._simulate_all", record)  # without compiling all
    run(capsys, "simulate", *QUICK, "--estimator", "likelihood", "--smoothed")
    assert simulated == [
        "greedy-rank-personalized-0.25-likelihood-smoothed",
        "ucb-rank-personalized-0.25-likelihood-smoothed",
        "greedy-rank-equal-utilitarian-0.5-likelihood-smoothed",
        "ucb-rank-equal-utilitarian-0.5-likelihood-smoothed",
    ]
    run(capsys, "simulate", *QUICK, "--solver", "enumeration")
    assert simulated == [
        "thompson-rank-equal-utilitarian-enumeration",
        "greedy-rank-equal-utilitarian-0.5-enumeration",
        "ucb-rank-equal-utilitarian-0.5-enumeration",
    ]


def test_policies_receive_the_options_that_they_accept(capsys: pytest.CaptureFixture) -> None:
    options = ["--policy", "ucb-rank,random", "--coefficient", "2", "--smoothed"]
    _, output, _ = run(capsys, "simulate", *QUICK, *options)
    assert labels(output) == ["ucb-rank-personalized-2-smoothed", "random-personalized"]


def test_save_resumes(capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def recording(experiment: Experiment, number: int, advance: Advance) -> Replication:
        made.append(number)
        return replicate(experiment, number, advance)

    monkeypatch.setattr("banditrank.simulation._backends.local.replicate", recording)
    for count in ("2", "4"):
        settings = ["--horizon", "300", "--replications", count, "--policy", "ucb-rank"]
        status, _, _ = run(capsys, "simulate", *settings, "--save", str(tmp_path / "runs"))
        assert status == 0
    summary = json.loads((tmp_path / "runs" / "ucb-rank-personalized-0.25" / "summary.json").read_text())
    assert summary["replications"] == [0, 1, 2, 3]
    assert sorted(made) == [0, 1, 2, 3], "none twice"


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plots_are_written(capsys: pytest.CaptureFixture, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"figure.{ending}"
    status, _, _ = run(capsys, "simulate", "--policy", "ucb-rank", *QUICK, "--plot", str(path))
    assert status == 0
    assert path.stat().st_size > 5000
    made = f"kdd2012: 400 rounds, 3 replications, seed 7, banditrank {__version__}".encode()
    assert made in path.read_bytes()


def test_a_plot_has_the_options_given(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    options = ["--plot-size", "5x3", "--plot-band", "confidence", "--plot-x-scale", "linear"]
    options += [
        "--plot-y-scale",
        "linear",
        "--plot-style",
        "ggplot",
        "--plot-title",
        "$x",
        "--plot-dpi",
        "80",
    ]
    status, _, _ = run(capsys, "simulate", "--policy", "random", *QUICK, "--plot", str(path), *options)
    assert status == 0
    content = path.read_text()
    assert 'width="360pt" height="216pt"' in content
    assert "fill: #e5e5e5" in content, "the style's background"


def test_results_name_settings_other_than_the_default(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    arguments = ["simulate", "--policy", "random", *QUICK, "--changes", "item-jumps:3", "--delay", "1000"]
    other = [*arguments, "--click-model", "position-based", "--rewards", "beta:4"]
    _, output, _ = run(capsys, *other, "--plot", str(tmp_path / "figure.png"))
    summary = "kdd2012, item-jumps:3, position-based clicks, rewards beta:4:1, delay 1,000"
    assert " ".join(output.split()).startswith(f"Regret: {summary}, 400 rounds, seed 7")
    assert f"{summary}: 400 rounds".encode() in (tmp_path / "figure.png").read_bytes()
    _, output, _ = run(capsys, *arguments, "--json", "-")
    assert json.loads(output)["changes"] == "item-jumps:3"
    _, output, _ = run(capsys, "simulate", "--policy", "random", *QUICK, "--json", "-")
    assert json.loads(output)["changes"] is None


@pytest.mark.parametrize("is_terminal", [True, False])
def test_finished_policies_are_shown_before_the_table_on_a_terminal(
    is_terminal: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    _, _, messages = run(capsys, "simulate", "--policy", "random,oracle", *QUICK)
    assert ("random-personalized is finished: median regret " in messages) == is_terminal
    assert "oracle-personalized is finished" not in messages


def test_problems_with_features_are_simulated(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    make_contextual_problem("logistic", n_items=9, n_positions=2, seed=1).save(path)
    _, output, _ = run(capsys, "simulate", str(path), "--policy", "auto,random", *QUICK, "--json", "-")
    document = json.loads(output)
    assert document["problem"] == "logistic-20x9x2-seed1"
    assert [each["policy"] for each in document["runs"]] == ["contextual-thompson-rank", "random"]
    assert document["runs"][0]["appeal"] == "logistic"


BAD = [
    (
        ["simulate", "kdd2013"],
        "problem must be kdd2012, linear-context, logistic-context, carousel:DIRECTORY or the path",
    ),
    (["simulate", "linear-context", "--policy", "grab"], "--policy must be one of auto, contextual-thompson"),
    (["simulate", "linear-context", "--utility", "nash"], "--utility must be left out for a contextual"),
    (["simulate", "linear-context", "--memory", "window:9"], "--memory must be left out for a contextual"),
    (["simulate", "linear-context", "--coefficient", "1"], "--coefficient must be left out for a contextual"),
    (["simulate", "linear-context", "--treatment", "equal"], "--treatment must be personalized for a"),
    (["simulate", "--policy", "ucbrank"], "--policy must be one of .*did you mean ucb-rank.*got 'ucbrank'"),
    (
        ["simulate", "--policy", "ucb-rang", "--solver", "sampling"],
        "--policy must be one of .*got 'ucb-rang'",
    ),
    (["simulate", "--treatment", "fair"], "must be one of personalized, equal, equal-lottery, got 'fair'"),
    (["simulate", "--utility", "nahs"], "--utility must be one of .*did you mean nash"),
    (
        ["simulate", "--policy", "ucb-rank", "--utility", "nash"],
        "--utility must be left out under personalized treatment, which has none, got 'nash'",
    ),
    (["simulate", "--utility", "alpha:-2"], "alpha must be a number from 0 to 1,000, got -2.0"),
    (["simulate", "--solver", "magic", "--treatment", "equal"], "--solver must be one of .*got 'magic'"),
    (
        ["simulate", "--solver", "magic", "--treatment", "equal"],
        "--solver must be one of auto, assignment, enumeration, sampling, branch-and-bound, spatial, got",
    ),
    (
        ["simulate", "--click-model", "cascade", "--rewards", "beta:4"],
        "--rewards must not be graded under click model cascade: a click .*, got 'beta:4'",
    ),
    (
        ["simulate", "--changes", "item-jumps:3", "--horizon", "1"],
        "--horizon must be a whole number from 2 to .*, got 1$",
    ),
    (["simulate", "--rewards", "gauss"], "--rewards must be one of .*got 'gauss'"),
    (["simulate", "--coefficient", "nan"], "--coefficient must be a number from 0 to 1,000,000,000, got nan"),
    (["simulate", "--horizon", "0"], "--horizon must be a whole number from 1 to 1,000,000,000,000, got 0"),
    (["simulate", "--horizon", "many"], "banditrank: --horizon must be a whole number, got 'many'$"),
    (["simulate", "--coefficient", "x"], "banditrank: --coefficient must be a number, got 'x'$"),
    (["simulate", "--replications", "-1"], "--replications must be a whole number from 1 to .*, got -1"),
    (["simulate", "--seed", "-1"], "--seed must be a whole number of at least 0, got -1"),
    (["simulate", "--workers", "0"], "--workers must be a whole number from 1 to 1,024, got 0"),
    (["simulate", "--plot-band", "quantiles"], "--plot-band must be given together with --plot, got 'quant"),
    (["simulate", "--plot", "a.png", "--plot-y-scale", "lin"], "--plot-y-scale must be one of linear, log"),
    (
        ["simulate", "--plot", "a.png", "--plot-size", "5"],
        "--plot-size must be column or page, or a width and",
    ),
    (["frontier", "kdd2012", "--plot", "a.png", "--plot-style", "none"], "--plot-style must be a name, file"),
    (["frontier", "kdd2012", "--plot", "a.png", "--plot-dpi", "1"], "--plot-dpi must be from 10 to 2400"),
    (["simulate", "--plot", "figure.gif"], "plot file must end in .png, .svg or .pdf, got 'figure.gif'"),
    (["simulate", "--plot", "missing/figure.png"], "--plot must be a file in a directory that exists"),
    (["simulate", "--json", "missing/x.json"], "--json must be a file in a directory that exists"),
    (["simulate", "--polcy", "random"], "No such option: --polcy.*--policy"),
    (
        ["simulate", "--treatment", "equal", "--solver", "enumeration", "--policy", "ucb-rank", "big.toml"],
        "at most 1,000,000",
    ),
    (["problem", "validate", "more-positions.toml"], "must have at most 1 positions.*got 2"),
    (["problem", "validate", "rates.toml"], r"arrival_rates must sum to 1, got 0\.9"),
    (["problem", "validate", "means.toml"], r"item_means\[0\]\[1\] must lie in \[0, 1\], got 1\.5"),
    (["problem", "validate", "nan.toml"], r"item_means\[0\]\[0\] must lie in \[0, 1\], got nan"),
    (
        ["problem", "validate", "empty-type.toml"],
        r"user_types\[0\] must be a non-empty printable string, got ''",
    ),
    (["problem", "validate", "malformed.toml"], "problem file must be TOML"),
    (["problem", "show", "missing.toml"], "must be readable.*got 'missing.toml'"),
    (["problem", "generate", "randon"], r"did you mean random\?"),
    (["problem", "generate", "carousel"], "family must be one of .* common-log, long-tail, got 'carousel'"),
    (["problem", "generate", "random", "--positions", "30"], "must not exceed the 20 items, got 30"),
    (
        ["problem", "generate", "random", "-o", "missing/p.toml"],
        "--output must be a file in a directory that",
    ),
    (["simulat"], "No such command 'simulat'"),
    (
        ["simulate", "--horizon", "9" * 30],
        "--horizon must be a whole number from 1 to 1,000,000,000,000, got 9999",
    ),
    (["simulate", "--rewards", "beta:1e-300"], "rewards' concentration must be a number from 0.001"),
    (
        ["simulate", "--policy", "random,oracle", "--coefficient", "1"],
        "--coefficient must be left out: none of the policies accepts it, got 1.0",
    ),
    (
        ["simulate", "--treatment", "personalized", "--solver", "sampling", "--smoothed"],
        "--solver must be left out: none of the policies accepts it, got 'sampling'",
    ),
    (["simulate", "--estimator", "bayes"], "--estimator must be one of paper, likelihood, got 'bayes'"),
    (["simulate", "--treatment", "equal", "--utility", "alpha:900"], "must be finite for every ranking"),
    (
        [
            "simulate",
            "--policy",
            "ucb-rank",
            "--treatment",
            "equal",
            "--solver",
            "sampling",
            "--save",
            "runs",
            "big.toml",
        ],
        "at most 1,000,000",
    ),
    (["simulate", "--save", "rates.toml/x"], "save directory must be writable"),
    (["problem", "generate", "random", "--items", "20000000000"], "must be a whole number from 1 to 100,000"),
    (["problem", "validate", "digits.toml"], "arrival_rates must be a list of numbers"),
    (["problem", "validate", "nested.toml"], "problem file must be TOML"),
    (["problem", "validate", "/dev/full"], "problem file must be a file"),
    (
        ["problem", "validate", "x" * 300],
        "problem must be kdd2012, carousel:DIRECTORY or the path of a TOML file, got",
    ),
]
FILES = {
    "more-positions": "arrival_rates = [1]\nposition_preferences = [[0.5, 0.5]]\nitem_means = [[0.5]]",
    "rates": "arrival_rates = [0.9]\nposition_preferences = [[1]]\nitem_means = [[0.5]]",
    "means": "arrival_rates = [1]\nposition_preferences = [[1]]\nitem_means = [[0.5, 1.5]]",
    "nan": "arrival_rates = [1]\nposition_preferences = [[1]]\nitem_means = [[nan]]",
    "empty-type": 'user_types = [""]\narrival_rates = [1]\nposition_preferences = [[1]]\nitem_means = [[1]]',
    "malformed": "arrival_rates = [1\nposition",
    "digits": f"arrival_rates = [1{'0' * 400}]\nposition_preferences = [[1]]\nitem_means = [[1]]",
    "nested": f"arrival_rates = {'[' * 3000}",
}


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(f"{name}.toml").write_text(text)
    Problem([1.0], [[0.1] * 10], [[0.5] * 100]).save("big.toml")
    check_refusal(capsys, arguments, message)


def test_names_with_markup_are_shown_and_drawn_unchanged(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "odd.toml"
    Problem([1.0], [[1.0]], [[0.5]], name="[/x] a$_$b :smile: 日本").save(path)
    run(capsys, "simulate", str(path), *QUICK)  # compile first, so that nothing is announced below
    status, output, complaint = run(capsys, "simulate", str(path), *QUICK, "--plot", str(tmp_path / "x.png"))
    assert status == 0
    assert "[/x] a$_$b :smile: 日本" in output
    assert not complaint


def test_problem_show_prints_names_unchanged(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    Problem([1.0], [[1.0]], [[0.5]], items=["[bold]x[/bold]"], user_types=["[red]"]).save(path)
    status, output, _ = run(capsys, "problem", "show", str(path))
    assert status == 0
    assert "[bold]x[/bold]" in output
    assert "[red]" in output


def test_problem_commands_work_together(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "made.toml"
    size = ["--user-types", "2", "--items", "6", "--positions", "3", "--seed", "4"]
    assert run(capsys, "problem", "generate", "conflict", *size, "-o", str(path))[0] == 0
    _, printed, _ = run(capsys, "problem", "generate", "conflict", *size)
    assert printed == path.read_text()
    assert "2 user types, 6 items, 3 positions, valid" in run(capsys, "problem", "validate", str(path))[1]
    _, shown, _ = run(capsys, "problem", "show", "--toml", "kdd2012")
    path.write_text(shown)
    assert Problem.load(path) == kdd2012()
    assert run(capsys, "simulate", str(path), "--policy", "oracle", *QUICK)[0] == 0


def test_help_and_version(capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "--version")[1] == f"banditrank {__version__}\n"
    assert "simulate" in run(capsys)[1]
    assert "generate" in run(capsys, "problem")[1]
    assert "--coefficient" in run(capsys, "simulate", "--help")[1]


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    """A real process, interrupted by a real signal once it has saved something."""
    program = (
        "import signal\n"
        "from banditrank._cli.main import main\n"
        "from banditrank.simulation import _result_store, _run\n"
        "assert _result_store.SAVE_INTERVAL_SECONDS and _run.MIN_FUSED_ROUNDS\n"
        "_result_store.SAVE_INTERVAL_SECONDS = 0.0\n"
        "_run.MIN_FUSED_ROUNDS = 10**9  # the loop that other tests compile\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it\n"
        "main()"
    )
    # Far more replications than are finished before the signal.
    settings = ["--policy", "ucb-rank", "--horizon", "400", "--replications", "100000", "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "simulate", *settings, "--save", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        summary = tmp_path / "ucb-rank-personalized-0.25" / "summary.json"
        wait_until(lambda: summary.exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=MAX_WAIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "ucb-rank-personalized-0.25" in output
    assert "interrupted after" in complaint
    assert "Traceback" not in complaint
    assert 1 <= len(json.loads(summary.read_text())["replications"]) < 100_000
