"""A ranker in a forked process refuses to work, instead of waiting for threads that do not exist."""

import os
import warnings
from collections.abc import Callable

import pytest
from helpers.live import a_ranker, play, seeded

from banditrank.errors import InvalidInputError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")


def in_a_fork(call: Callable[[], str]) -> str:
    """Return the result of a call in a forked process."""
    theirs, ours = os.pipe()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # the process has threads
        child = os.fork()
    if child == 0:
        try:
            os.write(ours, call().encode())
        finally:
            os._exit(0)
    os.close(ours)
    with os.fdopen(theirs) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return result


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
