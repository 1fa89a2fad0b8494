from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import (
    Conservative,
    FixedRanking,
    Forgetful,
    GreedyRank,
    LeastExposure,
    Oracle,
    Problem,
    Smoothing,
    ThompsonRank,
    TypeBlind,
    TypeBlindUCB,
    UCBRank,
    UniformRandom,
)
from banditrank.policies import CTS, schedules
from banditrank.testing._policies import (
    POLICY_CHECKS,
    MakePolicy,
    check_no_leaks,
    check_relabelling_items,
    check_relabelling_user_types,
)


def worst_rankings(problem: Problem) -> NDArray[np.intp]:
    """Return the ranking of the worst items for each user type, shape (N, K)."""
    return np.argsort(problem.item_means, axis=1)[:, : problem.n_positions]


def worst_ranking(problem: Problem) -> NDArray[np.intp]:
    """Return the ranking of the worst items for all, shape (K,)."""
    return np.argsort(problem.arrival_rates @ problem.item_means)[: problem.n_positions]


POLICIES: dict[str, MakePolicy] = {
    "greedy personalized": lambda _: GreedyRank(coefficient=1.0),
    "greedy that always explores": lambda _: GreedyRank(schedule=schedules.constant(coefficient=1.0)),
    "greedy equal utilitarian": lambda _: GreedyRank(coefficient=0.5, treatment="equal"),
    "greedy equal nash": lambda _: GreedyRank(coefficient=0.5, treatment="equal", utility="nash"),
    "ucb personalized": lambda _: UCBRank(coefficient=0.5),
    "ucb equal utilitarian": lambda _: UCBRank(coefficient=0.5, treatment="equal"),
    "ucb equal maximin": lambda _: UCBRank(coefficient=0.5, treatment="equal", utility="maximin"),
    "ucb equal alpha": lambda _: UCBRank(coefficient=0.5, treatment="equal", utility="alpha:2"),
    "ucb equal sampling": lambda _: UCBRank(coefficient=0.5, treatment="equal", solver="sampling"),
    "greedy by likelihood": lambda _: GreedyRank(coefficient=0.5, estimator="likelihood"),
    "greedy smoothed equal nash": lambda _: GreedyRank(
        coefficient=0.5, treatment="equal", utility="nash", smoothing=Smoothing()
    ),
    "ucb by likelihood, smoothed": lambda _: UCBRank(
        coefficient=0.5, estimator="likelihood", smoothing=Smoothing()
    ),
    "ucb by likelihood equal utilitarian": lambda _: UCBRank(
        coefficient=0.5, treatment="equal", estimator="likelihood"
    ),
    "ucb smoothed equal alpha": lambda _: UCBRank(
        coefficient=0.5, treatment="equal", utility="alpha:2", smoothing=Smoothing(2.0, 0.1)
    ),
    "forgetful": lambda _: Forgetful(UCBRank(coefficient=0.5), "window:1000"),
    "type-blind": lambda _: TypeBlindUCB(coefficient=0.5),
    "type-blind equal": lambda _: TypeBlindUCB(coefficient=0.5, treatment="equal"),
    "type-blind wrapper": lambda _: TypeBlind(UCBRank(coefficient=0.5)),
    "conservative": lambda problem: Conservative(UCBRank(coefficient=0.5), worst_rankings(problem)),
    "conservative equal": lambda problem: Conservative(
        UCBRank(coefficient=0.5, treatment="equal"), worst_ranking(problem), alpha=0.3
    ),
    "conservative with a policy": lambda _: Conservative(UCBRank(coefficient=0.5), CTS()),
    "fixed": lambda problem: FixedRanking(worst_rankings(problem)),
    "random": lambda _: UniformRandom(),
    "thompson equal-lottery maximin": lambda _: ThompsonRank(treatment="equal-lottery", utility="maximin"),
    "greedy equal-lottery nash": lambda _: GreedyRank(
        coefficient=0.5, treatment="equal-lottery", utility="nash"
    ),
    "ucb equal-lottery guaranteed": lambda _: UCBRank(
        coefficient=0.5, treatment="equal-lottery", utility="nash", guarantees=[LeastExposure(0.02)]
    ),
    "thompson personalized guaranteed": lambda _: ThompsonRank(guarantees=(LeastExposure(0.02),)),
    "ucb personalized guaranteed": lambda _: UCBRank(coefficient=0.5, guarantees=[LeastExposure(0.02)]),
    "oracle personalized": Oracle,
    "oracle personalized guaranteed": lambda problem: Oracle(problem, guarantees=(LeastExposure(0.02),)),
    "oracle equal nash": lambda problem: Oracle(problem, treatment="equal", utility="nash"),
    "oracle equal-lottery nash": lambda problem: Oracle(problem, treatment="equal-lottery", utility="nash"),
}


# Policies that differ from another one in a parameter or a utility: the checks of many rankings are in depth.
VARIANTS = {
    "greedy that always explores",
    "greedy equal utilitarian",
    "ucb equal maximin",
    "ucb equal alpha",
    "ucb equal sampling",
    "greedy by likelihood",
    "greedy smoothed equal nash",
    "ucb smoothed equal alpha",
    "type-blind equal",
    "type-blind wrapper",  # ranks as "type-blind" does
    "greedy personalized",  # has the states of "ucb personalized"
    "greedy equal-lottery nash",  # has the states of "ucb equal-lottery guaranteed"
    "forgetful",  # ranks as its policy does
    "conservative equal",  # has the states of "conservative", and shows the baseline
}
OF_MANY_RANKINGS = {check_relabelling_items, check_relabelling_user_types, check_no_leaks}
COMPILED_ALONE = {"ucb by likelihood equal utilitarian"}  # no other test has states of its type


def marks(name: str, check: Callable[[MakePolicy], None]) -> list[pytest.MarkDecorator]:
    is_in_depth = name in COMPILED_ALONE or (name in VARIANTS and check in OF_MANY_RANKINGS)
    return [pytest.mark.campaign] if is_in_depth else []


@pytest.mark.usefixtures("draws")
@pytest.mark.parametrize(
    ("make_policy", "check"),
    [
        pytest.param(make_policy, check, id=f"{name}-{check.__name__}", marks=marks(name, check))
        for name, make_policy in POLICIES.items()
        for check in POLICY_CHECKS
    ],
)
def test_policy_conforms(make_policy: MakePolicy, check: Callable[[MakePolicy], None]) -> None:
    check(make_policy)
