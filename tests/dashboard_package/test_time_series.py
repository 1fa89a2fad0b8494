"""Time series: folding equals counting directly, also after saving and restoring, and with wrong clocks."""

import json
import random
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank.dashboard._time_buckets import MAX_BUCKETS, ReferenceRankings
from banditrank.dashboard._time_series import TimeSeries
from banditrank.storage._cells import encode_cells
from banditrank.storage._records import REWARD_UNITS, Event, Impression, Outcome, pack_ranking

WIDTH = 1000  # milliseconds
START = 10**12


def rewards_of(event: Event) -> float:
    """Return the sum of the rewards of an event."""
    return sum(click.reward for click in event.outcome.clicks) / REWARD_UNITS


def shown_event(user_type: int, items: tuple[int, ...], clicked: int | None = None) -> Event:
    outcome = Outcome() if clicked is None else Outcome.of(clicked, REWARD_UNITS)
    return Event(Impression(1, b"", pack_ranking(user_type, items)), outcome)


def random_changes(rng: random.Random, number: int) -> list[tuple[int, list[Event]]]:
    """Return times, and the events that were committed then."""
    at, changes = START, []
    for _ in range(number):
        at += rng.randrange(3000)
        events = [
            shown_event(rng.randrange(3), tuple(rng.sample(range(5), 2)), rng.choice([None, 0, 1]))
            for _ in range(rng.randint(1, 4))
        ]
        changes.append((at, events))
    return changes


def counted(changes: list[tuple[int, list[Event]]], start_ms: int, width_ms: int, size: int) -> np.ndarray:
    """Return visits and clicks of each bucket and type, shape (2, B, 3), by counting one by one."""
    table = np.zeros((2, size, 3))
    for at, events in changes:
        bucket = (at - start_ms) // width_ms
        for event in events if bucket < size else ():
            table[0, bucket, event.impression.user_type] += 1
            table[1, bucket, event.impression.user_type] += (
                sum(one.reward for one in event.outcome.clicks) / REWARD_UNITS
            )
    return table


@given(st.integers(0, 2**32), st.sampled_from([1, 30, 700]), st.booleans())
def test_folding_equals_counting_at_any_width(seed: int, number: int, saves: bool) -> None:  # noqa: FBT001
    rng = random.Random(seed)  # noqa: S311
    changes = random_changes(rng, number)
    time_series = TimeSeries(WIDTH, n_user_types=1)  # others are added later
    for at, events in changes:
        time_series.add(at, encode_cells(events))
        if saves and rng.random() < 0.02:
            saved, time_series = time_series.to_bytes(), TimeSeries(7, n_user_types=2)
            time_series.restore(saved)
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


def test_displays_are_compared_with_the_best_rankings_of_their_time() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown_event(0, (4, 3))]))  # not compared
    time_series.set_reference(ReferenceRankings(np.array([[0, 1]]), 3))
    time_series.add(
        START + 1000, encode_cells([shown_event(0, (0, 1)), shown_event(0, (1, 0)), shown_event(0, (0, 2))])
    )
    time_series.set_reference(ReferenceRankings(np.array([[1, 0]]), 3))
    time_series.add(
        START + 2000, encode_cells([shown_event(0, (0, 1)), shown_event(0, (4, 0)), shown_event(1, (1, 0))])
    )
    closed = time_series.closed_buckets(START + 3000)
    # New user types and items count as other items; displays without a reference are not compared.
    np.testing.assert_array_equal(closed.other_item, [np.nan, 1 / 6, 3 / 6])
    np.testing.assert_array_equal(closed.other_order, [np.nan, 2 / 6, 2 / 6])


def test_a_change_of_unknown_time_is_ignored() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(0, encode_cells([shown_event(0, (0, 1))]))
    assert len(time_series.closed_buckets(START).visits) == 0


def test_an_idle_surface_has_empty_buckets_up_to_now_in_bounded_memory() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown_event(0, (0, 1))]))
    assert time_series.closed_buckets(START + 5500).visits.tolist() == [[1], [0], [0], [0], [0]]
    late = time_series.closed_buckets(START + 10_000 * WIDTH)
    assert MAX_BUCKETS // 2 <= len(late.visits) <= MAX_BUCKETS
    assert late.visits.sum() == 1


YEAR = 365 * 86_400_000
ONE_VISIT = encode_cells([shown_event(0, (0, 1))])


def saved_and_restored(time_series: TimeSeries) -> TimeSeries:
    restored = TimeSeries(7, n_user_types=2)
    restored.restore(time_series.to_bytes())
    return restored


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("folds", [False, True])
def test_a_clock_that_was_ahead_does_not_widen_buckets(*, folds: bool, saves: bool) -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    times = [START, START + 3000, START + YEAR, START + YEAR + 500, START + 5000, START + 6000]
    for at in times:
        time_series.add(at, ONE_VISIT)
        if folds:
            time_series.closed_buckets(at + 2 * YEAR)  # the clock of a reader may be ahead as well
        if saves:
            time_series = saved_and_restored(time_series)
    closed = time_series.closed_buckets(START + 7000)
    assert (closed.start_ms, closed.width_ms, closed.is_widened) == (START, WIDTH, False)
    assert closed.visits.tolist() == [[1], [0], [0], [1], [0], [3], [1]], (
        "counted when the clock was right again"
    )


def test_changes_ahead_of_the_reader_are_not_returned_before_their_time() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, ONE_VISIT)
    time_series.add(START + YEAR, ONE_VISIT)
    assert time_series.closed_buckets(START + 2000).visits.tolist() == [[1], [0]]
    later = time_series.closed_buckets(START + YEAR + 10**9)
    assert later.visits.sum() == 2
    assert later.is_widened
    assert time_series.closed_buckets(START + 2000).width_ms == WIDTH


def test_later_changes_confirm_a_jump_of_the_clock() -> None:
    """At first, a year without visits cannot be distinguished from a clock that is ahead."""
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, ONE_VISIT)
    for second in range(200):
        time_series.add(START + YEAR + 1000 * second, ONE_VISIT)
    time_series.fold()
    time_series.add(START + 5000, ONE_VISIT)  # a clock that is behind is no longer trusted
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
def test_clocks_that_were_set_lose_no_visit(steps: list[tuple[int, int, bool]]) -> None:
    time_series, regrets = TimeSeries(WIDTH, n_user_types=1), []
    time_series.regret_of = lambda cells: regrets.append(1) or float(cells["displays"].sum())
    end = START
    for years, seconds, saves in steps:
        at = START + years * YEAR + seconds
        end = max(end, at)
        time_series.add(at, ONE_VISIT)
        if saves:
            time_series, restored = saved_and_restored(time_series), time_series
            time_series.regret_of = restored.regret_of
    closed = time_series.closed_buckets(end + YEAR)
    assert closed.visits.sum() == len(steps)
    assert len(closed.visits) <= MAX_BUCKETS
    if steps:
        assert closed.cumulative_regret is not None
        assert closed.cumulative_regret[-1] == 2 * len(steps)


def test_a_series_that_an_earlier_version_saved_can_be_read() -> None:
    saved = TimeSeries(WIDTH, n_user_types=1)
    saved.add(START, encode_cells([shown_event(0, (0, 1))]))
    raw = zlib.decompress(saved.to_bytes())
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
def test_the_last_hour_equals_counting_directly(seed: int, number: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    pace = rng.choice([1, 20, 600])
    changes = [(START + pace * (at - START), events) for at, events in random_changes(rng, number)]
    time_series = TimeSeries(WIDTH, n_user_types=1)
    for at, events in changes:
        time_series.add(at, encode_cells(events))
        if rng.random() < 0.02:
            time_series.fold()
    now = changes[-1][0] + rng.randrange(7_200_000)
    recent = [event for at, events in changes if now // 60_000 - at // 60_000 < 60 for event in events]
    totals = time_series.last_hour(now)
    assert totals.visits.sum() == len(recent)
    assert (
        totals.clicks.sum()
        == sum(one.reward for event in recent for one in event.outcome.clicks) / REWARD_UNITS
    )


def test_a_clock_that_was_ahead_does_not_hide_the_last_hour() -> None:
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START + 10**9, encode_cells([shown_event(0, (0, 1))]))
    time_series.fold()
    time_series.add(START, encode_cells([shown_event(0, (0, 1))]))
    assert time_series.last_hour(START + 1000).visits.tolist() == [1]


def test_a_series_of_an_unknown_format_is_ignored() -> None:
    text = json.dumps({"format": 99}).encode()
    time_series = TimeSeries(WIDTH, n_user_types=1)
    time_series.add(START, encode_cells([shown_event(0, (0, 1))]))
    time_series.restore(zlib.compress(struct.pack("<I", len(text)) + text))
    assert time_series.closed_buckets(START + 1000).visits.tolist() == [[1]]
