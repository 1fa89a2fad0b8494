"""Speed of each policy, at N = 3, M = 20, K = 4, on one core."""

import statistics
from collections.abc import Callable, Iterator

from interleaving import interleave, ratio
from problems import easy_problem

from banditrank import make_policy, simulate
from banditrank.policies._catalog import BASELINES, COEFFICIENT_POLICIES
from banditrank.policies._thompson_rank import ThompsonRank

HORIZON = 50_000
SAMPLERS = ("pb-mhb", "pbm-ts")  # several draws by rejection or by a walk in each round: no bar for these
PROBLEM = easy_problem(3, 20, 4)


def measure_policies() -> Iterator[dict[str, float]]:
    """Measure all policies, taking turns."""
    names = (ThompsonRank.name, *COEFFICIENT_POLICIES, *BASELINES)
    speeds = interleave({name: _rounds_per_second(name) for name in names})
    for name in names:
        least = " (at least 500,000)" if name == ThompsonRank.name else " (at least 100,000)"
        bar = "" if name in SAMPLERS or name in COEFFICIENT_POLICIES else least
        yield {f"{name}, rounds a second{bar}": statistics.median(speeds[name])}
    times = interleave({f"pooling={pooling}": _seconds(pooling=pooling) for pooling in (True, False)})
    yield {
        "thompson-rank, time of a round with pooling over that without (at most 1.3)": ratio(
            times["pooling=True"], times["pooling=False"]
        )
    }


def _rounds_per_second(name: str) -> Callable[[], float]:
    policy = make_policy(name, PROBLEM, horizon=HORIZON)
    settings = {"horizon": HORIZON, "replications": 1, "seed": 1, "workers": 1}
    return lambda: simulate(policy, PROBLEM, **settings).rounds_per_second


def _seconds(*, pooling: bool) -> Callable[[], float]:
    settings = {"horizon": HORIZON, "replications": 1, "seed": 1, "workers": 1}
    return lambda: simulate(ThompsonRank(pooling=pooling), PROBLEM, **settings).seconds
