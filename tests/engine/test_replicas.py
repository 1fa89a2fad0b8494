"""Threads and replicas share what they learn; nothing is lost or counted twice."""

import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from helpers.live import a_ranker, a_surface, play, seeded, wait_until

from banditrank._ranker import Ranker
from banditrank.engine._engine import Engine
from banditrank.errors import AlreadyExistsError, InvalidInputError, UnknownRankingError, UnknownSurfaceError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._sqlite import SqliteStore

THREADS = 8
ROUNDS = 25


def test_two_engines_on_one_file_learn_together(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with (
        SqliteStore(path) as one,
        SqliteStore(path) as two,
        a_ranker(store=one, sync_seconds=0.01) as first,
        a_ranker(store=two, sync_seconds=0.01, random_bytes=seeded(2)) as second,
    ):
        play(first, 20, seed=1)
        play(second, 20, seed=2)
        shown = first.rank("new")
        assert second.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert first.feedback(shown.id, clicked=shown.items[0]) == "repeated"
        wait_until(lambda: first.counts().rounds == second.counts().rounds == 41)
        assert first.counts() == second.counts()
        assert first._runtime.staleness_seconds == second._runtime.staleness_seconds == 0.0


def test_a_refresh_is_due_after_a_commit_that_follows_one_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, surface = tmp_path / "store.db", a_surface(refresh_seconds=60.0)
    with (
        SqliteStore(path) as one,
        SqliteStore(path) as two,
        a_ranker(surface, store=one, sync_seconds=60.0) as first,
        a_ranker(surface, store=two, sync_seconds=60.0, random_bytes=seeded(2)) as second,
    ):
        shown = first.rank("new")
        first._engine._sync_loop.close()  # so that only the commit tells it of the other one
        second.feedback(second.rank("new").id)
        marks: list[int] = []
        runtime = first._runtime
        monkeypatch.setattr(runtime, "_mark_due", lambda: marks.append(runtime.version))
        first.feedback(shown.id)
        assert marks == [2]


@pytest.mark.parametrize("refresh_seconds", [0.0, 0.01])
def test_threads_that_share_a_ranker_count_every_feedback_once(refresh_seconds: float) -> None:
    clicks: Counter[str] = Counter()
    failures: list[BaseException] = []
    lock = threading.Lock()

    def play_twice(ranker: Ranker, number: int) -> None:
        rng = random.Random(number)  # noqa: S311
        try:
            for _ in range(ROUNDS):
                shown = ranker.rank(rng.choice(["new", "old"]))
                clicked = rng.choice([None, *shown.items])
                statuses = [ranker.feedback(shown.id, clicked=clicked) for _ in range(2)]
                assert statuses == ["counted", "repeated"]
                with lock:
                    clicks[str(clicked)] += 1
        except BaseException as error:  # noqa: BLE001 - asserted below
            failures.append(error)

    with a_ranker(a_surface(refresh_seconds=refresh_seconds)) as ranker:
        threads = [threading.Thread(target=play_twice, args=[ranker, number]) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        counts = ranker.counts()
        assert counts.rounds == THREADS * ROUNDS
        rewards = dict(zip(ranker.surface.items, counts.rewards.sum(axis=(0, 2)).tolist(), strict=True))
        assert rewards == {item: clicks[item] for item in ranker.surface.items}
        assert ranker._runtime.version == ranker._engine.store.versions()[1].version


def test_the_same_feedback_from_many_threads_counts_once() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        statuses: list[str] = []
        report = lambda: statuses.append(ranker.feedback(shown.id, clicked=shown.items[0]))  # noqa: E731
        threads = [threading.Thread(target=report) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(statuses) == {"counted": 1, "repeated": THREADS - 1}
        assert ranker.counts().rounds == 1


def test_surfaces_that_another_process_creates_updates_or_deletes_are_synced() -> None:
    store = MemoryStore()
    one, two = Engine(store, sync_seconds=0.01), Engine(store, sync_seconds=0.01)
    try:
        with pytest.raises(UnknownSurfaceError, match="surface 'home' does not exist"):
            two.surface("home")
        one.create_surface(a_surface())
        with pytest.raises(AlreadyExistsError):
            two.create_surface(a_surface())
        shown = two.surface("home").rank("new")
        one.update_surface("home", lambda surface: surface.with_items(["late"]))
        wait_until(lambda: "late" in two.surface("home").surface.items)
        dropped = two.surface("home")
        one.delete_surface("home")
        wait_until(lambda: not two.surfaces())
        with pytest.raises(UnknownRankingError, match="was deleted"):
            two.feedback(shown.id)
        with pytest.raises(UnknownSurfaceError, match="surface 'home' does not exist"):
            dropped.rank("new")
        for call in (
            one.delete_surface,
            one.surface,
            lambda name: one.update_surface(name, lambda surface: surface),
        ):
            with pytest.raises(UnknownSurfaceError):
                call("home")
        again = two.create_surface(a_surface())
        assert again.surface_id != dropped.surface_id
        wait_until(lambda: [runtime.surface_id for runtime in one.surfaces()] == [again.surface_id])
        with pytest.raises(UnknownRankingError):
            one.feedback(shown.id)
    finally:
        one.close()
        two.close()


def test_concurrent_updates_of_a_surface_all_succeed() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as one, a_ranker(store=store) as two:
        rankers = [one, two]
        adders = [
            threading.Thread(target=rankers[number % 2].add_items, args=[[f"x{number}"]])
            for number in range(6)
        ]
        for thread in adders:
            thread.start()
        for thread in adders:
            thread.join()
        added = {f"x{number}" for number in range(6)}
        wait_until(lambda: added <= set(one.surface.items) and one.surface == two.surface)
        assert len(one.surface.items) == 11


def test_a_ranker_resumes_from_the_stored_surface_and_rejects_other_settings() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 5, seed=1)
        ranker.add_items(["late"])
    with a_ranker(store=store) as ranker:
        assert ranker.counts().rounds == 5
        assert "late" in ranker.surface.active_items
    for changed, message in (
        ({"n_positions": 1}, "home's n_positions must be 2 as in the store, got 1"),
        ({"policy": "ucb-rank"}, "home's policy must be 'auto' as in the store"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            a_ranker(a_surface(**changed), store)
