"""A policy that leaves ranking and learning to another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.counts.counts import Counts
from banditrank.policies.base import CompiledPolicy, Kernel
from banditrank.policies.drawn_world import DrawnWorld


@dataclass(frozen=True)
class Wrapping(CompiledPolicy):
    """What it does is what the inner policy does.

    Parameters
    ----------
    inner
        The policy.
    """

    inner: CompiledPolicy

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the inner policy's formulas."""
        return self.inner.kernel(n_items=n_items, n_positions=n_positions)

    def start(self, counts: Counts, scratch: Any) -> Any:
        """Return the inner policy's state."""
        return self.inner.start(counts, scratch)

    def resume(self, state: Any, counts: Counts, kept: NDArray[np.intp]) -> Any:
        """Return the inner policy's state after items came or went."""
        return self.inner.resume(state, counts, kept)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner policy's."""
        return self.inner.parameters(rounds)

    def new_scratch(self) -> Any:
        """Return the inner policy's."""
        return self.inner.new_scratch()

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> Any:
        """Return the inner policy's."""
        return self.inner.random_scratch(counts, rng)

    def initial_rounds(self, state: Any) -> int | None:
        """Return how long the inner policy's initial phase took, None if it is still going on."""
        return self.inner.initial_rounds(state)

    def drawn_world(self, state: Any) -> DrawnWorld | None:
        """Return the world that the inner policy drew last."""
        return self.inner.drawn_world(state)
