"""The series of a surface: the fold equals a direct count, whoever folds, however often it is kept."""

import json
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import ITEMS, TYPES, Clock, a_ranker, a_surface, play, seeded, wait_until

from banditrank import Problem
from banditrank.dashboard.surface_problem import SurfaceProblem
from banditrank.dashboard.time_buckets import MAX_BUCKETS, ReferenceRankings
from banditrank.dashboard.time_series import TimeSeries
from banditrank.engine.engine import Engine
from banditrank.simulation.regret import equal_regret, personalized_regret
from banditrank.storage.cells import decode_cells, encode_cells
from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import REWARD_UNITS, Event, Impression, Outcome, pack_ranking
from banditrank.storage.sqlite import SqliteStore
from banditrank.utilities.utility import NASH

WIDTH = 1000  # milliseconds
START = 10**12


def shown(user_type: int, items: tuple[int, ...], clicked: int | None = None) -> Event:
    outcome = Outcome(-1, 0) if clicked is None else Outcome(clicked, REWARD_UNITS)
    return Event(Impression(1, b"", pack_ranking(user_type, items)), outcome)


def random_changes(rng: random.Random, number: int) -> list[tuple[int, list[Event]]]:
    """Return times, and the entries that were committed then."""
    at, changes = START, []
    for _ in range(number):
        at += rng.randrange(3000)
        entries = [
            shown(rng.randrange(3), tuple(rng.sample(range(5), 2)), rng.choice([None, 0, 1]))
            for _ in range(rng.randint(1, 4))
        ]
        changes.append((at, entries))
    return changes


def counted(changes: list[tuple[int, list[Event]]], start_ms: int, width_ms: int, size: int) -> np.ndarray:
    """Return visits and clicks of each bucket and type, shape (2, B, 3), by counting one by one."""
    table = np.zeros((2, size, 3))
    for at, entries in changes:
        bucket = (at - start_ms) // width_ms
        for entry in entries if bucket < size else ():
            table[0, bucket, entry.impression.user_type] += 1
            table[1, bucket, entry.impression.user_type] += entry.outcome.reward / REWARD_UNITS
    return table


@given(st.integers(0, 2**32), st.sampled_from([1, 30, 700]), st.booleans())
def test_the_fold_equals_a_direct_count_at_any_width(seed: int, number: int, keeps: bool) -> None:  # noqa: FBT001
    rng = random.Random(seed)  # noqa: S311
    changes = random_changes(rng, number)
    time_series = TimeSeries(WIDTH, n_user_types=1)  # others come later
    for at, entries in changes:
        time_series.add(at, encode_cells(entries))
        if keeps and rng.random() < 0.02:
            kept, time_series = time_series.to_bytes(), TimeSeries(7, n_user_types=2)
            time_series.restore(kept)
    end = changes[-1][0] + rng.randrange(5000)
    closed = time_series.closed_buckets(end)
    assert len(closed.visits) == (end - closed.start_ms) // closed.width_ms <= MAX_BUCKETS
    assert closed.start_ms <= changes[0][0] < closed.start_ms + WIDTH
    assert closed.is_widened == (closed.width_ms > WIDTH)
    assert closed.width_ms == WIDTH or (end - closed.start_ms) > MAX_BUCKETS * closed.width_ms // 2
    visits, clicks = counted(changes, closed.start_ms, closed.width_ms, len(closed.visits))
    assert closed.visits.tolist() == visits[:, : closed.visits.shape[1]].tolist()
    assert closed.clicks.tolist() == clicks[:, : closed.clicks.shape[1]].tolist()
    assert not visits[:, closed.visits.shape[1] :].any()


def test_displays_are_compared_with_what_was_best_when_they_came() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown(0, (4, 3))]))  # compared with nothing
    time_series.set_reference(ReferenceRankings(np.array([[0, 1]]), 3))
    time_series.add(START + 1000, encode_cells([shown(0, (0, 1)), shown(0, (1, 0)), shown(0, (0, 2))]))
    time_series.set_reference(ReferenceRankings(np.array([[1, 0]]), 3))
    time_series.add(START + 2000, encode_cells([shown(0, (0, 1)), shown(0, (4, 0)), shown(1, (1, 0))]))
    closed = time_series.closed_buckets(START + 3000)
    # A type and an item that are new are other items; nothing is said of what was compared with nothing.
    np.testing.assert_array_equal(closed.other_item, [np.nan, 1 / 6, 3 / 6])
    np.testing.assert_array_equal(closed.other_order, [np.nan, 2 / 6, 2 / 6])


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_regret_is_that_of_the_simulator_and_is_only_told_if_the_truth_is_known(treatment: str) -> None:
    rng = np.random.default_rng(5)
    world = Problem(
        [0.3, 0.7], rng.dirichlet([3, 3], 2), rng.random((2, 5)), user_types=TYPES, items=ITEMS
    )  # fmt: skip
    rankings = [tuple(rng.permutation(5)[:2].tolist()) for _ in range(40)]
    types = rng.integers(2, size=40).tolist()
    time_series = TimeSeries(WIDTH, n_user_types=2)
    time_series.add(START, encode_cells([shown(0, (0, 1))]))
    assert time_series.closed_buckets(START + 1000).cumulative_regret is None
    time_series.regret_of = SurfaceProblem(world, a_surface(treatment=treatment, utility="nash")).regret
    for number, (user_type, ranking) in enumerate(zip(types, rankings, strict=True), start=1):
        time_series.add(START + number * WIDTH, encode_cells([shown(user_type, ranking)]))
    told = time_series.closed_buckets(START + 41 * WIDTH).cumulative_regret[1:]
    expected = (
        personalized_regret(world, types, rankings)
        if treatment == "personalized"
        else equal_regret(world, rankings, NASH)
    )
    assert told == pytest.approx(expected)


def test_rankings_that_share_a_commit_are_told_apart_by_how_often_they_were_shown() -> None:
    world = Problem(
        [0.5, 0.5], [[0.6, 0.4]] * 2, np.random.default_rng(1).random((2, 5)), user_types=TYPES, items=ITEMS
    )
    truth = SurfaceProblem(world, a_surface(treatment="equal", utility="nash"))
    entries = [shown(0, (0, 1)), shown(1, (0, 1)), shown(1, (0, 1)), shown(0, (1, 2))]
    alone = [truth.regret(decode_cells(encode_cells([entry]))) for entry in entries]
    assert truth.regret(decode_cells(encode_cells(entries))) == pytest.approx(sum(alone))


def test_a_ranking_that_is_worth_nothing_does_not_make_regret_endless() -> None:
    world = Problem([0.5, 0.5], [[0.6, 0.4]] * 2, [[0.5, 0.4, 0, 0, 0]] * 2, user_types=TYPES, items=ITEMS)
    truth = SurfaceProblem(world, a_surface(treatment="equal", utility="nash"))
    assert 0 < truth.regret(decode_cells(encode_cells([shown(0, (3, 4))]))) < 100


def test_what_has_no_time_is_left_out() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(0, encode_cells([shown(0, (0, 1))]))
    assert len(time_series.closed_buckets(START).visits) == 0


def test_an_idle_surface_has_empty_buckets_up_to_now_in_bounded_room() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown(0, (0, 1))]))
    assert time_series.closed_buckets(START + 5500).visits.tolist() == [[1], [0], [0], [0], [0]]
    late = time_series.closed_buckets(START + 10_000 * WIDTH)
    assert MAX_BUCKETS // 2 <= len(late.visits) <= MAX_BUCKETS
    assert late.visits.sum() == 1


YEAR = 365 * 86_400_000
ONE_VISIT = encode_cells([shown(0, (0, 1))])


def kept_and_restored(time_series: TimeSeries) -> TimeSeries:
    restored = TimeSeries(7, n_user_types=2)
    restored.restore(time_series.to_bytes())
    return restored


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("folds", [False, True])
def test_a_clock_that_was_ahead_leaves_the_series_as_narrow_as_it_was(*, folds: bool, keeps: bool) -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    times = [START, START + 3000, START + YEAR, START + YEAR + 500, START + 5000, START + 6000]
    for at in times:
        time_series.add(at, ONE_VISIT)
        if folds:
            time_series.closed_buckets(at + 2 * YEAR)  # the clock of a reader may be ahead as well
        if keeps:
            time_series = kept_and_restored(time_series)
    closed = time_series.closed_buckets(START + 7000)
    assert (closed.start_ms, closed.width_ms, closed.is_widened) == (START, WIDTH, False)
    assert closed.visits.tolist() == [[1], [0], [0], [1], [0], [3], [1]], (
        "counted when the clock was right again"
    )


def test_what_comes_ahead_is_told_to_who_asks_then_and_not_before() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, ONE_VISIT)
    time_series.add(START + YEAR, ONE_VISIT)
    assert time_series.closed_buckets(START + 2000).visits.tolist() == [[1], [0]]
    later = time_series.closed_buckets(START + YEAR + 10**9)
    assert later.visits.sum() == 2
    assert later.is_widened
    assert time_series.closed_buckets(START + 2000).width_ms == WIDTH


def test_time_that_goes_on_from_a_jump_is_believed() -> None:
    """A surface without visits for a year is not distinguished from a clock that is ahead: time tells."""
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, ONE_VISIT)
    for second in range(200):
        time_series.add(START + YEAR + 1000 * second, ONE_VISIT)
    time_series.fold()
    time_series.add(START + 5000, ONE_VISIT)  # a clock that is behind is not believed any more
    closed = time_series.closed_buckets(START + YEAR + 10**9)
    assert closed.is_widened
    assert closed.visits[0] == 2
    assert closed.visits.sum() == 202


def test_the_first_clock_may_be_ahead() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    for at in (START + YEAR, START + YEAR + 2000, START, START + 1000):
        time_series.add(at, ONE_VISIT)
    closed = time_series.closed_buckets(START + 2000)
    assert (closed.start_ms, closed.width_ms, closed.visits.tolist()) == (START, WIDTH, [[3], [1]])


def test_a_clock_that_is_set_back_loses_and_widens_nothing() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    for second in range(200):
        time_series.add(START + 1000 * second, ONE_VISIT)
    for at in (START - YEAR, START + 100_000, START + 200_000):
        time_series.add(at, ONE_VISIT)
    closed = time_series.closed_buckets(START + 201_000)
    assert (closed.start_ms, closed.width_ms) == (START, WIDTH)
    assert closed.visits[:, 0].tolist() == [2, *[1] * 99, 2, *[1] * 99, 1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400_000), st.booleans()), max_size=60))
def test_clocks_that_are_set_lose_no_visit(steps: list[tuple[int, int, bool]]) -> None:
    time_series, regrets = TimeSeries(WIDTH, n_user_types=1), []
    time_series.regret_of = lambda cells: regrets.append(1) or float(cells["displays"].sum())
    end = START
    for years, seconds, keeps in steps:
        at = START + years * YEAR + seconds
        end = max(end, at)
        time_series.add(at, ONE_VISIT)
        if keeps:
            time_series, restored = kept_and_restored(time_series), time_series
            time_series.regret_of = restored.regret_of
    closed = time_series.closed_buckets(end + YEAR)
    assert closed.visits.sum() == len(steps)
    assert len(closed.visits) <= MAX_BUCKETS
    if steps:
        assert closed.cumulative_regret is not None
        assert closed.cumulative_regret[-1] == 2 * len(steps)


def test_a_surface_whose_clock_was_ahead_tells_its_series_as_before() -> None:
    clock = Clock()
    with a_ranker(clock=clock) as ranker:
        play(ranker, 3, seed=1)
        clock.now += 3 * 365 * 86_400.0
        play(ranker, 3, seed=2)
        ranker.add_items(["late"])
        assert ranker._runtime.series()[0].width_ms > 60_000
        clock.now -= 3 * 365 * 86_400.0
        clock.now += 60.0
        play(ranker, 3, seed=3)
        clock.now += 120.0
        buckets, notes = ranker._runtime.series()
        assert buckets.width_ms == 60_000
        assert buckets.visits.sum() == 9
        assert notes == []


def test_what_an_earlier_version_kept_is_read() -> None:
    kept = TimeSeries(WIDTH, n_user_types=1)
    kept.add(START, encode_cells([shown(0, (0, 1))]))
    raw = zlib.decompress(kept.to_bytes())
    (size,) = struct.unpack_from("<I", raw)
    head = json.loads(raw[4 : 4 + size]) | {"format": 1}
    del head["minutes"], head["n_user_types_last_hour"]
    text = json.dumps(head).encode()
    tables = raw[4 + size : 4 + size + 8 * MAX_BUCKETS * 6]  # without the last hour
    time_series = TimeSeries(7, n_user_types=2)
    time_series.restore(zlib.compress(struct.pack("<I", len(text)) + text + tables))
    assert time_series.closed_buckets(START + 1000).visits.tolist() == [[1]]
    assert time_series.last_hour(START).visits.sum() == 0


@given(st.integers(0, 2**32), st.sampled_from([1, 30, 300]))
def test_the_last_hour_equals_a_direct_count(seed: int, number: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    pace = rng.choice([1, 20, 600])
    changes = [(START + pace * (at - START), entries) for at, entries in random_changes(rng, number)]
    time_series = TimeSeries(WIDTH, n_user_types=1)
    for at, entries in changes:
        time_series.add(at, encode_cells(entries))
        if rng.random() < 0.02:
            time_series.fold()
    now = changes[-1][0] + rng.randrange(7_200_000)
    recent = [entry for at, entries in changes if now // 60_000 - at // 60_000 < 60 for entry in entries]
    totals = time_series.last_hour(now)
    assert totals.visits.sum() == len(recent)
    assert totals.clicks.sum() == sum(entry.outcome.reward for entry in recent) / REWARD_UNITS


def test_a_clock_that_was_ahead_does_not_hide_the_last_hour() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START + 10**9, encode_cells([shown(0, (0, 1))]))
    time_series.fold()
    time_series.add(START, encode_cells([shown(0, (0, 1))]))
    assert time_series.last_hour(START + 1000).visits.tolist() == [1]


def test_what_cannot_be_read_is_left_alone() -> None:
    text = json.dumps({"format": 99}).encode()
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown(0, (0, 1))]))
    time_series.restore(zlib.compress(struct.pack("<I", len(text)) + text))
    assert time_series.closed_buckets(START + 1000).visits.tolist() == [[1]]


def test_a_restart_goes_on_with_the_same_series(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "store.db"
    with SqliteStore(path) as store, a_ranker(store=store, clock=clock) as ranker:
        for _ in range(5):
            play(ranker, 10, seed=1)
            clock.now += 60
        wait_until(lambda: ranker._runtime.monitor.best is not None)
        before, _ = ranker._runtime.series()
        hour = ranker._runtime.last_hour()
    with SqliteStore(path) as store, a_ranker(store=store, clock=clock) as ranker:
        after, notes = ranker._runtime.series()
        assert [note.text for note in notes] == ["service started"]
        again = ranker._runtime.last_hour()
        assert again[0] == hour[0]
        for one, other in zip(again[1], hour[1], strict=True):
            np.testing.assert_array_equal(one, other)
        assert again[1].visits.sum() == 50
        for name in ("start_ms", "width_ms", "is_widened", "cumulative_regret"):
            assert getattr(after, name) == getattr(before, name)
        for name in ("visits", "clicks", "other_item", "other_order"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert after.visits.sum(axis=1).tolist() == [10, 10, 10, 10, 10]
        play(ranker, 10, seed=2)
        clock.now += 120
        assert ranker._runtime.series()[0].visits.sum(axis=1).tolist() == [10, 10, 10, 10, 10, 10, 0]


def test_two_replicas_tell_the_same() -> None:
    store, clock = MemoryStore(), Clock()
    settings = {"store": store, "clock": clock, "sync_seconds": 0.01}
    with a_ranker(**settings) as one, a_ranker(**settings, random_bytes=seeded(2)) as two:
        for _ in range(4):
            play(one, 10, seed=1)
            play(two, 5, seed=2)
            clock.now += 60
        wait_until(lambda: one._runtime.version == two._runtime.version == 60)
        first, second = one._runtime.series()[0], two._runtime.series()[0]
    assert first.start_ms == second.start_ms
    assert first.visits.tolist() == second.visits.tolist()
    assert first.clicks.tolist() == second.clicks.tolist()
    assert first.visits.sum(axis=1).tolist() == [15, 15, 15, 15]


def test_changes_of_the_definition_are_noted_and_the_truth_follows() -> None:
    clock = Clock()
    problem = Problem(
        [0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.5, 0.1, 0, 0], [0.2, 0.3, 0.8, 0, 0]],
        user_types=TYPES, items=ITEMS,
    )  # fmt: skip
    engine = Engine(MemoryStore(), clock=clock, truths={"home": problem})
    try:
        live = engine.create_surface(a_surface())
        assert live.monitor.problem_of(live.surface).optimal_values == pytest.approx([0.78, 0.6])
        engine.update_surface("home", lambda surface: surface.with_items(["late"]))
        engine.update_surface("home", lambda surface: surface.with_retired(["a", "late"]))
        truth = live.monitor.problem_of(live.surface)
        assert truth.optimal_values == pytest.approx([0.7 * 0.5 + 0.3 * 0.1, 0.6 * 0.8 + 0.4 * 0.3])
        assert truth.random_values == pytest.approx([0.6 / 4, 1.1 / 4])
        assert truth.item_means[:, 5].tolist() == [0, 0]  # nobody clicks what the world does not have
        notes = [note.text for note in live.series()[1]]
        assert notes == ["late added", "a and late retired"]
    finally:
        engine.close()
