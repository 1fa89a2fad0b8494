"""Clusters of users, for policies that know user types only."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_integer
from banditrank._compilation import inlined
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._user_population import as_features

Floats = NDArray[np.float64]

ClusterSpace: TypeAlias = Literal["features", "means"]
"""Where users are compared: their features, or the true means of the items, which only a simulation knows."""

_N_SAMPLED_USERS = 5000
_MAX_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class UserClusters:
    """Clusters of users: a user belongs to the nearest centroid. Immutable.

    Parameters
    ----------
    centroids
        Shape (clusters, p) in the space of features, (clusters, M) in that of means.
    space
        ``features``: user features. ``means``: the item means of the user.

    Raises
    ------
    InvalidInputError
        If the centroids are not rows of numbers.
    UnknownNameError
        If there is no space of this name.

    Examples
    --------
    >>> clusters = UserClusters([[0, 0], [1, 1]])
    >>> clusters.assign([[0.2, 0.1], [0.9, 2]])
    array([0, 1])
    """

    centroids: Floats
    space: ClusterSpace = "features"

    def __init__(self, centroids: ArrayLike, space: ClusterSpace = "features") -> None:
        if space not in get_args(ClusterSpace):
            raise UnknownNameError("space", space, get_args(ClusterSpace))
        object.__setattr__(self, "centroids", as_features("centroids", centroids))
        object.__setattr__(self, "space", space)

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.centroids)

    def assign(self, points: ArrayLike) -> NDArray[np.intp]:
        """Return the cluster of each point of the space, shape (n,).

        Parameters
        ----------
        points
            Shape (n, p) in the space of features, (n, M) in that of means.
        """
        return _nearest(np.asarray(points, dtype=np.float64), self.centroids)

    def to_dict(self) -> dict[str, Any]:
        """Return the clusters as a dictionary of lists and strings."""
        return {"centroids": self.centroids.tolist(), "space": self.space}

    def __reduce__(self) -> tuple[Any, ...]:
        return UserClusters, (self.centroids, self.space)


def cluster_users(
    problem: ContextualProblem, n_clusters: int, *, space: ClusterSpace = "features", seed: int = 0
) -> UserClusters:
    """Cluster the users of a problem by k-means.

    Parameters
    ----------
    problem
        The problem, of which 5,000 users are drawn.
    n_clusters
        Number of clusters.
    space
        ``features``: by user features. ``means``: by the true means of the items, which only a simulation
        knows, so that users in a cluster like the same items.
    seed
        Seed of the users and of the first centroids.

    Raises
    ------
    InvalidInputError
        If the number of clusters is out of range.
    UnknownNameError
        If there is no space of this name.

    Examples
    --------
    >>> problem = ContextualProblem([[0.0], [1.0]], [[0.2], [0.6]], [1.0], [1.0])
    >>> cluster_users(problem, 2).assign([[0.1], [0.8]]).tolist() in ([0, 1], [1, 0])
    True
    """
    if not isinstance(problem, ContextualProblem):
        raise InvalidInputError("problem", "must be a ContextualProblem", problem)
    check_integer("n_clusters", n_clusters, 1, _N_SAMPLED_USERS)
    if space not in get_args(ClusterSpace):
        raise UnknownNameError("space", space, get_args(ClusterSpace))
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    points, _ = problem.users.draw(_N_SAMPLED_USERS, rng=rng)
    if space == "means":
        points = np.array([problem.item_means(user) for user in points])
    return UserClusters(_k_means(points, n_clusters, rng), space)


def _k_means(points: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """Return centroids, shape (clusters, dimensions): Lloyd's steps from k-means++."""
    centroids = points[rng.integers(len(points), size=1)]
    while len(centroids) < n_clusters:
        distances = ((points - centroids[_nearest(points, centroids)]) ** 2).sum(axis=1)
        total = distances.sum()
        chances = distances / total if total > 0 else None  # fewer distinct users than clusters
        centroids = np.vstack([centroids, points[rng.choice(len(points), p=chances)]])
    for _ in range(_MAX_STEPS):
        nearest = _nearest(points, centroids)
        moved = centroids.copy()
        for cluster in range(n_clusters):
            if (nearest == cluster).any():
                moved[cluster] = points[nearest == cluster].mean(axis=0)
        if np.array_equal(moved, centroids):
            break
        centroids = moved
    return centroids


def _nearest(points: Floats, centroids: Floats) -> NDArray[np.intp]:
    squares = (centroids**2).sum(axis=1) - 2.0 * points @ centroids.T
    return np.asarray(squares.argmin(axis=1))


@inlined
def nearest_centroid(centroids: Floats, point: Floats) -> int:
    """Return the row of the nearest centroid; ties go to the lower row."""
    best, least = 0, np.inf
    for row in range(centroids.shape[0]):
        distance = 0.0
        for index in range(point.size):
            gap = point[index] - centroids[row, index]
            distance += gap * gap
        if distance < least:
            best, least = row, distance
    return best
