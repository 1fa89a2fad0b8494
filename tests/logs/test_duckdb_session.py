"""DuckDB sessions: limits, interruption, and one-line errors."""

import sys
import threading
from pathlib import Path

import pytest

from banditrank import BanditRankError, InvalidInputError
from banditrank.logs._count_queries import QueryError
from banditrank.logs._duckdb_session import DuckDBSession, import_duckdb, open_session, parse_memory_limit

HOURS_LONG = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(1000000) b"


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    with open_session(memory_limit="100MB", temporary_directory=tmp_path, threads=1) as session:
        session.run("SET max_temp_directory_size = '1MB'")
        with pytest.raises(InvalidInputError, match=r"memory_limit must be larger .* got '100MB'") as caught:
            session.run("CREATE TABLE large AS SELECT hash(range) AS h FROM range(30000000)")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("2GB", 2e9), ("2GiB", 2 * 1024**3), ("500 mib", 500 * 1024**2), ("1.5TiB", 1.5 * 1024**4)],
)
def test_units_are_powers_of_1000_or_of_1024(text: str, n_bytes: float) -> None:
    assert parse_memory_limit(text) == n_bytes


def test_the_limit_of_a_session_is_nine_tenths_of_the_given_one() -> None:
    with open_session(memory_limit="500MiB") as session:
        ((limit,),) = session.run("SELECT current_setting('memory_limit')")
    number, unit = limit.split()
    assert (float(number), unit) == (pytest.approx(450, abs=1), "MiB")


def test_what_goes_wrong_in_a_query_is_one_line() -> None:
    with open_session() as session:
        with pytest.raises(QueryError, match=r"reading the log failed: .*nowhere") as caught:
            session.run("SELECT * FROM nowhere")
        assert "\n" not in str(caught.value)
        with pytest.raises(BanditRankError, match=r"reading the log failed: .*missing\.txt"):
            session.run("SELECT * FROM read_csv('missing.txt')")


def test_a_query_is_stopped_at_once_when_its_caller_is_interrupted() -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with open_session(threads=1) as session, pytest.raises(KeyboardInterrupt):
        session.run(HOURS_LONG, {}, interrupt)


def test_without_duckdb_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = r"^duckdb is required for reading click logs: pip install 'banditrank\[logs\]'$"
    with pytest.raises(BanditRankError, match=message), open_session():
        pass


def test_a_thread_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with open_session(threads=1) as session:
        monkeypatch.setattr(threading.Thread, "start", start)
        with pytest.raises(BanditRankError, match=r"^reading the log failed: no thread could be started$"):
            session.run("SELECT 1")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    duckdb = import_duckdb()

    class Full:
        def execute(self, *_: object) -> None:
            raise duckdb.IOException("IO Error: Could not write file: No space left on device")

    session = DuckDBSession(Full(), duckdb, "2GB", "1800MB", tmp_path / "below")
    message = "temporary_directory must have free space for data that exceeds memory_limit, got "
    with pytest.raises(InvalidInputError, match=message):
        session.run("SELECT 1")


def test_an_extension_that_cannot_be_installed_is_named() -> None:
    message = (
        "An error occurred while trying to automatically install the required extension 'httpfs:\nFailed"
    )
    with open_session(threads=1) as session, pytest.raises(BanditRankError) as caught:
        session.run(f"SELECT error('{message.replace(chr(39), chr(39) * 2)}')")
    wanted = "DuckDB could not install its extension httpfs, which this address needs"
    assert str(caught.value) == f"reading the log failed: {wanted}"
