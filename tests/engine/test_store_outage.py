"""Rankers during an outage of their store: callers get errors, and nothing is lost or counted twice."""

import logging
import threading

import pytest
from helpers.live import Clock, FailingStore, a_ranker, a_surface, play, wait_for_tasks, wait_until

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage._memory import MemoryStore


def test_feedback_fails_while_the_store_is_down_and_counts_once_after() -> None:
    store = FailingStore()
    with a_ranker(store=store, sync_seconds=0.01) as ranker:
        ids = play(ranker, 5, seed=1)
        shown = ranker.rank("new")
        store.down = True
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match="the store is down"):
                ranker.feedback(shown.id, clicked=shown.items[0])
        more = [ranker.rank("old") for _ in range(3)]
        store.down = False
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "repeated"
        assert [ranker.feedback(one.id) for one in more] == ["counted"] * 3
        assert ranker.counts().rounds == 9
        assert ranker.explain(ids[0]).is_reproduced


def test_a_failed_sync_is_logged_once_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    """Finding 15: ordinary logs, which show no fields, have the reason of a failed sync."""
    store = FailingStore()
    with a_ranker(store=store, sync_seconds=0.01) as ranker:
        for _ in range(2):
            store.down = True
            wait_until(lambda: bool(ranker.rank("new") and caplog.records))
            store.down = False
            (record,) = caplog.records
            assert logging.Formatter().format(record) == "store sync failed: the store is down"
            assert (record.levelname, vars(record)["error"]) == ("WARNING", "the store is down")
            synced_at = ranker._engine.last_sync
            wait_until(lambda at=synced_at: bool(ranker.rank("new") and ranker._engine.last_sync > at))
            caplog.clear()


def test_a_commit_whose_answer_was_lost_is_counted_once() -> None:
    store = FailingStore()
    with a_ranker(store=store, sync_seconds=0.01) as ranker:
        shown = ranker.rank("new")
        store.loses_answers = True
        with pytest.raises(StoreUnavailableError, match="after the commit"):
            ranker.feedback(shown.id, clicked=shown.items[0])
        store.loses_answers = False
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "repeated"
        wait_until(lambda: ranker.counts().rounds == 1)
        play(ranker, 3, seed=2)
        wait_until(lambda: ranker.counts().rounds == 4)


def test_impressions_queued_during_an_outage_expire_later() -> None:
    store, clock = FailingStore(), Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), store, clock=clock, sync_seconds=0.01) as ranker:
        store.down = True
        for _ in range(4):
            ranker.rank("new")
        clock.now += 30.0
        store.down = False
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 40.0
        wait_until(lambda: ranker.counts().rounds == 4)


def test_impressions_committed_very_late_expire_all_the_same() -> None:
    store, clock = FailingStore(), Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), store, clock=clock, sync_seconds=0.01) as ranker:
        wait_for_tasks(ranker)
        store.down = True
        ranker.rank("new")
        clock.now += 3000.0
        wait_for_tasks(ranker)
        store.down = False
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 3600.0
        wait_until(lambda: ranker.counts().rounds == 1)


def test_a_replica_catches_up_after_an_outage() -> None:
    store = FailingStore()
    with a_ranker(store=store, sync_seconds=0.01) as one, a_ranker(store=store, sync_seconds=0.01) as two:
        store.down = True
        with pytest.raises(StoreUnavailableError):
            play(one, 1, seed=1)
        store.down = False
        play(one, 7, seed=2)
        wait_until(lambda: two.counts().rounds == 7)


def test_an_unexpected_error_rejects_the_feedback_and_later_feedback_is_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        shown = ranker.rank("new")
        with monkeypatch.context() as broken:
            broken.setattr(store, "_write", lambda *_: 1 / 0)
            with pytest.raises(StoreError, match="event rejected: ZeroDivisionError"):
                ranker.feedback(shown.id)
        assert "store rejected events" in caplog.messages
        assert ranker.feedback(shown.id) == "counted"


def test_closing_a_ranker_ends_its_threads() -> None:
    before = set(threading.enumerate())
    with a_ranker() as ranker:
        play(ranker, 3, seed=1)
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) == before
