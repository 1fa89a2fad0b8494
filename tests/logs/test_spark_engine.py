"""The Spark engine on a real cluster of a master and two workers, one of which is killed during a job."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.click_logs import assert_same_cube, draw_visits, to_wide, write_lines
from helpers.servers import TIMEOUT_SECONDS
from helpers.spark_cluster import SparkCluster, spark_cluster, spark_session

from banditrank import BanditRankError, InvalidInputError
from banditrank.logs import LogColumns, count_log

pytestmark = [
    pytest.mark.campaign,  # starting a cluster takes a minute, and PySpark is half a gigabyte
    pytest.mark.filterwarnings("ignore"),  # of PySpark
]
LOG = draw_visits(200, seed=3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def session(cluster: SparkCluster) -> Iterator[Any]:
    with spark_session(cluster.master) as session:
        yield session


def check_equal(path: object, columns: LogColumns | None = None, **options: Any) -> None:
    spark = count_log(path, columns, engine="spark", **options)
    duckdb = count_log(path, columns, threads=1, **options)
    assert_same_cube(spark, duckdb, is_exact=False)
    assert spark.metadata["rows"] == duckdb.metadata["rows"]


def test_a_master_that_is_not_the_session_s_is_refused(session: Any, tmp_path: Path) -> None:
    LOG.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InvalidInputError, match=r"master must be that of the active session, spark://"):
        count_log(tmp_path / "log.csv", engine="spark", master="local[9]")
    with pytest.raises(InvalidInputError, match="log must be files for the engine spark, got 'Table'"):
        count_log(LOG, engine="spark")
    (tmp_path / "bad.parquet").write_text("PAR1")
    with pytest.raises(BanditRankError, match="reading the log with Spark failed: ") as caught:
        count_log(tmp_path / "bad.parquet", engine="spark")
    assert "\n" not in str(caught.value)
    assert session.conf.get("spark.sql.shuffle.partitions") == "4"


def test_long_text_with_bad_rows_and_periods_is_counted_alike(session: Any, tmp_path: Path) -> None:
    del session
    log = LOG.astype(str)
    log.loc[5, "position"] = "x"
    log.loc[9, "clicked"] = None
    log.loc[17, "position"] = log.loc[16, "position"]
    log["session"] = "visit " + log["session"]
    log["propensity"] = "0.25"
    log.to_csv(tmp_path / "log.csv", index=False)
    check_equal(
        tmp_path / "log.csv",
        LogColumns(time="ts"),
        bad_rows="drop",
        period="month",
        time_zone="Europe/Berlin",
    )


def test_bad_times_are_dropped_alike(session: Any, tmp_path: Path) -> None:
    """Finding 4: rows with a bad time are named or dropped, with periods or a first date."""
    del session
    log = LOG.astype(str)
    log.loc[[3, 8, 20], "ts"] = "soon", "2026-13-01", None
    log.to_csv(tmp_path / "log.csv", index=False)
    numbers = LOG.assign(ts=np.where(np.arange(len(LOG)) == 4, np.inf, 1.7e9))
    numbers.to_parquet(tmp_path / "log.parquet")
    for name, line in (("log.csv", "line 5"), ("log.parquet", "row 5")):
        with pytest.raises(InvalidInputError, match=rf"^{name} {line}: ts must be a time"):
            count_log(tmp_path / name, LogColumns(time="ts"), engine="spark")
        check_equal(tmp_path / name, LogColumns(time="ts"), bad_rows="drop")
        check_equal(tmp_path / name, LogColumns(), bad_rows="drop", period="auto")
        check_equal(tmp_path / name, LogColumns(), bad_rows="drop", since="2020-01-01")


def test_malformed_rows_are_dropped_alike(session: Any, tmp_path: Path) -> None:  # noqa: ARG001 - active
    rows = LOG.drop(columns=["user_id", "ts"])
    text = rows.to_csv(index=False) + '1,new,item-1\n2,new,"item-1,1,0\n3,new,i\x1b,1,0\n'
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InvalidInputError, match=rf"^log.csv line {len(LOG) + 2:,} must have 5 values"):
        count_log(tmp_path / "log.csv", engine="spark")
    check_equal(tmp_path / "log.csv", bad_rows="drop")
    write_lines(tmp_path / "log.jsonl", rows.to_dict("records"))
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"item": \n{"item": "a", "item": "b"}\n')
    check_equal(tmp_path / "log.jsonl", bad_rows="drop")


def test_a_row_a_visit_is_counted_alike(session: Any, tmp_path: Path) -> None:
    del session
    write_lines(tmp_path / "wide.jsonl", to_wide(LOG))
    check_equal(tmp_path / "wide.jsonl", LogColumns(clicks=""))


def test_spark_parses_the_verified_queries(session: Any) -> None:
    parser = session._jsparkSession.sessionState().sqlParser()
    verified = Path(__file__).with_name("spark_queries.sql")
    queries = verified.read_text(encoding="utf-8").split(";\n")[:-1]
    assert len(queries) > 30
    for query in queries:
        parser.parsePlan(query)


def test_columns_of_the_user_table_are_joined_alike(session: Any, tmp_path: Path) -> None:
    del session
    users = LOG[["user_id"]].drop_duplicates().assign(plan=lambda one: one["user_id"] % 3)
    users.to_csv(tmp_path / "users.csv", index=False)
    LOG.to_parquet(tmp_path / "log.parquet")
    columns = LogColumns(user_type=["segment", "plan"], time="")
    check_equal(tmp_path / "log.parquet", columns, users=tmp_path / "users.csv")


def test_a_killed_worker_does_not_change_the_counts(
    cluster: SparkCluster, session: Any, tmp_path: Path
) -> None:
    for number in range(6):
        draw_visits(100, seed=number).assign(
            session=lambda log, number=number: log["session"] + 1000 * number
        ).to_parquet(tmp_path / f"{number}.parquet")
    killed = threading.Event()

    def kill() -> None:
        tracker = session.sparkContext.statusTracker()
        end = time.monotonic() + TIMEOUT_SECONDS
        while not tracker.getActiveStageIds() and time.monotonic() < end:
            time.sleep(0.01)
        if tracker.getActiveStageIds():
            cluster.kill_worker()
            killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        check_equal(tmp_path, LogColumns(user="", time=""))
    finally:
        killer.join(TIMEOUT_SECONDS)
    assert killed.is_set()
    assert cluster.workers[0].poll() is not None
