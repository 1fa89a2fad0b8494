"""Jobs: the paper's policies on Table 1, stopped at several rounds, in many replications."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank.counts._counts import Counts
from banditrank.estimators._confidence_radii import item_mean_radius, position_preference_radius
from banditrank.estimators._estimates import estimate
from banditrank.experiments import _paper_policies as paper_policies
from banditrank.experiments._job import Job
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem
from banditrank.model._timeline import as_timeline
from banditrank.simulation._result import SimulationResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

Floats = NDArray[np.float64]

ROUNDS = (1_000, 10_000, 100_000)
REPLICATIONS, QUICK_REPLICATIONS = 1_000, 100
MISS_RATES = (0.5, 0.2, 0.1, 0.05, 0.01)
WITHOUT_T = 4  # number that stands for Lemma 3 without its factor t
QUICK_SCALE = f"{QUICK_REPLICATIONS} of {REPLICATIONS:,} replications"
POLICIES = {
    name: paper_policies.POLICIES[name]
    for name in ("greedy-rank-equal-utilitarian", "ucb-rank-equal-utilitarian", "ucb-rank-personalized")
}


@dataclass(frozen=True, kw_only=True)
class CoverageJob(SimulationJob):
    """Simulation that compares the final errors of all estimates with the lemmas' radii."""

    keeps_counts: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the data depend on."""
        return {**super().settings(), "miss_rates": list(MISS_RATES)}

    def to_frame(self, result: SimulationResult) -> "pd.DataFrame":
        """Return the number of errors above the radius, one row per lemma, miss rate and estimate."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        counted: dict[tuple[int, float, str], list[int]] = {}
        [problem] = as_timeline(result.problem).problems
        for counts in result.counts:
            for lemma, miss_rate, errors, radii, applies in _radii(problem, counts):
                for index in np.ndindex(errors.shape):
                    name = "-".join(str(axis + 1) for axis in index)
                    pair = counted.setdefault((lemma, miss_rate, name), [0, 0])
                    if applies[index]:
                        pair[0] += 1
                        pair[1] += bool(errors[index] >= radii[index])
        rows = [(*key, self.horizon, *pair) for key, pair in counted.items()]
        return pd.DataFrame(rows, columns=["lemma", "miss_rate", "estimate", "round", "runs", "misses"])


def _radii(
    problem: Problem, counts: Counts
) -> "Iterator[tuple[int, float, Floats, Floats, NDArray[np.bool_]]]":
    """Yield lemma, miss rate, errors, radii, and where the lemma applies.

    ε is chosen so that the lemma bounds the miss rate by that value. Lemma 2 is conditioned on the event 𝒩_t,
    that N_ij is close to its value for known ρ; as in its proof, with ε / ln t for ε.
    """
    estimates = estimate(counts)
    log_t = float(np.log(counts.rounds))
    preference_errors = np.abs(estimates.position_preferences - problem.position_preferences)
    mean_errors = np.abs(estimates.item_means - problem.item_means)
    arrival_errors = counts.rounds * np.abs(estimates.arrival_rates - problem.arrival_rates)
    exposure_if_known = np.einsum("ijk,ik->ij", counts.displays, problem.position_preferences)  # N̄
    for miss_rate in MISS_RATES:
        epsilon = math.log(problem.n_items * problem.n_positions / miss_rate) / (2 * log_t)
        radii = position_preference_radius(counts, problem.item_means, epsilon)
        yield 1, miss_rate, preference_errors, radii, np.full(radii.shape, True)
        epsilon = _invert(miss_rate / log_t)
        room = position_preference_radius(counts, problem.item_means, epsilon / log_t).max(axis=1)
        applies = np.abs(estimates.exposure - exposure_if_known) < counts.displays.sum(axis=2) * room[:, None]
        yield 2, miss_rate, mean_errors, item_mean_radius(counts, estimates.exposure, epsilon), applies
        radius = math.sqrt(math.log(1 / miss_rate) / (2 * counts.rounds))
        radii = np.full(arrival_errors.shape, radius)
        yield 3, miss_rate, arrival_errors, radii, np.full(radii.shape, True)
        yield WITHOUT_T, miss_rate, arrival_errors / counts.rounds, radii, np.full(radii.shape, True)


def _invert(value: float) -> float:
    """Return the larger ε with ε e^(1−ε) = value < 1, by Newton's method on its logarithm."""
    epsilon = 2.0 - math.log(value)
    for _ in range(50):
        epsilon -= (math.log(epsilon) + 1 - epsilon - math.log(value)) / (1 / epsilon - 1)
    return epsilon


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job per policy and number of rounds."""
    return [
        CoverageJob(
            name=f"{name}-{rounds}",
            policy=policy,
            problems=(kdd2012(),),
            horizon=rounds,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=(rounds,),
        )
        for name, policy in POLICIES.items()
        for rounds in ROUNDS
    ]
