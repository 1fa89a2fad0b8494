"""Conformance suite for policies: every policy must pass all `POLICY_CHECKS`.

>>> from banditrank import UCBRank
>>> for check in POLICY_CHECKS:
...     check(lambda problem: UCBRank(coefficient=0.25))
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.model._rankings import as_ranking
from banditrank.policies._base import CompiledPolicy, Policy, is_equal
from banditrank.testing._leaks import assert_no_leaks

MakePolicy: TypeAlias = Callable[[Problem], Policy]
"""Makes the policy under test for a problem, whose parameters only some policies need."""

SIZES = ((3, 8, 3), (2, 4, 4), (1, 5, 2), (2, 3, 1), (1, 1, 1))  # N, M, K: also K = M, one type, one position
N_DRAWS = 800
TOLERANCE = 0.15  # two frequencies of N_DRAWS draws differ by more with probability below 4e-8 (Hoeffding)


def problems() -> list[Problem]:
    """Return small problems of different shapes."""
    return [
        make_problem("random", n_user_types=n, n_items=m, n_positions=k, seed=seed)
        for seed, (n, m, k) in enumerate(SIZES)
    ]


def dense_counts(problem: Problem, seed: int = 0) -> Counts:
    """Return counts with rewards in every cell, near their expectation and without ties."""
    rng = np.random.default_rng(seed)
    shape = (problem.n_user_types, problem.n_items, problem.n_positions)
    displays = rng.integers(200, 400, shape).astype(np.float64)
    expected = problem.item_means[:, :, None] * problem.position_preferences[:, None, :]
    rewards = displays * np.minimum(expected * rng.uniform(0.9, 1.1, shape), 1.0)
    arrivals = displays[:, :, 0].sum(axis=1)
    return Counts.from_arrays(displays, rewards, arrivals)


def sparse_counts(problem: Problem, rounds: int = 7) -> Counts:
    """Return counts of a few rounds, most cells empty."""
    rng = np.random.default_rng(rounds)
    counts = Counts.empty_for(problem)
    for _ in range(rounds):
        ranking = rng.permutation(problem.n_items)[: problem.n_positions]
        rewards = np.zeros(problem.n_positions)
        rewards[rng.integers(problem.n_positions)] = rng.integers(2)
        counts.record(int(rng.integers(problem.n_user_types)), ranking, rewards=rewards)
    return counts


def check_rankings_are_valid(make_policy: MakePolicy) -> None:
    """Check that rankings hold K different items, whatever the counts."""
    for problem in problems():
        policy = make_policy(problem)
        for counts in (Counts.empty_for(problem), sparse_counts(problem), dense_counts(problem)):
            for user_type in range(problem.n_user_types):
                for seed in range(10):
                    ranking = policy.rank(counts, user_type, rng=np.random.default_rng(seed))
                    as_ranking(ranking, n_items=problem.n_items, n_positions=problem.n_positions)


def check_rankings_are_reproducible(make_policy: MakePolicy) -> None:
    """Check that the same counts, generator and scratch give the same ranking."""
    for problem in problems():
        policy = make_policy(problem)
        for counts in (sparse_counts(problem), dense_counts(problem)):
            for has_scratch in (False, True):
                shown = [
                    policy.rank(
                        counts,
                        0,
                        rng=np.random.default_rng(5),
                        scratch=policy.new_scratch() if has_scratch else None,
                    )
                    for _ in range(2)
                ]
                assert np.array_equal(shown[0], shown[1]), (
                    f"different rankings from the same counts and seed: {shown}"
                )


def check_counts_are_unchanged(make_policy: MakePolicy) -> None:
    """Check that ranking does not change the counts."""
    for problem in problems():
        for counts in (sparse_counts(problem), dense_counts(problem)):
            before = counts.copy()
            make_policy(problem).rank(counts, 0, rng=np.random.default_rng(1))
            assert counts == before, "ranking changed the counts"


def check_equal_treatment_ignores_user_types(make_policy: MakePolicy) -> None:
    """Check that under equal treatment all types get the same ranking."""
    for problem in problems():
        policy = make_policy(problem)
        if not is_equal(policy.treatment):
            continue
        for counts in (sparse_counts(problem), dense_counts(problem)):
            shown = {
                tuple(policy.rank(counts, user_type, rng=np.random.default_rng(3)))
                for user_type in range(problem.n_user_types)
            }
            assert len(shown) == 1, f"equal treatment showed {shown}"


def check_relabelling_items(make_policy: MakePolicy) -> None:
    """Check that relabelling the items relabels the rankings."""
    problem = problems()[0]
    order = np.array([5, 2, 7, 0, 1, 6, 3, 4])  # new item j is old item order[j]
    relabelled = Problem(problem.arrival_rates, problem.position_preferences, problem.item_means[:, order])
    counts = dense_counts(problem)
    moved = Counts.from_arrays(
        counts.displays[:, order], counts.rewards[:, order], counts.arrivals, counts.rounds
    )
    for user_type in _types_to_test(make_policy(problem), problem):
        before = _frequencies(make_policy(problem), counts, user_type)
        after = _frequencies(make_policy(relabelled), moved, user_type)
        _assert_alike(before[order], after, "items")


def check_relabelling_user_types(make_policy: MakePolicy) -> None:
    """Check that relabelling the user types does not change their rankings."""
    problem = problems()[0]
    order = np.array([2, 0, 1])
    relabelled = Problem(
        problem.arrival_rates[order], problem.position_preferences[order], problem.item_means[order]
    )
    counts = dense_counts(problem)
    moved = Counts.from_arrays(
        counts.displays[order], counts.rewards[order], counts.arrivals[order], counts.rounds
    )
    for user_type in _types_to_test(make_policy(problem), problem):
        before = _frequencies(make_policy(problem), counts, int(order[user_type]))
        after = _frequencies(make_policy(relabelled), moved, user_type)
        _assert_alike(before, after, "user types")


def check_candidates_and_pins(make_policy: MakePolicy) -> None:
    """Check that rankings hold candidates and pins only, or that the policy rejects candidates."""
    for problem in problems():
        policy, rng = make_policy(problem), np.random.default_rng(2)
        m, k = problem.n_items, problem.n_positions
        if not policy.has_candidates:
            _assert_rejected(policy, Counts.empty_for(problem))
            continue
        for counts in (Counts.empty_for(problem), sparse_counts(problem), dense_counts(problem)):
            for _ in range(5):
                order = rng.permutation(m)
                pinned = {int(rng.integers(k)): int(order[0])}
                candidates = order[int(rng.integers(2)) :]  # with the pinned item, or without
                ranking = policy.rank(counts, 0, rng=rng, candidates=candidates, pinned=pinned)
                as_ranking(ranking, n_items=m, n_positions=k)
                shown = {**dict(enumerate(ranking.tolist())), **pinned}
                assert shown == dict(enumerate(ranking.tolist())), f"{ranking} misses the pins {pinned}"
                assert set(ranking.tolist()) <= {*candidates.tolist(), *pinned.values()}


def _assert_rejected(policy: Policy, counts: Counts) -> None:
    """Assert that a compiled policy without `Policy.has_candidates` rejects candidates."""
    if isinstance(policy, CompiledPolicy):
        try:
            policy.rank(counts, 0, rng=np.random.default_rng(0), candidates=np.arange(counts.n_items))
        except InvalidInputError:
            return
        raise AssertionError("candidates were accepted, unlike has_candidates says")


def check_invalid_user_types_are_rejected(make_policy: MakePolicy) -> None:
    """Check that a user type that does not exist raises InvalidInputError."""
    problem = problems()[0]
    for user_type in (-1, problem.n_user_types):
        try:
            make_policy(problem).rank(dense_counts(problem), user_type, rng=np.random.default_rng(0))
        except InvalidInputError:
            continue
        raise AssertionError(f"user type {user_type} was accepted")


def check_no_leaks(make_policy: MakePolicy) -> None:
    """Check that ranking and the compiled functions leak neither references to their arguments nor memory."""
    problem, rng = problems()[0], np.random.default_rng(7)
    policy, counts = make_policy(problem), dense_counts(problem)
    arrays = (counts.displays, counts.rewards, counts.arrivals)
    assert_no_leaks(lambda: policy.rank(counts, 0, rng=rng), rng, arrays, calls=40)
    if not isinstance(policy, CompiledPolicy):
        return
    seen = counts if policy.distinguishes_user_types else counts.pooled()
    kernel, now = policy.bind(seen, rng, scratch=policy.new_scratch()), seen.rounds + 1
    parameters, rewards = policy.parameters(np.array([now]))[0], np.zeros(seen.n_positions)

    def play() -> None:
        kernel.rank(0, now, parameters)
        kernel.observe(0, now, kernel.ranking, rewards)

    assert_no_leaks(play, kernel.state, kernel.handle, parameters, rng, kernel.ranking, rewards, calls=40)
    if policy.has_candidates:
        candidates, pinned = np.arange(1, seen.n_items), np.full(seen.n_positions, -1)
        pinned[1] = 0

        def choose() -> None:
            kernel.choose(0, now, parameters, candidates, pinned)

        choose()
        assert_no_leaks(choose, kernel.state, parameters, rng, candidates, pinned, calls=40)


def _types_to_test(policy: Policy, problem: Problem) -> range:
    """Return the user types to test; under equal treatment one is enough."""
    return range(1 if is_equal(policy.treatment) else problem.n_user_types)


def _frequencies(policy: Policy, counts: Counts, user_type: int) -> NDArray[np.float64]:
    """Return the frequency of each item at each position, shape (M, K)."""
    rankings = _draws(policy, counts, user_type, np.random.default_rng(11))
    shown = np.zeros((counts.n_items, counts.n_positions))
    np.add.at(shown, (rankings, np.arange(counts.n_positions)), 1)
    return shown / N_DRAWS


def _draws(policy: Policy, counts: Counts, user_type: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """Return independent rankings, shape (`N_DRAWS`, K).

    The draws of a policy without scratch share one state, which is faster.
    """
    if not isinstance(policy, CompiledPolicy) or policy.new_scratch() is not None:
        return np.array([policy.rank(counts, user_type, rng=rng) for _ in range(N_DRAWS)])
    if not policy.distinguishes_user_types:
        counts, user_type = counts.pooled(), 0
    kernel, now = policy.bind(counts, rng), counts.rounds + 1
    rankings = np.zeros((N_DRAWS, counts.n_positions), dtype=np.uintp)
    kernel.rank_repeatedly(user_type, now, policy.parameters(np.array([now]))[0], rankings)
    return rankings


def _assert_alike(before: NDArray[np.float64], after: NDArray[np.float64], what: str) -> None:
    difference = float(np.abs(before - after).max())
    assert difference <= TOLERANCE, f"relabelling {what} changed the frequency of an item by {difference}"


POLICY_CHECKS: tuple[Callable[[MakePolicy], None], ...] = (
    check_rankings_are_valid,
    check_rankings_are_reproducible,
    check_counts_are_unchanged,
    check_equal_treatment_ignores_user_types,
    check_candidates_and_pins,
    check_relabelling_items,
    check_relabelling_user_types,
    check_invalid_user_types_are_rejected,
    check_no_leaks,
)
"""Checks that every policy must pass; each takes a function that returns the policy for a problem."""
