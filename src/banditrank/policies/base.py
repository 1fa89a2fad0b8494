"""What a policy is: counts in, ranking out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, specialise
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.rankings import Ranking
from banditrank.policies.assumptions import NO_ASSUMPTIONS, Assumptions
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.counts.counts import Counts, check_counts
from banditrank.counts.forgetting import Forgetting
from banditrank.utilities.utility import UTILITARIAN, Utility

Treatment: TypeAlias = Literal["personalized", "equal"]

SAMPLE_VALUES = (0.1, 0.35, 0.6, 1.0)


class Policy(ABC):
    """Chooses a ranking from counts.

    A policy is a value: it holds its parameters and nothing that it learned. Subclasses with a compiled side
    derive from `CompiledPolicy`; a policy written in plain Python derives from this class, defines `rank`,
    and runs in the same simulator, slower.
    """

    name: ClassVar[str] = "custom"
    assumptions: ClassVar[Assumptions] = NO_ASSUMPTIONS
    own_statistics: ClassVar[str | None] = None  # what it learns from beside the counts, if anything
    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN
    memory: Forgetting | None = None  # what of the past it learns from; all of it if there is none

    @abstractmethod
    def rank(
        self,
        counts: Counts,
        user_type: int,
        *,
        rng: np.random.Generator,
        scratch: Any = None,
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
            What `new_scratch` made, kept from call to call. Without it, what it would hold is drawn at
            random.
        """

    def new_scratch(self) -> Any:
        """Return what the policy remembers beside the counts; None for most.

        Losing it costs a warm-up and nothing else.
        """
        return None

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values, for results."""
        return {
            "policy": self.name,
            "treatment": self.treatment,
            "utility": str(self.utility) if self.treatment == "equal" else None,
            "coefficient": None,
        }

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that tell this policy from others of the same description.

        Results that were saved are gone on with only if these are the same. Functions are told apart by
        what they give. A policy of your own should add its parameters.
        """
        if self.treatment == "personalized":
            return self.describe()
        return {**self.describe(), "utility_sample": self.utility.of(SAMPLE_VALUES).tolist()}


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
    if description.get("estimator") not in (None, "paper"):
        parts.append(description["estimator"])
    if description.get("smoothing") is not None:
        parts.append("smoothed")
    if description.get("order") is not None:
        parts.append("ordered")
    if description.get("memory") is not None:
        parts.append(description["memory"].replace(":", ""))
    return "-".join(parts)


class Kernel(NamedTuple):
    """The compiled side of a policy: two formulas on a state of the policy's own making.

    ``rank(state, user_type, t, parameters, rng, ranking)``
        Write the ranking of round t, given that round's row of the policy's `parameters`.
    ``observe(state, user_type, t, ranking, rewards)``
        Take in what the ranking earned.
    """

    rank: Callable[..., None]
    observe: Callable[..., None]


def compile_repeated_rank(kernel: Kernel) -> Callable[..., None]:
    """Return a kernel's ``rank`` as a function that writes several rankings, shape (any number, K)."""
    return specialise(_repeated, kernel.rank)


def _repeated(rank: Callable[..., None]) -> Callable[..., None]:
    def call(
        state: Any,
        user_type: int,
        t: int,
        parameters: NDArray[np.float64],
        rng: np.random.Generator,
        rankings: NDArray[np.uintp],
    ) -> None:
        for place in range(rankings.shape[0]):
            rank(state, user_type, t, parameters, rng, rankings[place])

    return call


class CompiledPolicy(Policy):
    """A policy whose formulas the simulator compiles into its loop."""

    distinguishes_user_types: bool = True

    @abstractmethod
    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the formulas to use for a size of problem."""

    @abstractmethod
    def init_state(self, counts: Counts, scratch: Any) -> Any:
        """Return the state that the formulas work on, given what is known already."""

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:  # noqa: ARG002 - as below
        """Return the state for counts that items were added to, or taken from, during a run.

        Parameters
        ----------
        state
            What the formulas worked on until now.
        counts
            Those of the items that can be shown from now on.
        kept
            For each of these its number until now, −1 for a new one, shape (M,).
        """
        return self.init_state(counts, self.new_scratch())

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what changes with the round, shape (rounds, any number); nothing for most policies."""
        return np.zeros((len(rounds), 0))

    def initial_rounds(self, state: Any) -> int | None:  # noqa: ARG002 - most policies have no initial phase
        """Return how many rounds the initial phase of this state took, None if it is still going on."""
        return 0

    def sampled_problem(self, state: Any) -> SampledProblem | None:  # noqa: ARG002 - most policies draw none
        """Return the world that the formula ``rank`` drew last on a state, None if it draws none."""
        return None

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> Any:  # noqa: ARG002 - as above
        """Return a scratch for a caller that keeps none."""
        return self.new_scratch()

    def rank(
        self,
        counts: Counts,
        user_type: int,
        *,
        rng: np.random.Generator,
        scratch: Any = None,
    ) -> Ranking:
        """Return the ranking to show next: the formulas of the simulator, on a state made from the counts."""
        check_counts(counts)
        if not isinstance(rng, np.random.Generator):
            raise InvalidInputError("rng", "must be a numpy.random.Generator", rng)
        counts.check_user_type(user_type)
        if scratch is None:
            scratch = self.random_scratch(counts, rng)
        if not self.distinguishes_user_types:
            counts, user_type = counts.pooled(), 0
        now = counts.rounds + 1
        ranking = np.zeros(counts.n_positions, dtype=np.uintp)
        self.kernel(n_items=counts.n_items, n_positions=counts.n_positions).rank(
            self.init_state(counts, scratch),
            int(user_type),
            now,
            self.parameters(np.array([now]))[0],
            rng,
            ranking,
        )
        return ranking.astype(np.intp)


@inlined
def observe_nothing(
    state: Any,
    user_type: int,
    t: int,
    ranking: NDArray[np.uintp],
    rewards: NDArray[np.float64],
) -> None:
    """Learn nothing: the ``observe`` of policies that do not."""


def check_treatment(treatment: str) -> Treatment:
    """Return the treatment, or raise an error if it is none."""
    if treatment not in get_args(Treatment):
        raise UnknownNameError("treatment", treatment, get_args(Treatment))
    return cast("Treatment", treatment)
