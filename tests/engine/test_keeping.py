"""What is old is thrown away, and stays in the counts."""

import pytest
from live import Clock, a_ranker, a_surface, play, wait_until

from banditrank.engine.learned import Learned
from banditrank.errors import ForgottenError, LapsedRankingError
from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import (
    NOT_CLICKED,
    Entry,
    Shown,
    Snapshot,
    Verdict,
    first_key,
    pack_ranking,
)


def test_closing_saves_a_snapshot_and_the_next_begins_there() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 20, seed=1)
        counts = ranker.counts()
    assert store.snapshot(1).version == 20
    with a_ranker(store=store) as ranker:
        assert ranker.counts() == counts


def test_many_changes_are_summed_up_while_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine.live_surface._CHANGES_A_SNAPSHOT", 5)
    store, clock = MemoryStore(), Clock()
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 8, seed=1)
        clock.now += 2.0
        wait_until(lambda: store.snapshot(1).version >= 5)


def test_old_rankings_and_changes_are_forgotten_and_the_counts_stay() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)
        play(ranker, 10, seed=1)
        counts = ranker.counts()
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_until(lambda: len(store.changes(1, after=0)) == 1)
        assert ranker.counts() == counts
        with pytest.raises(LapsedRankingError):
            ranker.feedback(shown.id)
        play(ranker, 3, seed=2)
        assert ranker.counts().rounds == 14
    with a_ranker(surface, store, clock=clock) as ranker:
        assert ranker.counts().rounds == 14


def test_a_replica_too_far_behind_begins_at_a_snapshot() -> None:
    store = MemoryStore()
    surface = a_surface()
    with a_ranker(surface, store) as ranker:
        play(ranker, 4, seed=1)
        behind, further = (Learned(store, 1, surface) for _ in range(2))
        play(ranker, 6, seed=2)
        store.save_snapshot(1, Snapshot(*Learned(store, 1, surface).cells(), saved=5))
        store.forget(1, before=10)
        further.reach(10)
        assert further.version == 10
        play(ranker, 2, seed=3)
        behind.catch_up()
        assert behind.version == 12
        numbers = tuple(range(5))
        assert behind.counts(surface, numbers)[1] == ranker.counts()
        with pytest.raises(ForgottenError, match="counts of version 7 were thrown away"):
            Learned(store, 1, surface, up_to=7)
        assert Learned(store, 1, surface, up_to=11).version == 11


def test_a_clock_near_1970_does_no_harm() -> None:
    clock = Clock(0.0)
    with a_ranker(clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker._live.tend()
        assert ranker.feedback(shown.id) == "counted"


def test_what_was_never_reported_is_counted_before_it_is_forgotten() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        for _ in range(3):
            ranker.rank("new")
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_until(lambda: ranker.counts().rounds == 3)

        def is_forgotten() -> bool:
            clock.now += 1.0
            return store.commit([Entry(old, NOT_CLICKED)]).verdicts == [Verdict.FORGOTTEN]

        old = Shown(1, first_key(int(clock.now - 4000.0) * 1000), pack_ranking(0, (0, 1)))
        store.commit([Entry(old, NOT_CLICKED)])
        wait_until(is_forgotten)


def test_a_clock_that_was_set_forgets_nothing() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)
        ranker._live._housekeeping._steady = lambda: 0.0
        clock.now += 5000.0
        ranker._live.tend()
        clock.now -= 5000.0
        ranker._live.tend()
        assert ranker.feedback(shown.id) == "repeated"
        ranker.rank("new")

        def is_settled() -> bool:
            clock.now += 1.0
            return ranker.counts().rounds == 2

        wait_until(is_settled)
