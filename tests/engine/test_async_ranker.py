"""`AsyncRanker`: rankings and feedback that do not block the event loop, cancelled or not."""

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from helpers.live import MAX_WAIT_SECONDS, TYPES, Clock, FailingStore, a_ranker, a_surface, seeded

from banditrank import (
    AsyncRanker,
    BanditRankError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    Feedback,
    InvalidInputError,
    NoExperimentError,
    Ranker,
    ShownRanking,
    StoreError,
    StoreUnavailableError,
    UnknownNameError,
    UnknownRankingError,
)
from banditrank.engine._engine import Engine
from banditrank.storage._base import WriteResult
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Event, SurfaceRecord

FAST = {"refresh_seconds": 0.05}


class GatedStore(MemoryStore):
    """Memory store whose commits of outcomes, or reads of surfaces, wait at a closed gate."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = threading.Event()
        self.reads = threading.Event()
        self.waiting = threading.Event()
        for gate in (self.commits, self.reads):
            gate.set()

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        if any(event.outcome is not None for event in events):
            self._pass(self.commits)
        return super()._write(events, at_ms)

    def find_surface(self, name: str) -> SurfaceRecord | None:
        self._pass(self.reads)
        return super().find_surface(name)

    def _pass(self, gate: threading.Event) -> None:
        if not gate.is_set():
            self.waiting.set()
            assert gate.wait(MAX_WAIT_SECONDS), "the gate stayed closed"


def an_async_ranker(store: MemoryStore | None = None, **settings: Any) -> AsyncRanker:
    """Return a ranker with seeded ids, whose surface ranks in the event loop."""
    surface = a_surface(**{**FAST, **settings.pop("surface", {})})
    return AsyncRanker(surface, store, **{"random_bytes": seeded(1), **settings})


async def reached(event: threading.Event) -> None:
    """Wait until another thread has set an event, while the event loop runs."""
    assert await asyncio.to_thread(event.wait, MAX_WAIT_SECONDS)


def test_rankings_and_feedback_are_counted() -> None:
    async def play() -> None:
        async with an_async_ranker() as ranker:
            shown = await ranker.rank("new")
            first, second = await ranker.rank_batch(["new", "old"], pinned={1: "c"})
            assert first.items[0] == second.items[0] == "c"
            assert await ranker.feedback(shown.id, clicked=shown.items[1], reward=0.5) == "counted"
            assert await ranker.feedback(shown.id, clicked=shown.items[1], reward=0.5) == "repeated"
            batch = [Feedback(first.id), Feedback("forged"), Feedback(first.id)]
            counted, error, repeated = await ranker.feedback_batch(batch)
            assert (counted, type(error), repeated) == ("counted", UnknownRankingError, "repeated")
            assert await ranker.feedback_batch([]) == []
            counts = await ranker.counts()
            assert (counts.rounds, counts.rewards.sum()) == (2, 0.5)

    asyncio.run(play())


def test_reports_and_items_are_those_of_a_ranker() -> None:
    async def play() -> None:
        async with an_async_ranker() as ranker:
            assert (await ranker.add_items(["f"])).added == ("f",)
            assert (await ranker.retire_items(["a"])).retired == ("a",)
            assert (await ranker.sync_items(iter("abc"))).revived == ("a",)
            assert ranker.surface.active_items == ("a", "b", "c")
            shown = await ranker.rank("new", candidates=["a", "b"])
            await ranker.feedback(shown.id, clicked="a")
            assert (await ranker.estimates(level=0.9)).rounds == 1
            assert len((await ranker.equality()).equal_ranking) == 2
            assert (await ranker.explain(shown.id)).candidates == ["a", "b"]
            with pytest.raises(NoExperimentError):
                await ranker.experiment()
            await ranker.set_experiment(None)

    asyncio.run(play())


def test_every_method_of_a_ranker_is_there() -> None:
    """All but those for event loops of other frameworks, and `with`."""
    names = {name for name in dir(Ranker) if not name.startswith("_")}
    assert names - set(dir(AsyncRanker)) == {"ranks_fast", "submit_feedback"}


def test_feedback_does_not_block_the_event_loop() -> None:
    async def play() -> None:
        store = GatedStore()
        async with an_async_ranker(store) as ranker:
            shown = await ranker.rank("new")
            store.commits.clear()
            feedback = asyncio.create_task(ranker.feedback(shown.id))
            await reached(store.waiting)
            rankings = [await ranker.rank("old") for _ in range(10)]
            assert len({ranking.id for ranking in rankings}) == 10
            assert not feedback.done()
            store.commits.set()
            assert await feedback == "counted"

    asyncio.run(play())


def test_feedback_for_a_revision_that_is_not_loaded_reads_the_store_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store waits until a task of the event loop opens it."""
    gate, waiting = threading.Event(), threading.Event()
    issued_ranking = Engine.issued_ranking

    def gated(engine: Engine, ranking_id: str) -> Any:
        waiting.set()
        assert gate.wait(MAX_WAIT_SECONDS)
        return issued_ranking(engine, ranking_id)

    async def play() -> None:
        store = MemoryStore()
        async with an_async_ranker(store) as ranker:
            shown = await ranker.rank("new")
            await ranker.add_items(["f"])
        async with an_async_ranker(store, surface={"items": (*"abcdef",)}) as ranker:
            monkeypatch.setattr(Engine, "issued_ranking", gated)
            feedback = asyncio.create_task(ranker.feedback(shown.id))
            await reached(waiting)
            assert not feedback.done()
            gate.set()
            assert await feedback == "counted"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("surface", "options", "is_fast"),
    [
        ({}, {}, True),
        ({}, {"exclude": ["a"]}, True),
        ({"refresh_seconds": 0.0}, {}, False),
        ({"treatment": "equal"}, {}, True),
        ({"treatment": "equal"}, {"exclude": ["a"]}, False),
        ({"items": [f"item-{number}" for number in range(2100)], "n_positions": 10}, {}, False),
    ],
)
def test_rankings_that_may_be_slow_are_made_in_a_thread(
    surface: dict[str, Any], options: dict[str, Any], *, is_fast: bool
) -> None:
    threads: set[str] = set()
    source = seeded(1)

    def random_bytes(size: int) -> bytes:
        threads.add(threading.current_thread().name)
        return source(size)

    async def play() -> None:
        async with an_async_ranker(surface=surface, random_bytes=random_bytes) as ranker:
            for rank in (
                lambda: ranker.rank("new", **options),
                lambda: ranker.rank_batch(["new", "old"], **options),
            ):
                threads.clear()
                await rank()
                assert (threads == {threading.current_thread().name}) == is_fast

    asyncio.run(play())


def test_large_batches_are_made_in_a_thread() -> None:
    threads: list[str] = []
    rank_batch = Ranker.rank_batch

    def recorded(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return rank_batch(*arguments, **options)

    async def play() -> None:
        async with an_async_ranker() as ranker:
            await ranker.rank_batch(["new"] * 64)
            await ranker.rank_batch(["new"] * 65)
            await ranker.rank_batch(["new"] * 8, exclude=["a"])
            await ranker.rank_batch(["new"] * 9, exclude=["a"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ranker, "rank_batch", recorded)
        asyncio.run(play())
    here = threading.current_thread().name
    assert [thread == here for thread in threads] == [True, False, True, False]


def test_concurrent_feedback_shares_group_commits_and_threads() -> None:
    async def play() -> None:
        store = GatedStore()
        async with an_async_ranker(store) as ranker:
            rankings = [shown for _ in range(50) for shown in await ranker.rank_batch(TYPES * 20)]
            store.commits.clear()
            tasks = [asyncio.create_task(ranker.feedback(shown.id)) for shown in rankings]
            await reached(store.waiting)
            committer = ranker._ranker._engine.committer
            groups, threads = committer.groups, threading.active_count()
            store.commits.set()
            assert await asyncio.gather(*tasks) == ["counted"] * 2000
            assert threading.active_count() <= threads
            assert committer.groups - groups <= 4
            assert (await ranker.counts()).rounds == 2000

    asyncio.run(play())


def test_a_group_commit_wakes_the_event_loop_once() -> None:
    async def play() -> int:
        async with an_async_ranker(store := GatedStore()) as ranker:
            loop = asyncio.get_running_loop()
            rankings = await ranker.rank_batch(["new"] * 64)
            store.commits.clear()
            waiting = asyncio.ensure_future(ranker.feedback_batch([Feedback(one.id) for one in rankings]))
            await reached(store.waiting)
            wake, n_wakes = loop.call_soon_threadsafe, 0

            def counted(*arguments: Any, **options: Any) -> Any:
                nonlocal n_wakes
                n_wakes += 1
                return wake(*arguments, **options)

            loop.call_soon_threadsafe = counted
            # The loop is busy until the group is committed.
            store.commits.set()
            while ranker._ranker._engine.committer.queued or n_wakes == 0:
                threading.Event().wait(0.001)
            assert await waiting == ["counted"] * 64
            return n_wakes

    assert asyncio.run(play()) <= 2


@pytest.mark.parametrize("is_loaded", [True, False])
def test_cancelled_feedback_is_counted_once(is_loaded: bool) -> None:  # noqa: FBT001
    async def play() -> None:
        store = GatedStore()
        async with an_async_ranker(store) as ranker:
            rankings = await ranker.rank_batch(["new"] * 30)
            await ranker.add_items(["f"])
        items = (*"abcdef",) if is_loaded else (*"abcdefg",)
        async with an_async_ranker(store, surface={"items": items}) as ranker:
            if is_loaded:
                rankings = await ranker.rank_batch(["new"] * 30)
            store.commits.clear()
            tasks = [asyncio.create_task(ranker.feedback(shown.id)) for shown in rankings]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
            store.commits.set()
            for shown in rankings:
                assert await ranker.feedback(shown.id) == "repeated"
            assert (await ranker.counts()).rounds == 30

    asyncio.run(play())


def test_feedback_that_was_cancelled_is_committed_when_the_ranker_is_closed() -> None:
    async def play() -> None:
        store = GatedStore()
        async with an_async_ranker(store) as ranker:
            shown = await ranker.rank("new")
            store.commits.clear()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ranker.feedback(shown.id), 0.01)
            store.commits.set()
        async with an_async_ranker(store) as ranker:
            assert await ranker.feedback(shown.id) == "repeated"
            assert (await ranker.counts()).rounds == 1

    asyncio.run(play())


def test_retries_while_the_store_fails_count_once() -> None:
    async def play() -> None:
        store = FailingStore()
        async with an_async_ranker(store) as ranker:
            lost, down = await ranker.rank_batch(["new", "old"])
            store.loses_answers = True
            with pytest.raises(StoreUnavailableError, match="broke after the commit"):
                await ranker.feedback(lost.id)
            store.loses_answers, store.down = False, True
            with pytest.raises(StoreUnavailableError, match="store is down"):
                await ranker.feedback(down.id, clicked=down.items[0])
            store.down = False
            assert await ranker.feedback(lost.id) == "repeated"
            assert await ranker.feedback(down.id, clicked=down.items[0]) == "counted"
            counts = await ranker.counts()
            assert (counts.rounds, counts.rewards.sum()) == (2, 1.0)

    asyncio.run(play())


def refused_calls(
    ranker: Any, old: ShownRanking, new: ShownRanking
) -> list[tuple[type[Exception], Callable[[], Any]]]:
    """Return calls of either kind of ranker, with their errors."""
    return [
        (UnknownNameError, lambda: ranker.rank("nwe")),
        (InvalidInputError, lambda: ranker.rank("new", candidates=["a"])),
        (InvalidInputError, lambda: ranker.rank("new", visitor="")),
        (UnknownNameError, lambda: ranker.rank_batch(["new", 5])),
        (InvalidInputError, lambda: ranker.rank_batch(["new"], visitors=[])),
        (UnknownRankingError, lambda: ranker.feedback("forged")),
        (InvalidInputError, lambda: ranker.feedback(new.id, reward=2.0)),
        (UnknownNameError, lambda: ranker.feedback(new.id, clicked="nothing")),
        (ConflictingFeedbackError, lambda: ranker.feedback(new.id, clicked=new.items[0])),
        (ExpiredRankingError, lambda: ranker.feedback(old.id, clicked=old.items[0])),
        (InvalidInputError, lambda: ranker.feedback_batch([None])),
        (InvalidInputError, lambda: ranker.add_items([""])),
        (InvalidInputError, lambda: ranker.estimates(level=2.0)),
    ]


def test_errors_are_those_of_a_ranker() -> None:
    async def play() -> None:
        clock = Clock()
        with a_ranker(a_surface(**FAST), clock=clock) as plain:
            async with an_async_ranker(clock=clock) as ranker:
                own, others = [await ranker.rank("new")], [plain.rank("new")]
                clock.now += 1e4
                own.append(await ranker.rank("new"))
                others.append(plain.rank("new"))
                await ranker.feedback(own[1].id)
                plain.feedback(others[1].id)
                for (kind, call), (_, other) in zip(
                    refused_calls(ranker, *own), refused_calls(plain, *others), strict=True
                ):
                    with pytest.raises(kind) as received:
                        await call()
                    with pytest.raises(kind) as expected:
                        other()
                    assert type(received.value) is type(expected.value) is kind
                    assert str(received.value) == str(expected.value)

    asyncio.run(play())


async def error_of(awaitable: Awaitable[object]) -> str:
    """Return the error of a call."""
    try:
        return f"no error: {await awaitable}"
    except BanditRankError as error:
        return str(error)


def test_a_ranker_must_be_open() -> None:
    async def play() -> None:
        ranker = an_async_ranker()
        rule = "the ranker is not open: use it in 'async with'"
        assert await error_of(ranker.rank("new")) == rule
        assert await error_of(ranker.counts()) == rule
        await ranker.close()
        async with ranker:
            shown = await ranker.rank("new")
            await ranker.open()
            await ranker.feedback(shown.id)
        await ranker.close()
        assert await error_of(ranker.rank("new")) == rule
        assert await error_of(ranker.feedback(shown.id)) == rule
        assert await error_of(ranker.feedback_batch([])) == rule
        assert (await ranker.counts()).rounds == 1, "reports are still available"

    asyncio.run(play())


def test_a_closed_ranker_opens_again_in_another_event_loop() -> None:
    ranker = an_async_ranker(MemoryStore())

    async def play() -> int:
        async with ranker:
            await ranker.feedback((await ranker.rank(TYPES[0])).id)
            return int((await ranker.counts()).rounds)

    assert [asyncio.run(play()) for _ in range(3)] == [1, 2, 3]


def test_a_ranker_that_cannot_be_opened_raises_the_error_of_a_ranker() -> None:
    async def play() -> None:
        store = MemoryStore()
        async with an_async_ranker(store):
            pass
        changed = an_async_ranker(store, surface={"attribution_seconds": 60.0})
        assert "must be 1800.0 as in the store" in await error_of(changed.open())
        await changed.close()

    asyncio.run(play())


@pytest.mark.parametrize("n_cancellations", [1, 2])
def test_a_ranker_whose_opening_is_cancelled_is_closed(n_cancellations: int) -> None:
    async def play() -> None:
        store = GatedStore()
        store.reads.clear()
        before = threading.active_count()
        ranker = an_async_ranker(store)
        opening = asyncio.create_task(ranker.open())
        await reached(store.waiting)
        for _ in range(n_cancellations):
            opening.cancel()
            await asyncio.sleep(0)
            assert not opening.done(), "a thread cannot be cancelled"
        store.reads.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert "not open" in await error_of(ranker.rank("new"))
        names = [thread.name for thread in threading.enumerate() if thread.name.startswith("banditrank")]
        assert not names, before

    asyncio.run(play())


def test_a_cancelled_opening_that_fails_raises_the_cancellation() -> None:
    class Broken(GatedStore):
        def find_surface(self, name: str) -> SurfaceRecord | None:
            super().find_surface(name)
            raise StoreError("not a store")

    async def play() -> None:
        store = Broken()
        store.reads.clear()
        opening = asyncio.create_task(an_async_ranker(store).open())
        await reached(store.waiting)
        opening.cancel()
        await asyncio.sleep(0)
        store.reads.set()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(play())


def test_a_loop_that_ended_loses_no_feedback() -> None:
    """The results of a group are dropped with the loop of their tasks; what was committed stays."""
    store = GatedStore()
    ranker = an_async_ranker(store)
    shown = []

    async def leave() -> None:
        await ranker.open()
        shown.append(await ranker.rank("new"))
        store.commits.clear()
        asyncio.create_task(ranker.feedback(shown[0].id))  # noqa: RUF006 - cancelled with the loop
        await reached(store.waiting)

    async def resume() -> str:
        store.commits.set()
        status = await ranker.feedback(shown[0].id)
        await ranker.close()
        return status

    asyncio.run(leave())
    assert asyncio.run(resume()) == "repeated"


def test_an_open_ranker_cannot_be_pickled_as_a_ranker_cannot() -> None:
    with a_ranker() as plain, pytest.raises(TypeError) as caught:
        pickle.dumps(plain)

    async def play() -> None:
        async with an_async_ranker() as ranker:
            with pytest.raises(TypeError) as received:
                pickle.dumps(ranker)
            assert str(received.value) == str(caught.value)

    asyncio.run(play())


def test_a_cancelled_second_opening_leaves_the_ranker_open() -> None:
    async def visit() -> str:
        async with AsyncRanker(a_surface()) as ranker:
            again = asyncio.create_task(ranker.open())
            await asyncio.sleep(0)
            again.cancel()
            await asyncio.gather(again, return_exceptions=True)
            return await ranker.feedback((await ranker.rank(TYPES[0])).id)

    assert asyncio.run(visit()) == "counted"
