"""Processes that share a store count every ranking once, even if one of them is killed."""

import subprocess
import sys

from banditrank.storage._factory import open_store
from banditrank.storage._records import CommitStatus, Event
from banditrank.testing._store_events import CLICK, read_rounds, shown

# Each process reports the same rankings, in its own order and in groups of its own size, and prints how many
# were counted once they are durable.
WRITE = """
import sys
from banditrank.storage._factory import open_store
from banditrank.storage._records import Event
from banditrank.testing._store_events import CLICK, shown

address, surface, size, rankings = sys.argv[1], *map(int, sys.argv[2:])
events = [Event(shown(surface, number), CLICK) for number in range(rankings)]
if size % 2:
    events.reverse()
store = open_store(address)
print("ready", flush=True)
sys.stdin.readline()
for start in range(0, rankings, size):
    statuses = store.commit(events[start : start + size]).statuses
    print(statuses.count("counted"), flush=True)
"""


def start_writer(address: str, surface: int, size: int, rankings: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, address, str(surface), str(size), str(rankings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def resume(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_count_every_ranking_once(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
        processes = [start_writer(address, surface, size, 300) for size in (7, 10)]
        for process in processes:
            resume(process)
        counted = 0
        for process in processes:
            output, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            counted += sum(map(int, output.split()))
        assert counted == 300
        assert read_rounds(store, surface) == 300


def test_a_killed_process_loses_nothing_it_acknowledged(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
        process = start_writer(address, surface, 2, 100_000)
        resume(process)
        assert process.stdout is not None
        acknowledged = sum(int(process.stdout.readline()) for _ in range(20))
        process.kill()
        # Not `communicate`, which leaves out lines that `readline` has read ahead.
        acknowledged += sum(map(int, process.stdout.read().split()))
        process.communicate()
        # A group that was sent may still be written, before or after the commit below.
        events = [Event(shown(surface, number), CLICK) for number in range(acknowledged + 4)]
        statuses = store.commit(events).statuses
        assert statuses[:acknowledged] == [CommitStatus.REPEATED] * acknowledged
        assert statuses[acknowledged:] in (
            [CommitStatus.COUNTED] * 4,
            [CommitStatus.REPEATED] * 2 + [CommitStatus.COUNTED] * 2,
        ), "a group is written as a whole"
        assert read_rounds(store, surface) == acknowledged + 4
