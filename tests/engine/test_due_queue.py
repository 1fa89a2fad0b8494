"""The queue of keys by due time."""

import threading
import time
from math import inf

import pytest
from helpers.live import Clock

from banditrank.engine._due_queue import DueQueue


def test_a_key_is_taken_at_its_due_time_which_marking_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr("banditrank.engine._due_queue.time.monotonic", clock)
    due_in = {"a": 10.0, "b": 5.0, "c": inf}
    evaluated: list[str] = []
    queue = DueQueue[str](lambda key: evaluated.append(key) or due_in[key])
    for key in due_in:
        queue.mark(key)
    assert queue.take_due() == []
    clock.now += 5.0
    due_in["b"] = 0.0
    evaluated.clear()
    assert (queue.take_due(), evaluated) == (["b"], ["b"])
    due_in["a"] = 2.0  # earlier than it was
    queue.mark("a")
    assert queue.take_due() == []
    clock.now += 2.0
    due_in["a"] = inf
    evaluated.clear()
    assert (queue.take_due(), evaluated) == ([], ["a"])
    clock.now += 100.0
    assert (queue.take_due(), evaluated) == ([], ["a"]), "its first time is outdated"


def test_a_wait_ends_when_a_key_is_marked_or_the_queue_is_interrupted() -> None:
    queue = DueQueue[str](lambda _: inf)
    assert not queue.wait(0.0)
    marker = threading.Timer(0.01, queue.mark, ["a"])
    marker.start()
    assert queue.wait(60.0)
    marker.join()
    assert queue.take_due() == []
    queue.interrupt()
    started = time.monotonic()
    assert not queue.wait(1000.0)
    assert time.monotonic() - started < 500.0


def test_waking_ends_one_wait() -> None:
    queue = DueQueue[str](lambda _: inf)
    queue.wake()
    started = time.monotonic()
    assert not queue.wait(1000.0), "no key is marked"
    assert not queue.wait(0.01), "the next wait is not affected"
    waker = threading.Timer(0.01, queue.wake)
    waker.start()
    assert not queue.wait(1000.0)
    waker.join()
    assert time.monotonic() - started < 500.0


def test_a_wait_without_timeout_ends_at_the_first_due_time() -> None:
    due_in = {"a": 0.01, "b": 1000.0}
    queue = DueQueue[str](due_in.__getitem__)
    for key in due_in:
        queue.mark(key)
    assert queue.take_due() == []
    started = time.monotonic()
    assert not queue.wait()
    assert time.monotonic() - started < 500.0
    due_in["a"] = 0.0
    time.sleep(0.01)
    assert queue.take_due() == ["a"]
