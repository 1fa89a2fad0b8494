"""Expiry of impressions without feedback, and pruning, which keeps the counts."""

from math import inf

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, seeded, wait_for_tasks, wait_until

from banditrank.engine._feedback_tracker import FeedbackTracker
from banditrank.engine._group_commit import CommitCallback
from banditrank.engine._impression_expiry import ImpressionExpirer
from banditrank.engine._ranking_ids import new_key
from banditrank.errors import ExpiredRankingError, StoreUnavailableError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import NOT_CLICKED, CommitStatus, Event, Impression, min_key, pack_ranking


def test_old_impressions_and_changes_are_pruned_and_the_counts_are_kept() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)
        play(ranker, 10, seed=1)
        counts = ranker.counts()
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_for_tasks(ranker)
        clock.now += 3600.0
        wait_until(lambda: len(store.changes(1, after=0)) == 1)
        assert ranker.counts() == counts
        with pytest.raises(ExpiredRankingError):
            ranker.feedback(shown.id)
        play(ranker, 3, seed=2)
        assert ranker.counts().rounds == 14
    with a_ranker(surface, store, clock=clock) as ranker:
        assert ranker.counts().rounds == 14


def test_a_clock_near_1970_does_no_harm() -> None:
    clock = Clock(0.0)
    with a_ranker(clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker._runtime.run_due_tasks()
        assert ranker.feedback(shown.id) == "counted"


def test_impressions_without_feedback_expire_before_they_are_pruned() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        for _ in range(3):
            ranker.rank("new")
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_for_tasks(ranker)
        assert ranker.counts().rounds == 0, "a clock that may be ahead is not trusted at once"
        clock.now += 60.0
        wait_until(lambda: ranker.counts().rounds == 3)

        def is_pruned() -> bool:
            clock.now += 10.0
            return store.commit([Event(old, NOT_CLICKED)]).statuses == [CommitStatus.PRUNED]

        old = Impression(1, min_key(int(clock.now - 4000.0) * 1000), pack_ranking(0, (0, 1)))
        store.commit([Event(old, NOT_CLICKED)])
        wait_until(is_pruned)


def test_a_clock_that_was_set_expires_and_prunes_nothing() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown, later = ranker.rank("new"), ranker.rank("new")
        ranker.feedback(shown.id)
        wait_until(lambda: ranker._engine.committer.queued == 0)
        expirer = ranker._runtime._expirer
        for trusted in (expirer._expiry_clock, expirer._pruning_clock):
            trusted._monotonic = lambda: 0.0
        clock.now += 5000.0
        ranker._runtime.run_due_tasks()
        clock.now -= 5000.0
        ranker._runtime.run_due_tasks()
        assert ranker.feedback(shown.id) == "repeated"
        assert ranker.feedback(later.id, clicked=later.items[0]) == "counted"


def test_a_process_whose_clock_is_ahead_does_no_harm_to_others() -> None:
    store, clock, ahead = MemoryStore(), Clock(), Clock(1e9 + 60 * 86_400.0)
    with a_ranker(store=store, clock=clock) as healthy:
        shown = healthy.rank("new")
        play(healthy, 3, seed=1)
        wait_until(lambda: healthy._engine.committer.queued == 0)
        for _ in range(2):  # also after a restart
            with a_ranker(store=store, clock=ahead, random_bytes=seeded(2)) as wrong:
                for _ in range(4):
                    wait_for_tasks(wrong)
                    ahead.now += 1.0
        assert healthy.feedback(shown.id, clicked=shown.items[0]) == "counted"
        play(healthy, 3, seed=2)
        assert healthy.counts().rounds == 7


def test_a_short_lived_process_prunes_what_was_old_at_the_latest_change() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    ids = []
    for _ in range(3):
        with a_ranker(surface, store, clock=clock) as ranker:
            wait_for_tasks(ranker)
            ids += play(ranker, 1, seed=1)
        clock.now += 2000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_for_tasks(ranker)
        keys = [ranker._engine.issued_ranking(ranking_id)[1].impression.key for ranking_id in ids]
    assert [store.outcome(1, key) is None for key in keys] == [True, True, False]


class ManualCommitter:
    """A committer whose events the test commits."""

    def __init__(self) -> None:
        self.submitted: list[tuple[Event, CommitCallback]] = []

    def submit(self, event: Event, callback: CommitCallback) -> None:
        self.submitted.append((event, callback))


def an_expirer(store: MemoryStore, committer: ManualCommitter, clock: Clock) -> ImpressionExpirer:
    tracker = FeedbackTracker(60.0)
    return ImpressionExpirer(1, store, committer, lambda: tracker, clock=clock, reached=1e9)


def test_expired_impressions_are_submitted_once() -> None:
    store, clock, committer = MemoryStore(), Clock(), ManualCommitter()
    surface = a_surface()
    store.create_surface("home", surface.definition)
    store.commit(
        [
            Event(
                Impression(1, new_key(1000, bytes([0] * 6 + [*divmod(n, 256)])), pack_ranking(0, (0, 1))),
                None,
            )
            for n in range(1500)
        ]
    )
    expirer = an_expirer(store, committer, clock)
    assert expirer.due_in() <= 0.0
    expirer.run(surface)
    assert len(committer.submitted) == 1000
    clock.now += 10.0
    assert expirer.due_in() == inf, "they are being committed"
    for event, callback in committer.submitted:
        store.commit([event])
        callback(CommitStatus.COUNTED)
    assert expirer.due_in() <= 0.0, "there are more"
    expirer.run(surface)
    assert len(committer.submitted) == 1500


def test_impressions_that_could_not_be_submitted_are_submitted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock, committer = MemoryStore(), Clock(), ManualCommitter()
    surface = a_surface()
    store.create_surface("home", surface.definition)
    store.commit([Event(Impression(1, new_key(1000, bytes(8)), pack_ranking(0, (0, 1))), None)])
    expirer = an_expirer(store, committer, clock)

    def refuse(*_: object) -> None:
        raise StoreUnavailableError("too far behind")

    with monkeypatch.context() as patched:
        patched.setattr(committer, "submit", refuse)
        with pytest.raises(StoreUnavailableError):
            expirer.run(surface)
    clock.now += 2.0
    assert expirer.due_in() <= 0.0
    expirer.run(surface)
    assert len(committer.submitted) == 1
