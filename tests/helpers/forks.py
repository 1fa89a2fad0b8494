"""Forked processes."""

import os
import warnings
from collections.abc import Callable


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
