"""Rounds of a replication in chunks, between which progress is reported and interrupts are handled."""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

CHUNK_SECONDS = 0.1  # target duration of a chunk: the delay of Ctrl-C and of progress
_FIRST_CHUNK_ROUNDS = 256
_MAX_CHUNK_ROUNDS = 1 << 16  # bounds memory, whatever the horizon


class RoundChunks:
    """Splits rounds into chunks of about 0.1 seconds each: chunks grow or shrink with the time they take.

    Parameters
    ----------
    max_rounds
        Maximum number of rounds of a chunk.

    Examples
    --------
    >>> [rounds.tolist() for rounds in RoundChunks(max_rounds=3).split(1, 8)]
    [[1, 2, 3], [4, 5, 6], [7, 8]]
    """

    def __init__(self, max_rounds: int = _MAX_CHUNK_ROUNDS) -> None:
        self._max_rounds = max_rounds
        self._n_rounds = min(_FIRST_CHUNK_ROUNDS, max_rounds)

    def split(self, first: int, last: int) -> Iterator[NDArray[np.int64]]:
        """Yield the rounds from the first to the last in chunks; the caller runs each before the next."""
        while first <= last:
            rounds = np.arange(first, min(first + self._n_rounds, last + 1))
            start = time.perf_counter()
            yield rounds
            first += len(rounds)
            self._adapt(len(rounds), time.perf_counter() - start)

    def _adapt(self, n_rounds: int, seconds: float) -> None:
        if seconds < CHUNK_SECONDS / 4 and n_rounds == self._n_rounds:
            self._n_rounds = min(self._n_rounds * 4, self._max_rounds)
        elif seconds > CHUNK_SECONDS * 4:
            self._n_rounds = max(self._n_rounds // 4, 1)
