"""Benchmarks: ratios within one run, as medians over interleaved rounds, because machines are noisy.

Prints a table and writes output/bench.json. Run by ``make bench``; ``bench.py PART…`` measures some of
`PARTS` and `ON_REQUEST` only. ``ROUNDS=5`` in the environment sets the number of rounds.
"""

import ctypes
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import numpy as np
from candidates import measure_candidates
from dashboard import measure_dashboard
from interleaving import ROUNDS, interleave, ratio
from isolation import measure_isolation
from large_surfaces import measure_large_surfaces
from logs import measure_logs, measure_models
from lotteries import measure_lotteries, measure_lottery_loops
from many_items import measure_many_items
from numpy_versions import NumpyUCB
from policies import measure_policies
from problems import easy_problem
from servers import measure_servers
from service import measure_service
from solvers import measure_search_loops, measure_solvers

from banditrank import Counts, UCBRank, __version__, kdd2012, simulate
from banditrank.simulation import _run
from banditrank.testing._policies import dense_counts

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "output" / "bench.json"
COEFFICIENT = 1.0
PROBLEM = easy_problem(3, 20, 4)


def seconds(work: Callable[[], object]) -> float:
    """Return how long work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def c_loop() -> Callable[[int], float]:
    """Compile the hand-specialised C loop; return a function of the horizon."""
    directory = tempfile.mkdtemp()
    library = Path(directory) / "personalized_ucb.so"
    sizes = [f"-D{name}={size}" for name, size in (("N", 3), ("M", 20), ("K", 4))]
    options = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", *sizes]
    compiler = os.environ.get("CC", "cc")
    source = str(HERE / "personalized_ucb.c")
    subprocess.run([compiler, *options, "-o", str(library), source, "-lm"], check=True)
    simulate_c = ctypes.CDLL(str(library)).simulate
    simulate_c.restype = ctypes.c_double
    arrays = (PROBLEM.arrival_rates, PROBLEM.position_preferences, PROBLEM.item_means)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    initial = ctypes.c_int64()

    def run(horizon: int) -> float:
        return simulate_c(
            *pointers,
            ctypes.c_double(COEFFICIENT),
            ctypes.c_int64(horizon),
            ctypes.c_uint64(1),
            ctypes.byref(initial),
        )

    return run


def nanoseconds(policy: UCBRank, horizon: int, *, is_fused: bool = True) -> Callable[[], float]:
    """Return a measurement of one of the loops, in nanoseconds a round, on one core."""
    settings = {"horizon": horizon, "replications": 1, "seed": 1, "workers": 1}

    def measure() -> float:
        with patch.object(_run, "MIN_FUSED_ROUNDS", 0 if is_fused else horizon + 1):
            return 1e9 * simulate(policy, PROBLEM, **settings).seconds / horizon

    return measure


def numpy_nanoseconds(rounds: int, *, equal: bool) -> Callable[[], float]:
    """Return a measurement of the NumPy version, after its initial phase."""
    learner = NumpyUCB(PROBLEM, COEFFICIENT, 1, equal=equal)
    while learner.initial:
        learner.play(100)
    return lambda: 1e9 * seconds(lambda: learner.play(rounds)) / rounds


def measure_loops() -> dict[str, float]:
    """Compare the simulator with C and with NumPy, at N=3, M=20, K=4."""
    run_c = c_loop()
    horizon = 3_000_000
    times = interleave(
        {
            "c": lambda: 1e9 * seconds(lambda: run_c(horizon)) / horizon,
            "personalized": nanoseconds(UCBRank(coefficient=COEFFICIENT), horizon),
            "shared": nanoseconds(UCBRank(coefficient=COEFFICIENT), horizon, is_fused=False),
            "numpy personalized": numpy_nanoseconds(2_000, equal=False),
            "equal": nanoseconds(UCBRank(coefficient=COEFFICIENT, treatment="equal"), horizon),
            "numpy equal": numpy_nanoseconds(6, equal=True),
        }
    )
    return {
        "C loop, ns a round": statistics.median(times["c"]),
        "personalized UCBRank, ns a round": statistics.median(times["personalized"]),
        "personalized UCBRank over C (at most 2, aim 1.5)": ratio(times["personalized"], times["c"]),
        "the shared loop over the fused one, personalized UCBRank": ratio(
            times["shared"], times["personalized"]
        ),
        "NumPy over personalized UCBRank (at least 500)": ratio(
            times["numpy personalized"], times["personalized"]
        ),
        "equal UCBRank, utilitarian, ns a round": statistics.median(times["equal"]),
        "NumPy brute force over equal UCBRank (at least 20,000)": ratio(times["numpy equal"], times["equal"]),
    }


def measure_workers() -> dict[str, float]:
    """Compare two workers with one."""

    def run(workers: int) -> Callable[[], float]:
        return lambda: (
            simulate(UCBRank(coefficient=COEFFICIENT), PROBLEM, 500_000, 8, 1, workers=workers).seconds
        )

    times = interleave({"one": run(1), "two": run(2)})
    return {"two workers over one (at least 1.6)": ratio(times["one"], times["two"])}


def measure_memory() -> dict[str, float]:
    """Measure the additional memory of twenty times the horizon."""
    simulate(UCBRank(coefficient=0.25), kdd2012(), 1_000_000, 1, 0, workers=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    simulate(UCBRank(coefficient=0.25), kdd2012(), 20_000_000, 1, 0, workers=1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"peak memory, 20 times the horizon, MB more": (after - before) / 1024}


def measure_calls() -> dict[str, float]:
    """Measure rankings a second, one call at a time."""
    counts, rng, policy = dense_counts(PROBLEM), np.random.default_rng(0), UCBRank(coefficient=COEFFICIENT)
    empty = Counts.empty_for(PROBLEM)
    policy.rank(empty, 0, rng=rng)

    def rankings() -> float:
        calls = 2_000
        return calls / seconds(lambda: [policy.rank(counts, 1, rng=rng) for _ in range(calls)])

    return {"policy.rank, calls a second": statistics.median(rankings() for _ in range(ROUNDS))}


def measure_start_up() -> dict[str, float]:
    """Measure commands from start to end, with a warm cache."""
    program = str(Path(sys.executable).parent / "banditrank")
    simulation = [program, "simulate", "kdd2012", "--policy", "ucb-rank", "--treatment", "equal"]
    subprocess.run(simulation, check=True, stdout=subprocess.DEVNULL)

    def run(command: list[str]) -> Callable[[], float]:
        return lambda: seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))

    times = interleave({"help": run([program, "--help"]), "simulate": run(simulation)})
    return {
        "banditrank --help, seconds": statistics.median(times["help"]),
        "banditrank simulate kdd2012, 20 × 300,000 rounds, seconds (under 5)": statistics.median(
            times["simulate"]
        ),
    }


def measure_rest() -> Iterator[dict[str, float]]:
    """Measure everything but the solvers."""
    for measure in (measure_loops, measure_workers, measure_memory, measure_calls, measure_start_up):
        yield measure()


PARTS = {
    "rest": (measure_rest,),
    "policies": (measure_policies,),
    "many-items": (measure_many_items,),
    "large-surfaces": (measure_large_surfaces,),
    "candidates": (measure_candidates,),
    "solvers": (measure_solvers, measure_search_loops),
    "lotteries": (measure_lotteries, measure_lottery_loops),
    "service": (measure_service,),
    "dashboard": (measure_dashboard,),
    "isolation": (measure_isolation,),
    "logs": (measure_logs, measure_models),
}
ON_REQUEST = {"servers": (measure_servers,)}
"""Parts that need packages outside the requirements."""


def main() -> None:
    """Measure the parts named as arguments, or everything; print and write it."""
    results: dict[str, float] = {}
    measures = [measure for part in sys.argv[1:] or PARTS for measure in (PARTS | ON_REQUEST)[part]]
    for figures in chain.from_iterable(measure() for measure in measures):
        results |= figures
        for name, figure in figures.items():
            print(f"{figure:14,.2f}  {name}", flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    document = {
        "version": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "rounds": ROUNDS,
        "results": results,
    }
    OUTPUT.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {OUTPUT.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
