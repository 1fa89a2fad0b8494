"""Group commit: each event gets one outcome, and an event that is rejected does no harm to others."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from helpers.live import FailingStore, wait_until

from banditrank.engine._group_commit import CommitCallback, CommitOutcome, GroupCommitter
from banditrank.engine._group_commit import _take as take
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage._base import WriteResult
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Change, CommitStatus, Event, Impression
from banditrank.testing._store_events import CLICK, read_rounds, shown

IGNORE: Callable[[object], None] = lambda _: None  # noqa: E731


def click(number: int) -> Event:
    return Event(shown(1, number), CLICK)


def impression(number: int) -> Event:
    return Event(shown(1, number), None)


def a_committer(on_change: Callable[[Change], None] = IGNORE, **settings: object) -> GroupCommitter:
    store = MemoryStore()
    store.create_surface("home", "{}")
    return GroupCommitter(store, on_change=on_change, **settings)


def commit(committer: GroupCommitter, number: int) -> CommitOutcome:
    """Submit a click, and return its outcome."""
    outcomes: list[CommitOutcome] = []
    finished = threading.Event()
    committer.submit(click(number), lambda outcome: (outcomes.append(outcome), finished.set()))
    assert finished.wait(60)
    return outcomes[0]


def test_closing_commits_queued_events_and_refuses_later_ones() -> None:
    committer = a_committer()
    outcomes: list[CommitOutcome] = []
    for number in range(50):
        committer.submit(click(number), outcomes.append)
    committer.close()
    assert outcomes == [CommitStatus.COUNTED] * 50
    with pytest.raises(StoreUnavailableError, match="the engine is closed"):
        committer.submit(click(99), outcomes.append)
    assert committer.queued == 0


class SlowStore(FailingStore):
    """A store whose commits wait until they may continue, and that fails at an event with a bad number."""

    bad: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.create_surface("home", "{}")
        self.may_continue = threading.Event()

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        assert self.may_continue.wait(60)
        if any(one.impression.key[-1] == self.bad for one in events):
            raise ValueError("bad")
        return super()._write(events, at_ms)


def test_an_event_that_cannot_be_committed_does_no_harm_to_others(caplog: pytest.LogCaptureFixture) -> None:
    store = SlowStore()
    store.bad = 7
    committer = GroupCommitter(store, on_change=IGNORE)
    committer.submit(click(0), IGNORE)
    wait_until(lambda: committer.queued == 0)  # the others form the next group
    outcomes: dict[int, CommitOutcome] = {}
    for number in range(1, 20):
        committer.submit(click(number), lambda outcome, number=number: outcomes.update({number: outcome}))
        committer.add_impressions([impression(256 + number)])
    store.may_continue.set()
    committer.close()
    assert str(outcomes.pop(7)).startswith("event rejected: ValueError('bad')")
    assert outcomes == {number: CommitStatus.COUNTED for number in range(1, 20) if number != 7}
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 18
    assert committer.dropped == 1
    assert caplog.messages.count("store rejected events") == 2


class RejectingStore(MemoryStore):
    """A store that rejects transactions with certain events, and counts all transactions."""

    def __init__(self, rejects: Callable[[Event], bool], n_surfaces: int = 1) -> None:
        super().__init__()
        self.rejects = rejects
        self.transactions = 0
        for number in range(n_surfaces):
            self.create_surface(f"s{number}", "{}")

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        self.transactions += 1
        if any(self.rejects(event) for event in events):
            raise StoreError("value too large")
        return super()._write(events, at_ms)


class Outcomes(dict[Impression, CommitOutcome]):
    """The commit outcome of each impression of a group; a second one fails."""

    def callback(self, impression: Impression) -> CommitCallback:
        def committed(outcome: CommitOutcome) -> None:
            assert impression not in self
            self[impression] = outcome

        return committed


def commit_group(store: MemoryStore, clicks: list[Event], impressions: Sequence[Event] = ()) -> Outcomes:
    """Commit clicks and impressions as one group, and return the outcomes of the clicks."""
    outcomes = Outcomes()
    committer = GroupCommitter(store, on_change=IGNORE)
    committer.close()
    assert committer._commit_group(
        list(impressions), [(one, outcomes.callback(one.impression)) for one in clicks]
    )
    assert committer.queued == 0
    return outcomes


def is_rejection(outcome: CommitOutcome) -> bool:
    return isinstance(outcome, StoreError) and not isinstance(outcome, StoreUnavailableError)


def test_a_store_error_rejects_the_event_at_fault_alone() -> None:
    clicks = [click(number) for number in range(2000)]
    impressions = [impression(5000 + number) for number in range(500)]
    at_fault = {clicks[3], clicks[1234], impressions[77]}
    store = RejectingStore(at_fault.__contains__)
    outcomes = commit_group(store, clicks, impressions)
    assert len(outcomes) == 2000
    assert {key for key, outcome in outcomes.items() if is_rejection(outcome)} == {
        clicks[3].impression,
        clicks[1234].impression,
    }
    assert list(outcomes.values()).count(CommitStatus.COUNTED) == 1998
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 499
    assert read_rounds(store, 1) == 1998
    assert store.transactions <= 3 * 2 * 12


def test_a_surface_whose_events_are_all_rejected_does_no_harm_to_others() -> None:
    clicks = [Event(shown(1 + number % 8, number), CLICK) for number in range(2000)]
    store = RejectingStore(lambda event: event.impression.surface_id == 5, n_surfaces=8)
    outcomes = commit_group(store, clicks)
    assert all(is_rejection(outcome) == (key.surface_id == 5) for key, outcome in outcomes.items())
    assert len(outcomes) == 2000
    assert store.transactions < 200


def test_a_store_that_rejects_everything_gets_a_bounded_number_of_commits() -> None:
    for n_surfaces in (1, 8):
        clicks = [Event(shown(1 + number % n_surfaces, number), CLICK) for number in range(2000)]
        store = RejectingStore(lambda _: True, n_surfaces)
        outcomes = commit_group(store, clicks)
        assert len(outcomes) == 2000
        assert all(is_rejection(outcome) for outcome in outcomes.values())
        assert store.transactions <= 600


def test_a_store_that_becomes_unavailable_while_a_group_is_split_loses_nothing() -> None:
    clicks = [click(number) for number in range(100)]
    impressions = [impression(5000 + number) for number in range(100)]
    store = RejectingStore(lambda event: event == clicks[60])
    write = store._write

    def write_until_down(events: Sequence[Event], at_ms: int) -> WriteResult:
        if store.transactions == 5:
            raise StoreUnavailableError("the store is down")
        return write(events, at_ms)

    store._write = write_until_down
    committer = GroupCommitter(store, on_change=IGNORE)
    committer.close()
    outcomes = Outcomes()
    assert not committer._commit_group(
        impressions, [(one, outcomes.callback(one.impression)) for one in clicks]
    )
    assert len(outcomes) == 100
    assert {str(outcome) for outcome in outcomes.values()} == {"counted", "the store is down"}
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) + committer.queued == 100
    store._write = write
    again = commit_group(store, clicks)
    assert is_rejection(again.pop(clicks[60].impression))
    assert all(
        outcome is (CommitStatus.REPEATED if outcomes[key] is CommitStatus.COUNTED else CommitStatus.COUNTED)
        for key, outcome in again.items()
    )


def test_closing_commits_all_impressions() -> None:
    store = SlowStore()
    committer = GroupCommitter(store, on_change=IGNORE)
    for number in range(5001):
        committer.add_impressions([impression(number)])
    store.may_continue.set()
    committer.close()
    assert (committer.queued, committer.dropped) == (0, 0)
    assert len(store.pending_impressions(1, since_ms=0, until_ms=2**47, limit=10_000)) == 5001
    committer.add_impressions([impression(1)])
    assert (committer.queued, committer.dropped) == (0, 1)


def test_closing_ends_if_the_store_fails() -> None:
    store = SlowStore()
    store.down = True
    committer = GroupCommitter(store, on_change=IGNORE)
    outcomes: list[CommitOutcome] = []
    for number in range(5000):
        committer.add_impressions([impression(number)])
        committer.submit(click(number), outcomes.append)
    store.may_continue.set()
    committer.close()
    assert committer.dropped == 5000
    assert len(outcomes) == 5000
    assert {str(outcome) for outcome in outcomes} <= {"the store is down", "the engine is closed"}


def test_events_submitted_while_the_committer_closes_get_an_outcome() -> None:
    for attempt in range(30):
        committer = a_committer()
        outcomes: list[CommitOutcome] = []
        submitted = [0]

        def submit(
            committer: GroupCommitter = committer,
            outcomes: list[CommitOutcome] = outcomes,
            submitted: list[int] = submitted,
        ) -> None:
            try:
                for number in range(1000):
                    committer.submit(click(number), outcomes.append)
                    submitted[0] += 1
            except StoreUnavailableError:
                pass

        submitting = threading.Thread(target=submit)
        submitting.start()
        wait_until(lambda submitted=submitted, attempt=attempt: submitted[0] >= attempt)
        committer.close()
        submitting.join()
        assert len(outcomes) == submitted[0]


def test_commits_continue_after_a_callback_failed(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no")

    committer = a_committer(on_change=fail)
    assert commit(committer, 1) is CommitStatus.COUNTED
    committer.submit(click(2), fail)
    assert commit(committer, 3) is CommitStatus.COUNTED
    committer.close()
    assert set(caplog.messages) == {"change was not applied", "feedback callback failed"}
    assert caplog.messages.count("feedback callback failed") == 1
    first = caplog.records[0]
    assert (first.surface_id, first.version) == (1, 1)
    caplog.clear()
    committer = a_committer(deliver=fail)
    committer.submit(click(1), IGNORE)
    committer.close()
    assert (committer.events, committer.queued) == (1, 0)
    assert caplog.messages == ["feedback callbacks failed"]


def test_a_committer_without_events_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    monkeypatch.setattr(
        "banditrank.engine._group_commit._take", lambda queue: rounds.append(1) or take(queue)
    )
    store = MemoryStore()
    store.create_surface("home", "{}")
    committer = GroupCommitter(store, on_change=IGNORE)
    time.sleep(0.3)  # any duration works: it does nothing meanwhile
    assert rounds == []
    committer.add_impressions([impression(1)])
    wait_until(lambda: len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 1)
    time.sleep(0.3)
    assert len(rounds) == 2, "once for impressions, once for outcomes"
    assert commit(committer, 2) is CommitStatus.COUNTED
    committer.close()
