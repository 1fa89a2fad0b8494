"""The leaderboard follows from the data, and so does every check in it."""

import pandas as pd
import pytest
from helpers.made_up_regret import ending_at, timed

from banditrank.experiments.compare import leaderboard, suite_study
from banditrank.experiments.compare.parts import TIME
from banditrank.experiments.compare.suites import SUITES
from banditrank.experiments.study import Reading

NAMES = ["ucb-rank", "grab", "top-rank", "pbm-ucb", "random"]
TWO = [SUITES["table1"], SUITES["item-jumps"]]


def data(**medians: float) -> dict[str, pd.DataFrame]:
    """Return the data of two suites; names are as in a part, with underscores and ``plus``."""
    frames = {}
    for suite in TWO:
        for name in [*NAMES, *(f"{name}+window" for name in NAMES if suite.forgetting and name != "random")]:
            key = name.replace("-", "_").replace("+", "_plus_")
            regret = medians.get(f"{suite.name.replace('-', '_')}_{key}", 1000.0)
            frames[f"{suite.name}/{name}"] = ending_at(regret)
            frames[f"{suite.name}/{TIME}{name}"] = timed(2.0 if name == "grab" else 1.0)
    return frames


def read(names: list[str] = NAMES, **medians: float) -> Reading:
    return leaderboard.read(TWO, names, data(**medians))


def test_policies_that_know_nothing_are_ranked_among_themselves_and_all_together() -> None:
    reading = read(table1_grab=200.0, table1_pbm_ucb=100.0, item_jumps_ucb_rank_plus_window=500.0)
    blind, everybody, medians = reading.tables
    assert [row[0] for row in blind.rows] == ["grab", "ucb-rank", "random"]
    assert [row[2] for row in blind.rows] == ["1.50", "3.00", "3.50"]
    assert everybody.rows[0][:3] == ["pbm-ucb", "examination known", "1.50"]
    assert everybody.rows[1][:3] == ["grab", "nothing", "2.00"]
    assert [row[1] for row in medians.rows][:2] == ["104", "207"]
    assert reading.figures["scores_knowing_nothing"]["grab"] == pytest.approx(1.5)
    assert reading.findings.startswith("pbm-ucb (examination known) has the least score of all, 1.50.")
    assert "it is grab, which loses 1.50 times" in reading.findings


def test_the_better_of_with_and_without_a_window_counts() -> None:
    assert read(item_jumps_grab_plus_window=100.0).tables[0].rows[0][0] == "grab"
    assert read(item_jumps_grab=100.0).tables[0].rows[0][0] == "grab"


def test_cost_and_broken_assumptions_are_told() -> None:
    rows = {row[0]: row for row in read().tables[1].rows}
    assert rows["grab"][6] == "2.0"
    assert rows["top-rank"][-1] == "2 of 2"  # Table 1 is looked at in another order, and tastes jump
    assert rows["ucb-rank"][-1] == "1 of 2"


def test_the_picture_is_drawn() -> None:
    from matplotlib.figure import Figure

    [picture] = read().pictures
    figure = Figure(figsize=(picture.width, picture.height))
    picture.draw(figure)
    [axes] = figure.axes
    assert len(axes.texts) == len(NAMES) * len(TWO)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["table1", "item-jumps"]


def ours(monkeypatch: pytest.MonkeyPatch, **medians: float) -> list[bool | None]:
    """Return what the checks say if UCBRank were the default policy."""
    monkeypatch.setattr(leaderboard, "OURS", "ucb-rank")
    return [check.holds for check in read(**medians).checks]


def test_the_default_policy_must_be_at_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ours(monkeypatch, table1_ucb_rank=900.0) == [True, True]
    assert ours(monkeypatch, table1_ucb_rank=1100.0) == [False, True]


def test_the_default_policy_must_be_near_the_best_that_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ratios of ucb-rank: 1000/600 and 1, so its score is 1.333 times that of pbm-ucb.
    assert ours(monkeypatch, table1_ucb_rank=999.0, table1_pbm_ucb=600.0) == [True, False]
    assert ours(monkeypatch, table1_ucb_rank=999.0, table1_pbm_ucb=700.0) == [True, True]


def test_without_the_default_policy_there_is_nothing_to_check() -> None:
    assert not leaderboard.read(TWO, ["grab", "random"], data()).checks
    assert leaderboard.read(TWO, ["pbm-ucb"], data()).findings.endswith("took part.")
    few = leaderboard.read(TWO, ["pbm-ucb", "random"], data()).findings
    assert few.endswith("No policy that knows nothing of positions took part but random rankings.")


def test_a_suite_tells_who_lost_least_and_what_does_not_hold() -> None:
    suite = SUITES["item-jumps"]
    frames = {
        part.removeprefix("item-jumps/"): frame
        for part, frame in data(item_jumps_pbm_ucb_plus_window=100.0, item_jumps_random=5.0).items()
        if part.startswith("item-jumps/")
    }
    reading = suite_study.read(suite, NAMES, frames)
    [table] = reading.tables
    assert table.rows[1][:7] == ["pbm-ucb+window", "examination known", "104", "101", "106", "107", "1.00"]
    assert table.rows[0][0] == "random"  # lucky, and yet not the best
    assert reading.figures["best"] == "pbm-ucb+window"
    broken = {row[0]: row[-1] for row in table.rows}
    assert broken["ucb-rank+window"] == "–"
    assert "this one changes" in broken["ucb-rank"]
    assert "takes positions for looked at in the order 1 > 2 > 3 > 4" in broken["top-rank"]
    assert reading.findings.startswith("pbm-ucb+window (examination known) has the least median regret, 104;")
    assert reading.checks == []


def test_a_suite_without_random_rankings_says_so() -> None:
    frames = {"grab": ending_at(3.0), f"{TIME}grab": timed(1.0)}
    reading = suite_study.read(SUITES["table1"], ["grab"], frames)
    assert reading.findings == "grab has the least median regret, 3. Random rankings did not take part."
