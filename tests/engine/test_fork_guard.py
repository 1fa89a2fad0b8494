"""A ranker that was copied by a fork says so, instead of waiting for threads that are not there."""

import os
import warnings
from collections.abc import Callable

import pytest
from live import a_ranker, play, seeded

from banditrank.errors import InvalidInputError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")


def in_a_fork(do: Callable[[], str]) -> str:
    """Return what a forked process makes of something."""
    theirs, ours = os.pipe()
    with warnings.catch_warnings(
        action="ignore", category=DeprecationWarning
    ):  # there are threads: the point
        child = os.fork()
    if child == 0:
        try:
            os.write(ours, do().encode())
        finally:
            os._exit(0)
    os.close(ours)
    with os.fdopen(theirs) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


def refusal(do: Callable[[], object]) -> str:
    try:
        return f"done: {do()}"
    except InvalidInputError as error:
        return str(error)


def test_a_copy_refuses_to_rank_and_to_count() -> None:
    with a_ranker() as ranker:
        shown = ranker.rank("new")
        rule = "must be used in the process that made it, not in a fork of it: make another there"
        assert in_a_fork(lambda: refusal(lambda: ranker.rank("new"))) == f"surface {rule}, got 'home'"
        said = in_a_fork(lambda: refusal(lambda: ranker.feedback(shown.id)))
        assert said.startswith(f"engine {rule}, got 'process ")
        assert in_a_fork(lambda: refusal(ranker.close)) == "done: None"
        assert ranker.feedback(shown.id) == "counted"


def test_a_forked_process_has_rankers_of_its_own() -> None:
    def play_there() -> str:
        with a_ranker(random_bytes=seeded(2)) as another:
            play(another, 2, seed=1)
            return in_a_fork(lambda: refusal(lambda: another.rank("new"))) + f" {another.counts().rounds}"

    with a_ranker() as ranker:
        play(ranker, 2, seed=1)
        said = in_a_fork(play_there)
    assert said.startswith("surface must be used in the process")
    assert said.endswith(" 2")
