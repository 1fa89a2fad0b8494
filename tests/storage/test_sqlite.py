"""The SQLite store reports the failures of its file, recovers from them, and keeps the file private."""

import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage._factory import open_store
from banditrank.storage._records import CommitStatus, Event
from banditrank.storage._sqlite import SqliteStore, _to_qmark
from banditrank.testing._store_events import CLICK, read_rounds, shown

HOLD_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@contextmanager
def another_process_writing(path: Path) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield


class SmallDisk(SqliteStore):
    """A store on a disk that holds a number of pages, or its present pages if they are more."""

    pages = 1

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return connection


def test_a_file_that_is_not_a_database_is_rejected_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"letter\.txt: file is not a database") as error:
        open_store(f"sqlite:{path}")
    assert not isinstance(error.value, StoreUnavailableError), "a retry would not help"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "table",
    ["settings (colour TEXT)", "settings (name TEXT, value TEXT)", "surfaces (area REAL)"],
)
def test_the_database_of_another_program_is_rejected_and_unchanged(tmp_path: Path, table: str) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {table}")
    connection.close()
    with pytest.raises(StoreError) as error:
        open_store(f"sqlite:{path}")
    assert not isinstance(error.value, StoreUnavailableError)
    connection = sqlite3.connect(path)
    assert len(connection.execute("SELECT name FROM sqlite_master").fetchall()) == 1
    connection.close()


@pytest.mark.parametrize("place", ["a file/store.db", "nowhere/store.db", ".", "long" * 100])
def test_a_path_that_is_not_writable_is_rejected(tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(InvalidInputError, match="store must be a file that can be written"):
        open_store(f"sqlite:{tmp_path / place}")


def test_a_commit_on_a_full_disk_changes_nothing_and_succeeds_later(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as reader, SmallDisk(path) as store:
        surface = reader.create_surface("home", "{}").surface_id
        reader.commit([Event(shown(surface, number), CLICK) for number in range(10)])
        group = [Event(shown(surface, number), CLICK) for number in range(5, 2000)]
        with pytest.raises(StoreUnavailableError, match="full"):
            store.commit(group)
        with pytest.raises(StoreUnavailableError, match="full"):
            store.create_surface("about", "long" * 10_000)
        assert read_rounds(reader, surface) == 10
        assert [record.name for record in reader.surfaces()] == ["home"]
        store.pages = 1_000_000
        assert store.commit(group).statuses == [CommitStatus.REPEATED] * 5 + [CommitStatus.COUNTED] * 1990
        assert read_rounds(store, surface) == 2000


def test_a_write_times_out_while_another_process_holds_the_lock(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db", timeout_seconds=0.05) as store:
        surface = store.create_surface("home", "{}").surface_id
        with another_process_writing(store.path):
            with pytest.raises(StoreUnavailableError, match="locked"):
                store.commit([Event(shown(surface, 1), CLICK)])
            with pytest.raises(StoreUnavailableError, match="locked"):
                store.check()
            assert read_rounds(store, surface) == 0, "reads need no lock"
        store.check()
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]


def test_the_documented_timeout_is_the_default(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "operations.md").read_text(encoding="utf-8")
    documented = re.search(r"each commit waits for the other's, up to about (\d+) seconds", page)
    assert documented is not None
    with SqliteStore(tmp_path / "store.db") as store, store._pool.connection() as connection:
        ((milliseconds,),) = connection.execute("PRAGMA busy_timeout").fetchall()
    assert milliseconds == 1000 * int(documented[1]) <= 2000, (
        "feedback waits twice: also for the impressions before it"
    )


def test_a_store_can_be_opened_while_another_process_writes(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path / 'store.db'}").close()
    with another_process_writing(tmp_path / "store.db"):
        SqliteStore(tmp_path / "store.db", timeout_seconds=0.05).close()


def test_connections_are_reused(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        for _ in range(40):
            store.check()
        assert len(store._pool._idle) == 1


def test_a_batch_is_removed_once_all_its_impressions_have_outcomes(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        surface = store.create_surface("home", "{}").surface_id
        store.commit([Event(shown(surface, number), None) for number in range(5)])
        store.commit([Event(shown(surface, number), CLICK) for number in range(4)])
        assert len(store.pending_impressions(surface, since_ms=0, until_ms=5000)) == 1
        assert store._read("SELECT count(*) FROM shown") == [(1,)]
        store.commit([Event(shown(surface, 4), CLICK)])
        assert store.pending_impressions(surface, since_ms=0, until_ms=5000) == []
        assert store._read("SELECT count(*) FROM shown") == [(0,)]


def test_outcomes_of_batches_of_any_size_take_few_statements(tmp_path: Path) -> None:
    """Finding 17: connections cache statements, so that their number must not grow with the batch sizes."""
    with SqliteStore(tmp_path / "store.db") as store:
        surface = store.create_surface("home", "{}").surface_id
        for size in range(1, 41):
            store.commit([Event(shown(surface, 100 * size + number), None) for number in range(size)])
        store.commit([Event(shown(surface, 100 * size), CLICK) for size in range(1, 41)])
        _to_qmark.cache_clear()
        expected = [shown(surface, 100 * size + each) for size in range(1, 41) for each in range(1, size)]
        assert store.pending_impressions(surface, since_ms=0, until_ms=5000) == expected
        assert _to_qmark.cache_info().currsize <= 7 + 2  # for up to 64 keys, and two of other kinds


CHECK_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from banditrank.errors import StoreUnavailableError
from banditrank.storage._sqlite import SqliteStore

with SqliteStore(sys.argv[1]), SqliteStore(sys.argv[1]) as store:  # two, so that none truncates the log
    store.create_surface("home", "{}")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = Path(f"{sys.argv[1]}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))  # maximum size of every file of this process
    for _ in range(2):
        try:
            store.check()
        except StoreUnavailableError:
            print("unavailable")
        else:
            print("available")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.check()
    print([record.name for record in store.surfaces()])
"""


def test_a_check_fails_while_the_disk_is_full(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK_ON_A_FULL_DISK, str(tmp_path / "store.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["unavailable", "unavailable", "['home']"]


def test_every_check_is_written_and_the_file_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.check()
        log = path.with_name("store.db-wal")
        sizes = [log.stat().st_size]
        for _ in range(3):
            store.check()
            sizes.append(log.stat().st_size)
        assert sizes == sorted(set(sizes)), "a check did not append to the write-ahead log"
        ((rows,),) = store._read("SELECT count(*) FROM settings")
        for _ in range(20):
            store.check()
        assert store._read("SELECT count(*) FROM settings") == [(rows,)]


def modes_of(path: Path) -> dict[str, int]:
    """Return the permissions of a database and its other files, by suffix."""
    found = path.parent.glob(f"{path.name}*")
    return {file.name.removeprefix(path.name): stat.S_IMODE(file.stat().st_mode) for file in found}


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("linked", [False, True])
def test_the_files_are_private_whatever_the_umask(tmp_path: Path, linked: bool) -> None:  # noqa: FBT001
    tmp_path.chmod(0o700)
    path = tmp_path / "store.db"
    if linked:
        (tmp_path / "link.db").symlink_to(path)
    with SqliteStore(tmp_path / "link.db" if linked else path) as store:
        store.create_surface("home", "{}")
        assert modes_of(path) == dict.fromkeys(("", "-wal", "-shm"), 0o600)
    assert modes_of(path) == {"": 0o600}


def test_files_of_an_older_version_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as other:
        other.create_surface("home", "{}")
        for suffix in ("", "-wal", "-shm"):
            path.with_name(f"store.db{suffix}").chmod(0o664)
        with SqliteStore(path) as store:
            assert modes_of(path) == dict.fromkeys(("", "-wal", "-shm"), 0o600)
            assert [record.name for record in store.surfaces()] == ["home"]


def test_a_file_that_cannot_be_made_private_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    path.chmod(0o644)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    SqliteStore(path).close()
    messages = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert messages == [("WARNING", f"store file with secrets is accessible to other users: {path}")]


def test_a_file_that_is_not_a_store_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100)
    path.chmod(0o644)
    with pytest.raises(StoreError):
        SqliteStore(path)
    assert modes_of(path) == {"": 0o644}


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_file_that_was_moved_or_replaced_is_not_written_to(tmp_path: Path, how: str) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.check()
        store.create_surface("home", "{}")
        path.rename(tmp_path / "moved.db")
        if how == "replaced":
            path.touch()
        for call in (store.check, store.surfaces):
            with pytest.raises(StoreUnavailableError, match="moved, removed or replaced"):
                call()
        assert path.exists() == (how == "replaced")
        (tmp_path / "moved.db").rename(path)
        assert [one.name for one in store.surfaces()] == ["home"]
