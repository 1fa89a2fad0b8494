"""A ranker in a forked process refuses to work, instead of waiting for threads that do not exist."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from helpers.forks import in_a_fork
from helpers.live import a_ranker, a_surface, play, seeded

from banditrank import AsyncRanker
from banditrank.errors import InvalidInputError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")


def refusal(call: Callable[[], object]) -> str:
    """Return the error of a call."""
    try:
        return f"no error: {call()}"
    except InvalidInputError as error:
        return str(error)


def test_a_forked_ranker_refuses_rankings_and_feedback() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        rule = "must be used in the process that created it, not in a fork of it: create another there"
        assert in_a_fork(lambda: refusal(lambda: ranker.rank("new"))) == f"surface {rule}, got 'home'"
        error = in_a_fork(lambda: refusal(lambda: ranker.feedback(shown.id)))
        assert error.startswith(f"engine {rule}, got 'process ")
        assert in_a_fork(lambda: refusal(ranker.close)) == "no error: None"
        assert ranker.feedback(shown.id) == "counted"


def test_a_forked_process_can_create_rankers() -> None:
    def play_there() -> str:
        with a_ranker(random_bytes=seeded(2)) as another:
            play(another, 2, seed=1)
            return in_a_fork(lambda: refusal(lambda: another.rank("new"))) + f" {another.counts().rounds}"

    with a_ranker() as ranker:
        play(ranker, 2, seed=1)
        result = in_a_fork(play_there)
    assert result.startswith("surface must be used in the process")
    assert result.endswith(" 2")


@pytest.mark.parametrize("refresh_seconds", [0.05, 0.0], ids=["in the event loop", "in a thread"])
def test_a_forked_async_ranker_refuses_rankings_and_feedback(refresh_seconds: float) -> None:
    """Its threads, which have run before, are not in the fork either."""
    ranker = AsyncRanker(a_surface(refresh_seconds=refresh_seconds))

    def refused(call: Callable[[], Coroutine[Any, Any, object]]) -> str:
        return in_a_fork(lambda: refusal(lambda: asyncio.run(call())))

    with asyncio.Runner() as runner:
        runner.run(ranker.open())
        shown = runner.run(ranker.rank("new"))
        rule = "must be used in the process that created it, not in a fork of it: create another there"
        assert refused(lambda: ranker.rank("new")) == f"surface {rule}, got 'home'"
        assert refused(lambda: ranker.feedback(shown.id)).startswith(f"engine {rule}, got 'process ")
        assert refused(ranker.close) == "no error: None"
        assert runner.run(ranker.feedback(shown.id)) == "counted"
        runner.run(ranker.close())
