"""A wrapper that keeps a policy close to a baseline, or above it, at all times.

Wu, Shariff, Lattimore and Szepesvári (2016), "Conservative bandits", and Kazerouni, Ghavamzadeh,
Abbasi-Yadkori and Van Roy (2017), "Conservative contextual linear bandits": a new ranking is shown only if
the clicks so far pay for it, even if it earns no click.

Let E be the rounds that showed a ranking of the policy's own, v the expected rewards of rankings and b those
of the baseline's. The constraint Σ v ≥ (1 − α) Σ b at round t is

    Σ_E v + Σ_u c_u b_u ≥ 0,  c_u = α (rounds that showed u) − (1 − α) (rounds of E that withheld u),

where u are the *units* of the baseline: its ranking for a user type if it is fixed, and its cells if it is a
policy whose rankings change. Sums of rewards in [0, 1] have bounds that hold at all times at once: for each
λ > 0, exp(λ S − (e^λ − 1) V) and exp(−λ S + (1 − e^−λ) V) are supermartingales, where V is the sum of the
conditional means of the rewards that sum to S. Hence with probability 1 − e^−L each, V ≥ (λ S − L) / (e^λ −
1) and V ≤ (λ S + L) / (1 − e^−λ) at all times. λ is a power of 2 near its best value, and a union bound
covers all powers, units and sides.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._fixed_ranking import FixedRanking, Rankings
from banditrank.policies._kernel import Kernel
from banditrank.policies._nested_kernel import (
    NestedKernel,
    check_nestable,
    nest_state,
    observe_nested,
    rank_nested,
)
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.policies._wrapper import PolicyWrapper

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

CONSERVATIVE_PREFIX = "conservative-"
"""Prefix of the name of a policy that is kept close to a baseline."""

_MIN_EXPONENT, _MAX_EXPONENT = -2, 15  # of λ = 2^−exponent
_NOTHING, _OWN, _AGREED, _BASELINE = 0, 1, 2, 3  # whose ranking was shown: the first entry of the note


@compiled
def lower_bound(total: float, level: float) -> float:
    """Return a bound below the sum of means of rewards in [0, 1] that sum to ``total``.

    It holds at all times with probability 1 − 18 e^−level.

    Examples
    --------
    >>> round(lower_bound(100.0, 5.0), 2), lower_bound(2.0, 5.0)
    (70.42, 0.0)
    """
    weight = _weight(total, level)
    return max(0.0, (weight * total - level) / math.expm1(weight))


@compiled
def upper_bound(total: float, level: float) -> float:
    """Return a bound above the sum of means of rewards in [0, 1] that sum to ``total``, as `lower_bound`.

    Examples
    --------
    >>> round(upper_bound(100.0, 5.0), 2), round(upper_bound(0.0, 5.0), 2)
    (135.62, 5.09)
    """
    weight = _weight(total, level)
    return (weight * total + level) / -math.expm1(-weight)


@inlined
def _weight(total: float, level: float) -> float:
    """Return the λ near its best value, √(2 level / total)."""
    exponent = round(0.5 * math.log2(max(total, 1e-9) / (2.0 * level)))
    return math.ldexp(1.0, -min(max(exponent, _MIN_EXPONENT), _MAX_EXPONENT))


class Units(NamedTuple):
    """Units of the baseline: one for each user type, or one for each cell."""

    observed: Floats  # (N, K, M) or (N, 1, 1): rounds with an observation of its reward
    rewards: Floats  # sums of these, from 0 to 1 each
    shown: Floats  # observed rounds that showed it as the baseline's
    withheld: Floats  # rounds that showed another ranking instead of it
    terms: Floats  # lower bounds of c_u b_u
    max_reward: float  # of a unit in a round


class ConservativeState(NamedTuple):
    """Counts, the kernels of the policy and of the baseline, and what they have earned."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    policy: NestedKernel
    baseline: NestedKernel
    units: Units
    totals: Floats  # (2,) rewards of own rankings, from 0 to 1 each; sum of the terms
    alpha: float
    level: float  # L
    unit_reward: float  # reward that counts as 1
    is_fixed: bool  # whether units are rankings
    has_pooled_baseline: bool  # whether the baseline sees one user type
    policy_learns_always: bool  # also from rankings that it has not made
    baseline_learns_always: bool
    note: NDArray[np.int64]  # (1 + L + L,) whose ranking was shown; notes of the policy and of the baseline


@inlined
def _term(units: Units, i: int, k: int, j: int, alpha: float, level: float, withheld: float) -> float:
    """Return the lower bound of c_u b_u with a number of rounds in which the unit was withheld."""
    coefficient: float = alpha * units.shown[i, k, j] - (1.0 - alpha) * withheld
    observed, total = units.observed[i, k, j], units.rewards[i, k, j]
    if coefficient >= 0.0:
        return coefficient * lower_bound(total, level) / float(max(observed, 1.0))
    mean = units.max_reward
    if observed > 0.0:
        mean = min(mean, upper_bound(total, level) / observed)
    return coefficient * mean


@inlined
def _update_term(state: ConservativeState, i: int, k: int, j: int) -> None:
    units = state.units
    term = _term(units, i, k, j, state.alpha, state.level, units.withheld[i, k, j])
    state.totals[1] += term - units.terms[i, k, j]
    units.terms[i, k, j] = term


@inlined
def _unit_item(state: ConservativeState, k: int) -> int:
    """Return the last index of a unit of the baseline's last ranking; the index before it is k."""
    return 0 if state.is_fixed else int(np.int64(state.baseline.ranking[k]))  # signed, like 0


@inlined
def _cost(state: ConservativeState, i: int) -> float:
    """Return by how much the terms fall if the baseline's ranking is withheld once more."""
    units, cost = state.units, 0.0
    for k in range(units.terms.shape[1]):
        j = _unit_item(state, k)
        term = _term(units, i, k, j, state.alpha, state.level, units.withheld[i, k, j] + 1.0)
        cost += units.terms[i, k, j] - term
    return cost


@inlined
def _rank(
    state: ConservativeState,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    policy, baseline, note = state.policy, state.baseline, state.note
    seen_type = 0 if state.has_pooled_baseline else user_type
    rank_nested(baseline, seen_type, t, parameters, policy.parameters.size, rng)
    for k in range(ranking.size):
        ranking[k] = baseline.ranking[k]
    note[0] = _BASELINE
    budget = lower_bound(state.totals[0], state.level) + state.totals[1]
    if budget >= _cost(state, user_type):
        rank_nested(policy, user_type, t, parameters, 0, rng)
        note[0] = _AGREED
        for k in range(ranking.size):
            if policy.ranking[k] != ranking[k]:
                note[0] = _OWN
            ranking[k] = policy.ranking[k]
    if note[0] == _OWN:
        for k in range(state.units.terms.shape[1]):
            j = _unit_item(state, k)
            state.units.withheld[user_type, k, j] += 1.0
            _update_term(state, user_type, k, j)
    for index in range(policy.note.size):
        note[1 + index] = policy.note[index]
    for index in range(baseline.note.size):
        note[1 + policy.note.size + index] = baseline.note[index]


@inlined
def _observe(state: ConservativeState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
    policy, baseline, note, whose = state.policy, state.baseline, state.note, state.note[0]
    for index in range(policy.note.size):
        policy.note[index] = note[1 + index]
    for index in range(baseline.note.size):
        baseline.note[index] = note[1 + policy.note.size + index]
    _count_units(state, user_type, ranking, rewards, whose)
    if whose == _OWN:
        for k in range(ranking.size):
            state.totals[0] += rewards[k] / state.unit_reward
    if _OWN <= whose <= _AGREED or state.policy_learns_always:
        observe_nested(policy, user_type, t, ranking, rewards)
    else:
        record_round(state, user_type, ranking, rewards)
    if whose >= _AGREED or state.baseline_learns_always:
        observe_nested(baseline, 0 if state.has_pooled_baseline else user_type, t, ranking, rewards)
    note[0] = _NOTHING


@inlined
def _count_units(state: ConservativeState, i: int, ranking: Indices, rewards: Floats, whose: int) -> None:
    """Count a round for the units of the baseline: a fixed ranking if it was shown, or all shown cells."""
    units, is_baseline = state.units, whose >= _AGREED
    if not state.is_fixed:
        for k in range(ranking.size):
            units.observed[i, k, ranking[k]] += 1.0
            units.rewards[i, k, ranking[k]] += rewards[k] / state.unit_reward
            units.shown[i, k, ranking[k]] += is_baseline
            _update_term(state, i, k, ranking[k])
    elif is_baseline:
        units.observed[i, 0, 0] += 1.0
        units.shown[i, 0, 0] += 1.0
        for k in range(ranking.size):
            units.rewards[i, 0, 0] += rewards[k] / state.unit_reward
        _update_term(state, i, 0, 0)


@dataclass(frozen=True, init=False)
class Conservative(PolicyWrapper):
    """A policy that earns at least 1 − α of what a baseline would have earned, at all times.

    With probability at least 1 − δ, in every round t the expected rewards of all rankings shown so far are at
    least (1 − α) times those of the baseline's rankings for the same users. A ranking of the policy is shown
    if confidence bounds of the clicks so far prove the constraint even if it earns no click; the baseline's
    ranking is shown otherwise.

    The guarantee holds for rewards, whatever the utility and the treatment, with any policy, and for rewards
    that are observed late. The click probabilities must not change. If the baseline is a policy, it counts by
    the rankings that it would show, and click probabilities of cells must not depend on the rest of the
    ranking (single looks, or the position-based model). A fixed baseline allows all click models.

    Parameters
    ----------
    policy
        The policy. One with statistics of its own learns only from rankings that it made.
    baseline
        A ranking, shape (K,), or one for each user type, shape (N, K); or a policy of the same treatment. By
        default the items in the order of their numbers.
    alpha
        α, the share of the baseline's rewards that may be lost: from 0, which always shows the baseline, to
        1, which never does.
    failure_probability
        δ.
    max_reward
        Maximum reward of a click. Clicks of a ranking must be independent, or one at most; otherwise
        (dependent clicks) pass the maximum of all positions together.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid, a policy is not one of banditrank's or has a memory, or treatments
        differ.

    References
    ----------
    Y. Wu, R. Shariff, T. Lattimore and C. Szepesvári (2016), Conservative bandits. International Conference
    on Machine Learning 33. A. Kazerouni, M. Ghavamzadeh, Y. Abbasi-Yadkori and B. Van Roy (2017),
    Conservative contextual linear bandits. Advances in Neural Information Processing Systems 30.

    Examples
    --------
    >>> from banditrank import ThompsonRank, kdd2012
    >>> policy = Conservative(ThompsonRank(), baseline=[3, 2], alpha=0.05)
    >>> policy.name
    'conservative-thompson-rank'
    >>> learner = policy.start(kdd2012(), rng=1)
    >>> learner.rank(0)  # nothing is known yet
    array([3, 2])
    """

    own_statistics: ClassVar[str | None] = "what its own rankings and those of the baseline have earned"

    baseline: CompiledPolicy
    alpha: float
    failure_probability: float
    max_reward: float

    def __init__(
        self,
        policy: CompiledPolicy,
        baseline: CompiledPolicy | Rankings | None = None,
        *,
        alpha: float = 0.1,
        failure_probability: float = 0.05,
        max_reward: float = 1.0,
    ) -> None:
        check_nestable("policy", policy)
        if not isinstance(baseline, CompiledPolicy):
            baseline = FixedRanking(baseline, treatment=policy.treatment, utility=policy.utility)
        check_nestable("baseline", baseline)
        for field, each in (("policy", policy), ("baseline", baseline)):
            if each.memory is not None:
                raise InvalidInputError(field, "must have no memory", str(each.memory))
        if baseline.treatment != policy.treatment:
            rule = f"must have {policy.treatment} treatment, as the policy"
            raise InvalidInputError("baseline", rule, baseline.treatment)
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "baseline", baseline)
        object.__setattr__(self, "alpha", check_number("alpha", alpha, 0.0, 1.0))
        share = check_number("failure_probability", failure_probability, 1e-12, 1.0)
        object.__setattr__(self, "failure_probability", share)
        object.__setattr__(self, "max_reward", check_number("max_reward", max_reward, 1e-12, 1e9))
        object.__setattr__(self, "name", f"{CONSERVATIVE_PREFIX}{policy.name}")
        object.__setattr__(self, "assumptions", self._assumptions())
        for name in ("treatment", "utility", "distinguishes_user_types"):
            object.__setattr__(self, name, getattr(policy, name))

    def _assumptions(self) -> Assumptions:
        assumed = replace(self.policy.assumptions, is_stationary=True)
        if self._is_fixed:
            return assumed
        allowed = RANK_ONE_REWARDS.click_models
        models = tuple(name for name in assumed.click_models or allowed if name in allowed)
        return replace(assumed, click_models=models or allowed)

    @property
    def _is_fixed(self) -> bool:
        return isinstance(self.baseline, FixedRanking)

    @property
    def _pools_baseline(self) -> bool:
        """Whether the baseline alone takes all users for one type."""
        return self.distinguishes_user_types and not self.baseline.distinguishes_user_types

    @property
    def supports_delay(self) -> bool:  # type: ignore[override]
        """Whether both policies can observe rewards late."""
        return self.policy.supports_delay and self.baseline.supports_delay

    def describe(self) -> dict[str, Any]:
        """Return the policy's parameters, and those of the constraint."""
        return {**self.policy.describe(), **self._constraint(), "baseline": self.baseline.describe()}

    def fingerprint(self) -> dict[str, Any]:
        """Return the policy's fingerprint, and that of the constraint."""
        return {**self.policy.fingerprint(), **self._constraint(), "baseline": self.baseline.fingerprint()}

    def _constraint(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "alpha": self.alpha,
            "failure_probability": self.failure_probability,
            "max_reward": self.max_reward,
        }

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the compiled functions."""
        return Kernel(_rank, _observe)

    def new_scratch(self) -> tuple[Any, Any] | None:
        """Return the scratch of the policy and that of the baseline; None if neither has any."""
        both = self.policy.new_scratch(), self.baseline.new_scratch()
        return None if both == (None, None) else both

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> tuple[Any, Any] | None:
        """Return random scratch of the policy and of the baseline."""
        both = self.policy.random_scratch(counts, rng), self.baseline.random_scratch(counts, rng)
        return None if both == (None, None) else both

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return the parameters of the policy, and those of the baseline, of each round."""
        return np.hstack([self.policy.parameters(rounds), self.baseline.parameters(rounds)])

    def init_state(self, counts: Counts, scratch: Any) -> ConservativeState:
        """Return a state without budget: counts do not include who chose a ranking."""
        own, other = (None, None) if scratch is None else scratch
        policy_state = self.policy.init_state(counts, own)
        theirs = self._baseline_counts(counts)
        return self._state(counts, policy_state, theirs, self.baseline.init_state(theirs, other))

    def update_items(
        self, state: ConservativeState, counts: Counts, previous: NDArray[np.intp]
    ) -> ConservativeState:
        """Return the state for other items; the constraint starts anew, and holds from here on."""
        policy_state = self.policy.update_items(state.policy.state, counts, previous)
        theirs = self._baseline_counts(counts)
        baseline_state = self.baseline.update_items(state.baseline.state, theirs, previous)
        return self._state(counts, policy_state, theirs, baseline_state)

    def _baseline_counts(self, counts: Counts) -> Counts:
        """Return counts that the baseline adds to: the policy adds the same rounds to the others."""
        return counts.pooled() if self._pools_baseline else counts.copy()

    def _state(
        self, counts: Counts, policy_state: Any, baseline_counts: Counts, baseline_state: Any
    ) -> ConservativeState:
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        shape = (n, 1, 1) if self._is_fixed else (n, k, m)
        observed, rewards, shown, withheld, terms = (np.zeros(shape) for _ in range(5))
        units = Units(observed, rewards, shown, withheld, terms, float(k if self._is_fixed else 1))
        n_bounds = (2 * math.prod(shape) + 1) * (_MAX_EXPONENT - _MIN_EXPONENT + 1)
        policy = nest_state(self.policy, counts, policy_state)
        baseline = nest_state(self.baseline, baseline_counts, baseline_state)
        return ConservativeState(
            *arrays_of(counts),
            policy,
            baseline,
            units,
            np.zeros(2),
            float(self.alpha),
            math.log(n_bounds / self.failure_probability),
            float(self.max_reward),
            self._is_fixed,
            self._pools_baseline,
            self.policy.own_statistics is None,
            self.baseline.own_statistics is None,
            np.zeros(1 + policy.note.size + baseline.note.size, dtype=np.int64),
        )

    def initial_rounds(self, state: ConservativeState) -> int | None:
        """Return the length of the policy's initial phase, None if it has not ended."""
        return self.policy.initial_rounds(state.policy.state)

    def sampled_problem(self, state: ConservativeState) -> SampledProblem | None:
        """Return the policy's last posterior sample."""
        return self.policy.sampled_problem(state.policy.state)
