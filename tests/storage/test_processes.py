"""Processes that share a store count every ranking once, also when one of them is killed at work."""

import subprocess
import sys

from banditrank.storage.factory import open_store
from banditrank.storage.records import Event, CommitStatus
from banditrank.testing.store_events import CLICK, rounds_of, shown

# Each process reports the same rankings, in its own order and in groups of its own size, and says what was
# counted when it is durable.
WRITE = """
import sys
from banditrank.storage.factory import open_store
from banditrank.storage.records import Entry
from banditrank.testing.store_events import CLICK, make_impression

address, surface, size, rankings = sys.argv[1], *map(int, sys.argv[2:])
entries = [Entry(make_impression(surface, number), CLICK) for number in range(rankings)]
if size % 2:
    entries.reverse()
store = open_store(address)
print("ready", flush=True)
sys.stdin.readline()
for start in range(0, rankings, size):
    verdicts = store.commit(entries[start : start + size]).verdicts
    print(verdicts.count("counted"), flush=True)
"""


def writing(address: str, surface: int, size: int, rankings: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, address, str(surface), str(size), str(rankings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_count_every_ranking_once(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").number
        processes = [writing(address, surface, size, 300) for size in (7, 10)]
        for process in processes:
            begin(process)
        counted = 0
        for process in processes:
            output, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            counted += sum(map(int, output.split()))
        assert counted == 300
        assert rounds_of(store, surface) == 300


def test_a_process_that_is_killed_loses_nothing_it_said(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").number
        process = writing(address, surface, 2, 100_000)
        begin(process)
        assert process.stdout is not None
        said = sum(int(process.stdout.readline()) for _ in range(20))
        process.kill()
        said += sum(map(int, process.communicate()[0].split()))
        # A group that was under way may still be carried out, before what is written here or after it.
        entries = [Event(shown(surface, number), CLICK) for number in range(said + 4)]
        statuses = store.commit(entries).statuses
        assert statuses[:said] == [CommitStatus.REPEATED] * said
        assert statuses[said:] in (
            [CommitStatus.COUNTED] * 4,
            [CommitStatus.REPEATED] * 2 + [CommitStatus.COUNTED] * 2,
        ), "a group is written as a whole"
        assert rounds_of(store, surface) == said + 4
