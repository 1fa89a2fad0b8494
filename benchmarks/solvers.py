"""Speed of the solvers beside HiGHS, and of the simulation loop that uses them.

Everything is solved once at a small size before it is timed: compilation does not count.
"""

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from problems import easy_problem

from banditrank import (
    MAXIMIN,
    NASH,
    BetaRewards,
    Problem,
    Solution,
    UCBRank,
    Utility,
    alpha_fair,
    make_problem,
    simulate,
)
from banditrank.solvers._solve import SolverName, solve
from banditrank.utilities._utility import ramp, sigmoid

Size = tuple[int, int, int]  # N, M, K

SEEDS = 9
ROW_SECONDS = 240.0  # after which a row begins no other seed
REPEAT_SECONDS = 0.1  # what is solved faster is solved several times
REPEATS = 5
HIGHS_LIMIT, HIGHS_ROW_SECONDS = 20.0, 25.0
HIGHS_GAP = 1e-8  # what it proves when it is done: its tolerances forbid more
LOOP_ROUNDS = 3  # interleaved repetitions


class Row(NamedTuple):
    """What is solved, and how fast it should be."""

    utility: Utility
    family: str
    size: Size
    bar: float | None  # seconds
    time_limit: float = 30.0


ROWS = (
    Row(NASH, "random", (10, 200, 20), 0.01),
    Row(NASH, "random", (20, 1000, 20), 0.05),
    Row(NASH, "conflict", (10, 100, 10), 0.02),
    Row(NASH, "conflict", (10, 200, 20), 0.1),
    Row(NASH, "conflict", (20, 1000, 20), 1.0),
    Row(NASH, "common", (10, 200, 20), 0.5),
    Row(NASH, "common-log", (10, 200, 20), 0.5),
    Row(NASH, "conflict-ties", (10, 100, 10), None),
    Row(alpha_fair(5), "conflict", (10, 100, 10), 3.0),
    Row(sigmoid(), "conflict", (10, 100, 10), 2.0),
    Row(ramp(), "conflict", (10, 100, 10), 2.0),
    Row(MAXIMIN, "random", (10, 200, 20), 15.0),
    Row(MAXIMIN, "conflict", (10, 200, 20), 15.0),
    Row(sigmoid(), "conflict", (10, 200, 20), 60.0, 60.0),
    Row(ramp(), "conflict", (10, 200, 20), 60.0, 60.0),
)


def draw(family: str, size: Size, seed: int) -> Problem:
    """Draw a problem."""
    n, m, k = size
    return make_problem(family, n_user_types=n, n_items=m, n_positions=k, seed=seed)


def measure_solvers() -> Iterator[dict[str, float]]:
    """Yield the figures of each row: our time, and the ratio of HiGHS's time to it."""
    for utility in {row.utility: None for row in ROWS}:
        for solver in _solvers(utility):
            solve(draw("conflict", (3, 12, 4), 9), utility, solver=solver, time_limit=5.0)
    for row in ROWS:
        yield _measure_row(row)


def _solvers(utility: Utility) -> tuple[SolverName, ...]:
    return ("auto",) if utility.shape == "non-concave" else ("auto", "outer-approximation")


def _measure_row(row: Row) -> dict[str, float]:
    ours: list[Solution] = []
    times: list[float] = []
    highs: list[Solution] = []
    for seed in range(SEEDS):
        if sum(times) >= ROW_SECONDS:
            break
        problem = draw(row.family, row.size, seed)
        solution, duration = _solve_repeatedly(problem, row)
        ours.append(solution)
        times.append(duration)
        highs += _highs_if_time(problem, row, [solution.seconds for solution in highs])
    instances = f"{row.utility}, {row.family} {'×'.join(map(str, row.size))}"
    certified = sum(solution.is_certified for solution in ours)
    remarks = [f"{len(ours)} seeds"] * (len(ours) < SEEDS)
    remarks += [f"{certified} of {len(ours)} certified"] * (certified < len(ours))
    unit, scale = ("milliseconds", 1e3) if row.bar is None or row.bar < 1 else ("seconds", 1.0)
    bar = "" if row.bar is None else f" (under {scale * row.bar:g})"
    remarks.append(f"{scale * min(times):.3g} to {scale * max(times):.3g}")
    name = ", ".join([instances, *remarks, unit + bar])
    figures = {name: scale * statistics.median(times)}
    if highs:
        ratios = [theirs.seconds / mine for theirs, mine in zip(highs, times, strict=False)]
        figures[f"HiGHS over {instances}{_remarks(ours, highs)}"] = statistics.median(ratios)
    return figures


def _solve_repeatedly(problem: Problem, row: Row) -> tuple[Solution, float]:
    """Return a solution and the median time."""
    solutions = [solve(problem, row.utility, time_limit=row.time_limit)]
    while solutions[0].seconds < REPEAT_SECONDS and len(solutions) < REPEATS:
        solutions.append(solve(problem, row.utility, time_limit=row.time_limit))
    worst = max(solutions, key=lambda solution: solution.gap)
    return worst, statistics.median(solution.seconds for solution in solutions)


def _highs_if_time(problem: Problem, row: Row, spent: list[float]) -> list[Solution]:
    """Return HiGHS's solution, or none if another as slow as the slowest does not fit into the row's time."""
    if len(_solvers(row.utility)) == 1 or sum(spent) + max(spent, default=0.0) > HIGHS_ROW_SECONDS:
        return []
    limit = min(HIGHS_LIMIT, HIGHS_ROW_SECONDS - sum(spent))
    return [solve(problem, row.utility, solver="outer-approximation", time_limit=limit)]


def _remarks(ours: list[Solution], highs: list[Solution]) -> str:
    """Say how many seeds HiGHS was given, whether it ran out of time, and whether it found other values."""
    finished = [solution.gap <= HIGHS_GAP for solution in highs]
    remark = f", {len(highs)} seed{'s' * (len(highs) > 1)}"
    if not all(finished):
        remark += f", at least: {len(highs) - sum(finished)} out of time"
    differing = sum(
        done and mine.is_certified and abs(mine.value - theirs.value) > HIGHS_GAP * max(1.0, abs(mine.value))
        for mine, theirs, done in zip(ours, highs, finished, strict=False)
    )
    return remark + (f", {differing} VALUES DIFFER" if differing else "")


class Loop(NamedTuple):
    """A simulation, and how fast its rounds should be after the initial phase."""

    name: str
    problem: Problem
    utility: str
    skipped: int  # rounds after the initial phase that are not measured
    rounds: int
    bar: float  # microseconds a round


def conflicting_problem(n_user_types: int, n_items: int, n_positions: int) -> Problem:
    """Return conflicting item means with the users of an easy problem.

    With those of the family ``conflict`` more than 16 million rounds are initial.
    """
    easy = easy_problem(n_user_types, n_items, n_positions)
    means = draw("conflict", (n_user_types, n_items, n_positions), 0).item_means
    return Problem(easy.arrival_rates, easy.position_preferences, means, name="bench-conflict")


def measure_search_loops() -> Iterator[dict[str, float]]:
    """Measure a round of equal UCBRank after the initial phase.

    A simulation that ends where measuring begins is taken off a longer one. Under Nash rounds may take longer
    as the gaps asked for get smaller, so later rounds are measured, too.
    """
    small, large = (3, 20, 4), (10, 100, 10)
    easy, random = easy_problem(*small), draw("random", small, 0)
    loops = (
        Loop("3×20×4", easy, "utilitarian", 1, 1_000_000, 3),
        Loop("3×20×4", easy, "nash", 1, 50_000, 20),
        Loop("3×20×4", easy, "nash", 100_000, 20_000, 20),
        Loop("random 3×20×4", random, "nash", 1, 50_000, 20),
        Loop("random 3×20×4", random, "nash", 50_000, 20_000, 20),
        Loop("10×100×10", easy_problem(*large), "nash", 1, 10_000, 1000),
        Loop("conflicting tastes 10×100×10", conflicting_problem(*large), "nash", 1, 1_000, 1000),
    )
    for loop in loops:
        yield _measure_loop(loop)


def _measure_loop(loop: Loop) -> dict[str, float]:
    def run(utility: str, horizon: int) -> tuple[float, int]:
        policy = UCBRank(coefficient=1.0, treatment="equal", utility=utility)
        settings = {"horizon": horizon, "replications": 1, "seed": 1, "workers": 1}
        result = simulate(policy, loop.problem, **settings, rewards=BetaRewards())
        return result.seconds, int(result.initial_rounds[0])

    horizon = initial = 1000
    while initial == horizon:  # the initial phase does not depend on the utility
        horizon *= 2
        _, initial = run("utilitarian", horizon)
    begin = initial + loop.skipped
    times = []
    for _ in range(LOOP_ROUNDS):
        before, _ = run(loop.utility, begin)
        after, ended = run(loop.utility, begin + loop.rounds)
        if ended != initial:
            raise RuntimeError(f"initial phase of {ended} rounds, not {initial}")
        times.append(1e6 * (after - before) / loop.rounds)
    microseconds = statistics.median(times)
    rounds = f"rounds {begin:,} to {begin + loop.rounds:,} after {initial:,} initial ones"
    name = f"equal UCBRank, {loop.utility}, {loop.name}, {rounds}"
    return {
        f"{name}, µs a round (under {loop.bar:,})": microseconds,
        f"{name}, rounds a second (at least {1e6 / loop.bar:,.0f})": 1e6 / microseconds,
    }
