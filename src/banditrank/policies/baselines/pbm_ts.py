"""PBM-TS: Thompson sampling, where it is known how probably positions are looked at."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import ExaminationBaselinePolicy
from banditrank.policies.baselines.components.examined_counts import (
    ExaminedCounts,
    learn_examined,
    start_examined,
)
from banditrank.policies.baselines.components.examined_posterior import (
    Posterior,
    draw_from_posterior,
    empty_posterior,
    fit_posterior,
    fit_posteriors,
)
from banditrank.policies.sorting import place_in_order, sort_largest
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class PBMTSState(NamedTuple):
    """The counts, and the posterior of each item."""

    known: ExaminedCounts
    posterior: Posterior
    leaders: Indices  # (K,) room
    sample: Floats  # (M,) room


@inlined
def _rank(
    state: PBMTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - the counts say it all
    parameters: Floats,  # noqa: ARG001 - there are none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    for j in range(state.sample.size):
        state.sample[j] = draw_from_posterior(state.posterior, state.known.examination, i, j, rng)
    sort_largest(state.sample, state.leaders)
    place_in_order(state.leaders, state.known.positions[i], ranking)


@inlined
def _observe(
    state: PBMTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    learn_examined(state.known, user_type, ranking, rewards)
    for k in range(ranking.size):
        fit_posterior(state.posterior, state.known, user_type, ranking[k])


@dataclass(frozen=True, kw_only=True)
class PBMTS(ExaminationBaselinePolicy):
    """PBM-TS: draw every item's mean from its posterior; the highest goes to the position looked at most.

    The prior is uniform; the posterior, of density ∝ Π_k θ^S_jk (1 − κ_k θ)^(N_jk − S_jk), is drawn from
    exactly, by rejection.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé (2016), Multiple-play bandits in the position-based model. Advances in
    Neural Information Processing Systems 29.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 0], [40, 90], [0, 50]]], [[[10, 0], [9, 30], [0, 2]]], [130])
    >>> PBMTS(examination=((0.3, 0.7),)).rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "pbm-ts"
    formulas: ClassVar[Kernel] = Kernel(_rank, _observe)

    def start(self, counts: Counts, scratch: Any) -> PBMTSState:  # noqa: ARG002 - nothing is remembered
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        known = start_examined(counts, self.examinations(counts))
        posterior = empty_posterior(n, m, k)
        fit_posteriors(posterior, known)
        return PBMTSState(known, posterior, np.zeros(k, dtype=np.uintp), np.zeros(m))
