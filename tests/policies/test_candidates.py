"""Candidates and pins: rankings respect them, and are the best that they allow."""

import copy
import re
from collections.abc import Callable
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import (
    Counts,
    Forgetful,
    GreedyRank,
    InvalidInputError,
    Learner,
    Oracle,
    Policy,
    Smoothing,
    ThompsonRank,
    TypeBlindUCB,
    UCBRank,
    UniformRandom,
    Utility,
    make_policy,
    make_problem,
    solve,
)
from banditrank.engine._served_policies import SERVED_NAMES
from banditrank.model._click_models import CLICK_MODEL_NAMES
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._catalog import BASELINES, POLICY_NAMES
from banditrank.testing._policies import dense_counts, sparse_counts

N, M, K = 2, 7, 3
PROBLEM = make_problem("conflict", n_user_types=N, n_items=M, n_positions=K, seed=3)
IN_DEPTH = pytest.mark.campaign
ROOT = Utility.from_function(lambda u: float(np.sqrt(u + 0.1)), shape="concave", name="root")  # enumerated
SQUARES = Utility.from_function(lambda u: min(1.0, u * u), shape="non-concave", lipschitz=2.0, name="squares")


def equal(kind: Callable[..., Policy], utility: Utility | str, **options: Any) -> Callable[[], Policy]:
    """Return a maker of a policy of equal treatment, which searches however few rankings there are."""
    by_search = {"nash": "branch-and-bound", "alpha:2": "branch-and-bound", "maximin": "branch-and-bound"}
    by_search |= {"sigmoid:20:0.3": "spatial", "ramp:0.2:0.4": "spatial", "squares": "spatial"}
    solver = by_search.get(str(utility), "auto")
    return lambda: kind(treatment="equal", utility=utility, **{"solver": solver, **options})


PERSONALIZED: dict[str, Callable[[], Policy]] = {
    "thompson": ThompsonRank,
    "ucb": lambda: UCBRank(coefficient=0.5),
    "greedy": lambda: GreedyRank(coefficient=0.5),
    "greedy that explores": lambda: GreedyRank(schedule=lambda _: 1.0),
    "ucb smoothed": lambda: UCBRank(coefficient=0.5, smoothing=Smoothing()),
    "greedy by likelihood": lambda: GreedyRank(coefficient=0.5, estimator="likelihood"),
    "type-blind": TypeBlindUCB,
    "forgetful": lambda: Forgetful(UCBRank(coefficient=0.5), "window:1000"),
    "random": UniformRandom,
    "oracle": lambda: Oracle(PROBLEM),
    "oracle of a cascade": lambda: make_policy("oracle", PROBLEM, click_model="cascade"),
    "comb-ucb1": lambda: make_policy("comb-ucb1"),
    "pb-mhb": lambda: make_policy("pb-mhb"),
    "pmed": lambda: make_policy("pmed"),
}
EQUAL: dict[str, Callable[[], Policy]] = {
    "thompson utilitarian": equal(ThompsonRank, "utilitarian"),
    "thompson nash": equal(ThompsonRank, "nash"),
    "thompson maximin": equal(ThompsonRank, "maximin"),
    "thompson sigmoid": equal(ThompsonRank, "sigmoid:20:0.3"),
    "ucb smoothed utilitarian": equal(UCBRank, "utilitarian", smoothing=Smoothing()),
    "ucb smoothed nash": equal(UCBRank, "nash", smoothing=Smoothing()),
    "ucb smoothed alpha": equal(UCBRank, "alpha:2", smoothing=Smoothing()),
    "ucb smoothed maximin": equal(UCBRank, "maximin", smoothing=Smoothing()),
    "ucb smoothed sigmoid": equal(UCBRank, "sigmoid:20:0.3", smoothing=Smoothing()),
    "ucb smoothed ramp": equal(UCBRank, "ramp:0.2:0.4", smoothing=Smoothing()),
    "ucb smoothed squares": equal(UCBRank, SQUARES, smoothing=Smoothing()),
    "ucb smoothed root": equal(UCBRank, ROOT, smoothing=Smoothing()),
    "ucb utilitarian": equal(UCBRank, "utilitarian"),
    "ucb nash": equal(UCBRank, "nash"),
    "oracle nash": lambda: Oracle(PROBLEM, treatment="equal", utility="nash"),
    "type-blind equal": lambda: TypeBlindUCB(treatment="equal"),
    "random equal": lambda: UniformRandom(treatment="equal"),
    "comb-ucb1 equal": lambda: make_policy("comb-ucb1", treatment="equal"),
}
POLICIES = {**PERSONALIZED, **EQUAL}
SEARCHES = [
    name for name in EQUAL if name.split()[-1] in {"nash", "alpha", "maximin", "sigmoid", "ramp", "squares"}
]
FORMULAS_OF_THEIR_OWN = {"ucb nash", "pmed"}  # no other test in short compiles them for a state of this type


def names(*left_out: str) -> list[Any]:
    return [
        pytest.param(name, marks=[IN_DEPTH] if name in FORMULAS_OF_THEIR_OWN else [])
        for name in POLICIES
        if name not in left_out
    ]


@cache
def counts_of(kind: str) -> Counts:
    return {"empty": Counts.empty_for, "sparse": sparse_counts, "dense": dense_counts}[kind](PROBLEM)


@cache
def learner_of(name: str, kind: str = "dense") -> Learner:
    return POLICIES[name]().start(counts=counts_of(kind), rng=1)


def allowed_cells(candidates: Any, pinned: dict[int, int], length: int = K) -> NDArray[np.bool_]:
    """Return whether an item may be at a position, shape (length, M)."""
    allowed = np.zeros((length, M), dtype=bool)
    allowed[:, sorted(set(candidates) - set(pinned.values()))] = True
    for position, item in pinned.items():
        allowed[position] = np.arange(M) == item
    return allowed


@st.composite
def restrictions(draw: st.DrawFn, *, is_short: bool = False) -> dict[str, Any]:
    """Draw candidates and pins that leave a ranking, or a short one."""
    order = draw(st.permutations(range(M)))
    positions = draw(st.lists(st.integers(0, K - 1), unique=True, max_size=1 if is_short else K))
    pins = dict(zip(positions, order, strict=False))
    n_free = K - len(pins)
    low, high = (1, n_free - 1) if is_short else (n_free, M - len(pins))
    if is_short and n_free < 2:
        pins, low, high = {}, 1, K - 1
    candidates = order[len(pins) : len(pins) + draw(st.integers(low, high))]
    if is_short:
        pins = {position: item for position, item in pins.items() if position < len(candidates) + len(pins)}
    if draw(st.booleans()):
        candidates += list(pins.values())  # a pinned item may be a candidate, which changes nothing
    return {"candidates": candidates, "pinned": pins or None, "allow_short": is_short}


@pytest.mark.parametrize("name", names())
@settings(max_examples=25, deadline=None)
@given(
    restriction=restrictions() | restrictions(is_short=True),
    kind=st.sampled_from(["empty", "sparse", "dense"]),
    user_type=st.integers(0, N - 1),
)
def test_candidates_and_pins_are_never_violated(
    name: str, restriction: dict[str, Any], kind: str, user_type: int
) -> None:
    ranking = learner_of(name, kind).rank(user_type, **restriction)
    pinned = restriction["pinned"] or {}
    n_items = len({*restriction["candidates"], *pinned.values()})
    assert ranking.dtype == np.intp
    assert len(set(ranking.tolist())) == ranking.size == min(K, n_items)
    assert allowed_cells(restriction["candidates"], pinned, ranking.size)[range(ranking.size), ranking].all()


@pytest.mark.parametrize("name", [pytest.param(*p.values, marks=p.marks) for p in names(*PERSONALIZED)])
@settings(max_examples=10, deadline=None)
@given(restriction=restrictions() | restrictions(is_short=True), others=st.lists(restrictions(), max_size=3))
def test_equal_treatment_depends_on_candidates_and_counts_alone(
    name: str, restriction: dict[str, Any], others: list[dict[str, Any]]
) -> None:
    """All types get the same ranking, whatever others asked for before."""
    policy = POLICIES[name]()
    is_random = policy.name in ("thompson-rank", "random")
    shown = set()
    for user_type in range(N):
        learner = learner_of(name)
        for other in others[user_type:]:
            learner.rank(0, **other)
        if is_random:
            assert isinstance(policy, CompiledPolicy)
            scratch = policy.new_scratch()
            rng = np.random.default_rng(5)
            shown.add(
                tuple(policy.rank(counts_of("dense"), user_type, rng=rng, scratch=scratch, **restriction))
            )
        else:
            shown.add(tuple(learner.rank(user_type, **restriction)))
    assert len(shown) == 1


@pytest.mark.parametrize("name", names(*SEARCHES))
@pytest.mark.parametrize("kind", ["empty", "sparse", "dense"])
def test_all_items_as_candidates_are_a_plain_ranking(name: str, kind: str) -> None:
    plain, chosen = (POLICIES[name]().start(counts=counts_of(kind), rng=4) for _ in range(2))
    for user_type in (0, 1, 1, 0):
        expected = plain.rank(user_type)
        assert np.array_equal(chosen.rank(user_type, candidates=range(M)), expected)
        for learner in (plain, chosen):
            learner.update(user_type, expected, position=1)


def state_of(learner: Learner) -> Any:
    return learner._compiled._kernel.state


def best_of(allowed: NDArray[np.bool_], worth: Callable[[NDArray[np.intp]], float]) -> float:
    length = len(allowed)
    rankings = (np.array(one) for one in permutations(range(M), length))
    return max(worth(ranking) for ranking in rankings if allowed[range(length), ranking].all())


@pytest.mark.parametrize("name", names("random", "random equal", "greedy that explores", "pmed", "forgetful"))
@settings(max_examples=15, deadline=None)
@given(restriction=restrictions() | restrictions(is_short=True), user_type=st.integers(0, N - 1))
def test_rankings_are_the_best_by_the_estimates_or_the_sample(
    name: str, restriction: dict[str, Any], user_type: int
) -> None:
    learner = learner_of(name)
    policy = learner.policy
    before = policy.parameters(np.array([learner.rounds + 1]))[0]
    if policy.name == "greedy-rank":
        before[0] = 0.0
        learner = GreedyRank(
            schedule=lambda _: 0.0, estimator=policy.estimator, smoothing=policy.smoothing
        ).start(counts=counts_of("dense"), rng=1)
    ranking = learner.rank(user_type, **restriction)
    length = ranking.size
    worth = objective(learner, user_type, before, length)
    allowed = allowed_cells(restriction["candidates"], restriction["pinned"] or {}, length)
    assert worth(ranking) == pytest.approx(best_of(allowed, worth), rel=1e-8)


def objective(
    learner: Learner, user_type: int, parameters: NDArray[np.float64], length: int
) -> Callable[[NDArray[np.intp]], float]:
    """Return the value of a ranking by the estimates, or by the last sample, of a policy."""
    policy, state = learner.policy, state_of(learner)
    assert isinstance(policy, CompiledPolicy)
    if policy.name == "oracle":
        rates, looks, means = PROBLEM.arrival_rates, PROBLEM.position_preferences, PROBLEM.item_means
        bonuses = np.zeros(M)
    elif (sample := policy.sampled_problem(state)) is not None:
        rates, looks, means = sample.arrival_rates, sample.position_preferences, sample.item_means
        bonuses = np.zeros(M)
    elif hasattr(state, "instance") or hasattr(state, "collective"):
        rates, looks, means, bonuses = getattr(state, "collective", state).instance
    elif policy.name == "comb-ucb1":
        i = user_type if policy.treatment == "personalized" else 0
        scores = state.means[i] + np.sqrt(1.5 * np.log(state.arrivals[i])) * state.widths[i]  # (K, M)
        return lambda ranking: float(scores[range(length), ranking].sum())
    else:
        i = 0 if isinstance(policy, TypeBlindUCB) else user_type
        if policy.name == "pb-mhb":
            looks, values = state.sample.positions[i], state.sample.items[i]
        else:
            estimates = state.estimates
            looks = estimates.evidence.preferences[i]
            exposures = (estimates.displays[i] * looks[:, None]).sum(axis=0)
            values = (estimates.rewards[i].sum(axis=0) + parameters[1]) / exposures
        return lambda ranking: float(looks[:length] @ values[ranking])
    if policy.treatment == "personalized":
        i = user_type if policy.name == "oracle" else 0
        return lambda ranking: float(looks[i, :length] @ means[i, ranking])
    return lambda ranking: float(
        policy.utility.collective(rates, (looks[:, :length] * means[:, ranking]).sum(axis=1))
        + bonuses[ranking].sum()
    )


@pytest.mark.parametrize("utility", ["nash", "maximin", "sigmoid:20:0.3"])
def test_larger_equal_rankings_are_those_of_solve(utility: str) -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=40, n_positions=5, seed=2)
    policy = UCBRank(coefficient=0.5, treatment="equal", utility=utility, smoothing=Smoothing())
    learner = policy.start(counts=dense_counts(problem), rng=1)
    for n_candidates in (8, 20, 40):
        candidates = np.random.default_rng(n_candidates).permutation(40)[:n_candidates]
        ranking = learner.rank(0, candidates=candidates, pinned={2: 3})
        allowed = np.tile(np.isin(np.arange(40), candidates) & (np.arange(40) != 3), (5, 1))
        allowed[2] = np.arange(40) == 3
        rates, looks, means, bonuses = state_of(learner).instance
        estimated = type("Estimated", (), {})()
        estimated.arrival_rates, estimated.position_preferences, estimated.item_means = rates, looks, means
        best = solve(estimated, utility, bonuses=bonuses, allowed=allowed)
        value = policy.utility.collective(rates, (looks * means[:, ranking]).sum(axis=1))
        assert value + bonuses[ranking].sum() == pytest.approx(best.value, rel=1e-8)


@pytest.mark.parametrize("pinned", [None, {1: 6}])
def test_the_initial_phase_shows_candidates_in_turn(pinned: dict[int, int] | None) -> None:
    learner = UCBRank(coefficient=0.5).start(PROBLEM, rng=1)
    shown = np.zeros((M, K))
    for _ in range(4):
        ranking = learner.rank(0, candidates=[0, 2, 3, 5], pinned=pinned)
        learner.update(0, ranking)
        shown[ranking, range(K)] += 1
    free = [position for position in range(K) if position not in (pinned or {})]
    assert (shown[np.ix_([0, 2, 3, 5], free)] == 1).all()
    assert shown[:, free].sum() == 4 * len(free)


def test_exploration_shows_candidates_in_turn() -> None:
    learner = GreedyRank(schedule=lambda _: 1.0).start(counts=counts_of("dense"), rng=1)
    shown = np.zeros(M)
    for _ in range(3 * M):
        shown[learner.rank(1, candidates=[1, 4, 6])[0]] += 1
    assert shown.tolist() == [0, M, 0, 0, M, 0, M]


@pytest.mark.parametrize("name", ["ucb", "ucb smoothed", "type-blind", "ucb utilitarian"])
def test_learning_from_candidates_is_learning_from_counts(name: str) -> None:
    """Rankings of all items, of candidates, and short ones in any order leave the state of the counts."""
    rng, policy = np.random.default_rng(3), POLICIES[name]()
    learner = policy.start(counts=counts_of("dense"), rng=1)
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"candidates": [1, 2, 4, 6]},
        {"candidates": [0, 5], "allow_short": True},
        {"candidates": range(M), "pinned": {0: 3}},
    )
    for _ in range(60):
        user_type, pending = int(rng.integers(N)), []
        for kind in rng.integers(len(kinds), size=2):
            ranking = learner.rank(user_type, **kinds[kind])
            afresh = policy.rank(learner.counts, user_type, rng=np.random.default_rng(0), **kinds[kind])
            assert np.array_equal(ranking, afresh)
            pending.append(ranking)
        for ranking in pending:
            learner.update(user_type, ranking, rewards=3 * rng.random(ranking.size))


@pytest.mark.parametrize("name", ["thompson", "comb-ucb1", "pb-mhb", "random", "oracle"])
def test_short_rankings_are_learned_from(name: str) -> None:
    learner = POLICIES[name]().start(PROBLEM, rng=1)
    ranking = learner.rank(1, candidates=[4, 2], allow_short=True)
    assert sorted(ranking.tolist()) == [2, 4]
    learner.update(1, ranking, position=1)
    learner.update(1, ranking[:1])
    learner.update(0, learner.rank(0))
    counts = learner.counts
    assert counts.displays.sum(axis=(0, 1)).tolist() == [3, 2, 1]
    assert counts.rewards[1, ranking[1], 1] == 1.0
    assert learner.rounds == 3
    with pytest.raises(InvalidInputError, match="position must be a whole number from 0 to 1, got 2"):
        learner.update(1, ranking, position=2)


def test_copies_of_a_learner_choose_alike() -> None:
    learner = ThompsonRank().start(counts=counts_of("dense"), rng=1)
    learner.rank(0, candidates=[1, 2, 3, 4], pinned={1: 5})
    copied = copy.deepcopy(learner)
    expected = learner.rank(0, candidates=[1, 2, 3, 4])
    assert np.array_equal(copied.rank(0, candidates={4, 3, 2, 1}), expected)


def test_nothing_is_compiled_for_plain_rankings() -> None:
    learner = ThompsonRank().start(PROBLEM, rng=1)
    learner.update(0, learner.rank(0))
    assert learner._compiled._kernel._choice is None


@pytest.mark.parametrize(
    ("restriction", "message"),
    [
        (
            {"candidates": [0, 1]},
            "candidates must hold at least 3 items that are not pinned, one for each free",
        ),
        ({"candidates": [0, 1, 1]}, "got '2 items'"),
        ({"candidates": [0, 1, 6], "pinned": {0: 6, 2: 5}}, None),
        ({"candidates": [6], "pinned": {0: 6, 2: 5}}, "at least 1 items that are not pinned.*got '0 items'"),
        ({"candidates": [], "allow_short": True}, "candidates must hold at least 1 items"),
        ({"candidates": [0, 1, 7]}, "candidates must be items from 0 to 6, got 7"),
        ({"candidates": [0, 1, -1]}, "candidates must be items from 0 to 6, got -1"),
        ({"candidates": [*range(M), 0, 9]}, "candidates must be items from 0 to 6, got 9"),
        ({"candidates": [0.0, 1.0, 2.0]}, "candidates must hold item numbers"),
        ({"candidates": [True, False, True]}, "candidates must hold item numbers"),
        ({"candidates": "abc"}, "candidates must hold item numbers"),
        ({"candidates": 3}, "candidates must hold item numbers, got 3"),
        ({"candidates": [[0, 1], [2]]}, "candidates must hold item numbers"),
        ({"pinned": {3: 1}}, "position of pinned must be a whole number from 0 to 2, got 3"),
        ({"pinned": {0: 7}}, "pinned must hold items from 0 to 6, got 7"),
        ({"pinned": {0: -1}}, "item of pinned must be a whole number"),
        ({"pinned": {0: 1, 1: 1}}, "pinned must not contain an item twice, got {0: 1, 1: 1}"),
        ({"pinned": [1, 2]}, "pinned must be a mapping of positions to items"),
        (
            {"candidates": [1], "pinned": {2: 5}, "allow_short": True},
            "pinned must hold positions below 2, the number of items to show, got {2: 5}",
        ),
    ],
)
def test_invalid_restrictions(restriction: dict[str, Any], message: str | None) -> None:
    learner = learner_of("thompson")
    if message is None:
        assert learner.rank(0, **restriction).size == K
        return
    with pytest.raises(InvalidInputError, match=message):
        learner.rank(0, **restriction)
    with pytest.raises(InvalidInputError, match=message):
        learner.policy.rank(counts_of("dense"), 0, rng=np.random.default_rng(0), **restriction)


def test_an_invalid_restriction_does_not_advance_the_generator() -> None:
    learner, other = (ThompsonRank().start(counts=counts_of("dense"), rng=1) for _ in range(2))
    with pytest.raises(InvalidInputError):
        learner.rank(0, candidates=[1])
    assert np.array_equal(learner.rank(0), other.rank(0))


def test_served_policies_have_candidates() -> None:
    for name in SERVED_NAMES:
        assert make_policy(name).has_candidates, name


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_policies_without_candidates_say_so(name: str) -> None:
    policy = make_policy(name, PROBLEM)
    if policy.has_candidates:
        return
    expected = f"must be left out for policy {policy.name}, which ranks all items"
    with pytest.raises(InvalidInputError, match=f"candidates {expected}"):
        policy.rank(counts_of("empty"), 0, rng=np.random.default_rng(0), candidates=range(M))
    with pytest.raises(InvalidInputError, match=f"pinned {expected}"):
        policy.rank(counts_of("empty"), 0, rng=np.random.default_rng(0), pinned={0: 1})


def test_learners_without_candidates_say_so() -> None:
    learner = make_policy("cascade-kl-ucb").start(PROBLEM, rng=1)
    with pytest.raises(InvalidInputError, match="candidates must be left out for policy cascade-kl-ucb"):
        learner.rank(0, candidates=range(M))
    with pytest.raises(InvalidInputError, match="ranking must hold 3 item numbers"):
        learner.update(0, [1, 2])


def test_the_documentation_says_which_policies_have_candidates() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\| (yes|no) \|$", page, re.MULTILINE)
    assert dict(rows) == {name: "yes" if kind.has_candidates else "no" for name, kind in BASELINES.items()}


def test_oracles_of_some_click_models_have_no_candidates() -> None:
    """Where the best of some rankings can be found by enumeration only."""
    declared = {
        (model, treatment): make_policy(
            "oracle", PROBLEM, click_model=model, treatment=treatment
        ).has_candidates
        for model in CLICK_MODEL_NAMES
        for treatment in ("personalized", "equal")
    }
    without = {key for key, has_candidates in declared.items() if not has_candidates}
    assert without == {("cascade", "equal"), ("dependent-click", "equal")}


class FirstCandidates(Policy):
    """A policy in plain Python, which ignores pins."""

    has_candidates = True

    def rank(self, counts, user_type, *, rng, scratch=None, candidates=None, pinned=None, allow_short=False):  # noqa: ANN001, ANN201, ARG002
        items = range(counts.n_items) if candidates is None else candidates
        return np.array(list(items)[: counts.n_positions])


def test_policies_in_plain_python() -> None:
    learner = FirstCandidates().start(PROBLEM, rng=1)
    assert learner.rank(0).tolist() == [0, 1, 2]
    assert learner.rank(0, candidates=[5, 3, 1, 0]).tolist() == [5, 3, 1]
    assert learner.rank(0, candidates=[5, 3], allow_short=True).tolist() == [5, 3]
    learner.update(0, [5, 3], position=1)
    assert learner.counts.rewards[0, 3, 1] == 1.0
    with pytest.raises(
        InvalidInputError, match="ranking must hold candidates, and pinned items where they belong"
    ):
        learner.rank(0, candidates=[5, 3, 1], pinned={1: 2})
    with pytest.raises(InvalidInputError, match="ranking must hold 3 item numbers"):
        learner.rank(0, candidates=[5, 3])
