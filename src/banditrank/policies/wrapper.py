"""A policy that leaves ranking and learning to another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.base import CompiledPolicy, Kernel
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.counts.counts import Counts


@dataclass(frozen=True)
class PolicyWrapper(CompiledPolicy):
    """What it does is what the inner policy does.

    Parameters
    ----------
    inner
        The policy.
    """

    policy: CompiledPolicy

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the inner policy's formulas."""
        return self.policy.kernel(n_items=n_items, n_positions=n_positions)

    def init_state(self, counts: Counts, scratch: Any) -> Any:
        """Return the inner policy's state."""
        return self.policy.init_state(counts, scratch)

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:
        """Return the inner policy's state after items came or went."""
        return self.policy.update_items(state, counts, previous)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner policy's."""
        return self.policy.parameters(rounds)

    def new_scratch(self) -> Any:
        """Return the inner policy's."""
        return self.policy.new_scratch()

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> Any:
        """Return the inner policy's."""
        return self.policy.random_scratch(counts, rng)

    def initial_rounds(self, state: Any) -> int | None:
        """Return how long the inner policy's initial phase took, None if it is still going on."""
        return self.policy.initial_rounds(state)

    def sampled_problem(self, state: Any) -> SampledProblem | None:
        """Return the world that the inner policy drew last."""
        return self.policy.sampled_problem(state)
