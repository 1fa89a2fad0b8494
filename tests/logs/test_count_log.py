"""Counting of click logs: formats, layouts, columns, bad rows, periods and traps."""

import bz2
import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.click_logs import (
    ITEMS,
    assert_same_cube,
    draw_visits,
    expected_cube,
    to_wide,
    without_folds,
    write_lines,
)

from banditrank import BanditRankError, InvalidInputError
from banditrank.counts import ClickCube
from banditrank.counts._click_cube import UNKNOWN
from banditrank.logs import LogColumns, count_log
from banditrank.logs._count_queries import MODULUS

LOG = draw_visits()
SMALL = {"memory_limit": "200MB", "threads": 1}


def count(source: object, columns: LogColumns | None = None, **options: object) -> ClickCube:
    return count_log(source, columns, **{**SMALL, **options})


def offer_drop(message: str) -> str:
    """Return the message about a bad row with its remedy."""
    return message.replace(", got", ", unless bad rows are dropped, got")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.csv.zst", "a.tsv", "a.jsonl", "a.jsonl.gz", "a.parquet"]
)
def test_all_formats_are_counted_alike(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    log = LOG.drop(columns=["user_id", "ts"])
    if "parquet" in name:
        log.to_parquet(path)
    elif "json" in name:
        text = log.to_json(orient="records", lines=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    else:
        data = log.to_csv(index=False, sep="\t" if "tsv" in name else ",").encode()
        if name.endswith("zst"):
            data = pa.compress(data, codec="zstd", asbytes=True)
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    cube = count(path)
    assert_same_cube(without_folds(cube), expected_cube(LOG))
    assert cube.metadata["rows"] == {"counted": len(LOG)}
    assert cube.type_columns == ("segment",)
    assert_same_cube(cube, count(LOG, LogColumns(user="")))


def test_frames_globs_and_directories_are_counted_alike(tmp_path: Path) -> None:
    log = LOG.drop(columns=["user_id", "ts"])
    expected = count(log)
    for frame in (pl.DataFrame(log), pl.LazyFrame(log), pa.table(log), pa.table(log).to_reader()):
        assert_same_cube(count(frame), expected)
    half = log["session"] < 1030
    (tmp_path / "day=1").mkdir()
    log[half].to_parquet(tmp_path / "day=1" / "a.parquet")
    log[~half].to_parquet(tmp_path / "b.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    assert_same_cube(count(tmp_path), expected)
    assert_same_cube(count(str(tmp_path / "**" / "*.parquet")), expected)
    assert_same_cube(count([tmp_path / "day=1" / "a.parquet", tmp_path / "b.parquet"]), expected)
    parts = [count(log[half]), count(log[~half])]
    assert_same_cube(parts[0] + parts[1], expected)
    assert (parts[0] + parts[1]).metadata["rows"] == {"counted": len(log)}


@pytest.mark.parametrize("clicks", ["clicked_items", "clicks"])
def test_a_row_a_visit_is_counted_like_a_row_a_display(tmp_path: Path, clicks: str) -> None:
    rows = [{name: row[name] for name in ("session", "segment", "items", clicks)} for row in to_wide(LOG)]
    expected = count(LOG, LogColumns(user="", time=""))
    lines = count(write_lines(tmp_path / "wide.jsonl", rows))
    assert_same_cube(lines, expected)
    frame = pd.DataFrame(rows)
    assert_same_cube(count(frame), expected)
    for name in ("items", clicks):
        frame[name] = ["|".join(map(str, values)) for values in frame[name]]
    frame.to_csv(tmp_path / "wide.csv", index=False)
    assert_same_cube(count(tmp_path / "wide.csv"), expected)


def test_a_column_for_each_position_is_counted_like_a_list() -> None:
    rows = [row for row in to_wide(LOG) if len(row["clicked_items"]) <= 1]
    wide = pd.DataFrame(
        {
            "segment": [row["segment"] for row in rows],
            **{f"item_{k + 1}": [row["items"][k] for row in rows] for k in range(4)},
            "chosen": [row["clicked_items"][0] if row["clicked_items"] else None for row in rows],
        }
    )
    cube = count(wide)
    kept = LOG[LOG["session"].isin([row["session"] for row in rows])]
    assert_same_cube(without_folds(cube), expected_cube(kept))
    assert set(cube.cells.fold) == {UNKNOWN}
    assert cube.metadata["guessed"]["items"] == "item_1 to item_4"


def test_lists_of_a_row_a_visit_are_those_of_a_row_a_display() -> None:
    wide = pd.DataFrame(to_wide(LOG)).drop(columns="clicks")
    expected = count(LOG, LogColumns(user="", time=""), max_lists=25)
    assert 5 < expected.lists.visits.sum() < 60
    assert_same_cube(count(wide, max_lists=25), expected)


def test_lists_without_ids_are_a_sample_at_equal_steps() -> None:
    # 900 visits show one list, and 100 show others: the most frequent list must not crowd out the others.
    rows = [{"items": ["a", "b"], "clicked_items": ["b"] if n % 9 == 0 else []} for n in range(900)]
    rows += [{"items": [f"item-{n}", "b"], "clicked_items": [f"item-{n}"]} for n in range(100)]
    lists = count(pd.DataFrame(rows), max_lists=100).lists
    assert lists.visits.sum() == 100
    assert lists.visits[lists.clicks == 0].sum() == pytest.approx(80, abs=1)
    assert lists.visits[lists.clicks == 1].sum() == pytest.approx(10, abs=1)
    assert lists.visits[lists.clicks == 2].sum() == pytest.approx(10, abs=1)


def test_aggregated_rows_are_added() -> None:
    grouped = LOG.groupby(["segment", "item", "position"], as_index=False).agg(
        impressions=("clicked", "size"), clicks=("clicked", "sum")
    )
    cube = count(grouped)
    assert not cube.has_visits
    rows = count(LOG, LogColumns(session="", user="", time=""))
    np.testing.assert_array_equal(cube.counts().displays, rows.counts().displays)
    np.testing.assert_array_equal(cube.counts().rewards, rows.counts().rewards)
    assert set(rows.cells.above) == set(rows.cells.fold) == {UNKNOWN}


def test_positions_from_0_are_found_and_said() -> None:
    log = LOG.assign(position=LOG["position"] - 1)
    cube = count(log, LogColumns(user="", time=""))
    assert_same_cube(cube, count(LOG, LogColumns(user="", time="")))
    assert cube.metadata["first_position"] == 0
    with pytest.raises(
        InvalidInputError, match=r"^row 1: position must be from 1 to 62, unless bad rows are dropped, got 0$"
    ):
        count(log, first_position=1)


def test_several_columns_are_the_user_type() -> None:
    log = LOG.assign(country=np.where(LOG["session"] % 3 == 0, "de", "fr"))
    cube = count(log, LogColumns(user_type=["segment", "country"], user=""))
    assert cube.type_columns == ("segment", "country")
    assert cube.user_types == ("new/de", "new/fr", "old/de", "old/fr")
    one = cube.regroup(["segment"])
    np.testing.assert_array_equal(one.counts().displays, expected_cube(LOG).counts().displays)
    assert count(log, LogColumns(user_type="")).user_types == ("all",)


def test_folds_are_those_of_the_user() -> None:
    cube = count(LOG.drop(columns=["session"]))
    folds = (LOG["user_id"] * 1103515245 + 12345) % MODULUS % 20
    np.testing.assert_array_equal(
        np.bincount(cube.cells.fold, cube.cells.displays, 20), np.bincount(folds, minlength=20)
    )
    text = count(LOG.drop(columns=["session"]).astype({"user_id": str}))
    assert_same_cube(text, cube)
    named = count(LOG.drop(columns=["session"]).assign(user_id="user-" + LOG["user_id"].astype(str)))
    assert named.cells.displays.sum() == len(LOG)
    assert len(set(named.cells.fold)) > 5


def test_propensities_are_inverted_and_summed() -> None:
    log = LOG.assign(propensity=1 / len(ITEMS))
    cube = count(log)
    np.testing.assert_allclose(cube.cells.weights, 6 * cube.cells.displays)
    np.testing.assert_allclose(cube.cells.squared_weighted_clicks, 36 * cube.cells.clicks)
    assert cube.metadata["warnings"] == []
    wrong = count(log.assign(propensity=0.5))
    assert wrong.metadata["warnings"] == []  # too few displays
    many = pd.concat([log.assign(propensity=0.5)] * 10).drop(columns=["session"])
    assert "propensities look wrong: at position 1 for new" in count(many).metadata["warnings"][0]


@pytest.mark.parametrize(
    ("period", "zone", "names"),
    [
        ("day", "UTC", ["2026-01-01", "2026-01-02"]),
        ("week", "UTC", ["2025-12-29", "2026-01-05"]),
        ("month", "America/New_York", ["2025-12", "2026-01"]),
        ("hour", "Asia/Kolkata", ["2026-01-01T05", "2026-01-01T08"]),
    ],
)
def test_periods_begin_in_the_time_zone(period: str, zone: str, names: list[str]) -> None:
    for log in (LOG, LOG.assign(ts=LOG["ts"].astype(str)), LOG.assign(ts=LOG["ts"].astype("int64") // 10**6)):
        if log["ts"].dtype == np.int64 and log["ts"].iloc[0] < 10**11:
            continue
        cube = count(log, LogColumns(time="ts", user=""), period=period, time_zone=zone)
        assert list(cube.periods[:2]) == names
        assert cube.cells.displays.sum() == len(LOG)
        assert cube.n_visits == 60


def test_daylight_saving_time_is_followed() -> None:
    stamps = pd.to_datetime(["2026-03-28 23:30", "2026-03-29 21:30", "2026-03-29 22:30"])
    log = LOG.head(3).drop(columns=["session", "user_id"]).assign(ts=stamps)
    cube = count(log, LogColumns(time="ts"), time_zone="Europe/Berlin")
    assert cube.periods == ("2026-03-29", "2026-03-30")
    assert np.bincount(cube.cells.period, cube.cells.displays).tolist() == [2, 1]


def test_rows_outside_of_the_dates_are_counted_apart() -> None:
    cube = count(LOG, LogColumns(time="ts"), since="2026-01-02", until="2026-01-03")
    assert cube.periods == ("2026-01-02",)
    assert cube.metadata["rows"] == {"counted": 32, "outside since and until": 208}


def test_positions_beyond_the_limit_are_counted_apart() -> None:
    cube = count(LOG, LogColumns(user="", time=""), n_positions=2)
    assert cube.metadata["rows"] == {"counted": 120, "position beyond the limit": 120}
    assert_same_cube(without_folds(cube), expected_cube(LOG[LOG["position"] <= 2]))
    assert_same_cube(count(pd.DataFrame(to_wide(LOG)), LogColumns(clicks=""), n_positions=2), cube)


BASE = "session,segment,item,position,clicked\n1,new,a,1,0\n1,new,b,2,1\n2,old,b,1,1\n"
BAD_LINES = {
    "2,,a,2,0": ("user_type is missing", "segment must not be missing, got None"),
    "2,old,,2,0": ("item is missing", "item must not be missing, got None"),
    "2,old,a,,0": ("position is missing", "position must not be missing, got None"),
    "2,old,a,2,": ("clicked is missing", "clicked must not be missing, got None"),
    ",old,a,2,0": ("session is missing", "session must not be missing, got None"),
    "2,old,a,two,0": ("position is not a whole number", "position must be a whole number, got 'two'"),
    "2,old,a,1.5,0": ("position is not a whole number", "position must be a whole number, got '1.5'"),
    "2,old,a,63,0": ("position is out of range", "position must be from 0 to 62, got '63'"),
    "2,old,a,-1,0": ("position is out of range", "position must be from 0 to 62, got '-1'"),
    "2,old,a,2000000000,0": (
        "position is out of range",
        "position must be from 0 to 62, got '2000000000'",
    ),
    "2,old,a\x1b[31m,2,1": (
        "item is not a printable name",
        "item must be a non-empty printable string, got 'a\\x1b[31m'",
    ),
    "2,o\0ld,a,2,1": (
        "user_type is not a printable name",
        "segment must be a non-empty printable string, got 'o\\x00ld'",
    ),
    "2,old,a,2,2": ("clicked is not 0 or 1", "clicked must be 0 or 1, got '2'"),
    "2,old,a,2,yes": ("clicked is not 0 or 1", "clicked must be 0 or 1, got 'yes'"),
    "2,old,a,1,0": (
        "position or item twice in a visit",
        "position must be there once in visit 2, got '1'",
    ),
    "2,old,b,2,0": ("position or item twice in a visit", "item must be there once in visit 2, got 'b'"),
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_rows_are_refused_with_their_line_or_dropped(tmp_path: Path, line: str) -> None:
    reason, message = BAD_LINES[line]
    path = tmp_path / "log.csv"
    path.write_text(BASE + line + "\n3,old,a,1,0\n")
    with pytest.raises(InvalidInputError) as caught:
        count(path)
    assert str(caught.value) == f"log.csv line 5: {offer_drop(message)}"
    cube = count(path, bad_rows="drop")
    n_bad = 2 if "twice" in reason else 1
    assert cube.metadata["rows"] == {"counted": 5 - n_bad, reason: n_bad}
    assert cube.metadata["first_rows"] == {reason: "log.csv line 5"}
    assert cube.cells.displays.sum() == 5 - n_bad
    assert cube.visits.n_clicks.max() == 1  # clicks of bad rows are not those of their visit


def test_several_clicks_are_bad_where_one_is_assumed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(BASE + "2,old,a,2,1\n")
    assert count(path).table_by_last_click(count(path).cells.clicks).sum() == 3
    with pytest.raises(
        InvalidInputError, match=r"^log.csv line 5: clicked must be 1 at most once in visit 2"
    ):
        count(path, single_click=True)
    cube = count(path, single_click=True, bad_rows="drop")
    assert cube.metadata["rows"] == {"counted": 2, "several clicks in a visit": 2}
    assert cube.n_visits == 1


WIDE = {
    '{"items": ["a", "b"], "clicked_items": ["c"]}': (
        "click on an item that was not shown",
        "clicked_items must be among the items of the visit, got 'c'",
    ),
    '{"items": ["a", "a"], "clicked_items": []}': (
        "position or item twice in a visit",
        "items must have each item once, got 'a, a'",
    ),
    '{"items": [], "clicked_items": []}': ("visit without items", "items must not be empty, got []"),
    '{"items": ["a", "b\\u0007"], "clicked_items": []}': (
        "item is not a printable name",
        "items must be a non-empty printable string, got 'b\\x07'",
    ),
}


@pytest.mark.parametrize("line", WIDE)
def test_bad_visits_are_refused_with_their_line_or_dropped(tmp_path: Path, line: str) -> None:
    reason, message = WIDE[line]
    path = tmp_path / "log.jsonl"
    path.write_text('{"items": ["a", "b"], "clicked_items": ["b"]}\n' + line + "\n")
    with pytest.raises(InvalidInputError) as caught:
        count(path)
    assert str(caught.value) == f"log.jsonl line 2: {offer_drop(message)}"
    cube = count(path, bad_rows="drop")
    assert cube.metadata["rows"] == {"counted": 1, reason: 1}
    assert cube.n_visits == 1


def test_bad_amounts_and_propensities_are_refused() -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "position": [1, 1], "displays": [3, 2], "clicks": [1, 3]})
    with pytest.raises(
        InvalidInputError,
        match=r"^row 2: clicks must be at most displays, 2, unless bad rows are dropped, got 3$",
    ):
        count(frame)
    with pytest.raises(
        InvalidInputError,
        match=r"^row 1: clicks must be a whole number from 0 to 1,000,000,000,000,000, unless bad rows are "
        r"dropped, got -1",
    ):
        count(frame.assign(clicks=[-1, 0]))
    with pytest.raises(
        InvalidInputError,
        match=r"^row 1: displays must be .* to 1,000,000,000,000,000, unless .*, got 10{18}$",
    ):
        count(frame.assign(displays=[10**18, 5]))
    with pytest.raises(
        InvalidInputError,
        match=r"^row 3: propensity must be above 0 and at most 1, unless bad rows are dropped, got 1.5$",
    ):
        count(LOG.assign(propensity=[0.5, 1.0, 1.5] + [0.5] * 237))


def test_files_of_a_cube_are_no_log(tmp_path: Path) -> None:
    count(LOG).save(tmp_path / "cube")
    rule = "log must not have files of a cube: give the directory of the cube to the analyses, got '"
    for source in ("cube", "cube/cells.parquet", "cube/*.parquet", "."):
        with pytest.raises(InvalidInputError, match=re.escape(rule)):
            count(str(tmp_path / source))


def test_rows_of_parquet_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    LOG.assign(clicked=[0] * 100 + [7] + [1] * 139).to_parquet(path)
    with pytest.raises(
        InvalidInputError,
        match=r"^log.parquet row 101: clicked must be 0 or 1, unless bad rows are dropped, got 7$",
    ):
        count(path)


def test_times_that_are_none_are_bad(tmp_path: Path) -> None:
    log = LOG.astype({"ts": str})
    log.loc[5, "ts"] = "soon"
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(
        InvalidInputError,
        match=r"^log.csv line 7: ts must be a time, unless bad rows are dropped, got 'soon'$",
    ):
        count(tmp_path / "log.csv", LogColumns(time="ts"))
    rows = [{**row, "ts": "soon" if number == 2 else "2026-01-01"} for number, row in enumerate(to_wide(LOG))]
    write_lines(tmp_path / "wide.jsonl", rows)
    with pytest.raises(
        InvalidInputError,
        match=r"^wide.jsonl line 3: ts must be a time, unless bad rows are dropped, got 'soon'$",
    ):
        count(tmp_path / "wide.jsonl", LogColumns(time="ts", clicks=""))


def test_a_missing_column_names_the_nearest() -> None:
    with pytest.raises(
        InvalidInputError, match=r"item column must be one of .* \(did you mean item\?\), got 'itm'"
    ):
        count(LOG, LogColumns(item="itm"))
    with pytest.raises(
        InvalidInputError, match=r"clicked column must be named, because no column has a usual name"
    ):
        count(LOG.drop(columns="clicked"))
    with pytest.raises(InvalidInputError, match="position column must not be the column of item, too"):
        count(LOG, LogColumns(item="position", position="position"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bad_rows": "keep"}, r"bad_rows must be one of refuse, drop"),
        ({"period": "year"}, "period must be one of hour, day, week, month"),
        ({"period": "day", "columns": LogColumns(time="")}, "time column must be named"),
        ({"time_zone": "Mars/Base"}, "time_zone must be a time zone such as Europe/Berlin, got 'Mars/Base'"),
        ({"since": "yesterday"}, "since must be a date such as 2026-01-31"),
        ({"first_position": 2}, "first_position must be a whole number from 0 to 1"),
        ({"engine": "pandas"}, "engine must be one of duckdb, spark"),
        ({"master": "local[1]"}, "master must not be given for the engine duckdb"),
        ({"max_lists": 10**9}, "max_lists must be a whole number from 0 to 5,000,000"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        count(LOG, **options)


def test_files_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    cases = {
        "none.csv": "log must be a file, a directory or a glob that matches a file",
        "a.txt": r"log must end in \.csv, \.tsv, \.jsonl or \.parquet",
        "empty.csv": "log must not be empty",
        "a.csv.bz2": r"log must be plain, \.gz or \.zst for the engine duckdb",
    }
    (tmp_path / "a.txt").write_text(BASE)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(BASE.encode()))
    for name, message in cases.items():
        with pytest.raises(InvalidInputError, match=message):
            count(tmp_path / name)
    (tmp_path / "only.csv").write_text(BASE.splitlines()[0] + "\n")
    with pytest.raises(InvalidInputError, match=r"log must have a row that is counted, got 0$"):
        count(tmp_path / "only.csv")
    assert count(tmp_path / "a.txt", file_format="csv").n_visits == 2
    LOG.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match="log must be files of one format"):
        count([tmp_path / "only.csv", tmp_path / "b.parquet"])


def test_traps_are_warned_about() -> None:
    clicked = count(LOG[LOG["clicked"] == 1].drop(columns="session"))
    assert "every display was clicked" in clicked.metadata["warnings"][0]
    bot = pd.concat([LOG.assign(user_id=LOG["session"])] + [LOG.assign(user_id=7)] * 50)
    bot = pd.concat([bot, LOG.assign(user_id=np.arange(10_000, 10_240))] * 1).drop(columns="session")
    extra = pd.concat([LOG.assign(user_id=20_000 + 240 * k + np.arange(240)) for k in range(5)])
    warnings = count(pd.concat([bot, extra.drop(columns="session")])).metadata["warnings"]
    assert any("a bot?" in line for line in warnings)
    rare = pd.concat([LOG] * 2 + [LOG.head(1).assign(segment="rare")]).drop(columns="session")
    assert count(rare).metadata["warnings"] == ["user types with less than 1% of displays: rare"]


def test_only_a_sample_of_lists_is_retained() -> None:
    log = draw_visits(400)
    cube = count(log, LogColumns(user=""), max_lists=100)
    assert 50 < cube.lists.visits.sum() < 160
    assert count(log, LogColumns(user=""), max_lists=0).lists.visits.size == 0
    assert cube.n_visits == 400


def test_progress_is_reported_and_ctrl_c_stops(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.concat_tables([pa.table(LOG.drop(columns=["session"]))] * 20_000), path)
    seen: list[float] = []
    count(path, LogColumns(user=""), on_progress=seen.append)
    assert seen == sorted(seen)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(path, on_progress=interrupt)


USERS = pd.DataFrame({"user_id": LOG["user_id"].unique()})
USERS["plan"] = np.where(USERS["user_id"] % 2 == 0, "free", "paid")


def test_columns_of_the_user_table_are_user_types(tmp_path: Path) -> None:
    plans = dict(zip(USERS["user_id"], USERS["plan"], strict=True))
    expected = count(LOG.assign(plan=LOG["user_id"].map(plans)), LogColumns(user_type=["segment", "plan"]))
    USERS.astype(str).to_csv(tmp_path / "users.csv", index=False)
    LOG.to_parquet(tmp_path / "log.parquet")
    columns = LogColumns(user_type=["segment", "plan"])
    for source, users in ((LOG, USERS), (tmp_path / "log.parquet", str(tmp_path / "users.csv"))):
        cube = count(source, columns, users=users)
        assert_same_cube(cube, expected)
        assert cube.type_columns == ("segment", "plan")
    doubled = pd.concat([USERS, USERS])
    assert_same_cube(count(LOG, columns, users=doubled), expected)


def test_users_without_a_row_in_the_user_table_are_bad_rows() -> None:
    columns, users = LogColumns(user_type="plan"), USERS[1:]
    n_unknown = int((LOG["user_id"] == USERS["user_id"][0]).sum())
    cube = count(LOG, columns, users=users, bad_rows="drop")
    assert cube.metadata["rows"]["user_type is missing"] == n_unknown
    with pytest.raises(InvalidInputError, match=rf"got 'user_type is missing: {n_unknown} rows'"):
        count(LOG, columns, users=users)


@pytest.mark.parametrize(
    ("users", "columns", "message"),
    [
        (
            pd.concat([USERS, USERS.assign(plan="other")]),
            LogColumns(user_type="plan"),
            "user table must not contradict itself about a user",
        ),
        (USERS.assign(item="a"), None, "user table must have no column of the log but the user, got 'item'"),
        (USERS.rename(columns={"user_id": "who"}), None, "user table must have the column user_id"),
        (USERS, LogColumns(user="absent"), "user column must be one of"),
        ("nothing.csv", None, "user table must be a file"),
    ],
)
def test_invalid_user_tables_are_refused(users: object, columns: LogColumns | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        count(LOG, columns, users=users)


ROWS = LOG.drop(columns=["user_id", "ts"])[:40].to_csv(index=False)


MALFORMED = {
    "1,new,item-1,1": (
        "row has another number of values than the header",
        "must have 5 values, as the header has columns, got 4",
    ),
    "1,new,item-1,1,0,0,0": (
        "row has another number of values than the header",
        "must have 5 values, as the header has columns, got 7",
    ),
    '1,new,"item-1,1,0': (
        "quotes are not around whole values",
        "must have quotes around whole values, got 'an open quote, or text after a closing one'",
    ),
    '1,new,"item"-1,1,0': (
        "quotes are not around whole values",
        "must have quotes around whole values, got 'an open quote, or text after a closing one'",
    ),
    "1,new,caf\xe9,1,0": ("row is not UTF-8", "must be UTF-8, got \"byte 0xe9 after '1,new,caf'\""),
    f"1,new,{'x' * 2_000_000},1,0": (
        "row is too long",
        "must be at most 2,000,000 bytes long, got 'a longer line'",
    ),
}


@pytest.mark.parametrize("line", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_rows_are_refused_with_their_line_or_dropped(tmp_path: Path, line: str) -> None:
    # Detection of the format would skip the rows before a longer one, or say that it failed only.
    reason, message = MALFORMED[line]
    lines = ROWS.splitlines()
    path = tmp_path / "log.csv"
    path.write_bytes("\n".join([*lines[:30], line, *lines[30:], "7,new,item-1,9,2"]).encode("latin-1"))
    with pytest.raises(InvalidInputError) as caught:
        count(path)
    assert str(caught.value) == f"log.csv line 31 {message}"
    cube = count(path, bad_rows="drop")
    assert cube.metadata["rows"] == {"counted": 40, "clicked is not 0 or 1": 1, reason: 1}
    assert cube.metadata["first_rows"] == {
        reason: "log.csv line 31",
        "clicked is not 0 or 1": "log.csv line 43",
    }
    assert_same_cube(cube, count(LOG[:40], LogColumns(user="", time="")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ROWS.encode("utf-16"), r"log.csv line 1 must be UTF-8, got .byte 0xff"),
        (
            ROWS.replace("segment", "Item", 1).encode(),
            r"log.csv line 1 must have each column once, got 'item'",
        ),
        (
            ROWS.replace("item", "item\x1b", 1).encode(),
            r"item column must have a printable name, got 'item\\x1b'",
        ),
    ],
)
def test_malformed_headers_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    for bad_rows in ("refuse", "drop"):
        with pytest.raises(InvalidInputError, match=message):
            count(tmp_path / "log.csv", bad_rows=bad_rows)


def test_damaged_and_incomplete_files_are_named(tmp_path: Path) -> None:
    gz, zst = gzip.compress(ROWS.encode()), pa.compress(ROWS.encode(), codec="zstd", asbytes=True)
    cases = {
        "cut.csv.gz": (gz[:-20], "truncated compressed stream"),
        "sum.csv.gz": (gz[:-8] + bytes(8), "incorrect data check"),
        "plain.csv.gz": (ROWS.encode(), "incorrect header check"),
        "cut.csv.zst": (zst[:-20], "truncated compressed stream"),
        "cut.jsonl.gz": (gzip.compress(b'{"item": "a"}\n' * 99)[:-20], "truncated compressed stream"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            InvalidInputError, match=rf"^log must be a readable file \(.*{message}\), got '.*{name}'$"
        ):
            count(tmp_path / name, bad_rows="drop")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(BanditRankError, match=r"^reading the log failed: .*cut.parquet'$"):
        count(tmp_path / "cut.parquet")


@pytest.mark.parametrize(
    "content",
    [
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace("\n", "\r\n", 20).encode(),
        b"\xef\xbb\xbf" + ROWS.encode(),
        ROWS.replace("item-1", '"item-1"').encode(),
        ROWS.replace("session,", " session ,", 1).encode(),
        (ROWS + "\n\n").encode(),
    ],
)
def test_ends_of_lines_marks_and_quotes_do_not_matter(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    assert_same_cube(count(tmp_path / "log.csv"), count(LOG[:40], LogColumns(user="", time="")))


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (
            b'{"item": "a", "slot": ',
            "line is not a JSON object",
            'must be a JSON object, got \'{"item": "a", "slot":\'',
        ),
        (b"5", "line is not a JSON object", "must be a JSON object, got '5'"),
        (b'{"item": "a", "item": "b"}', "key twice in a JSON object", "must have each key once, got 'item'"),
        (
            b'{"item": "\xe9"}',
            "row is not UTF-8",
            """must be UTF-8, got 'byte 0xe9 after \\'{"item": "\\''""",
        ),
        (b'{"item": "\\ud800"}', "row is not UTF-8", "must have no lone surrogates, got '{"),
    ],
)
def test_malformed_objects_are_refused_with_their_line_or_dropped(
    tmp_path: Path, line: bytes, reason: str, message: str
) -> None:
    good = b'{"item": "a", "slot": 1, "clicked": 0}\n'
    (tmp_path / "log.jsonl").write_bytes(good * 2 + line + b"\n" + good)
    with pytest.raises(InvalidInputError) as caught:
        count(tmp_path / "log.jsonl")
    assert str(caught.value).startswith(f"log.jsonl line 3 {message}")
    cube = count(tmp_path / "log.jsonl", bad_rows="drop")
    assert cube.metadata["rows"] == {"counted": 3, reason: 1}
    assert cube.metadata["first_rows"] == {reason: "log.jsonl line 3"}


def test_a_log_of_malformed_rows_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("5\n[1]\n")
    message = (
        "log must have a row that is counted (line is not a JSON object: 2 rows (first: log.jsonl line 1)), "
        "got '0 of 2'"
    )
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        count(tmp_path / "log.jsonl", bad_rows="drop")
    (tmp_path / "array.jsonl").write_text('[{"item": "a", "slot": 1, "clicked": 0}]\n')
    with pytest.raises(InvalidInputError, match=r"array\.jsonl line 1 must be a JSON object, not an array"):
        count(tmp_path / "array.jsonl")


@pytest.mark.parametrize("value", ['{"id": 7}', '["b"]'])
def test_nested_values_are_no_names(tmp_path: Path, value: str) -> None:
    rows = [f'{{"item": {item}, "segment": "new", "slot": 1, "clicked": 0}}\n' for item in ('"a"', value, 8)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(rows))
    with pytest.raises(
        InvalidInputError, match=r"log\.jsonl line 2: item must be a non-empty printable string"
    ):
        count(path)
    cube = count(path, bad_rows="drop")
    assert cube.items == ("8", "a")
    assert cube.metadata["rows"] == {"counted": 2, "item is not a printable name": 1}
    path.write_text(rows[1])
    for bad_rows in ("refuse", "drop"):
        with pytest.raises(InvalidInputError, match="item column must hold names, not objects or lists"):
            count(path, bad_rows=bad_rows)
    swapped = pd.DataFrame({"item": ["a"], "segment": [{"id": 7}], "slot": [1], "clicked": [0]})
    with pytest.raises(InvalidInputError, match="user_type column must hold names"):
        count(swapped)


@pytest.mark.parametrize("name", ["log.csv.gz", "log.jsonl.gz"])
def test_compressed_files_without_content_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b""))
    with pytest.raises(InvalidInputError, match=f"log must not be empty, got .*{name}"):
        count(tmp_path / name)


def test_a_late_value_of_another_type_is_a_bad_row(tmp_path: Path) -> None:
    # DuckDB detects types by the first 20,480 rows, and fails at a later value that does not fit.
    good = '{"item": "a", "slot": 1, "clicked": 0}\n'
    (tmp_path / "log.jsonl").write_text(good * 21_000 + good.replace("1", '"first"'))
    with pytest.raises(
        InvalidInputError,
        match=r"^log.jsonl line 21,001: slot must be a whole number, unless bad rows are dropped, got "
        r"'first'$",
    ):
        count(tmp_path / "log.jsonl")
    cube = count(tmp_path / "log.jsonl", bad_rows="drop")
    assert cube.metadata["rows"] == {"counted": 21_000, "position is not a whole number": 1}


def test_spaces_around_names_of_columns_do_not_hide_bad_rows(tmp_path: Path) -> None:
    text = ROWS.replace("session,", " session ,", 1).replace("clicked", "clicked ", 1)
    (tmp_path / "log.csv").write_text(text + "1039,new,item-1,7,yes\n")
    with pytest.raises(
        InvalidInputError,
        match=r"^log.csv line 42: clicked must be 0 or 1, unless bad rows are dropped, got 'yes'$",
    ):
        count(tmp_path / "log.csv")


def test_files_of_text_may_have_their_columns_in_another_order(tmp_path: Path) -> None:
    log = LOG.drop(columns=["user_id", "ts"])
    log[:100].to_csv(tmp_path / "a.csv", index=False)
    log[100:][log.columns[::-1]].assign(more=1).to_csv(tmp_path / "b.csv", index=False)
    assert_same_cube(count(tmp_path), count(log))


def test_propensities_whose_squares_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="propensity must be at least 1e-100"):
        count(LOG.assign(propensity=1e-300))


def test_guessed_times_make_periods_if_asked_for() -> None:
    log = LOG.drop(columns=["ts"])
    days = pd.Series(np.arange(len(log)) * 10 // len(log), index=log.index)
    for step, period, n_periods in ((1, "day", 10), (20, "week", 10), (400, "month", 10)):
        moments = pd.Timestamp("2020-01-06") + pd.to_timedelta(days * step, unit="D")
        dated = log.drop(columns=["session"], errors="ignore").assign(date=moments.dt.strftime("%Y-%m-%d"))
        assert count(dated).periods == ("all",)
        cube = count(dated, period="auto")
        assert (cube.metadata["period"], len(cube.periods)) == (period, n_periods)
    assert count(log, period="auto").periods == ("all",)
    names = log.assign(day="Monday")
    cube = count(names, period="auto")
    assert (cube.periods, cube.metadata["rows"]) == (("all",), {"counted": len(log)})
    assert "column day was guessed to be the time" in " ".join(cube.metadata["warnings"])


@pytest.mark.parametrize("outlier", ["1970-01-01", "9999-12-31"])
def test_a_few_outlying_times_do_not_make_periods_longer(outlier: str) -> None:
    """Finding 4: rows whose time is 0, or far ahead, leave periods as they are, and drift is looked for."""
    log = draw_visits(200)
    dates = pd.Series(
        [f"2026-01-{visit:02d}" for visit in 1 + (log["session"] - 1000) // 10], index=log.index
    )
    dates[log["session"] == 1003] = outlier
    cube = count(log.drop(columns=["ts"]).assign(date=dates), period="auto")
    assert (cube.metadata["period"], len(cube.periods)) == ("day", 21)
    assert cube.metadata["rows"] == {"counted": len(log)}


DATED = LOG.drop(columns=["ts"]).assign(date=[f"2026-01-0{1 + n * 4 // len(LOG)}" for n in range(len(LOG))])


@pytest.mark.parametrize("bad", ["n/a", "", "2026-01-01 25:99", "2026-13-01", "99999-01-01", "infinity"])
@pytest.mark.parametrize("options", [{"period": "auto"}, {"since": "2026-01-01"}])
def test_rows_with_a_bad_date_are_bad_rows(tmp_path: Path, bad: str, options: dict[str, str]) -> None:
    """Finding 4: a bad date is refused with its line or dropped, and other rows keep their periods."""
    log = DATED.copy()
    log.loc[[9, 30], "date"] = bad
    log.to_csv(tmp_path / "log.csv", index=False)
    rule = r"must be a time, as the guessed column of the time, unless bad rows are dropped, got"
    with pytest.raises(InvalidInputError, match=rf"^log.csv line 11: date {rule}"):
        count(tmp_path / "log.csv", **options)
    cube = count(tmp_path / "log.csv", bad_rows="drop", **options)
    assert cube.metadata["rows"] == {"counted": len(LOG) - 2, "time is not a time": 2}
    assert cube.metadata["first_rows"] == {"time is not a time": "log.csv line 11"}
    assert len(cube.periods) == (4 if "period" in options else 1)
    assert cube.metadata["warnings"] == count(DATED, **options).metadata["warnings"]


def test_times_that_are_no_numbers_are_bad_rows() -> None:
    """Finding 4: numbers that are infinite, missing or beyond the year 9999 are bad times, too."""
    seconds = np.full(len(LOG), 1.7e9)
    seconds[[3, 8, 9]] = np.inf, np.nan, 1.7e18
    log = LOG.assign(ts=seconds)
    with pytest.raises(InvalidInputError, match=r"^row 4: ts must be a time"):
        count(log, period="auto")
    rows = count(log, period="auto", bad_rows="drop").metadata["rows"]
    assert rows == {"counted": len(LOG) - 3, "time is not a time": 3}


MIXED = {
    "clicked": ("yes", "clicked must be 0 or 1"),
    "position": ("first", "position must be a whole number"),
    "ts": ("soon", "ts must be a time"),
    "item": ({"id": 7}, "item must be a non-empty printable string"),
}


@pytest.mark.parametrize("column", MIXED)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_dirty_value_of_a_frame_is_a_bad_row(library: str, column: str) -> None:
    """Finding 4: one value of another type is refused with its column and row, or dropped."""
    value, message = MIXED[column]
    values = [*LOG[column][:6], value, *LOG[column][7:]]
    if library == "pandas":
        log = LOG.assign(**{column: pd.Series(values, dtype=object)})
    else:
        log = pl.from_pandas(LOG).with_columns(pl.Series(column, values, dtype=pl.Object))
    options = {"columns": LogColumns(time="ts")}
    rule = f"^row 7: {message}, unless bad rows are dropped, got"
    with pytest.raises(InvalidInputError, match=f"{rule} {re.escape(repr(str(value)))}$"):
        count(log, **options)
    cube = count(log, bad_rows="drop", **options)
    assert cube.metadata["rows"]["counted"] == len(LOG) - 1
    assert_same_cube(cube, count(LOG.drop(index=6), **options))


def test_mixed_columns_of_lists_are_lists() -> None:
    """Finding 4: a list with values of two types, or a value that is no list, is read as text is."""
    log = pd.DataFrame({"items": [["a", 7], ["b", "a"], "b", None], "clicked_item": ["a", 7, "b", "a"]})
    cube = count(log, bad_rows="drop")
    assert cube.items == ("7", "a", "b")
    rows = cube.metadata["rows"]
    assert rows == {"counted": 2, "click on an item that was not shown": 1, "visit without items": 1}


def test_texts_that_are_not_unicode_are_bad_rows() -> None:
    """Finding 4: bytes that are not UTF-8, as Python reads them with surrogateescape, are dirty values."""
    items = LOG["item"].astype(object)
    items[6] = b"caf\xe9".decode(errors="surrogateescape")
    with pytest.raises(
        InvalidInputError, match=r"^row 7: item must be a non-empty printable string, .*udce9"
    ):
        count(LOG.assign(item=items))
    cube = count(LOG.assign(item=items), bad_rows="drop")
    assert_same_cube(cube, count(LOG.drop(index=6)))


def test_a_frame_has_each_column_once() -> None:
    """Finding 4: a column that is twice in a frame is named."""
    with pytest.raises(InvalidInputError, match=r"^log must have each column once, got 'item'$"):
        count(pd.DataFrame([[1, 2]], columns=["item", "item"]))
