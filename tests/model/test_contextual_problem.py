import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditrank import (
    ContextualProblem,
    InvalidInputError,
    UserClusters,
    UserPopulation,
    cluster_users,
    joint_features,
    kdd2012,
    make_contextual_problem,
)
from banditrank.model._user_population import draw_user

USERS = [[1.0, 0.0], [1.0, 1.0]]
ITEMS = [[1.0, 0.0], [1.0, 1.0], [1.0, -1.0]]
WEIGHTS = [0.5, 0.2, 0.0, -0.3]


def make(**changes: Any) -> ContextualProblem:
    values = {
        "users": USERS,
        "item_features": ITEMS,
        "weights": WEIGHTS,
        "position_preferences": [0.7, 0.3],
    }
    return ContextualProblem(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"users": []}, "user features must be a list of rows of equal length, got []"),
        ({"users": [[1.0, np.nan]]}, "user features[0][1] must be finite, got nan"),
        ({"users": [["a"]]}, "user features must be a list of rows of equal length"),
        ({"item_features": [1.0, 2.0]}, "item_features must be a list of rows of equal length"),
        ({"weights": [1.0]}, "weights must hold 4 numbers, one for each joint feature, got 1"),
        ({"weights": [[1.0]]}, "weights must be a list of numbers"),
        ({"weights": [0.5, 0.2, 0.0, -0.9]}, "appeal of item-2 to user row 2 must lie in [0, 1], got -0.1"),
        ({"appeal": "probit"}, "appeal must be one of linear, logistic, got 'probit'"),
        ({"feature_map": "sum"}, "feature_map must be one of interaction, concatenation, items, got 'sum'"),
        ({"position_preferences": [0.7, 0.7]}, "position_preferences of row 1 must sum to 1, got 1.4"),
        ({"position_preferences": [0.25] * 4}, "position_preferences must have at most 3 positions"),
        ({"position_preferences": [[0.5, 0.5]] * 2}, "position_preferences must have 1 row, one for"),
        ({"position_preferences": []}, "position_preferences must not be empty, got []"),
        ({"position_preferences": "a"}, "position_preferences must be a list"),
        ({"position_preferences": [[1.0], [0.5, 0.5]]}, "position_preferences must be a list"),
        ({"position_preferences": 1}, "position_preferences must be a list"),
        ({"items": ["a", "a", "b"]}, "items[1] must differ from the names before it, got 'a'"),
        ({"name": ""}, "name must be a non-empty printable string, got ''"),
    ],
)
def test_bad_problems_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make(**changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"probabilities": [1.0]}, "user probabilities must hold 2 numbers, one for each row, got 1"),
        ({"probabilities": [0.5, 0.6]}, "user probabilities must sum to 1, got 1.1"),
        ({"probabilities": [1.0, 0.0]}, "user probabilities[1] must be positive, got 0.0"),
        ({"standard_deviations": [[1.0]]}, "standard_deviations must have shape (2, 2)"),
        ({"standard_deviations": -1.0}, "standard_deviations must not be negative, got -1.0"),
        ({"standard_deviations": "wide"}, "standard_deviations must be a list of rows of equal length"),
        ({"user_types": [0]}, "user_types must hold 2 whole numbers from 0, one for each row"),
        ({"user_types": [0, 2]}, "user_types must include 1"),
    ],
)
def test_bad_populations_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        UserPopulation(USERS, **values)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_positions": 9, "n_items": 8}, "n_positions must not exceed the 8 items, got 9"),
        ({"n_user_features": 1}, "n_user_features must be a whole number from 2 to 100,000, got 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_sizes_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make_contextual_problem("linear", **{"seed": 1, **values})
    assert str(caught.value) == message


def test_feature_maps() -> None:
    user, items = np.array([1.0, 3.0]), np.array([[1.0, 0.0], [1.0, 2.0]])
    interaction = joint_features("interaction", user, items)
    assert interaction == pytest.approx(np.array([np.outer(user, item).ravel() for item in items]))
    assert joint_features("concatenation", user, items).tolist() == [[1, 3, 1, 0], [1, 3, 1, 2]]
    assert joint_features("items", user, items).tolist() == items.tolist()


def test_means_are_linear_or_logistic() -> None:
    linear, logistic = make(), make(appeal="logistic")
    scores = linear.joint_features([1.0, 1.0]) @ WEIGHTS
    assert linear.item_means([1.0, 1.0]) == pytest.approx(scores)
    assert logistic.item_means([1.0, 1.0]) == pytest.approx(1 / (1 + np.exp(-scores)))


def test_linear_means_of_normal_users_are_limited() -> None:
    users = UserPopulation(USERS, standard_deviations=5.0)
    assert make(users=users).item_means([9.0, 9.0]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("appeal", ["linear", "logistic"])
def test_a_saved_problem_is_loaded_as_it_was(appeal: Any, tmp_path: Path) -> None:
    problem = make_contextual_problem(appeal, n_items=7, n_positions=3, seed=2)
    problem.save(tmp_path / "problem.toml")
    assert ContextualProblem.load(tmp_path / "problem.toml") == problem
    assert pickle.loads(pickle.dumps(problem)) == problem  # noqa: S301 - our own
    assert hash(ContextualProblem.from_dict(problem.to_dict())) == hash(problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weights = [1.0]", "a.toml: users must be given, got None"),
        ("colour = 1", "a.toml: key must be one of name, appeal"),
        (
            "weights = [1.0]\nposition_preferences = [1.0]\nitem_features = [[1.0]]\nusers.age = [[1.0]]",
            "a.toml: key of users must be one of features",
        ),
        (
            "weights = [9.0]\nposition_preferences = [1.0]\nitem_features = [[1.0]]\nusers = [[1.0]]",
            "a.toml: appeal of item-1 to user row 1 must lie in [0, 1], got 9.0",
        ),
    ],
)
def test_bad_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        ContextualProblem.load(tmp_path / "a.toml")
    assert str(caught.value).startswith(message)


def test_one_hot_features_give_the_means_of_the_problem() -> None:
    problem = kdd2012()
    contextual = ContextualProblem.from_problem(problem)
    for user, means in zip(np.eye(2), problem.item_means, strict=True):
        assert contextual.item_means(user) == pytest.approx(means)
    assert contextual.position_preferences == pytest.approx(problem.position_preferences)
    assert contextual.items == problem.items


def test_compiled_users_come_from_the_population() -> None:
    users = UserPopulation(
        [[0.0, 5.0], [2.0, 1.0], [4.0, 0.0]],
        probabilities=[0.2, 0.5, 0.3],
        standard_deviations=[[0.0, 1.0]] * 3,
        user_types=[0, 1, 1],
    )
    rng, compiled, drawn = np.random.default_rng(1), users.compiled(), np.zeros((20_000, 3))
    for row in drawn:
        row[2] = draw_user(compiled, rng, row[:2])
    # Standard errors are at most 0.015 for the means and 0.004 for the shares: four of them.
    assert drawn.mean(axis=0) == pytest.approx([2.2, 1.5, 0.8], abs=0.06)
    assert [(drawn[:, 0] == value).mean() for value in (0, 2, 4)] == pytest.approx([0.2, 0.5, 0.3], abs=0.016)
    assert drawn[drawn[:, 0] == 2.0, 1].std() == pytest.approx(1.0, abs=0.03)


def test_clusters_are_found() -> None:
    users = UserPopulation([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], standard_deviations=0.5)
    problem = make(users=users, appeal="logistic")
    clusters = cluster_users(problem, 3, seed=4)
    assert len(set(clusters.assign(users.features).tolist())) == 3
    assert sorted(clusters.centroids.round().tolist()) == [[0, 0], [0, 10], [10, 0]]
    by_means = cluster_users(problem, 2, space="means", seed=4)
    assert by_means.centroids.shape == (2, 3)
    assert pickle.loads(pickle.dumps(by_means)).space == "means"  # noqa: S301 - our own


def test_more_clusters_than_users_are_allowed() -> None:
    assert cluster_users(make(), 5).n_clusters == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cluster_users(kdd2012(), 2), "problem must be a ContextualProblem"),
        (lambda: cluster_users(make(), 0), "n_clusters must be a whole number from 1 to 5,000, got 0"),
        (lambda: cluster_users(make(), 2, space="age"), "space must be one of features, means, got 'age'"),
        (lambda: UserClusters([1.0]), "centroids must be a list of rows of equal length"),
    ],
)
def test_bad_clusters_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert str(caught.value).startswith(message)
