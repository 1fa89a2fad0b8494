"""Notes on exceptions that policies in plain Python raise: which policy, and where."""

import sys
import traceback
from pathlib import Path

from banditrank.errors import describe_error
from banditrank.policies._base import Policy

_PREFIX = "policy '"


def note_failure(policy: Policy, error: Exception) -> None:
    """Add a note to an exception that a policy raised: its import path, the file and the line.

    Notes are kept when the exception is sent to another process, and the traceback is not.
    """
    kind = type(policy)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    name, location = (
        f"{kind.__module__}:{kind.__qualname__}",
        f"{Path(frame.filename).name}, line {frame.lineno}",
    )
    error.add_note(f"{_PREFIX}{name}' raised {describe_error(error)} ({location})")


def failure_note(error: BaseException) -> str | None:
    """Return the note of an exception that a policy raised; None for any other exception.

    Examples
    --------
    >>> from banditrank.policies._uniform import UniformRandom
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     note_failure(UniformRandom(), error)
    ...     print(failure_note(error).partition(" (")[0])
    policy 'banditrank.policies._uniform:UniformRandom' raised ZeroDivisionError: division by zero
    >>> failure_note(KeyError("name"))
    """
    notes = getattr(error, "__notes__", [])
    return next((note for note in notes if note.startswith(_PREFIX)), None)
