"""Public formats: Open Bandit Dataset, Yandex-style session logs, and KDD Cup 2012."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.click_logs import draw_visits

from banditrank import InvalidInputError, kdd2012
from banditrank.logs import LogColumns, count_log
from banditrank.logs.kdd2012 import extract, write_sample_log

SESSIONS = """\
1\t0\tQ\t70\t5\t11\t12\t13
1\t9\tC\t12
1\t20\tQ\t71\t5\t14\t12\t15
1\t25\tC\t12
1\t26\tC\t11
2\t0\tQ\t70\t6\t13\t12\t11
"""


def test_open_bandit_rows_have_propensities_and_features(tmp_path: Path) -> None:
    log = draw_visits(40)
    rows = pd.DataFrame(
        {
            "timestamp": log["ts"].dt.strftime("%Y-%m-%d %H:%M:%S.000000+00:00"),
            "item_id": log["item"].str.removeprefix("item-"),
            "position": log["position"],
            "click": log["clicked"],
            "propensity_score": 1 / 6,
            "user_feature_0": log["segment"],
        }
    )
    rows.to_csv(tmp_path / "all.csv")  # with the index, as the data set has it
    cube = count_log(
        tmp_path / "all.csv",
        LogColumns(user_type="user_feature_0"),
        file_format="open-bandit",
        period="week",
        threads=1,
    )
    assert (cube.user_types, cube.n_positions, len(cube.items)) == (("new", "old"), 4, 6)
    assert cube.cells.displays.sum() == len(log)
    assert cube.periods == ("2025-12-29", "2026-01-05")[: len(cube.periods)]
    np.testing.assert_allclose(cube.cells.weights, 6 * cube.cells.displays)
    assert count_log(tmp_path / "all.csv", file_format="open-bandit", threads=1).user_types == ("all",)


def test_clicks_of_session_logs_belong_to_the_latest_query_that_showed_the_item(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(SESSIONS)
    cube = count_log(tmp_path / "log.txt", LogColumns(user_type="region"), file_format="yandex", threads=1)
    assert (cube.user_types, cube.n_visits) == (("5", "6"), 3)
    assert cube.items == ("11", "12", "13", "14", "15")
    clicks = cube.table(cube.cells.clicks)
    assert {tuple(map(int, each)) for each in np.argwhere(clicks)} == {(0, 0, 0), (0, 1, 1)}
    assert clicks[0, 1, 1] == 2
    assert len(set(cube.cells.fold[cube.cells.user_type == 0])) == 1, "a session is in one fold"


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (
            "3\t0\tC\t12",
            "click before the first query of its session",
            r"log.txt line 7 must follow a query of session 3",
        ),
        (
            "3\t0\tX\t12",
            "line is neither a query nor a click",
            r"log.txt line 7 must be SessionID, TimePassed, and Q",
        ),
        ("3\xe9", "row is not UTF-8", r"log.txt line 7 must be UTF-8"),
    ],
)
def test_malformed_lines_of_session_logs_are_named_or_dropped(
    tmp_path: Path, line: str, reason: str, message: str
) -> None:
    (tmp_path / "log.txt").write_text(f"{SESSIONS}{line}\n", encoding="latin-1")
    with pytest.raises(InvalidInputError, match=message):
        count_log(tmp_path / "log.txt", file_format="yandex", threads=1)
    metadata = count_log(tmp_path / "log.txt", file_format="yandex", threads=1, bad_rows="drop").metadata
    assert metadata["rows"][reason] == 1
    assert metadata["first_rows"] == {reason: "log.txt line 7"}


def test_bad_visits_of_session_logs_have_their_line(tmp_path: Path) -> None:
    """Finding 4: a bad visit is named by its line of the session log, not of the converted file."""
    (tmp_path / "log.txt").write_text(f"{SESSIONS}3\t0\tQ\t9\t5\t11\t11\n")
    with pytest.raises(InvalidInputError, match=r"^log\.txt line 7: items must have each item once"):
        count_log(tmp_path / "log.txt", file_format="yandex", threads=1)
    cube = count_log(tmp_path / "log.txt", file_format="yandex", threads=1, bad_rows="drop")
    assert cube.metadata["first_rows"] == {"position or item twice in a visit": "log.txt line 7"}


def test_the_contest_s_log_is_counted_as_by_its_own_reader(tmp_path: Path) -> None:
    log = write_sample_log(kdd2012(), tmp_path, n_rows=2_000, seed=1)
    cube = count_log(log.training, file_format="kdd2012", threads=1)
    extraction = extract(log.training, log.profiles, threads=1)
    assert cube.metadata["rows"] == {"counted": extraction.total.rows}
    assert cube.cells.displays.sum() == extraction.total.impressions
    assert cube.cells.clicks.sum() == extraction.total.clicks


def test_the_contest_s_genders_are_those_of_the_user_table(tmp_path: Path) -> None:
    log = write_sample_log(kdd2012(), tmp_path, n_rows=2_000, seed=1)
    extraction = extract(log.training, log.profiles, threads=1)
    cube = count_log(
        log.training,
        LogColumns(user_type="Gender"),
        users=log.profiles,
        file_format="kdd2012",
        bad_rows="drop",
        threads=1,
    )
    chosen = cube.select(
        user_types=[cube.user_types.index(gender) for gender in ("1", "2")],
        items=[cube.items.index(str(ad)) for ad in extraction.ads],
        n_positions=2,
    )
    np.testing.assert_array_equal(chosen.table(chosen.cells.displays), extraction.counts.displays)
    np.testing.assert_array_equal(chosen.table(chosen.cells.clicks), extraction.counts.rewards)
    unknown = next(group for group in extraction.row_groups if group.reason == "user without a profile")
    assert cube.metadata["rows"].get("user_type is missing", 0) >= unknown.rows
