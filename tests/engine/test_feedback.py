"""Feedback counts once, whenever and however often it is sent; invalid feedback is rejected."""

import contextlib
import queue
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.live import Clock, a_ranker, a_surface, seeded, wait_until

from banditrank._feedback import Feedback
from banditrank._ranker import Ranker
from banditrank.engine._engine import Engine
from banditrank.engine._group_commit import FeedbackResult
from banditrank.engine._ranking_ids import IssuedRanking, RankingIdSigner, new_key
from banditrank.engine._surface import Surface
from banditrank.errors import (
    ConflictingFeedbackError,
    ExpiredRankingError,
    InvalidInputError,
    StoreUnavailableError,
    UnknownNameError,
    UnknownRankingError,
)
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Impression, Outcome, SurfaceRecord, pack_ranking
from banditrank.storage._sqlite import SqliteStore


def totals(ranker: Ranker) -> tuple[int, float]:
    counts = ranker.counts()
    return counts.rounds, float(counts.rewards.sum())


def test_repeated_feedback_is_reported_as_repeated_and_counts_once() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        assert ranker.feedback(shown.id, clicked=shown.items[1]) == "counted"
        assert [ranker.feedback(shown.id, clicked=shown.items[1]) for _ in range(3)] == ["repeated"] * 3
        counts = ranker.counts()
    assert counts.rounds == 1
    assert counts.arrivals.tolist() == [1, 0]
    places = [ranker.surface.items.index(item) for item in shown.items]
    assert counts.displays[0, places, [0, 1]].tolist() == [1, 1]
    assert counts.rewards[0, places, [0, 1]].tolist() == [0, 1]


def test_a_batch_counts_each_feedback_or_returns_its_error() -> None:
    with a_ranker() as ranker:
        first, second = ranker.rank_batch(["new", "old"])
        batch = [
            Feedback(first.id, clicked=first.items[0], reward=0.5),
            Feedback("forged"),
            Feedback(second.id, clicked="not shown"),
            Feedback(second.id),
            Feedback(first.id),
            Feedback(second.id),
        ]
        results = ranker.feedback_batch(batch)
        assert [one for one in results if isinstance(one, str)] == ["counted", "counted", "repeated"]
        assert [type(one) for one in results if isinstance(one, Exception)] == [
            UnknownRankingError,
            UnknownNameError,
            ConflictingFeedbackError,
        ]
        assert ranker.feedback_batch([]) == []
        third = ranker.rank("new")
        for element in (None, third.id, (third.id, None, 1.0)):
            with pytest.raises(InvalidInputError, match="feedback must consist of Feedback tuples"):
                ranker.feedback_batch([Feedback(third.id), element])
        assert totals(ranker) == (2, 0.5)


def test_conflicting_feedback_is_rejected_and_changes_nothing() -> None:
    with a_ranker() as ranker:
        shown, other = ranker.rank("new"), ranker.rank("new")
        ranker.feedback(shown.id, clicked=shown.items[0], reward=0.5)
        ranker.feedback(other.id)
        for attempt in ({}, {"clicked": shown.items[1]}, {"clicked": shown.items[0], "reward": 0.25}):
            with pytest.raises(
                ConflictingFeedbackError, match="other feedback was reported for this ranking before"
            ):
                ranker.feedback(shown.id, **attempt)
        with pytest.raises(ConflictingFeedbackError):
            ranker.feedback(other.id, clicked=other.items[0])
        assert totals(ranker) == (2, 0.5)


def test_feedback_is_accepted_until_the_window_closes() -> None:
    clock = Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), clock=clock) as ranker:
        early, late = ranker.rank("new"), ranker.rank("new")
        assert early.expires_at.timestamp() == pytest.approx(clock.now + 60, abs=0.001)
        clock.now += 59.9
        assert ranker.feedback(early.id, clicked=early.items[0]) == "counted"
        clock.now += 0.2
        with pytest.raises(ExpiredRankingError, match="window closed 0 seconds ago"):
            ranker.feedback(late.id, clicked=late.items[0])
        assert ranker.feedback(early.id, clicked=early.items[0]) == "repeated"
        with pytest.raises(ExpiredRankingError):
            ranker.feedback(early.id)
        assert totals(ranker) == (1, 1.0)


def test_an_impression_without_feedback_counts_as_not_clicked_when_its_window_closes() -> None:
    clock = Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), clock=clock) as ranker:
        shown = [ranker.rank("old") for _ in range(5)]
        ranker.feedback(shown[0].id, clicked=shown[0].items[0])
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 64.0
        assert ranker.counts().rounds == 1, "clocks of other processes may be behind"
        clock.now += 2.0
        wait_until(lambda: ranker.counts().rounds == 5)
        assert totals(ranker) == (5, 1.0)
        assert ranker.explain(shown[1].id).outcome.state == "not-clicked"
        assert ranker.feedback(shown[1].id) == "repeated"


def test_an_impression_without_feedback_may_be_discarded_instead() -> None:
    clock, store = Clock(), MemoryStore()
    with a_ranker(a_surface(unreported="discarded"), store, clock=clock) as ranker:
        shown = [ranker.rank("old") for _ in range(3)]
        ranker.feedback(shown[0].id)
        clock.now += 1e6
        ranker._runtime.run_due_tasks()
    assert totals_after(store, clock) == (1, 0.0)


def totals_after(store: MemoryStore, clock: Clock) -> tuple[int, float]:
    with a_ranker(a_surface(unreported="discarded"), store, clock=clock) as ranker:
        return totals(ranker)


def test_pending_impressions_are_discarded_after_the_setting_changed() -> None:
    clock, store = Clock(), MemoryStore()
    with a_ranker(store=store, clock=clock) as ranker:
        shown = ranker.rank("new")
        changed = a_surface(unreported="discarded")
        ranker._engine.update_surface("home", lambda _: changed)
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 1e5
        wait_until(lambda: ranker.explain(shown.id).outcome.state == "discarded")
        wait_until(lambda: store.pending_impressions(1, since_ms=0, until_ms=int(2e12)) == [])
        assert ranker.counts().rounds == 0


def test_feedback_is_accepted_for_a_ranking_from_before_a_restart(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store, a_ranker(store=store) as ranker:
        shown, counted = ranker.rank("new"), ranker.rank("new")
        ranker.feedback(counted.id)
    with SqliteStore(tmp_path / "store.db") as store, a_ranker(store=store, random_bytes=seeded(2)) as ranker:
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"
        assert ranker.feedback(counted.id) == "repeated"
        assert totals(ranker) == (2, 1.0)


def test_unknown_and_forged_ids_are_rejected() -> None:
    with a_ranker() as ranker, a_ranker() as other:
        shown = ranker.rank("new")
        issued = ranker._engine.issued_ranking(shown.id)[1]
        forged = RankingIdSigner(bytes(32)).sign(issued)
        swapped = ("B" if shown.id[-1] == "A" else "A").join([shown.id[:-1], ""])
        letters = [
            shown.id[:place] + ("B" if shown.id[place] != "B" else "C") + shown.id[place + 1 :]
            for place in range(len(shown.id))
        ]
        for ranking_id in (
            *letters,
            "",
            "?",
            "é",
            shown.id + "A",
            shown.id[:-1],
            swapped,
            forged,
            "A" * 5000,
            7,
            None,
        ):
            with pytest.raises(UnknownRankingError, match="ranking id must be one that this store issued"):
                ranker.feedback(ranking_id)
        with pytest.raises(UnknownRankingError):
            ranker.feedback(other.rank("new").id)
        assert totals(ranker) == (0, 0.0)


@pytest.mark.parametrize(
    ("ranking", "revision"),
    [
        ((0, (0,)), 3),
        ((0, (0, 1, 2)), 3),
        ((2, (0, 1)), 3),
        ((0, (0, 5)), 1),  # was added later
        ((0, (0, 1)), 3),  # was retired
        ((0, (0, 6)), 3),
        ((0, (0, 2)), 4),
        ((0, (0, 2)), 2**31),
    ],
)
def test_a_ranking_that_the_surface_cannot_have_shown_is_unknown(
    ranking: tuple[int, tuple[int, ...]], revision: int
) -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        ranker.add_items(["f"])
        ranker.retire_items(["b"])

        def signed(ranking: tuple[int, tuple[int, ...]], revision: int, tail: bytes) -> str:
            expires_at_ms = int((ranker._engine.now() + 60) * 1000)
            shown = Impression(
                ranker._runtime.surface_id, new_key(expires_at_ms, tail), pack_ranking(*ranking)
            )
            return RankingIdSigner(store.secret()).sign(IssuedRanking(shown, revision, 0))

        for call in (ranker.feedback, ranker.explain):
            with pytest.raises(
                UnknownRankingError, match="ranking id is of a ranking that its surface did not show"
            ):
                call(signed(ranking, revision, bytes(8)))
        assert totals(ranker) == (0, 0.0)
        fitting = [((0, (0, 1)), 1), ((1, (4, 3)), 1), ((0, (0, 5)), 2), ((0, (5, 2)), 3)]
        for number, fits in enumerate(fitting):
            assert ranker.feedback(signed(*fits, number.to_bytes(8))) == "counted"
        assert totals(ranker) == (4, 0.0)


def test_ids_issued_after_a_backup_do_no_harm_to_a_surface_with_the_same_id(tmp_path: Path) -> None:
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    SqliteStore(path).close()
    shutil.copy(path, backup)
    with SqliteStore(path) as store, a_ranker(a_surface(items=list("abcdefg"), n_positions=3), store) as one:
        issued_ids = [one.rank("new").id for _ in range(4)]
    shutil.copy(backup, path)
    with (
        SqliteStore(path) as store,
        Ranker(Surface("other", items=["x", "y"], n_positions=2), store) as other,
    ):
        for ranking_id in issued_ids:
            with pytest.raises(UnknownRankingError):
                other.feedback(ranking_id)
        assert other.feedback(other.rank("everybody").id) == "counted"
        assert other.estimates().rounds == 1


def test_a_deleted_surface_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker, a_ranker(store=store, random_bytes=seeded(2)) as other:
        shown = other.rank("new")
        ranker._engine.delete_surface("home")
        fresh = Engine(store)
        reads: list[None] = []
        surfaces = store.surfaces
        monkeypatch.setattr(store, "surfaces", lambda: (reads.append(None), surfaces())[1])
        for engine, n_reads in ((ranker._engine, 0), (fresh, 1)):
            reads.clear()
            for _ in range(3):
                with pytest.raises(UnknownRankingError, match="was deleted"):
                    engine.issued_ranking(shown.id)
            with pytest.raises(UnknownRankingError, match="was deleted"):
                engine.cached_ranking(shown.id)
            assert len(reads) == n_reads
        fresh.close()


def test_rankings_that_need_the_store_are_not_cached() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        ranker._engine._sync_loop.close()  # it reads the store for feedback alone
        before = ranker.rank("new").id
        assert ranker._engine.cached_ranking(before) == ranker._engine.issued_ranking(before)
        ranker.add_items(["f"])
        with a_ranker(store=store, random_bytes=seeded(2)) as other:
            assert other._engine.cached_ranking(before) is None, "its revision is not the latest"
            assert other.feedback(before) == "counted"
            assert other._engine.cached_ranking(before) is not None
            other.add_items(["g"])
            later = other.rank("new").id
        assert ranker._engine.cached_ranking(later) is None
        assert ranker.feedback(later) == "counted"


class CountedReads(MemoryStore):
    """A memory store that counts reads that block the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def surfaces(self) -> list[SurfaceRecord]:
        self.reads += 1
        return super().surfaces()

    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        self.reads += 1
        return super().outcome(surface_id, key)


def test_submitted_feedback_is_reported_by_the_deliver_hook() -> None:
    calls: queue.Queue[Any] = queue.Queue()
    results: list[FeedbackResult] = []

    def result() -> FeedbackResult:
        callback, outcome = calls.get(timeout=60)
        assert not results, "only the deliver hook runs callbacks"
        callback(outcome)
        return results.pop()

    engine = Engine(MemoryStore(), deliver=lambda group: [calls.put(one) for one in group] and None)
    with contextlib.closing(engine):
        shown = engine.create_surface(a_surface()).rank("new")
        submit = partial(engine.submit_feedback, callback=results.append)
        for expected in ("counted", "repeated"):
            assert submit(Feedback(shown.id, shown.items[0]))
            assert result() == expected
        assert submit(Feedback(shown.id))
        assert isinstance(result(), ConflictingFeedbackError)
        with pytest.raises(UnknownRankingError):
            submit(Feedback("forged"))
        with pytest.raises(UnknownNameError):
            submit(Feedback(shown.id, "z"))
        engine.delete_surface("home")
        with pytest.raises(UnknownRankingError):
            submit(Feedback(shown.id))
        assert calls.empty()


def test_submitting_feedback_reads_the_store_only_if_allowed() -> None:
    store, clock = CountedReads(), Clock()
    results: list[FeedbackResult] = []
    with a_ranker(a_surface(attribution_seconds=60.0), store, clock=clock) as ranker:
        counted, late = ranker.rank("new"), ranker.rank("new")
        assert ranker.feedback(counted.id) == "counted"
        submit = partial(ranker._engine.submit_feedback, callback=results.append)
        clock.now += 61.0
        store.reads = 0
        assert not submit(Feedback(counted.id)), "its outcome must be read"
        assert (store.reads, results) == (0, [])
        assert submit(Feedback(counted.id), may_read_store=True)
        assert results == ["repeated"]
        with pytest.raises(ExpiredRankingError):
            submit(Feedback(late.id), may_read_store=True)
    with contextlib.closing(Engine(store, clock=clock)) as engine:
        engine._sync_loop.close()
        clock.now -= 61.0
        with a_ranker(Surface("new", items=["a"], n_positions=1), store, clock=clock) as other:
            shown = other.rank("everybody")
        store.reads = 0
        assert not engine.submit_feedback(Feedback(shown.id), callback=results.append), (
            "its surface must be loaded"
        )
        assert store.reads == 0
        assert engine.feedback(shown.id) == "counted"
    assert results == ["repeated"]


def test_rewards_are_precise_to_a_millionth() -> None:
    with a_ranker() as ranker:
        for reward in (0, 0.25, 1, 1e-7, 0.123456):
            shown = ranker.rank("new")
            assert ranker.feedback(shown.id, clicked=shown.items[0], reward=reward) == "counted"
        rounds, rewards = totals(ranker)
    assert rounds == 5
    assert rewards == pytest.approx(1.373456, abs=2e-6)


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf"), True, "1", None, [1]])
def test_rewards_out_of_range_are_rejected_and_change_nothing(reward: object) -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        for clicked in (shown.items[0], None):
            with pytest.raises(InvalidInputError, match="reward must be a number from 0 to 1"):
                ranker.feedback(shown.id, clicked=clicked, reward=reward)
        assert totals(ranker) == (0, 0.0)
        assert ranker.feedback(shown.id, clicked=shown.items[0]) == "counted"


def test_unknown_user_types_and_items_are_rejected_and_change_nothing() -> None:
    with a_ranker() as ranker:
        for user_type in ("neu", "", None, 0, ["new"]):
            with pytest.raises(UnknownNameError, match="user_type must be one of new, old"):
                ranker.rank(user_type)
        shown = ranker.rank("new")
        hidden = next(item for item in ranker.surface.items if item not in shown.items)
        for clicked in (hidden, "nothing", "", [hidden]):
            with pytest.raises(UnknownNameError, match="clicked must be one of"):
                ranker.feedback(shown.id, clicked=clicked)
        for clicked in (0, {shown.items[0]: 1}, [0]):
            with pytest.raises(InvalidInputError, match="clicked must be a name or a list of names"):
                ranker.feedback(shown.id, clicked=clicked)
        assert totals(ranker) == (0, 0.0)


def test_a_closed_ranker_refuses_to_rank_as_it_refuses_feedback() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
    for call in (
        lambda: ranker.rank("new"),
        lambda: ranker.rank_batch(["new", "old"]),
        lambda: ranker.feedback(shown.id),
    ):
        with pytest.raises(StoreUnavailableError, match=r"^the engine is closed$"):
            call()
    assert ranker.counts().rounds == 0, "reports still work"
