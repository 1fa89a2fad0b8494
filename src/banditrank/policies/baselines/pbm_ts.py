"""PBM-TS: Thompson sampling, where it is known how probably positions are looked at."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import ExaminationBaselinePolicy
from banditrank.policies.baselines.components.exposure_counts import ExposureCounts, update_exposure_counts, init_exposure_counts
from banditrank.policies.baselines.components.examined_posterior import (
    ItemMeanPosterior,
    sample_item_mean,
    init_item_mean_posterior,
    fit_item_mean,
    fit_item_means,
)
from banditrank.policies.sorting import assign_in_order, top_k
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class PBMTSState(NamedTuple):
    """The counts, and the posterior of each item."""

    statistics: ExposureCounts
    posterior: ItemMeanPosterior
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
        state.sample[j] = sample_item_mean(state.posterior, state.statistics.examination, i, j, rng)
    top_k(state.sample, state.leaders)
    assign_in_order(state.leaders, state.statistics.positions[i], ranking)


@inlined
def _observe(
    state: PBMTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_exposure_counts(state.statistics, user_type, ranking, rewards)
    for k in range(ranking.size):
        fit_item_mean(state.posterior, state.statistics, user_type, ranking[k])


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
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def start(self, counts: Counts, scratch: Any) -> PBMTSState:  # noqa: ARG002 - nothing is remembered
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        statistics = init_exposure_counts(counts, self.examinations(counts))
        posterior = init_item_mean_posterior(n, m, k)
        fit_item_means(posterior, statistics)
        return PBMTSState(statistics, posterior, np.zeros(k, dtype=np.uintp), np.zeros(m))
