"""What a policy is: counts in, ranking out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import UnknownNameError
from banditrank.model.rankings import Ranking
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import UTILITARIAN, Utility

Treatment: TypeAlias = Literal["personalized", "equal"]


@dataclass(slots=True)
class Scratch:
    """What a policy remembers beside the counts. Losing it costs a warm-up and nothing else.

    Attributes
    ----------
    explorations
        The paper's I_explore, the place of the round-robin: 1 to M.
    """

    explorations: int = 1


class Policy(ABC):
    """Chooses a ranking from counts.

    A policy is a value: it holds its parameters and nothing that it learned. Subclasses with a compiled side
    derive from `CompiledPolicy`; a policy written in plain Python derives from this class, defines `rank`,
    and runs in the same simulator, slower.
    """

    name: ClassVar[str] = "custom"
    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN

    @abstractmethod
    def rank(
        self,
        counts: Counts,
        user_type: int,
        *,
        rng: np.random.Generator,
        scratch: Scratch | None = None,
    ) -> Ranking:
        """Return the ranking to show next.

        Parameters
        ----------
        counts
            All rounds so far.
        user_type
            Who has arrived.
        rng
            The policy's randomness; the same counts and generator state give the same ranking.
        scratch
            What to remember from call to call. Without it, what it would hold is drawn at random.
        """

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values, for results."""
        return {
            "policy": self.name,
            "treatment": self.treatment,
            "utility": str(self.utility) if self.treatment == "equal" else None,
            "coefficient": None,
        }


def policy_label(description: dict[str, Any]) -> str:
    """Return a short name for tables, legends and directories, such as ``ucb-rank-equal-nash-0.5``.

    Parameters
    ----------
    description
        What `Policy.describe` returns.
    """
    parts = [description["policy"], description["treatment"]]
    if description["utility"] is not None:
        parts.append(description["utility"].replace(":", ""))
    if description["coefficient"] is not None:
        parts.append(f"{description['coefficient']:g}")
    elif description.get("schedule"):
        parts.append(description["schedule"])
    if description.get("solver") not in (None, "auto"):
        parts.append(description["solver"])
    return "-".join(parts)


class Kernel(NamedTuple):
    """The compiled side of a policy: two formulas on a state of the policy's own making.

    ``rank(state, user_type, t, exploration, bonus, rng, ranking)``
        Write the ranking of round t.
    ``observe(state, user_type, t, ranking, rewards)``
        Take in what the ranking earned.
    """

    rank: Callable[..., None]
    observe: Callable[..., None]


class CompiledPolicy(Policy):
    """A policy whose formulas the simulator compiles into its loop."""

    distinguishes_user_types: bool = True

    @abstractmethod
    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the formulas to use for a size of problem."""

    @abstractmethod
    def start(self, counts: Counts, scratch: Scratch) -> Any:
        """Return the state that the formulas work on, given what is known already."""

    def exploration_probabilities(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the chance of exploring in each of these rounds; none unless a subclass says so."""
        return np.zeros(len(rounds))

    def bonus_weights(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of the confidence bonus in each of these rounds; none by default."""
        return np.zeros(len(rounds))

    def initial_rounds(self, state: Any) -> int | None:  # noqa: ARG002 - most policies have no initial phase
        """Return how many rounds the initial phase took, None if it has not ended."""
        return 0

    def explorations(self, state: Any) -> int:  # noqa: ARG002 - most policies do not explore in turn
        """Return the place of the round-robin, to be kept in a `Scratch`."""
        return 1

    def rank(
        self,
        counts: Counts,
        user_type: int,
        *,
        rng: np.random.Generator,
        scratch: Scratch | None = None,
    ) -> Ranking:
        """Return the ranking to show next: the formulas of the simulator, on a state made from the counts."""
        counts.check_user_type(user_type)
        if scratch is None:
            scratch = Scratch(int(rng.integers(1, counts.n_items + 1)))
        if not self.distinguishes_user_types:
            counts, user_type = counts.pooled(), 0
        state = self.start(counts, scratch)
        now = counts.rounds + 1
        rounds = np.array([now])
        ranking = np.zeros(counts.n_positions, dtype=np.uintp)
        self.kernel(n_items=counts.n_items, n_positions=counts.n_positions).rank(
            state,
            int(user_type),
            now,
            float(self.exploration_probabilities(rounds)[0]),
            float(self.bonus_weights(rounds)[0]),
            rng,
            ranking,
        )
        scratch.explorations = self.explorations(state)
        return ranking.astype(np.intp)


def check_treatment(treatment: str) -> Treatment:
    """Return the treatment, or raise an error if it is none."""
    if treatment not in get_args(Treatment):
        raise UnknownNameError("treatment", treatment, get_args(Treatment))
    return cast("Treatment", treatment)
