from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditrank import (
    ClusteredPolicy,
    ContextualLearner,
    ContextualPolicy,
    ContextualProblem,
    ContextualThompsonRank,
    FeatureStatistics,
    InvalidInputError,
    LinTS,
    LinUCB,
    ThompsonRank,
    UserClusters,
    kdd2012,
    make_contextual_policy,
    make_contextual_problem,
    make_policy,
)
from banditrank.policies._base import policy_label
from banditrank.testing import assert_no_leaks

POLICIES: dict[str, ContextualPolicy] = {
    "linear": ContextualThompsonRank(),
    "logistic": ContextualThompsonRank(appeal="logistic"),
    "position-based": ContextualThompsonRank(click_model="position-based"),
    "lin-ucb": LinUCB(examination=[0.6, 0.4]),
    "lin-ts": LinTS(examination=[0.6, 0.4]),
}
EVERY_POLICY = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def run(
    learner: ContextualLearner, problem: ContextualProblem, rounds: int, *, shuffled: bool = True
) -> None:
    """Let a learner learn from single looks; from random rankings, or from its own."""
    rng = np.random.default_rng(11)
    users, user_types = problem.users.draw(rounds, rng=rng)
    for user, user_type in zip(users, user_types, strict=True):
        features, means = problem.joint_features(user), problem.item_means(user)
        items = rng.permutation(problem.n_items)[: problem.n_positions]
        ranking = items if shuffled else learner.rank(features, int(user_type))
        preferences = problem.position_preferences[user_type]
        look = int(rng.choice(problem.n_positions, p=preferences))
        clicked = look if rng.random() < means[ranking[look]] else None
        learner.update(features, ranking, clicked, user_type=int(user_type))


def small_problem(appeal: Any) -> ContextualProblem:
    return make_contextual_problem(
        appeal, n_items=8, n_positions=2, n_user_features=2, n_item_features=3, seed=3
    )


@pytest.mark.parametrize("appeal", ["linear", "logistic"])
def test_weights_and_preferences_are_recovered(appeal: Any) -> None:
    # Standardised by the posterior, the squared error of the 6 weights and the difference of the logits is
    # about χ²(7): above 29.9 with a probability of 1e-4.
    problem = small_problem(appeal)
    learner = ContextualThompsonRank(appeal=appeal).start(problem, rng=1)
    run(learner, problem, 8000)
    estimates = learner.estimates
    statistics = learner.statistics
    posterior = learner.policy.init_state(statistics, learner._context).posterior
    truth = np.concatenate([problem.weights, np.log(problem.position_preferences[0])])
    fitted = np.concatenate([estimates.weights, np.log(estimates.position_preferences[0])])
    error = fitted - truth
    error[6:] -= error[6:].mean()
    factor = np.tril(posterior.factor)
    assert np.sum((factor.T @ error) ** 2) < 29.9
    assert estimates.position_preferences[0] == pytest.approx(problem.position_preferences[0], abs=0.05)
    assert np.abs(error[:6]).max() < 5 * np.abs(np.linalg.inv(factor)).max()


def test_one_hot_features_give_the_estimates_of_the_type_model() -> None:
    # Both maximise the same likelihood but for the variances and the prior: the estimates differ by a
    # fraction of their standard errors, which are about 0.03 for a mean and 0.02 for a preference.
    problem = kdd2012()
    contextual = ContextualProblem.from_problem(problem)
    learner = ContextualThompsonRank().start(contextual, rng=1)
    run(learner, contextual, 6000)
    statistics, estimates = learner.statistics, learner.estimates
    # Counts from the statistics: the moments of one-hot features are weighted displays.
    weighted = np.einsum("nkaa->nka", statistics.moments).reshape(2, 2, 2, 5)
    for i in range(2):
        assert not weighted[i, :, 1 - i].any()
        displays = weighted[i, :, i]  # (K, M), weighted
        rewards = statistics.reward_moments.reshape(2, 2, 2, 5)[i, :, i]
        preferences, means = np.full(2, 0.5), np.full(5, 0.5)
        for _ in range(200):
            # Weighted least squares of the rank-one model, alternated.
            means = (preferences @ rewards) / (preferences**2 @ displays + 1)
            preferences = (rewards @ means) / (displays @ means**2)
            preferences /= preferences.sum()
        assert estimates.position_preferences[i] == pytest.approx(preferences, abs=0.01)
        assert estimates.weights.reshape(2, 5)[i] == pytest.approx(means, abs=0.015)
    assert estimates.position_preferences == pytest.approx(problem.position_preferences, abs=0.08)
    assert estimates.weights.reshape(2, 5) == pytest.approx(problem.item_means, abs=0.12)


@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_rankings_do_not_depend_on_the_order_of_items(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, order = rng.standard_normal((7, 3)), rng.permutation(7)
    for policy in POLICIES.values():
        first, second = (policy.start(n_features=3, n_positions=2, rng=5) for _ in range(2))
        for _ in range(3):
            ranking, permuted = first.rank(features), second.rank(features[order])
            assert order[permuted].tolist() == ranking.tolist()
            first.update(features, ranking, position=0)
            second.update(features[order], permuted, position=0)


def test_estimates_do_not_depend_on_the_order_of_positions() -> None:
    problem, policy = small_problem("linear"), ContextualThompsonRank()
    learner = policy.start(problem, rng=1)
    run(learner, problem, 500)
    arrays = learner.statistics.to_arrays()
    swapped = {key: value[:, ::-1] if value.ndim > 1 else value for key, value in arrays.items()}
    first, second = (policy.estimate(FeatureStatistics.from_arrays(each)) for each in (arrays, swapped))
    assert second.position_preferences[:, ::-1] == pytest.approx(first.position_preferences, rel=1e-6)
    assert second.weights == pytest.approx(first.weights, abs=1e-6)


@EVERY_POLICY
def test_statistics_of_two_processes_add_up(policy: ContextualPolicy) -> None:
    appeal = getattr(policy, "appeal", "linear")
    problem = small_problem(appeal)
    first, second = (policy.start(problem, rng=seed) for seed in (1, 2))
    run(first, problem, 300)
    run(second, problem, 300)
    merged = policy.start(statistics=first.statistics + second.statistics, rng=3)
    assert merged.rounds == 600
    assert merged.rank(problem.joint_features(problem.users.features[0])).shape == (2,)
    # Both learned from the same rounds, so the sum has twice their weight, and nearly the same estimates.
    assert merged.estimates.weights == pytest.approx(first.estimates.weights, abs=0.15)


@EVERY_POLICY
def test_learning_resumes_from_statistics(policy: ContextualPolicy) -> None:
    problem = small_problem(getattr(policy, "appeal", "linear"))
    learner = policy.start(problem, rng=1)
    run(learner, problem, 400, shuffled=False)
    resumed = policy.start(statistics=learner.statistics, rng=1)
    assert resumed.rounds == 400
    assert resumed.estimates.weights == pytest.approx(learner.estimates.weights)
    features = problem.joint_features(problem.users.features[0])
    shown = [np.mean([each.rank(features)[0] for _ in range(200)]) for each in (learner, resumed)]
    assert shown[0] == pytest.approx(shown[1], abs=1.5)


@EVERY_POLICY
def test_items_may_differ_from_request_to_request(policy: ContextualPolicy) -> None:
    rng, learner = np.random.default_rng(3), policy.start(n_features=3, n_positions=2, rng=4)
    for n_items in (2, 9, 3, 40, 5):
        features = rng.standard_normal((n_items, 3))
        ranking = learner.rank(features)
        assert len(set(ranking.tolist())) == 2
        assert ranking.max() < n_items
        learner.update(features, ranking, rewards=[1.0, 0.5])
    assert learner.rounds == 5


def test_samples_of_weights_and_preferences_are_joint() -> None:
    # Item 0 is shown at position 0 only, item 1 at position 1 only: samples with a larger preference of
    # position 0 must have a smaller weight of item 0.
    learner = ContextualThompsonRank().start(n_features=2, n_positions=2, rng=1)
    for index in range(300):
        learner.update(np.eye(2), [0, 1], rewards=[index % 4 == 0, index % 5 == 0])
    posterior, drawn = learner._kernel.state.posterior, []
    for _ in range(2000):
        learner.rank(np.eye(2))
        drawn.append(posterior.sample.copy())
    correlation = np.corrcoef(np.array(drawn).T)
    assert correlation[0, 2] < -0.5
    assert correlation[1, 3] < -0.5


def test_rewards_are_taken_in_their_unit() -> None:
    learners = [ContextualThompsonRank(max_reward=unit).start(n_features=2, n_positions=1) for unit in (1, 7)]
    for unit, learner in zip((1.0, 7.0), learners, strict=True):
        for index in range(50):
            learner.update(np.eye(2), [index % 2], position=0, reward=unit * (index % 4 == 0))
    assert learners[1].estimates.weights == pytest.approx(learners[0].estimates.weights)


def test_lin_policies_estimate_by_ridge_regression() -> None:
    rng, examination = np.random.default_rng(6), np.array([0.9, 0.4])
    learner = LinUCB(examination=examination, regularization=2.0).start(n_features=3, n_positions=2)
    rows, rewards = [], []
    for _ in range(50):
        features, ranking = rng.standard_normal((4, 3)), rng.permutation(4)[:2]
        earned = rng.random(2)
        learner.update(features, ranking, rewards=earned)
        rows.extend(examination[:, None] * features[ranking])
        rewards.extend(earned)
    table = np.array(rows)
    precision = table.T @ table + 2.0 * np.eye(3)
    weights = np.linalg.solve(precision, table.T @ np.array(rewards))
    assert learner.estimates.weights == pytest.approx(weights)
    features = rng.standard_normal((6, 3))
    bounds = features @ weights + np.sqrt(
        np.einsum("ja,ab,jb->j", features, np.linalg.inv(precision), features)
    )
    assert learner.rank(features).tolist() == np.argsort(-bounds)[:2].tolist()
    sampler = LinTS(examination=examination, regularization=2.0, coefficient=0.3).start(
        statistics=learner.statistics, rng=7
    )
    drawn = np.zeros((4000, 3))
    for row in drawn:
        sampler.rank(features)
        row[:] = sampler._kernel.state.direction
    # Standard errors: 2.2% of a variance, 1.6% of a deviation of the mean.
    deviations = 0.3 * np.sqrt(np.diag(np.linalg.inv(precision)))
    assert drawn.std(axis=0) == pytest.approx(deviations, rel=0.06)
    assert (drawn.mean(axis=0) - weights) / deviations == pytest.approx(np.zeros(3), abs=0.08)


def test_the_position_that_is_examined_most_gets_the_best_item() -> None:
    learner = LinUCB(examination=[0.2, 1.0, 0.5]).start(n_features=1, n_positions=3)
    assert learner.rank([[1.0], [4.0], [2.0], [3.0]]).tolist() == [2, 1, 3]


@EVERY_POLICY
def test_compiled_functions_do_not_leak(policy: ContextualPolicy) -> None:
    learner = policy.start(n_features=3, n_positions=2, rng=1)
    kernel, rewards = learner._kernel, np.array([1.0, 0.0])
    learner._write_features(np.random.default_rng(1).standard_normal((2, 3)))

    def call() -> None:
        kernel.observe(0, 1, kernel.rank(0, 1, np.zeros(0)), rewards)

    assert_no_leaks(call, tuple(kernel.state), rewards)


def test_descriptions_make_labels() -> None:
    assert policy_label(ContextualThompsonRank().describe()) == "contextual-thompson-rank-personalized"
    assert policy_label(LinUCB(examination=[1.0]).describe()) == "lin-ucb-personalized-1"
    clustered = ClusteredPolicy(ThompsonRank(), UserClusters([[0.0], [1.0]], "means"))
    assert policy_label(clustered.describe()) == "thompson-rank-2-clusters-by-means-personalized"
    assert clustered.fingerprint()["clusters"]["space"] == "means"


def test_policies_are_made_by_name() -> None:
    problem = small_problem("logistic")
    assert make_contextual_policy("auto", problem) == ContextualThompsonRank(appeal="logistic")
    informed = make_contextual_policy("lin-ts", problem, click_model="position-based")
    assert isinstance(informed, LinTS)
    assert max(informed.examination[0]) == 1.0  # type: ignore[type-var]
    assert make_contextual_policy("thompson-rank-3-clusters", problem).name == "thompson-rank-3-clusters"


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert str(caught.value).startswith(message), str(caught.value)


def test_bad_parameters_are_refused() -> None:
    problem = small_problem("linear")
    refused(lambda: ContextualThompsonRank(appeal="cubic"), "appeal must be one of linear, logistic")
    refused(lambda: ContextualThompsonRank(prior_deviation=0), "prior_deviation must be a number from 1e-06")
    refused(lambda: ContextualThompsonRank(click_model="cascade"), "click_model must be one of single-look")
    refused(lambda: LinUCB(examination=[0.0, 0.0]), "examination must be rows of numbers from 0 to 1")
    refused(lambda: LinTS(examination=[["a"]]), "examination must be rows of numbers from 0 to 1")
    refused(lambda: LinTS(examination=[0.5], coefficient=-1), "coefficient must be a number from 0")
    refused(lambda: LinTS(examination=[0.5]).start(problem), "examination must have shape (1, 2)")
    refused(
        lambda: ClusteredPolicy(ContextualThompsonRank(), UserClusters([[0.0]])), "policy must be a compiled"
    )
    refused(lambda: ClusteredPolicy(ThompsonRank(), None), "clusters must be UserClusters")
    refused(
        lambda: make_contextual_policy("grab", problem), "policy must be one of auto, contextual-thompson"
    )
    refused(lambda: make_contextual_policy("thompson-rank-x-clusters", problem), "policy must be one of auto")
    refused(lambda: make_contextual_policy("auto", kdd2012()), "problem must be a ContextualProblem")
    refused(lambda: make_policy("contextual-thompson-rank"), "policy must be one of")


def test_bad_requests_are_refused() -> None:
    policy = ContextualThompsonRank()
    refused(
        lambda: policy.start(n_positions=2), "n_features must be given unless a problem or statistics are"
    )
    refused(lambda: policy.start(kdd2012()), "problem must be a ContextualProblem")
    refused(lambda: policy.start(small_problem("linear"), n_features=2), "n_features must be left out")
    refused(lambda: policy.start(statistics=[]), "statistics must be FeatureStatistics")
    other = FeatureStatistics.empty(n_features=9, n_positions=1)
    refused(
        lambda: policy.start(n_features=2, n_positions=1, statistics=other),
        "statistics must have moments of shape (1, 1, 2, 2), got (1, 1, 9, 9)",
    )
    learner = policy.start(n_features=2, n_positions=2, rng=1)
    features = np.eye(2)
    refused(
        lambda: learner.rank(np.eye(3)), "features must have 2 columns, one for each joint feature, got 3"
    )
    refused(lambda: learner.rank([[1.0, 0.0]]), "features must have at least 2 rows, one for each position")
    refused(lambda: learner.rank([[np.inf, 0.0]]), "features[0][0] must be finite, got inf")
    refused(lambda: learner.rank(features, 1), "user_type must be a whole number from 0 to 0, got 1")
    refused(lambda: learner.update(features, [0, 0]), "ranking")
    refused(lambda: learner.update(features, [0, 1], 2), "position must be a whole number from 0 to 1, got 2")
    refused(lambda: learner.update(features, [0, 1], reward=1), "reward must be left out")
    refused(lambda: learner.update(features, [0, 1], 1, rewards=[1, 0]), "position must be left out")
    refused(lambda: learner.update(features, [0, 1], rewards=[1]), "rewards must have 2 entries")
    refused(
        lambda: learner.update(features, [0, 1], rewards=[-1, 0]), "rewards must be finite and not negative"
    )
    assert learner.rounds == 0
