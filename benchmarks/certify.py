"""Look for a wrong certificate: many small instances, solved and compared with trying all rankings.

Half of the instances are drawn from the families of `banditrank.model.generators`; the others are degenerate
on purpose, with zeros, ties, duplicate items, types that never arrive and values of very different size.
Some are solved to a loose gap and some without any time: what is said of them must hold too.

Prints a table, writes output/certify.json, and fails if a certificate or a bound was wrong. The findings
depend on the seed and the number of instances alone, not on the machine. Run by ``make certify``; stopped
with Ctrl-C it says what it found so far.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from banditrank import MAXIMIN, NASH, UTILITARIAN, __version__, alpha_fair, custom, generate
from banditrank.model.generators import FAMILIES, exponential_bonuses
from banditrank.solvers.solution import gap_unit
from banditrank.solvers.solve import DEFAULT_GAP, SolverName, solve
from banditrank.utilities.utility import Utility, ramp, sigmoid

Floats = NDArray[np.float64]

OUTPUT = Path(__file__).parent.parent / "output" / "certify.json"
CHUNK = 200  # instances that a worker takes at a time
MOST_RANKINGS = 400
ROUNDING = 1e-12  # two orders of adding the same numbers differ by less, as a share of their sum
SIZES = tuple(
    (n, m, k)
    for n in (1, 2, 3, 4)
    for m in range(1, 21)
    for k in range(1, m + 1)
    if math.perm(m, k) <= MOST_RANKINGS
)

UTILITIES: dict[SolverName, tuple[Utility, ...]] = {
    "assignment": (UTILITARIAN,),
    "branch-and-bound": (
        NASH,
        alpha_fair(0.5),
        alpha_fair(2),
        alpha_fair(5),
        MAXIMIN,
        custom(
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
        custom(
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
    wrong_certificates, wrong_bounds
        How many claimed to be closer to the best than they were, or that the best is less than it is.
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
    wrong_certificates: int = 0
    wrong_bounds: int = 0
    difference: float = 0.0
    slowest: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Take in what another chunk found."""
        for name in ("instances", "certified", "loose", "rushed", "wrong_certificates", "wrong_bounds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.difference = max(self.difference, other.difference)
        self.slowest = max(self.slowest, other.slowest)
        self.findings = sorted(self.findings + other.findings, key=lambda finding: finding["number"])


Tallies = dict[str, Tally]


def draw(rng: np.random.Generator) -> tuple[SimpleNamespace, Floats | None]:
    """Draw a world and bonuses for its items."""
    n, m, k = SIZES[rng.integers(len(SIZES))]
    if rng.random() < 0.5:
        family = sorted(FAMILIES)[rng.integers(len(FAMILIES))]
        seed = int(rng.integers(2**31))
        problem = generate(family, n_user_types=n, n_items=m, n_positions=k, seed=seed)
        known = SimpleNamespace(
            arrival_rates=problem.arrival_rates,
            position_preferences=problem.position_preferences,
            item_means=problem.item_means,
        )
        return known, exponential_bonuses(m, seed=seed) if rng.random() < 0.5 else None
    return degenerate(rng, n, m, k)


def degenerate(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[SimpleNamespace, Floats | None]:
    """Draw a world of the kind that arithmetic and ties make difficult."""
    means = pick(
        rng,
        lambda: rng.integers(2, size=(n, m)).astype(np.float64),
        lambda: rng.choice([0.0, 0.5, 1.0], (n, m)),
        lambda: rng.uniform(0.0, 1.0, (n, m)).round(1),
        lambda: 10.0 ** rng.uniform(-6, 0, (n, m)),
        lambda: np.where(rng.random((n, m)) < 0.6, 0.0, rng.uniform(0.0, 1.0, (n, m))),
        lambda: np.full((n, m), rng.uniform(0.1, 1.0)) + 1e-9 * rng.random((n, m)),
    )
    if rng.random() < 0.4:  # duplicates
        means = means[:, rng.integers(m, size=m)]
    preferences = pick(
        rng,
        lambda: rng.dirichlet(np.ones(k), n),
        lambda: rng.integers(2, size=(n, k)).astype(np.float64),
        lambda: np.tile(rng.dirichlet(np.ones(k)), (n, 1)),
        lambda: np.full((n, k), 1.0 / k),
        lambda: 10.0 ** rng.uniform(-4, 0, (n, k)),
    )
    rates = pick(
        rng,
        lambda: rng.dirichlet(np.ones(n)),
        lambda: rng.integers(2, size=n).astype(np.float64),
        lambda: np.full(n, 1.0 / n),
        lambda: 10.0 ** rng.uniform(-8, 0, n),
    )
    if not rates.any():  # somebody must arrive
        rates[rng.integers(n)] = 1.0
    bonuses = pick(
        rng,
        lambda: None,
        lambda: None,
        lambda: rng.exponential(0.05, m),
        lambda: rng.integers(2, size=m).astype(np.float64),
        lambda: rng.choice([0.0, 0.1], m),
        lambda: 10.0 ** rng.uniform(-6, 2, m),
    )
    known = SimpleNamespace(arrival_rates=rates, position_preferences=preferences, item_means=means)
    return known, bonuses


def pick(rng: np.random.Generator, *choices: Callable[[], Any]) -> Any:
    """Return what one of the functions gives."""
    return choices[rng.integers(len(choices))]()


def examine(number: int, seed: int, tally: Tally, solver: SolverName, utility: Utility) -> None:
    """Solve one instance and compare."""
    rng = np.random.default_rng([seed, number])
    known, bonuses = draw(rng)
    n_items, n_positions = known.item_means.shape[1], known.position_preferences.shape[1]
    warm_start = rng.permutation(n_items)[:n_positions] if rng.random() < 0.5 else None
    luck = rng.random()
    target_gap = float(10.0 ** rng.uniform(-8, -1)) if luck < 0.1 else DEFAULT_GAP
    time_limit = 0.0 if luck > 0.95 else None
    found = solve(
        known,
        utility,
        solver=solver,
        bonuses=bonuses,
        warm_start=warm_start,
        target_gap=target_gap,
        time_limit=time_limit,
    )
    best = float(solve(known, utility, solver="enumeration", bonuses=bonuses).value)
    rounding = ROUNDING * (abs(best) + (0.0 if bonuses is None else float(bonuses.sum())))
    missing = best - found.value if best > found.value else 0.0  # equal infinities included
    allowed = target_gap * gap_unit(utility.compiled(), best)
    wrong_bound = bool(found.upper_bound < best - rounding)
    wrong_certificate = bool(found.certified and missing > allowed + rounding)
    usual = time_limit is None and target_gap == DEFAULT_GAP
    tally.loose += target_gap != DEFAULT_GAP
    tally.rushed += time_limit is not None
    tally.instances += usual
    tally.certified += bool(usual and found.certified)
    tally.wrong_bounds += wrong_bound
    tally.wrong_certificates += wrong_certificate
    tally.slowest = max(tally.slowest, found.seconds)
    if usual and found.certified and missing > 0.0:
        tally.difference = max(tally.difference, float(missing / abs(best)) if best else math.inf)
    what = "wrong bound" if wrong_bound else "wrong certificate" if wrong_certificate else "open"
    if wrong_bound or wrong_certificate or (not found.certified and time_limit is None):
        tally.findings.append(
            {
                "number": number,
                "what": what,
                "utility": str(utility),
                "arrival_rates": known.arrival_rates.tolist(),
                "position_preferences": known.position_preferences.tolist(),
                "item_means": known.item_means.tolist(),
                "bonuses": None if bonuses is None else bonuses.tolist(),
                "warm_start": None if warm_start is None else warm_start.tolist(),
                "target_gap": target_gap,
                "time_limit": time_limit,
                "best": best,
                "value": float(found.value),
                "upper_bound": float(found.upper_bound),
            }
        )


def examine_all(numbers: Iterable[int], seed: int) -> Tallies:
    """Solve some instances; the number of an instance decides its utility."""
    tallies: Tallies = {}
    for number in numbers:
        solver, utility = TASKS[number % len(TASKS)]
        examine(number, seed, tallies.setdefault(str(utility), Tally(solver)), solver, utility)
    return tallies


def prepare(seed: int) -> None:
    """Make a worker ready: load what is compiled, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    examine_all(range(len(TASKS)), seed)


def run(instances: int, seed: int, workers: int) -> Tallies:
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


def show(tallies: Tallies) -> None:
    """Print the table and the findings."""
    table = Table("utility", "solver", *(("instances", "certified", "loose", "rushed")))
    for title in ("wrong certificates", "wrong bounds", "largest difference", "slowest"):
        table.add_column(title, justify="right")
    for name, tally in tallies.items():
        counts = (tally.instances, tally.certified, tally.loose, tally.rushed)
        wrong = (tally.wrong_certificates, tally.wrong_bounds)
        table.add_row(
            name,
            tally.solver,
            *(f"{count:,}" for count in (*counts, *wrong)),
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
    wrong = sum(tally.wrong_certificates + tally.wrong_bounds for tally in tallies.values())
    open_ = sum(finding["what"] == "open" for tally in tallies.values() for finding in tally.findings)
    print(f"{done:,} instances, {wrong} wrong, {open_} open, {time.perf_counter() - start:.0f} s")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(
        json.dumps(
            {
                "version": __version__,
                "seed": options.seed,
                "instances_asked_for": options.instances,
                "instances": done,
                "wrong": wrong,
                "open": open_,
                "utilities": {name: asdict(tally) for name, tally in tallies.items()},
            },
            indent=2,
        )
        + "\n",
        encoding="utf-8",
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
