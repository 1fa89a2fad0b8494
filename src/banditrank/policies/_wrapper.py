"""Base class of policies that wrap another policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._kernel import Kernel
from banditrank.policies._sampled_problem import SampledProblem


@dataclass(frozen=True)
class PolicyWrapper(CompiledPolicy):
    """A policy that ranks and learns as the wrapped policy does.

    Parameters
    ----------
    policy
        The wrapped policy.
    """

    policy: CompiledPolicy

    @property
    def supports_delay(self) -> bool:  # type: ignore[override]
        """Whether the wrapped policy can observe rewards late."""
        return self.policy.supports_delay

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the wrapped policy's kernel."""
        return self.policy.kernel(n_items=n_items, n_positions=n_positions)

    def init_state(self, counts: Counts, scratch: Any) -> Any:
        """Return the wrapped policy's state."""
        return self.policy.init_state(counts, scratch)

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> Any:
        """Return the workspace of the wrapped policy's choice."""
        return self.policy.init_choice(n_user_types=n_user_types, n_items=n_items, n_positions=n_positions)

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:
        """Return the wrapped policy's state for other items."""
        return self.policy.update_items(state, counts, previous)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the wrapped policy's parameters of each round."""
        return self.policy.parameters(rounds)

    def new_scratch(self) -> Any:
        """Return the wrapped policy's scratch."""
        return self.policy.new_scratch()

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> Any:
        """Return the wrapped policy's random scratch."""
        return self.policy.random_scratch(counts, rng)

    def initial_rounds(self, state: Any) -> int | None:
        """Return the length of the wrapped policy's initial phase, None if it has not ended."""
        return self.policy.initial_rounds(state)

    def sampled_problem(self, state: Any) -> SampledProblem | None:
        """Return the wrapped policy's last posterior sample."""
        return self.policy.sampled_problem(state)
