"""Parquet logs whose visits are contiguous: counted in one pass as the queries count them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.click_logs import assert_same_cube, draw_visits

from banditrank import InvalidInputError
from banditrank.counts import _visit_table
from banditrank.logs import LogColumns, _sorted_log, count_log
from banditrank.logs._count_queries import QueryError

LOG = draw_visits(400, seed=2).drop(columns=["ts", "user_id"])
MANY = LOG.assign(country=np.where(LOG["session"] % 3 == 0, "de", "fr"))
USERS = LOG.assign(user_id=LOG["session"] // 3)

HOURS = pd.to_timedelta((LOG["session"] - 1000) * 400, unit="m")
TIMES = LOG.assign(ts=pd.Timestamp("2026-01-31 21:45") + HOURS)
ITEMS = pd.Categorical(LOG["item"], categories=["a", *sorted(LOG["item"].unique()), "z"])
SEGMENTS = pd.Categorical(LOG["segment"], categories=["a", *sorted(LOG["segment"].unique()), "z"])
MIDNIGHT = pd.Timestamp("2026-02-28 23:59:58") + pd.to_timedelta(LOG["position"], unit="s")


def is_counted_in_one_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch, columns: LogColumns | None = None, **options: Any
) -> bool:
    """Check that both ways of counting make the same cube; return whether the log suits one pass."""
    expected = count_log(path, columns, threads=1, **options)
    results: list[Any] = []
    count_sorted = _sorted_log.count_sorted_log

    def remember(*arguments: Any, **settings: Any) -> Any:
        results.append(count_sorted(*arguments, **settings))
        return results[-1]

    monkeypatch.setattr(_sorted_log, "MIN_ROWS", 1)
    monkeypatch.setattr(_sorted_log, "_BATCH_ROWS", 97)  # visits span batches
    monkeypatch.setattr("banditrank.logs._count_log.count_sorted_log", remember)
    found = count_log(path, columns, threads=1, **options)
    assert_same_cube(found, expected)
    assert found.metadata == expected.metadata
    return any(result is not None for result in results)


SUITABLE: dict[str, tuple[pd.DataFrame, LogColumns | None, dict[str, Any]]] = {
    "numbers": (LOG, None, {}),
    "a sample of lists": (LOG, None, {"max_lists": 50}),
    "no lists": (LOG, None, {"max_lists": 0}),
    "texts": (LOG.assign(session="visit " + LOG["session"].astype(str)), None, {"max_lists": 70}),
    "numbers as texts": (LOG.astype({"session": str}), None, {}),
    "positions from 0": (LOG.assign(position=LOG["position"] - 1), None, {}),
    "a first position": (LOG, None, {"first_position": 1}),
    "boolean clicks": (LOG.astype({"clicked": bool}), None, {}),
    "numbered items": (LOG.assign(item=LOG["item"].str[5:].astype(int)), None, {}),
    "categories that are not used": (LOG.assign(item=ITEMS, segment=SEGMENTS), None, {}),
    "one user type": (LOG, LogColumns(user_type=""), {}),
    "two columns of the user type": (MANY, LogColumns(user_type=["segment", "country"]), {}),
    "users": (USERS, None, {}),
    "visits in another order": (LOG.assign(session=-LOG["session"]), None, {}),
    "rows of a visit in another order": (LOG[::-1], None, {}),
    "days": (TIMES, LogColumns(time="ts"), {}),
    "hours": (TIMES, LogColumns(time="ts"), {"period": "hour"}),
    "weeks elsewhere": (TIMES, LogColumns(time="ts"), {"period": "week", "time_zone": "Asia/Kolkata"}),
    "months with a change of the clock": (
        TIMES.assign(ts=TIMES["ts"].dt.tz_localize("UTC")),
        LogColumns(time="ts"),
        {"period": "month", "time_zone": "Europe/Berlin"},
    ),
    "dates": (TIMES.assign(ts=TIMES["ts"].dt.date), LogColumns(time="ts"), {"period": "month"}),
    "a time that is not asked for": (TIMES.assign(ts=TIMES["ts"].where(LOG["session"] > 1005)), None, {}),
}
UNSUITABLE: dict[str, tuple[pd.DataFrame, LogColumns | None, dict[str, Any]]] = {
    "visits that are not contiguous": (LOG.sort_values(["position", "session"]), None, {}),
    "a visit that comes back": (pd.concat([LOG[2:], LOG[:2]]), None, {}),
    "a position twice": (LOG.assign(position=LOG["position"].where(LOG["session"] > 1005, 2)), None, {}),
    "a session without characters": (
        LOG.astype({"session": str}).replace({"session": {"1005": ""}}),
        None,
        {},
    ),
    "an item twice": (LOG.assign(item=LOG["item"].replace("item-2", "item-1")), None, {}),
    "a missing item": (LOG.assign(item=LOG["item"].replace("item-2", None)), None, {}),
    "a missing session": (LOG.assign(session=LOG["session"].where(LOG["session"] > 1005)), None, {}),
    "an invalid click": (LOG.assign(clicked=LOG["clicked"] * 2), None, {}),
    "two user types in a visit": (LOG.assign(segment=np.where(LOG["position"] == 1, "a", "b")), None, {}),
    "a propensity": (LOG.assign(propensity=0.5), None, {}),
    "a visit of two days": (TIMES.assign(ts=MIDNIGHT), LogColumns(time="ts"), {}),
    "a missing time": (TIMES.assign(ts=TIMES["ts"].where(LOG["session"] > 1005)), LogColumns(time="ts"), {}),
    "times as texts": (TIMES.astype({"ts": str}), LogColumns(time="ts"), {}),
    "single clicks": (LOG, None, {"single_click": True}),
}


@pytest.mark.parametrize("name", SUITABLE)
def test_contiguous_visits_are_counted_as_by_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log, columns, options = SUITABLE[name]
    path = tmp_path / "log.parquet"
    log.to_parquet(path, row_group_size=333)
    assert is_counted_in_one_pass(path, monkeypatch, columns, **options)


@pytest.mark.parametrize("name", UNSUITABLE)
def test_other_logs_are_counted_by_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log, columns, options = UNSUITABLE[name]
    path = tmp_path / "log.parquet"
    log.to_parquet(path)
    if name in ("an invalid click", "a missing session", "a missing item"):
        monkeypatch.setattr(_sorted_log, "MIN_ROWS", 1)
        with pytest.raises(InvalidInputError, match=r"^log.parquet row \d+: "):
            count_log(path, columns, threads=1, **options)
    assert not is_counted_in_one_pass(path, monkeypatch, columns, bad_rows="drop", **options)


@pytest.mark.parametrize("max_dense_size", [200, 2**25])
def test_files_and_large_tables_are_counted_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_dense_size: int
) -> None:
    for number in range(3):
        part = LOG[LOG["session"] % 3 == number]
        part.to_parquet(tmp_path / f"{number}.parquet")
    monkeypatch.setattr(_visit_table, "MAX_DENSE_SIZE", max_dense_size)
    monkeypatch.setattr(_visit_table, "MAX_EVENTS", 50)
    assert is_counted_in_one_pass(tmp_path, monkeypatch)


@pytest.mark.parametrize("column", ["item", "session", "segment"])
def test_files_whose_names_differ_in_type_are_counted_by_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    log = LOG.assign(item=LOG["item"].str[5:].astype(int), segment=1)
    log[:202].to_parquet(tmp_path / "0.parquet")
    log[202:].astype({column: str}).to_parquet(tmp_path / "1.parquet")
    assert not is_counted_in_one_pass(tmp_path, monkeypatch)


def test_a_column_that_paths_replace_is_counted_by_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "segment=x").mkdir()
    LOG.to_parquet(tmp_path / "segment=x" / "log.parquet")
    assert not is_counted_in_one_pass(tmp_path / "segment=x", monkeypatch)


def test_a_column_that_is_twice_in_a_file_is_counted_by_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.Table.from_pandas(LOG, preserve_index=False)
    pq.write_table(table.append_column("item", table["segment"]), tmp_path / "log.parquet")
    assert not is_counted_in_one_pass(tmp_path / "log.parquet", monkeypatch)


@pytest.mark.parametrize("column", ["item", "session", "segment"])
def test_text_that_is_not_utf_8_is_an_error_of_the_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    table = pa.Table.from_pandas(LOG.astype({"session": str}), preserve_index=False)
    content = pa.array([b"\xff", *(text.encode() for text in table[column].to_pylist()[1:])])
    text = pa.Array.from_buffers(pa.string(), len(content), content.buffers())
    number = table.column_names.index(column)
    pq.write_table(table.set_column(number, column, text), tmp_path / "log.parquet")
    monkeypatch.setattr(_sorted_log, "MIN_ROWS", 1)
    with pytest.raises(QueryError, match="not valid UTF8"):
        count_log(tmp_path / "log.parquet")


@pytest.mark.parametrize(("max_numbers", "is_suitable"), [(2**19, False), (2**24, True)])
def test_a_log_of_many_periods_and_many_user_types_is_left_to_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_numbers: int, *, is_suitable: bool
) -> None:
    visits = np.arange(300).repeat(2)  # an hour and a user type of its own each
    log = pd.DataFrame({"session": visits, "position": np.tile([1, 2], 300), "clicked": 0})
    log = log.assign(item=log["position"], segment=visits, ts=pd.Timestamp(0) + pd.to_timedelta(visits, "h"))
    log.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(_sorted_log, "_MAX_NUMBERS", max_numbers)
    columns = LogColumns(time="ts")
    assert is_suitable == is_counted_in_one_pass(
        tmp_path / "log.parquet", monkeypatch, columns, period="hour"
    )


def test_progress_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(_sorted_log, "MIN_ROWS", 1)
    monkeypatch.setattr(_sorted_log, "_BATCH_ROWS", 500)
    shares: list[float] = []
    cube = count_log(tmp_path / "log.parquet", on_progress=shares.append)
    assert cube.n_visits == 400
    assert shares[:3] == [0.3125, 0.625, 0.9375]
