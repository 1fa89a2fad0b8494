"""Base classes of policies: counts in, ranking out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts, check_counts
from banditrank.counts._forgetting import Forgetting
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._problem import Problem
from banditrank.model._rankings import Ranking
from banditrank.policies._assumptions import NO_ASSUMPTIONS, Assumptions
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import (
    Candidates,
    Pins,
    Restriction,
    as_candidates,
    as_pins,
    new_restriction,
    restriction_unsupported,
)
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.utilities._utility import UTILITARIAN, Utility, as_utility

if TYPE_CHECKING:
    from banditrank.policies._learner import Learner

Treatment: TypeAlias = Literal["personalized", "equal", "equal-lottery"]

SAMPLE_VALUES = (0.1, 0.35, 0.6, 1.0)  # at which fingerprints evaluate a utility


class Policy(ABC):
    """Chooses a ranking from counts.

    A policy is a value: it holds its parameters, and nothing that it has learned. `start` returns a
    `Learner`, which holds counts and state. Compiled policies derive from `CompiledPolicy`; a policy in plain
    Python derives from this class, defines `rank`, and runs in the same simulator, slower.
    """

    name: ClassVar[str] = "custom"
    assumptions: ClassVar[Assumptions] = NO_ASSUMPTIONS
    own_statistics: ClassVar[str | None] = None  # what it learns from in addition to counts
    has_candidates: bool = False  # whether it can rank some of the items, and pin items to positions
    supports_delay: bool = True  # whether it can observe a ranking's rewards after it made other rankings
    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN
    guarantees: tuple[Guarantee, ...] = ()  # that its lotteries keep
    memory: Forgetting | None = None  # the rounds that it learns from; all if None

    @abstractmethod
    def rank(
        self,
        counts: Counts,
        user_type: int,
        *,
        rng: np.random.Generator,
        scratch: Any = None,
        candidates: Candidates | None = None,
        pinned: Pins | None = None,
        allow_short: bool = False,
    ) -> Ranking:
        """Return the ranking to show next, shape (K,).

        A policy without `has_candidates` need not define the last three parameters: they are passed only if
        they differ from their defaults.

        Parameters
        ----------
        counts
            Counts of all rounds so far.
        user_type
            User type that arrived.
        rng
            Generator of the policy; the same counts and generator state give the same ranking.
        scratch
            Return value of `new_scratch`, kept from call to call; a random scratch by default.
        candidates
            Items that may be shown; all items by default.
        pinned
            Items that must be shown, by position from 0. They need not be candidates.
        allow_short
            Whether to return a shorter ranking, of the first positions, if there are fewer candidates than
            positions that are not pinned.
        """

    def start(
        self,
        problem: Problem | None = None,
        *,
        n_user_types: int | None = None,
        n_items: int | None = None,
        n_positions: int | None = None,
        counts: Counts | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> "Learner":
        """Start learning one round at a time.

        The size is that of the problem, of the counts, or the given numbers.

        Parameters
        ----------
        problem
            Problem whose size to use. The policy learns nothing else from it.
        n_user_types, n_items, n_positions
            Numbers of user types (1 by default), items and positions, instead of a problem.
        counts
            Counts to start from. They are copied. Policies with statistics of their own (`own_statistics`)
            start without these.
        rng
            Generator of the policy, or its seed; seeded by the operating system by default.

        Raises
        ------
        InvalidInputError
            If the size is missing, ambiguous or not valid, or ``rng`` is not valid.
        UnsolvableError
            If the policy's solver cannot solve problems of this size.

        Examples
        --------
        >>> from banditrank import ThompsonRank
        >>> learner = ThompsonRank().start(n_items=5, n_positions=2, rng=1)
        >>> ranking = learner.rank(0)
        >>> learner.update(0, ranking, position=1)
        >>> learner.rounds
        1
        """
        from banditrank.policies._learner import start_learner  # noqa: PLC0415 - which imports this module

        return start_learner(
            self,
            problem,
            n_user_types=n_user_types,
            n_items=n_items,
            n_positions=n_positions,
            counts=counts,
            rng=rng,
        )

    @property
    def forget_every(self) -> int | None:
        """Rounds between two forgetting steps; None if the policy forgets nothing.

        A policy that learns from counts alone forgets one time bucket at a time; one with statistics of its
        own restarts.
        """
        if self.memory is None:
            return None
        return self.memory.bucket_rounds if self.own_statistics is None else self.memory.rounds

    def new_scratch(self) -> Any:
        """Return state that the policy keeps in addition to counts; None for most policies.

        Losing it costs a warm-up and nothing else.
        """
        return None

    @property
    def has_lotteries(self) -> bool:
        """Whether rankings are drawn from lotteries, and regret is against the best ones."""
        return draws_lotteries(self.treatment, self.guarantees)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        description = {
            "policy": self.name,
            "treatment": self.treatment,
            "utility": str(self.utility) if is_equal(self.treatment) else None,
            "coefficient": None,
        }
        if self.guarantees:
            description["guarantees"] = ", ".join(map(str, self.guarantees))
        return description

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that distinguish this policy from others of the same description.

        A saved simulation is resumed only if they are equal. Functions are represented by samples of their
        values. The attributes and the source of a policy of your own are compared as well.
        """
        if not is_equal(self.treatment):
            return self.describe()
        return {**self.describe(), "utility_sample": self.utility.evaluate(SAMPLE_VALUES).tolist()}


def policy_label(description: dict[str, Any]) -> str:
    """Return a short name for tables, legends and directories, such as ``ucb-rank-equal-nash-0.5``.

    Parameters
    ----------
    description
        Return value of `Policy.describe`.
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
    if description.get("guarantees") is not None:
        parts.append("guaranteed")
    if description.get("memory") is not None:
        parts.append(description["memory"].replace(":", ""))
    return "-".join(parts)


class CompiledPolicy(Policy):
    """A policy whose functions are compiled into the simulation loop."""

    distinguishes_user_types: bool = True

    @abstractmethod
    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the compiled functions for a size of problem."""

    @abstractmethod
    def init_state(self, counts: Counts, scratch: Any) -> Any:
        """Return the state of the compiled functions for counts.

        The state shares the arrays of the counts, and ``observe`` of the kernel adds to them.
        """

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:  # noqa: ARG002 - as below
        """Return the state after items were added or removed during a run.

        Parameters
        ----------
        state
            State until now.
        counts
            Counts of the items that can be shown from now on.
        previous
            Previous index of each of these items, −1 for a new one, shape (M,).
        """
        return self.init_state(counts, self.new_scratch())

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the parameters of each round, shape (rounds, any number); none for most policies."""
        return np.zeros((len(rounds), 0))

    def bind(self, counts: Counts, rng: np.random.Generator, *, scratch: Any = None) -> BoundKernel:
        """Return the compiled functions with the state for counts and a generator."""
        return BoundKernel(
            self.kernel(n_items=counts.n_items, n_positions=counts.n_positions),
            self.init_state(counts, scratch),
            rng,
            ranking=np.zeros(counts.n_positions, dtype=np.uintp),
            n_parameters=self.n_parameters,
            init_choice=partial(self._new_choice, counts.n_user_types, counts.n_items, counts.n_positions),
        )

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> Any:  # noqa: ARG002 - as below
        """Return the workspace of the kernel's ``choose`` for a size of problem; None for most policies."""
        return None

    def _new_choice(self, n_user_types: int, n_items: int, n_positions: int) -> tuple[Restriction, Any]:
        sizes = {"n_user_types": n_user_types, "n_items": n_items, "n_positions": n_positions}
        return new_restriction(n_items, n_positions), self.init_choice(**sizes)

    @cached_property
    def n_parameters(self) -> int:
        """Number of parameters of a round."""
        return int(self.parameters(np.ones(1, dtype=np.int64)).shape[1])

    def initial_rounds(self, state: Any) -> int | None:  # noqa: ARG002 - most policies have no initial phase
        """Return the length of the initial phase in rounds, None if it has not ended."""
        return 0

    def sampled_problem(self, state: Any) -> SampledProblem | None:  # noqa: ARG002 - most policies sample none
        """Return the posterior sample of the last ranking; None if the policy samples none."""
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
        candidates: Candidates | None = None,
        pinned: Pins | None = None,
        allow_short: bool = False,
    ) -> Ranking:
        """Return the ranking to show next, shape (K,), from a state made from the counts.

        Raises
        ------
        InvalidInputError
            If an argument is not valid, there are too few candidates, the policy cannot restrict its
            rankings, or the utility's function fails.
        """
        check_counts(counts)
        if not isinstance(rng, np.random.Generator):
            raise InvalidInputError("rng", "must be a numpy.random.Generator", rng)
        counts.check_user_type(user_type)
        is_restricted = candidates is not None or pinned is not None
        if is_restricted and not self.has_candidates:
            raise restriction_unsupported(self, candidates=candidates, pinned=pinned)
        if scratch is None:
            scratch = self.random_scratch(counts, rng)
        if not self.distinguishes_user_types:
            counts, user_type = counts.pooled(), 0
        now = counts.rounds + 1
        bound = self.bind(counts, rng, scratch=scratch)
        parameters = self.parameters(np.array([now]))[0]
        if not is_restricted:
            ranking = bound.rank(int(user_type), now, parameters)
        else:
            items = as_candidates(candidates, n_items=counts.n_items)
            pins = None if pinned is None else as_pins(pinned, n_positions=counts.n_positions)
            ranking = bound.choose(int(user_type), now, parameters, items, pins, allow_short=allow_short)
        self.utility.raise_callback_error()
        return ranking.astype(np.intp)


@inlined
def observe_nothing(
    state: Any,
    user_type: int,
    t: int,
    ranking: NDArray[np.uintp],
    rewards: NDArray[np.float64],
) -> None:
    """Learn nothing: ``observe`` of policies that do not learn."""


def is_equal(treatment: Treatment) -> bool:
    """Return whether all user types are treated alike: by one ranking, or by one lottery over rankings.

    Examples
    --------
    >>> [is_equal(treatment) for treatment in get_args(Treatment)]
    [False, True, True]
    """
    return treatment != "personalized"


def draws_lotteries(treatment: Treatment, guarantees: Sequence[Guarantee]) -> bool:
    """Return whether rankings are drawn: from one lottery for all, or with guarantees from one of each type.

    Examples
    --------
    >>> [draws_lotteries(treatment, ()) for treatment in get_args(Treatment)]
    [False, False, True]
    """
    return treatment == "equal-lottery" or len(guarantees) > 0


def check_utility(utility: Utility | str, treatment: str) -> Utility:
    """Return the utility of a policy: personalized treatment, of each user type for itself, has none.

    Raises
    ------
    UnknownNameError
        If there is no utility of this name.
    InvalidInputError
        If it is not the default, under personalized treatment.

    Examples
    --------
    >>> check_utility("nash", "equal").name
    'nash'
    >>> check_utility("nash", "personalized")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: utility must be left out under personalized treatment, which has
        none, got 'nash'
    """
    chosen = as_utility(utility)
    if treatment == "personalized" and chosen != UTILITARIAN:
        rule = "must be left out under personalized treatment, which has none"
        raise InvalidInputError("utility", rule, str(chosen))
    return chosen


def check_treatment(treatment: str) -> Treatment:
    """Return the treatment.

    Raises
    ------
    UnknownNameError
        If it is not a `Treatment`.
    """
    if treatment not in get_args(Treatment):
        raise UnknownNameError("treatment", treatment, get_args(Treatment))
    return cast("Treatment", treatment)
