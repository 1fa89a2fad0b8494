"""Look for a wrong certificate: many small instances, solved and compared with trying all rankings.

Most instances have up to 400 rankings, and one root node usually settles them. Half of these are drawn from
the families of `banditrank.model._generators`; the others are degenerate on purpose, with zeros, ties,
duplicate items, types that never arrive and values of very different size. A tenth of all instances have up
to 5,000 rankings and types at odds, so that there is something to branch on. Some are solved to a loose gap
and some without any time: what is said of them must hold too.

Prints a table, writes output/certify.json (infinite numbers are null), and fails if anything said was wrong.
The findings depend on the seed and the number of instances alone, not on the machine. Run by ``make
certify``; stopped with Ctrl-C it says what it found so far.
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
from banditrank._cli.output import finite
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
class Tally:
    """What was found for one utility.

    Attributes
    ----------
    instances, certified
        How many were solved with time and to the usual gap, and how many of these were certified.
    loose, rushed
        How many were solved to a looser gap, and how many without any time.
    branched
        How many of all took more than one node.
    wrong
        Of how many something untrue was said: see `banditrank.testing._certificates.find_certificate_error`.
    difference
        The largest |best − value| of a certified answer to the usual gap, as a share of the best.
    slowest
        The longest solve, in seconds.
    """

    solver: str
    instances: int = 0
    certified: int = 0
    loose: int = 0
    rushed: int = 0
    branched: int = 0
    wrong: int = 0
    difference: float = 0.0
    slowest: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Take in what another chunk found."""
        for name in ("instances", "certified", "loose", "rushed", "branched", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.difference = max(self.difference, other.difference)
        self.slowest = max(self.slowest, other.slowest)
        self.findings = sorted(self.findings + other.findings, key=lambda finding: finding["number"])


CountArrays = dict[str, Tally]


def examine(number: int, seed: int, tally: Tally, solver: SolverName, utility: Utility) -> None:
    """Solve one instance and compare."""
    rng = np.random.default_rng([seed, number])
    problem = draw(rng)
    warm_start = rng.permutation(problem.n_items)[: problem.n_positions] if rng.random() < 0.5 else None
    luck = rng.random()
    target_gap = float(10.0 ** rng.uniform(-8, -1)) if luck < 0.1 else DEFAULT_GAP
    time_limit = 0.0 if luck > 0.95 else None
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
    untrue = find_certificate_error(found, problem, utility, best=best, target_gap=target_gap)
    usual = time_limit is None and target_gap == DEFAULT_GAP
    tally.loose += target_gap != DEFAULT_GAP
    tally.rushed += time_limit is not None
    tally.instances += usual
    tally.certified += bool(usual and found.is_certified)
    tally.branched += found.nodes > 1
    tally.wrong += untrue is not None
    tally.slowest = max(tally.slowest, found.seconds)
    if usual and found.is_certified and best > found.value:
        share = float((best - found.value) / abs(best)) if best else math.inf
        tally.difference = max(tally.difference, share)
    if untrue or (not found.is_certified and time_limit is None):
        tally.findings.append(
            {
                "number": number,
                "what": untrue or OPEN,
                "utility": str(utility),
                "arrival_rates": problem.arrival_rates.tolist(),
                "position_preferences": problem.position_preferences.tolist(),
                "item_means": problem.item_means.tolist(),
                "bonuses": None if problem.bonuses is None else problem.bonuses.tolist(),
                "warm_start": None if warm_start is None else warm_start.tolist(),
                "target_gap": target_gap,
                "time_limit": time_limit,
                "best": finite(best),
                "value": finite(found.value),
                "upper_bound": finite(found.upper_bound),
            }
        )


def examine_all(numbers: Iterable[int], seed: int) -> CountArrays:
    """Solve some instances; the number of an instance decides its utility."""
    tallies: CountArrays = {}
    for number in numbers:
        solver, utility = TASKS[number % len(TASKS)]
        examine(number, seed, tallies.setdefault(str(utility), Tally(solver)), solver, utility)
    return tallies


def prepare(seed: int) -> None:
    """Make a worker ready: load what is compiled, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    examine_all(range(len(TASKS)), seed)


def run(instances: int, seed: int, workers: int) -> CountArrays:
    """Solve all instances on some processes; return early, with what there is, when interrupted."""
    tallies = {str(utility): Tally(solver) for solver, utility in TASKS}
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
                for name, tally in job.result().items():
                    tallies[name].add(tally)
                progress.advance(bar, jobs[job])
        except KeyboardInterrupt:
            executor.shutdown(wait=False, cancel_futures=True)
            console.print("interrupted: what follows is what was found so far")
    return tallies


def show(tallies: CountArrays) -> None:
    """Print the table and the findings."""
    table = Table("utility", "solver", "instances", "certified", "loose", "rushed", "branched")
    for title in ("wrong", "largest difference", "slowest"):
        table.add_column(title, justify="right")
    for name, tally in tallies.items():
        counts = (tally.instances, tally.certified, tally.loose, tally.rushed, tally.branched, tally.wrong)
        table.add_row(
            name,
            tally.solver,
            *(f"{count:,}" for count in counts),
            f"{tally.difference:.1e}",
            f"{tally.slowest:.2f} s",
        )
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    for tally in tallies.values():
        for finding in tally.findings[:5]:
            print(json.dumps(finding))


def main() -> int:
    """Run the campaign; return 1 if a certificate or a bound was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("instances", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    start = time.perf_counter()
    tallies = run(options.instances, options.seed, options.workers)
    show(tallies)
    done = sum(tally.instances + tally.loose + tally.rushed for tally in tallies.values())
    wrong = sum(tally.wrong for tally in tallies.values())
    open_ = sum(finding["what"] == OPEN for tally in tallies.values() for finding in tally.findings)
    branched = sum(tally.branched for tally in tallies.values())
    counts = f"{done:,} instances, {branched:,} branched, {wrong} wrong, {open_} open"
    print(f"{counts}, {time.perf_counter() - start:.0f} s")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(
        json.dumps(
            {
                "version": __version__,
                "seed": options.seed,
                "instances_asked_for": options.instances,
                "instances": done,
                "branched": branched,
                "wrong": wrong,
                "open": open_,
                "utilities": {
                    name: {**asdict(tally), "difference": finite(tally.difference)}
                    for name, tally in tallies.items()
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
