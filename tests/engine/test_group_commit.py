"""A store that is down for a while: whoever waits is told, and nothing is lost or counted twice."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from live import Clock, FailingStore, a_ranker, a_surface, play, wait_until

from banditrank.engine.group_commit import CommitOutcome, GroupCommitter
from banditrank.engine.group_commit import _take as taken
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage.base import WriteResult
from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import Change, CommitStatus, Event, Impression
from banditrank.testing.store_entries import CLICK, rounds_of, shown

DONE: Callable[[CommitOutcome], None] = lambda _: None  # noqa: E731


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
        assert ranker.explain(ids[0]).reproduced


def test_a_commit_whose_answer_was_lost_is_repeated_without_counting_twice() -> None:
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


def test_rankings_noted_while_the_store_was_down_are_settled_later() -> None:
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


def test_rankings_noted_very_late_are_settled_all_the_same() -> None:
    store, clock = FailingStore(), Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), store, clock=clock, sync_seconds=0.01) as ranker:
        wait_until(lambda: not ranker._runtime.is_due())
        store.down = True
        ranker.rank("new")
        clock.now += 3000.0
        wait_until(lambda: not ranker._runtime.is_due())
        store.down = False
        wait_until(lambda: ranker._engine.committer.queued == 0)
        clock.now += 3600.0
        wait_until(lambda: ranker.counts().rounds == 1)


def test_a_replica_whose_store_was_down_catches_up() -> None:
    store = FailingStore()
    with a_ranker(store=store, sync_seconds=0.01) as one, a_ranker(store=store, sync_seconds=0.01) as two:
        store.down = True
        with pytest.raises(StoreUnavailableError):
            play(one, 1, seed=1)
        store.down = False
        play(one, 7, seed=2)
        wait_until(lambda: two.counts().rounds == 7)


def test_an_error_that_nobody_thought_of_is_told_and_the_journal_goes_on(
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


def entry(number: int) -> Event:
    return Event(shown(1, number), CLICK)


def a_journal(learn: Callable[[Change], None] = DONE, **settings: object) -> GroupCommitter:
    store = MemoryStore()
    store.create_surface("home", "{}")
    return GroupCommitter(store, on_change=learn, **settings)


def settled(committer: GroupCommitter, number: int) -> CommitOutcome:
    answers: list[CommitOutcome] = []
    finished = threading.Event()
    committer.submit(entry(number), lambda answer: (answers.append(answer), finished.set()))
    assert finished.wait(60)
    return answers[0]


def test_closing_writes_what_is_waiting_and_refuses_the_rest() -> None:
    committer = a_journal()
    answers: list[CommitOutcome] = []
    for number in range(50):
        committer.submit(entry(number), answers.append)
    committer.close()
    assert answers == [CommitStatus.COUNTED] * 50
    with pytest.raises(StoreUnavailableError, match="the journal is closed"):
        committer.submit(entry(99), answers.append)
    assert committer.queued == 0


class SlowStore(FailingStore):
    """A store whose commits wait until they may go on, and that fails at an entry of a bad number."""

    bad: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.create_surface("home", "{}")
        self.may_go_on = threading.Event()

    def _write(self, entries: Sequence[Event], at: int) -> WriteResult:
        assert self.may_go_on.wait(60)
        if any(one.impression.key[-1] == self.bad for one in entries):
            raise ValueError("bad")
        return super()._write(entries, at)


def test_an_entry_that_cannot_be_written_does_no_harm_to_others(caplog: pytest.LogCaptureFixture) -> None:
    store = SlowStore()
    store.bad = 7
    committer = GroupCommitter(store, on_change=DONE)
    committer.submit(entry(0), DONE)
    wait_until(lambda: committer.queued == 0)  # the others make up the next group
    answers: dict[int, CommitOutcome] = {}
    for number in range(1, 20):
        committer.submit(entry(number), lambda answer, number=number: answers.update({number: answer}))
        committer.add_impressions(Event(shown(1, 256 + number), None))
    store.may_go_on.set()
    committer.close()
    assert str(answers.pop(7)).startswith("event rejected: ValueError('bad')")
    assert answers == {number: CommitStatus.COUNTED for number in range(1, 20) if number != 7}
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 18
    assert committer.dropped == 1
    assert caplog.messages.count("store rejected events") == 2


class RejectingStore(MemoryStore):
    """A store that rejects transactions with certain entries, and counts all transactions."""

    def __init__(self, rejects: Callable[[Event], bool], n_surfaces: int = 1) -> None:
        super().__init__()
        self.rejects = rejects
        self.transactions = 0
        for number in range(n_surfaces):
            self.create_surface(f"s{number}", "{}")

    def _write(self, entries: Sequence[Event], at: int) -> WriteResult:
        self.transactions += 1
        if any(self.rejects(entry) for entry in entries):
            raise StoreError("value too large")
        return super()._write(entries, at)


class Answers(dict[Impression, CommitOutcome]):
    """The answer to each outcome of a group; a second answer to one fails."""

    def done(self, key: Impression) -> Callable[[CommitOutcome], None]:
        def answered(answer: CommitOutcome) -> None:
            assert key not in self
            self[key] = answer

        return answered


def write_group(store: MemoryStore, outcomes: list[Event], notes: Sequence[Event] = ()) -> Answers:
    """Write outcomes and notes as one group, and return the answers."""
    answers = Answers()
    committer = GroupCommitter(store, on_change=DONE)
    committer.close()
    assert committer._write(list(notes), [(one, answers.done(one.impression)) for one in outcomes])
    assert committer.queued == 0
    return answers


def is_rejection(answer: CommitOutcome) -> bool:
    return isinstance(answer, StoreError) and not isinstance(answer, StoreUnavailableError)


def test_a_store_error_rejects_the_entry_at_fault_alone() -> None:
    outcomes = [Event(shown(1, number), CLICK) for number in range(2000)]
    notes = [Event(shown(1, 5000 + number), None) for number in range(500)]
    at_fault = {outcomes[3], outcomes[1234], notes[77]}
    store = RejectingStore(at_fault.__contains__)
    answers = write_group(store, outcomes, notes)
    assert len(answers) == 2000
    assert {key for key, answer in answers.items() if is_rejection(answer)} == {
        outcomes[3].impression,
        outcomes[1234].impression,
    }
    assert list(answers.values()).count(CommitStatus.COUNTED) == 1998
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 499
    assert rounds_of(store, 1) == 1998
    assert store.transactions <= 3 * 2 * 12


def test_a_surface_whose_entries_are_all_rejected_does_no_harm_to_others() -> None:
    outcomes = [Event(shown(1 + number % 8, number), CLICK) for number in range(2000)]
    store = RejectingStore(lambda entry: entry.impression.surface_id == 5, n_surfaces=8)
    answers = write_group(store, outcomes)
    assert all(is_rejection(answer) == (key.surface_id == 5) for key, answer in answers.items())
    assert len(answers) == 2000
    assert store.transactions < 200


def test_a_store_that_rejects_everything_is_asked_a_bounded_number_of_times() -> None:
    for n_surfaces in (1, 8):
        outcomes = [Event(shown(1 + number % n_surfaces, number), CLICK) for number in range(2000)]
        store = RejectingStore(lambda _: True, n_surfaces)
        answers = write_group(store, outcomes)
        assert len(answers) == 2000
        assert all(is_rejection(answer) for answer in answers.values())
        assert store.transactions <= 600


def test_a_store_that_becomes_unavailable_while_a_group_is_split_loses_nothing() -> None:
    outcomes = [Event(shown(1, number), CLICK) for number in range(100)]
    notes = [Event(shown(1, 5000 + number), None) for number in range(100)]
    store = RejectingStore(lambda entry: entry == outcomes[60])
    write = store._write

    def break_down(entries: Sequence[Event], at: int) -> WriteResult:
        if store.transactions == 5:
            raise StoreUnavailableError("the store is down")
        return write(entries, at)

    store._write = break_down
    committer = GroupCommitter(store, on_change=DONE)
    committer.close()
    answers = Answers()
    assert not committer._write(notes, [(one, answers.done(one.impression)) for one in outcomes])
    assert len(answers) == 100
    assert {str(answer) for answer in answers.values()} == {"counted", "the store is down"}
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) + committer.queued == 100
    store._write = write
    again = write_group(store, outcomes)
    assert is_rejection(again.pop(outcomes[60].impression))
    assert all(
        answer is (CommitStatus.REPEATED if answers[key] is CommitStatus.COUNTED else CommitStatus.COUNTED)
        for key, answer in again.items()
    )


def test_closing_writes_all_that_was_shown() -> None:
    store = SlowStore()
    committer = GroupCommitter(store, on_change=DONE)
    for number in range(5001):
        committer.add_impressions(Event(shown(1, number), None))
    store.may_go_on.set()
    committer.close()
    assert (committer.queued, committer.dropped) == (0, 0)
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47, limit=10_000)) == 5001
    committer.add_impressions(entry(1))
    assert (committer.queued, committer.dropped) == (0, 1)


def test_closing_ends_if_the_store_fails() -> None:
    store = SlowStore()
    store.down = True
    committer = GroupCommitter(store, on_change=DONE)
    answers: list[CommitOutcome] = []
    for number in range(5000):
        committer.add_impressions(Event(shown(1, number), None))
        committer.submit(entry(number), answers.append)
    store.may_go_on.set()
    committer.close()
    assert committer.dropped == 5000
    assert len(answers) == 5000
    assert {str(answer) for answer in answers} <= {"the store is down", "the journal is closed"}


def test_who_comes_while_the_journal_closes_is_answered() -> None:
    for attempt in range(30):
        committer = a_journal()
        answers: list[CommitOutcome] = []
        asked = [0]

        def ask(
            committer: GroupCommitter = committer,
            answers: list[CommitOutcome] = answers,
            asked: list[int] = asked,
        ) -> None:
            try:
                for number in range(1000):
                    committer.submit(entry(number), answers.append)
                    asked[0] += 1
            except StoreUnavailableError:
                pass

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda asked=asked, attempt=attempt: asked[0] >= attempt)
        committer.close()
        asking.join()
        assert len(answers) == asked[0]


def test_the_journal_goes_on_when_those_it_tells_fail(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("no")

    committer = a_journal(on_change=refuse)
    assert settled(committer, 1) is CommitStatus.COUNTED
    committer.submit(entry(2), refuse)
    assert settled(committer, 3) is CommitStatus.COUNTED
    committer.close()
    assert "was not taken in" in caplog.text
    assert "could not be called back" in caplog.text
    committer = a_journal(deliver=refuse)
    committer.submit(entry(1), DONE)
    committer.close()
    assert (committer.events, committer.queued) == (1, 0)


def test_threads_end_with_their_ranker() -> None:
    before = set(threading.enumerate())
    with a_ranker() as ranker:
        play(ranker, 3, seed=1)
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) == before


def test_a_journal_with_nothing_to_write_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    monkeypatch.setattr(
        "banditrank.engine.group_commit._take", lambda waiting: rounds.append(1) or taken(waiting)
    )
    store = MemoryStore()
    store.create_surface("home", "{}")
    committer = GroupCommitter(store, on_change=DONE)
    time.sleep(0.3)  # any time at all: it does nothing in it
    assert rounds == []
    committer.add_impressions(Event(shown(1, 1), None))
    wait_until(lambda: len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 1)
    time.sleep(0.3)
    assert len(rounds) == 2, "one look at rankings noted, one at outcomes"
    assert settled(committer, 2) is CommitStatus.COUNTED
    committer.close()
