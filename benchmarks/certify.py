"""Search for wrong certificates: solve many small instances and compare them with enumeration.

Most instances have up to 400 rankings, and one root node usually settles them. Half of these are drawn from
the families of `banditrank.model._generators`; the others are degenerate on purpose, with zeros, ties,
duplicate items, types that never arrive and values of very different size. A tenth of all instances have up
to 5,000 rankings and types at odds, so that there is something to branch on. Some are solved to a loose gap
and some without any time: what is said of them must hold too.

Prints a table, writes output/certify.json (infinite numbers are null), and fails if anything said was wrong.
The findings depend on the seed and the number of instances alone, not on the machine. Run by ``make
certify``; Ctrl-C stops it and prints the results so far.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from instances import draw
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from banditrank import MAXIMIN, NASH, UTILITARIAN, Utility, __version__, alpha_fair
from banditrank._cli.output import finite_or_none
from banditrank.solvers._solve import DEFAULT_GAP, SolverName, solve
from banditrank.testing._certificates import find_certificate_error
from banditrank.utilities._utility import ramp, sigmoid

OUTPUT = Path(__file__).parent.parent / "output" / "certify.json"
CHUNK = 200  # instances that a worker takes at a time
OPEN = "open"  # what is not wrong, but was not certified in spite of all the time

UTILITIES: dict[SolverName, tuple[Utility, ...]] = {
    "assignment": (UTILITARIAN,),
    "branch-and-bound": (
        NASH,
        alpha_fair(0.5),
        alpha_fair(2),
        alpha_fair(5),
        alpha_fair(10),
        alpha_fair(50),
        MAXIMIN,
        Utility.from_function(
            lambda u: 1 - math.exp(-3 * u),
            derivative=lambda u: 3 * math.exp(-3 * u),
            shape="concave",
            name="custom concave",
        ),
    ),
    "spatial": (
        sigmoid(),
        sigmoid(60, 0.5),
        ramp(),
        Utility.from_function(
            lambda u: 0.5 * min(1.0, max(0.0, (u - 0.2) / 0.02)) + 0.5 * min(1.0, max(0.0, (u - 0.5) / 0.02)),
            shape="non-concave",
            lipschitz=25.0,
            name="custom stairs",
        ),
    ),
}
TASKS = tuple((solver, utility) for solver, utilities in UTILITIES.items() for utility in utilities)


@dataclass(slots=True)
class UtilityResult:
    """Result for one utility.

    Attributes
    ----------
    instances, certified
        How many were solved with time and to the usual gap, and how many of these were certified.
    loose, without_time
        How many were solved to a looser gap, and how many without any time.
    branched
        How many of all took more than one node.
    wrong
        Number of instances with a wrong certificate or bound; see
        `banditrank.testing._certificates.find_certificate_error`.
    difference
        The largest |best − value| of a certified answer to the usual gap, as a share of the best.
    slowest
        The longest solve, in seconds.
    """

    solver: str
    instances: int = 0
    certified: int = 0
    loose: int = 0
    without_time: int = 0
    branched: int = 0
    wrong: int = 0
    difference: float = 0.0
    slowest: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: "UtilityResult") -> None:
        """Add the result of another chunk."""
        for name in ("instances", "certified", "loose", "without_time", "branched", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.difference = max(self.difference, other.difference)
        self.slowest = max(self.slowest, other.slowest)
        self.findings = sorted(self.findings + other.findings, key=lambda finding: finding["number"])


Results = dict[str, UtilityResult]


def examine(number: int, seed: int, result: UtilityResult, solver: SolverName, utility: Utility) -> None:
    """Solve one instance and compare."""
    rng = np.random.default_rng([seed, number])
    problem = draw(rng)
    warm_start = rng.permutation(problem.n_items)[: problem.n_positions] if rng.random() < 0.5 else None
    share = rng.random()
    target_gap = float(10.0 ** rng.uniform(-8, -1)) if share < 0.1 else DEFAULT_GAP
    time_limit = 0.0 if share > 0.95 else None
    found = solve(
        problem,
        utility,
        solver=solver,
        bonuses=problem.bonuses,
        warm_start=warm_start,
        target_gap=target_gap,
        time_limit=time_limit,
    )
    best = float(solve(problem, utility, solver="enumeration", bonuses=problem.bonuses).value)
    error = find_certificate_error(found, problem, utility, best=best, target_gap=target_gap)
    usual = time_limit is None and target_gap == DEFAULT_GAP
    result.loose += target_gap != DEFAULT_GAP
    result.without_time += time_limit is not None
    result.instances += usual
    result.certified += bool(usual and found.is_certified)
    result.branched += found.nodes > 1
    result.wrong += error is not None
    result.slowest = max(result.slowest, found.seconds)
    if usual and found.is_certified and best > found.value:
        difference = float((best - found.value) / abs(best)) if best else math.inf
        result.difference = max(result.difference, difference)
    if error or (not found.is_certified and time_limit is None):
        result.findings.append(
            {
                "number": number,
                "what": error or OPEN,
                "utility": str(utility),
                "arrival_rates": problem.arrival_rates.tolist(),
                "position_preferences": problem.position_preferences.tolist(),
                "item_means": problem.item_means.tolist(),
                "bonuses": None if problem.bonuses is None else problem.bonuses.tolist(),
                "warm_start": None if warm_start is None else warm_start.tolist(),
                "target_gap": target_gap,
                "time_limit": time_limit,
                "best": finite_or_none(best),
                "value": finite_or_none(found.value),
                "upper_bound": finite_or_none(found.upper_bound),
            }
        )


def examine_all(numbers: Iterable[int], seed: int) -> Results:
    """Solve some instances; the number of an instance decides its utility."""
    results: Results = {}
    for number in numbers:
        solver, utility = TASKS[number % len(TASKS)]
        examine(number, seed, results.setdefault(str(utility), UtilityResult(solver)), solver, utility)
    return results


def prepare(seed: int) -> None:
    """Make a worker ready: load what is compiled, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    examine_all(range(len(TASKS)), seed)


def run(instances: int, seed: int, workers: int) -> Results:
    """Solve all instances on some processes; return early, with what there is, when interrupted."""
    results = {str(utility): UtilityResult(solver) for solver, utility in TASKS}
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with console.status("compiling"):
        examine_all(range(len(TASKS)), seed)  # once, before all workers do
    context = get_context("spawn")  # threads and forks do not mix
    with (
        ProcessPoolExecutor(workers, context, prepare, (seed,)) as executor,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("instances", total=instances)
        chunks = [range(first, min(first + CHUNK, instances)) for first in range(0, instances, CHUNK)]
        jobs = {executor.submit(examine_all, chunk, seed): len(chunk) for chunk in chunks}
        try:
            for job in as_completed(jobs):
                for name, result in job.result().items():
                    results[name].add(result)
                progress.advance(bar, jobs[job])
        except KeyboardInterrupt:
            executor.shutdown(wait=False, cancel_futures=True)
            console.print("interrupted: results so far")
    return results


def show(results: Results) -> None:
    """Print the table and the findings."""
    table = Table("utility", "solver", "instances", "certified", "loose", "without time", "branched")
    for title in ("wrong", "largest difference", "slowest"):
        table.add_column(title, justify="right")
    for name, result in results.items():
        counts = (
            result.instances,
            result.certified,
            result.loose,
            result.without_time,
            result.branched,
            result.wrong,
        )
        table.add_row(
            name,
            result.solver,
            *(f"{count:,}" for count in counts),
            f"{result.difference:.1e}",
            f"{result.slowest:.2f} s",
        )
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    for result in results.values():
        for finding in result.findings[:5]:
            print(json.dumps(finding))


def main() -> int:
    """Run the campaign; return 1 if a certificate or a bound was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("instances", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    start = time.perf_counter()
    results = run(options.instances, options.seed, options.workers)
    show(results)
    done = sum(result.instances + result.loose + result.without_time for result in results.values())
    wrong = sum(result.wrong for result in results.values())
    open_ = sum(finding["what"] == OPEN for result in results.values() for finding in result.findings)
    branched = sum(result.branched for result in results.values())
    counts = f"{done:,} instances, {branched:,} branched, {wrong} wrong, {open_} open"
    print(f"{counts}, {time.perf_counter() - start:.0f} s")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(
        json.dumps(
            {
                "version": __version__,
                "seed": options.seed,
                "requested_instances": options.instances,
                "instances": done,
                "branched": branched,
                "wrong": wrong,
                "open": open_,
                "utilities": {
                    name: {**asdict(result), "difference": finite_or_none(result.difference)}
                    for name, result in results.items()
                },
            },
            indent=2,
            allow_nan=False,
        )
        + "\n",
        encoding="utf-8",
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
