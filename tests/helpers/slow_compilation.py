"""Compilation that takes as long as a test wants."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numba
import pytest

from banditrank.counts._counts import Counts
from banditrank.engine._experiment import Arm
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.engine._surface import Surface

TIMEOUT_SECONDS = 300.0


def compile_formula() -> None:
    """Compile a formula that is in no cache, as if it were one of the package."""

    def formula(x: int) -> int:
        return x + 1

    formula.__module__ = "banditrank.policies"
    assert numba.njit(formula)(1) == 2


class SlowCompilation:
    """Snapshots of some surfaces compile a formula and then wait."""

    def __init__(self, *surfaces: str) -> None:
        self._surfaces = surfaces
        self.started = threading.Event()
        self._finished = threading.Event()

    def run(self, surface: Surface) -> None:
        """Compile and wait if the surface is one of those."""
        if surface.name in self._surfaces and not self._finished.is_set():
            compile_formula()
            self.started.set()
            assert self._finished.wait(TIMEOUT_SECONDS)

    def wait_for_start(self) -> None:
        """Wait until a surface compiles."""
        assert self.started.wait(TIMEOUT_SECONDS)

    def finish(self) -> None:
        """End the compilation."""
        self._finished.set()


@contextmanager
def slow_compilation(monkeypatch: pytest.MonkeyPatch, *surfaces: str) -> Iterator[SlowCompilation]:
    """Make snapshots of the named surfaces compile until `SlowCompilation.finish` or the end of the block."""
    slow, make = SlowCompilation(*surfaces), PolicySnapshot.__init__

    def make_slowly(
        snapshot: PolicySnapshot,
        surface: Surface,
        revision: int,
        version: int,
        counts: Counts,
        *,
        arm: Arm | None = None,
    ) -> None:
        slow.run(surface)
        make(snapshot, surface, revision, version, counts, arm=arm)

    monkeypatch.setattr(PolicySnapshot, "__init__", make_slowly)
    try:
        yield slow
    finally:
        slow.finish()
