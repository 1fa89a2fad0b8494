"""What is run: the paper's policies on Table 1's world, stopped at several rounds, many times."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.counts.counts import Counts
from banditrank.estimators.confidence_radii import item_mean_radius, position_preference_radius
from banditrank.estimators.estimates import estimate
from banditrank.experiments import paper_policies
from banditrank.experiments.part import Part
from banditrank.experiments.simulation_part import SimulationPart
from banditrank.model.catalog import kdd2012
from banditrank.model.problem import Problem
from banditrank.model.timeline import as_timeline
from banditrank.simulation.result import SimulationResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

Floats = NDArray[np.float64]

ROUNDS = (1_000, 10_000, 100_000)
REPLICATIONS, QUICK_REPLICATIONS = 1_000, 100
PROMISES = (0.5, 0.2, 0.1, 0.05, 0.01)
WITHOUT_T = 4  # stands for Lemma 3 without its factor t
CUT = f"{QUICK_REPLICATIONS} of {REPLICATIONS:,} replications"
POLICIES = {name: paper_policies.POLICIES[name] for name in ("greedy-equal", "ucb-equal", "ucb-personalized")}


@dataclass(frozen=True, kw_only=True)
class CoveragePart(SimulationPart):
    """How far estimates are from the truth at the end of each replication, beside the lemmas' radii."""

    keeps_counts: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """Return what the data depend on."""
        return {**super().settings(), "promises": list(PROMISES)}

    def summarise(self, result: SimulationResult) -> "pd.DataFrame":
        """Return how often each quantity is off by its radius: a row for each lemma, promise and quantity."""
        import pandas as pd  # noqa: PLC0415 - heavy

        tallies: dict[tuple[int, float, str], list[int]] = {}
        [problem] = as_timeline(result.problem).problems
        for counts in result.counts:
            for lemma, promise, errors, radii, applies in _radii(problem, counts):
                for index in np.ndindex(errors.shape):
                    quantity = "-".join(str(number + 1) for number in index)
                    tally = tallies.setdefault((lemma, promise, quantity), [0, 0])
                    if applies[index]:
                        tally[0] += 1
                        tally[1] += bool(errors[index] >= radii[index])
        rows = [(*key, self.horizon, *tally) for key, tally in tallies.items()]
        return pd.DataFrame(rows, columns=["lemma", "promise", "quantity", "round", "runs", "misses"])


def _radii(
    problem: Problem, counts: Counts
) -> "Iterator[tuple[int, float, Floats, Floats, NDArray[np.bool_]]]":
    """Give lemma, promised rate, errors, radii, and where the lemma applies.

    ε is the one for which the lemma promises that rate. Lemma 2 is conditioned on the event 𝒩_t, that N_ij is
    close to what it would be if ρ were known; as in its proof, with ε / ln t for ε.
    """
    estimates = estimate(counts)
    log_t = float(np.log(counts.rounds))
    off_positions = np.abs(estimates.position_preferences - problem.position_preferences)
    off_means = np.abs(estimates.item_means - problem.item_means)
    off_arrivals = counts.rounds * np.abs(estimates.arrival_rates - problem.arrival_rates)
    known = np.einsum("ijk,ik->ij", counts.displays, problem.position_preferences)  # N̄
    for promise in PROMISES:
        epsilon = math.log(problem.n_items * problem.n_positions / promise) / (2 * log_t)
        radii = position_preference_radius(counts, problem.item_means, epsilon)
        yield 1, promise, off_positions, radii, np.full(radii.shape, True)
        epsilon = _invert(promise / log_t)
        room = position_preference_radius(counts, problem.item_means, epsilon / log_t).max(axis=1)
        applies = np.abs(estimates.exposure - known) < counts.displays.sum(axis=2) * room[:, None]
        yield 2, promise, off_means, item_mean_radius(counts, estimates.exposure, epsilon), applies
        radius = math.sqrt(math.log(1 / promise) / (2 * counts.rounds))
        radii = np.full(off_arrivals.shape, radius)
        yield 3, promise, off_arrivals, radii, np.full(radii.shape, True)
        yield WITHOUT_T, promise, off_arrivals / counts.rounds, radii, np.full(radii.shape, True)


def _invert(value: float) -> float:
    """Return the larger ε with ε e^(1−ε) = value < 1, by Newton's method on its logarithm."""
    epsilon = 2.0 - math.log(value)
    for _ in range(50):
        epsilon -= (math.log(epsilon) + 1 - epsilon - math.log(value)) / (1 / epsilon - 1)
    return epsilon


def sweep(seed: int, *, quick: bool) -> list[Part]:
    """Return the parts: each policy stopped at each number of rounds."""
    return [
        CoveragePart(
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
