"""Telling engines that they are copies: a forked process has none of the threads that work for them."""

import os
from typing import Protocol
from weakref import WeakSet

FORKED = "must be used in the process that made it, not in a fork of it: make another there"


class _Copied(Protocol):
    def disown(self) -> None:
        """Refuse to work in this process."""


_told: WeakSet[_Copied] = WeakSet()


def guard_against_forks(whom: _Copied) -> None:
    """Have an engine's copies disowned, in each process that is forked from this one."""
    _told.add(whom)


def _tell() -> None:
    for copied in list(_told):
        copied.disown()


if hasattr(os, "register_at_fork"):  # where processes fork
    os.register_at_fork(after_in_child=_tell)
