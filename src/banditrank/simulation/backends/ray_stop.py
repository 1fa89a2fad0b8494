"""How replications on a Ray cluster are told to stop: by a key in its store, which they look for as they go.

``ray.cancel`` will not do. Where it meets a task that is just finishing, Ray 2.60 ends the program that
called it, and all that was finished is lost.
"""

import time
import uuid
from contextlib import suppress
from importlib import import_module
from typing import Any

from banditrank.simulation.progress import Advance

POLL_SECONDS = 0.5  # seconds


class StoppedError(Exception):
    """A replication was told to stop before its end."""


class StopSignal:
    """A sign that all machines of a cluster can see."""

    def __init__(self) -> None:
        self.key = f"banditrank-stop-{uuid.uuid4().hex}"

    def put_up(self) -> None:
        """Let what looks for the sign stop."""
        _store()._internal_kv_put(self.key, b"stop")  # noqa: SLF001 - Ray's own libraries use it so

    def take_down(self) -> None:
        """Leave the store as it was."""
        _store()._internal_kv_del(self.key)  # noqa: SLF001 - as above


def look_for(key: str) -> Advance:
    """Look for a sign now; return what looks for it now and then, and raises an error when it is there."""
    next_look = 0.0

    def look(_: int) -> None:
        nonlocal next_look
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + POLL_SECONDS
            there = False
            with suppress(Exception):  # no answer is no sign
                there = _store()._internal_kv_exists(key)  # noqa: SLF001 - as above
            if there:
                raise StoppedError

    look(0)
    return look


def _store() -> Any:
    return import_module("ray.experimental.internal_kv")
