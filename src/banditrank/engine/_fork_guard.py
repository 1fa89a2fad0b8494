"""Disabling of engines in forked processes, which have none of their threads."""

import os
from typing import Protocol
from weakref import WeakSet

FORKED = "must be used in the process that created it, not in a fork of it: create another there"


class _Guarded(Protocol):
    def disable(self) -> None:
        """Refuse to work in this process."""


_guarded: WeakSet[_Guarded] = WeakSet()


def guard_against_forks(engine: _Guarded) -> None:
    """Disable the engine's copy in each process that is forked from this one."""
    _guarded.add(engine)


def _disable_all() -> None:
    for engine in list(_guarded):
        engine.disable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_disable_all)
