"""Fixed rankings: what a new policy replaces, and has to be better than."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment, check_treatment, check_utility, is_equal
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

Rankings = Sequence[int] | Sequence[Sequence[int]] | NDArray[np.integer]
"""One ranking for all user types, shape (K,), or one for each, shape (N, K)."""


class FixedRankingState(NamedTuple):
    """Counts, and the rankings."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    rankings: Indices  # (N, K)


@inlined
def _rank(
    state: FixedRankingState,
    user_type: int,
    t: int,  # noqa: ARG001 - the ranking never changes
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    for k in range(ranking.size):
        ranking[k] = state.rankings[user_type, k]


@inlined
def _observe(state: FixedRankingState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record_round(state, user_type, ranking, rewards)


@dataclass(frozen=True, init=False)
class FixedRanking(CompiledPolicy):
    """FixedRanking: the same ranking in every round, for all users or for each user type.

    Parameters
    ----------
    rankings
        The item at each position, shape (K,), or (N, K) for each user type; by default the items in the order
        of their numbers. An item that is removed during a simulation is replaced by the first one that is not
        shown.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If a ranking repeats an item, or there are several under equal treatment.
    UnknownNameError
        If the treatment or the utility is unknown.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> result = simulate(FixedRanking([3, 2]), kdd2012(), horizon=100, replications=1)
    >>> bool(result.final_regret[0] > 0)
    True
    """

    name: ClassVar[str] = "fixed"
    assumptions: ClassVar[Assumptions] = Assumptions(
        allows_graded_rewards=True, is_utilitarian_only=False, is_stationary=False
    )

    rankings: tuple[tuple[int, ...], ...] | None
    treatment: Treatment
    utility: Utility

    def __init__(
        self,
        rankings: Rankings | None = None,
        *,
        treatment: Treatment = "personalized",
        utility: Utility | str = UTILITARIAN,
    ) -> None:
        object.__setattr__(self, "treatment", check_treatment(treatment))
        object.__setattr__(self, "utility", check_utility(utility, treatment))
        object.__setattr__(self, "rankings", None if rankings is None else _as_rows(rankings))
        if self.rankings is not None and is_equal(treatment) and len(set(self.rankings)) > 1:
            raise InvalidInputError("rankings", "must be one ranking under equal treatment", rankings)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and rankings as plain values."""
        rows = None if self.rankings is None else [list(row) for row in self.rankings]
        return {**super().describe(), "rankings": rows}

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the compiled functions."""
        return Kernel(_rank, _observe)

    def init_state(self, counts: Counts, scratch: Any) -> FixedRankingState:  # noqa: ARG002 - keeps none
        """Return the rankings.

        Raises
        ------
        InvalidInputError
            If the rankings do not fit the counts.
        """
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        rows = np.array([range(k)] if self.rankings is None else self.rankings)
        if rows.shape[1] != k or len(rows) not in (1, n):
            rule = f"must have shape ({k},) or ({n}, {k})"
            raise InvalidInputError("rankings", rule, f"shape {rows.shape}")
        if rows.max() >= m:
            raise InvalidInputError("rankings", f"must hold items below {m}", int(rows.max()))
        rankings = np.ascontiguousarray(np.broadcast_to(rows, (n, k))).astype(np.uintp)
        return FixedRankingState(*arrays_of(counts), rankings)

    def update_items(
        self, state: FixedRankingState, counts: Counts, previous: NDArray[np.intp]
    ) -> FixedRankingState:
        """Return the rankings for other items."""
        return FixedRankingState(*arrays_of(counts), remap_rankings(state.rankings, previous))


def remap_rankings(rankings: Indices, previous: NDArray[np.intp]) -> Indices:
    """Return rankings after items changed; removed items are replaced by the first ones that are not shown.

    Parameters
    ----------
    rankings
        Rankings of the previous items, shape (N, K).
    previous
        Previous index of each item, −1 for a new one, shape (M,).

    Examples
    --------
    >>> remap_rankings(np.array([[2, 0]], dtype=np.uintp), np.array([1, -1, 2]))
    array([[2, 0]], dtype=uint64)
    """
    now = {int(before): index for index, before in enumerate(previous) if before >= 0}
    remapped = np.zeros_like(rankings)
    for row, old in zip(remapped, rankings, strict=True):
        kept = [now.get(int(item), -1) for item in old]
        spare = iter(sorted(set(range(len(previous))) - set(kept)))
        row[:] = [next(spare) if item < 0 else item for item in kept]
    return remapped


def _as_rows(rankings: Rankings) -> tuple[tuple[int, ...], ...]:
    rule = "must be a ranking of different items, or one for each user type"
    try:
        table = np.atleast_2d(np.array(rankings))
    except ValueError:
        raise InvalidInputError("rankings", rule, rankings) from None
    if table.ndim != 2 or table.size == 0 or table.dtype.kind not in "iu":
        raise InvalidInputError("rankings", rule, rankings)
    rows = tuple(tuple(check_integer("rankings", int(item), 0) for item in row) for row in table)
    for row in rows:
        if len(set(row)) < len(row):
            raise InvalidInputError("rankings", rule, rankings)
    return rows
