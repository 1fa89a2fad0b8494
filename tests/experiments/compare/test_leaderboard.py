"""The leaderboard follows from the data, and so does every check in it."""

import numpy as np
import pandas as pd
import pytest
from helpers.figure_checks import check_report_figure
from helpers.synthetic_regret import ending_at, synthetic_curves, timed
from matplotlib.figure import Figure

from banditrank import kdd2012
from banditrank._report_page.elements import ReportFigure
from banditrank.experiments._compare import leaderboard, suite_study
from banditrank.experiments._compare.leaderboard import draw_heat_map
from banditrank.experiments._compare.names import TIMING_PREFIX
from banditrank.experiments._compare.policy_variants import find_policies
from banditrank.experiments._compare.suites import SUITES, Suite
from banditrank.experiments._study import StudyResult

NAMES = ["ucb-rank", "grab", "top-rank", "pbm-ucb", "random"]
TWO = [SUITES["table1"], SUITES["item-jumps"]]


def data(**means: float) -> dict[str, pd.DataFrame]:
    """Return the data of two suites; keywords are job names with underscores and ``plus``."""
    frames = {}
    for suite in TWO:
        for name in [*NAMES, *(f"{name}+window" for name in NAMES if suite.is_changing and name != "random")]:
            key = name.replace("-", "_").replace("+", "_plus_")
            regret = means.get(f"{suite.name.replace('-', '_')}_{key}", 1000.0)
            frames[f"{suite.name}/{name}"] = ending_at(regret)
            frames[f"{suite.name}/{TIMING_PREFIX}{name}"] = timed(2.0 if name == "grab" else 1.0)
    return frames


def analyse(names: list[str] = NAMES, **means: float) -> StudyResult:
    return leaderboard.analyse(TWO, find_policies(names), data(**means))


def test_policies_without_position_knowledge_have_a_table_of_their_own() -> None:
    result = analyse(table1_grab=200.0, table1_pbm_ucb=100.0, item_jumps_ucb_rank_plus_window=500.0)
    without, everything, means = result.tables
    assert [row[0] for row in without.rows] == ["grab", "ucb-rank", "random"]
    assert [row[2] for row in without.rows] == ["1.50", "3.00", "3.50"]
    assert everything.rows[0][:3] == ["pbm-ucb", "examination known", "1.50"]
    assert everything.rows[1][:3] == ["grab", "nothing", "2.00"]
    assert [row[1] for row in means.rows][:2] == ["104", "207"]
    assert result.metrics["scores_without_position_knowledge"]["grab"] == pytest.approx(1.5)
    assert result.findings.startswith("pbm-ucb (examination known) has the best score, 1.50.")
    assert "the best is grab: its regret is 1.50 times" in result.findings


def test_the_leaderboard_tells_on_which_problems_constants_were_chosen() -> None:
    custom = Suite(name="mine", problem=kdd2012())
    for suites, statement in (
        ([SUITES["table1"], custom], leaderboard.TUNED),
        ([suite.held_out_copy() for suite in TWO], leaderboard.HELD_OUT),
        ([custom], "never count as the best."),
    ):
        assert leaderboard.make_study(suites, find_policies(NAMES)).claim.endswith(statement)


def test_the_better_of_with_and_without_a_window_counts() -> None:
    assert analyse(item_jumps_grab_plus_window=100.0).tables[0].rows[0][0] == "grab"
    assert analyse(item_jumps_grab=100.0).tables[0].rows[0][0] == "grab"


def test_a_policy_that_locks_in_once_is_scored_by_its_mean() -> None:
    frames = data(table1_ucb_rank=900.0)
    locked_in = frames["table1/ucb-rank"]
    locked_in.loc[locked_in["replication"] == 7, "regret"] *= 50.0
    result = leaderboard.analyse(TWO, find_policies(NAMES), frames)
    rows = {row[0]: row for row in result.tables[0].rows}
    assert rows["ucb-rank"][4] == "6.2%"  # 1 of 16 runs
    assert rows["grab"][4] == "0.0%"
    assert float(rows["ucb-rank"][2]) > 3.0
    assert result.metrics["slow_run_shares"]["ucb-rank"] == 1 / 16
    assert result.metrics["percentile_95_scores"]["ucb-rank"] > 8.0


def test_steep_runs_are_counted_where_the_constant_is_known() -> None:
    """Finding 10: the share is the mean over the suites with a constant, and unknown without one."""
    rounds = (1_000, 50_000, 100_000)
    linear = synthetic_curves(lambda t: 300.0 + 0.003 * t, rounds)  # 150 over the last half; 74 is steep
    level = synthetic_curves(lambda _: 600.0, rounds)
    half = level.copy()
    half.loc[half["replication"] < 4, "regret"] = linear.loc[linear["replication"] < 4, "regret"]
    frames = data()
    frames.update(
        {"table1/grab": half, "table1/ucb-rank": level, "table1/random": linear, "item-jumps/grab": linear}
    )
    result = leaderboard.analyse(TWO, find_policies(NAMES), frames)
    shares = result.metrics["steep_run_shares"]
    assert shares == {"grab": 0.5, "ucb-rank": 0.0, "random": 1.0, "top-rank": None, "pbm-ucb": None}
    column = result.tables[1].columns.index("steep runs")
    cells = {row[0]: row[column] for row in result.tables[1].rows}
    assert cells == {"grab": "50.0%", "ucb-rank": "0.0%", "random": "100.0%", "top-rank": "–", "pbm-ucb": "–"}
    assert result.metrics["slow_run_shares"]["grab"] == 0.0
    suite = {job.removeprefix("table1/"): frame for job, frame in frames.items() if "table1" in job}
    study = suite_study.analyse(SUITES["table1"], find_policies(NAMES), suite)
    assert study.metrics["policies"]["grab"]["steep_run_share"] == 0.5
    column = study.tables[0].columns.index("steep runs")
    assert {row[0]: row[column] for row in study.tables[0].rows}["grab"] == "50%"


def test_costs_and_violated_assumptions_are_in_the_table() -> None:
    rows = {row[0]: row for row in analyse().tables[1].rows}
    assert rows["grab"][8] == "2.0"
    assert rows["top-rank"][-1] == "2 of 2"  # Table 1 has another order of positions, and tastes jump
    assert rows["ucb-rank"][-1] == "1 of 2"


def test_the_figure_is_drawn() -> None:
    from matplotlib.figure import Figure

    [ratios] = analyse().figures
    figure = Figure(figsize=(ratios.width, ratios.height))
    ratios.draw(figure)
    [axes] = figure.axes
    assert len(axes.texts) == len(NAMES) * len(TWO)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["table1", "item-jumps"]


def test_a_policy_that_did_not_run_in_a_suite_is_marked_with_the_reason() -> None:
    from matplotlib.figure import Figure

    many, one = SUITES["many-items"], SUITES["table1"]
    frames = {}
    for suite, name in ((many, "grab"), (one, "grab"), (one, "pmed")):
        frames[f"{suite.name}/{name}"] = synthetic_curves(lambda _: 10.0, (100, suite.quick_horizon))
        frames[f"{suite.name}/{TIMING_PREFIX}{name}"] = timed(1.0)
    result = leaderboard.analyse([many, one], find_policies(["grab", "pmed"]), frames)
    reason = (
        "–: not run: pmed in many-items (too slow for a quick run); its score is the mean over its other "
        "suites."
    )
    means = result.tables[-1]
    assert means.note == reason
    assert {row[0]: row[1:] for row in means.rows}["pmed"][0] == "–"
    [ratios] = result.figures
    assert ratios.caption.endswith(reason)
    figure = Figure()
    ratios.draw(figure)
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["1", "1", "1", "–"]


def default_checks(monkeypatch: pytest.MonkeyPatch, **means: float) -> list[bool | None]:
    """Return the answers of the checks if UCBRank were the default policy."""
    monkeypatch.setattr(leaderboard, "DEFAULT_POLICY", "ucb-rank")
    return [check.holds for check in analyse(**means).checks]


def test_the_default_policy_must_be_at_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_checks(monkeypatch, table1_ucb_rank=900.0) == [True, True, True]
    assert default_checks(monkeypatch, table1_ucb_rank=1100.0) == [False, True, True]


def test_the_default_policy_must_have_a_low_score_and_no_high_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ratios to grab: 1.7 and 1, then 2.1 and 0.4 of which 1 is its own lowest.
    assert default_checks(monkeypatch, table1_ucb_rank=1700.0)[1] is False
    assert default_checks(monkeypatch, table1_ucb_rank=1500.0)[1] is True
    assert default_checks(monkeypatch, table1_grab=470.0, item_jumps_ucb_rank=100.0)[1] is False


def test_the_default_policy_must_be_near_the_best_with_position_knowledge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ratios of ucb-rank: 1000/600 and 1, so its score is 1.333 times that of pbm-ucb.
    assert default_checks(monkeypatch, table1_ucb_rank=999.0, table1_pbm_ucb=600.0) == [True, True, False]
    assert default_checks(monkeypatch, table1_ucb_rank=999.0, table1_pbm_ucb=700.0) == [True, True, True]


def test_without_the_default_policy_there_is_nothing_to_check() -> None:
    assert not leaderboard.analyse(TWO, find_policies(["grab", "random"]), data()).checks
    assert leaderboard.analyse(TWO, find_policies(["pbm-ucb"]), data()).findings.endswith("took part.")
    few = leaderboard.analyse(TWO, find_policies(["pbm-ucb", "random"]), data()).findings
    assert few.endswith("No policy without position knowledge took part but random rankings.")


def test_a_suite_shows_the_best_policy_and_violated_assumptions() -> None:
    suite = SUITES["item-jumps"]
    frames = {
        job.removeprefix("item-jumps/"): frame
        for job, frame in data(item_jumps_pbm_ucb_plus_window=100.0, item_jumps_random=5.0).items()
        if job.startswith("item-jumps/")
    }
    result = suite_study.analyse(suite, find_policies(NAMES), frames)
    [table] = result.tables
    assert table.rows[1][:7] == ["pbm-ucb+window", "examination known", "104", "104", "107", "107", "0%"]
    assert table.rows[1][7] == "–"  # steep runs: its problem changes
    assert table.rows[1][8].startswith("9 ± ")  # 103.5 / ln 100,000 per ln t
    assert table.rows[1][9] == "1.00"
    assert result.metrics["graves_lai_constant"] is None  # its problem changes
    assert table.rows[0][0] == "random"  # lucky, and yet not the best
    assert result.metrics["best_policy"] == "pbm-ucb+window"
    violated = {row[0]: row[-1] for row in table.rows}
    assert violated["ucb-rank+window"] == "none"
    assert "assumes that the problem does not change" in violated["ucb-rank"]
    assert "assumes that positions are examined in the order 1 > 2 > 3 > 4" in violated["top-rank"]
    assert result.findings.startswith("pbm-ucb+window (examination known) has the lowest mean regret, 104;")
    assert result.checks == []


def test_a_suite_without_random_rankings_says_so() -> None:
    frames = {"grab": ending_at(3.0), f"{TIMING_PREFIX}grab": timed(1.0)}
    result = suite_study.analyse(SUITES["table1"], find_policies(["grab"]), frames)
    assert result.findings == "grab has the lowest mean regret, 3. Random rankings did not take part."


@pytest.mark.parametrize("size", [(1, 1), (8, 12), (26, 30)])
def test_names_of_a_heat_map_do_not_overlap(size: tuple[int, int]) -> None:
    """Finding 5: texts of the leaderboard do not overlap, with few and many long names."""
    rows, columns = (
        [f"{name}-with-a-long-name-{n}" for n in range(count)] for name, count in zip("ab", size, strict=True)
    )
    ratios = np.exp(np.random.default_rng(0).exponential(2.0, size))

    def draw(figure: Figure) -> None:
        draw_heat_map(figure, rows, columns, ratios)

    width, height = max(6.5, 3.4 + 0.6 * len(columns)), 1.6 + 0.3 * len(rows)
    check_report_figure(ReportFigure("ratios", "", draw, width, height))
