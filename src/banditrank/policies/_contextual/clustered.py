"""Policies that know user types, on clusters of users."""

from dataclasses import dataclass
from typing import Any

from banditrank.errors import InvalidInputError
from banditrank.model._user_clusters import UserClusters
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment


@dataclass(frozen=True)
class ClusteredPolicy:
    """A policy that knows user types, for a contextual problem: each cluster of users is a user type.

    Parameters
    ----------
    policy
        A compiled policy with personalized treatment, such as `ThompsonRank`.
    clusters
        The clusters, such as those of `cluster_users`.

    Raises
    ------
    InvalidInputError
        If the policy is another one, or the clusters are not `UserClusters`.

    Examples
    --------
    >>> from banditrank import ThompsonRank
    >>> ClusteredPolicy(ThompsonRank(), UserClusters([[0.0], [1.0]])).name
    'thompson-rank-2-clusters'
    """

    policy: CompiledPolicy
    clusters: UserClusters

    def __post_init__(self) -> None:
        if not isinstance(self.policy, CompiledPolicy) or self.policy.treatment != "personalized":
            rule = "must be a compiled policy with personalized treatment"
            raise InvalidInputError("policy", rule, self.policy)
        if not isinstance(self.clusters, UserClusters):
            raise InvalidInputError("clusters", "must be UserClusters", self.clusters)

    @property
    def name(self) -> str:
        """The policy's name with the number of clusters."""
        space = "" if self.clusters.space == "features" else "-by-means"
        return f"{self.policy.name}-{self.clusters.n_clusters}-clusters{space}"

    @property
    def treatment(self) -> Treatment:
        """The treatment of the policy."""
        return self.policy.treatment

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions of the policy."""
        return self.policy.assumptions

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {**self.policy.describe(), "policy": self.name}

    def fingerprint(self) -> dict[str, Any]:
        """Return the policy's fingerprint, and the clusters."""
        return {**self.policy.fingerprint(), "policy": self.name, "clusters": self.clusters.to_dict()}
