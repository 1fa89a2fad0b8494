"""Click logs: counting compared with a bare GROUP BY of DuckDB, fits of click models, and evaluation.

``LOG_ROWS=3000000`` in the environment sets the number of rows, 20 million by default. Times are processor
seconds, all threads together, because other load changes wall times.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from interleaving import interleave, ratio

from banditrank.counts import ClickCube, merge_cubes
from banditrank.estimators import fit_click_model
from banditrank.estimators._click_models._parameters import MODEL_NAMES, ClickModelName
from banditrank.evaluation import evaluate
from banditrank.logs import LogColumns, count_log
from banditrank.logs._duckdb_session import open_session

N_ROWS = int(os.environ.get("LOG_ROWS", "20000000"))
MEMORY_LIMIT = "500MB"

WRITE = """
COPY (
    SELECT visit AS session, 'segment-' || (hash(visit) % 10) AS segment,
        'item-' || ((hash(visit * 31) + slot * 7) % 200) AS item, slot::INTEGER AS position,
        (hash(visit * 1000 + slot) % 1000 < 30 / slot)::INTEGER AS clicked
    FROM (SELECT range AS visit FROM range({n_visits})), (SELECT unnest(range(1, 11)) AS slot)
    ORDER BY {order}
) TO '{path}' (FORMAT parquet)
"""
BARE = "SELECT segment, item, position, count(*), sum(clicked) FROM read_parquet('{path}') GROUP BY ALL"
# Not ru_maxrss, which is at least that of this process when it starts the other one.
PEAK = """
import re, sys
from pathlib import Path
from banditrank.logs import count_log
count_log(sys.argv[1], memory_limit=sys.argv[2])
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def processor_seconds(work: Callable[[], object]) -> Callable[[], float]:
    """Return a measurement of the processor time of work in this process."""

    def now() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def measure() -> float:
        start = now()
        work()
        return now() - start

    return measure


def group_bare(path: Path) -> None:
    """Group with DuckDB alone."""
    with open_session() as session:
        session.fetch_arrow(BARE.format(path=path))


def browsing_cube(n_visits: int, n_user_types: int, n_items: int, n_positions: int) -> ClickCube:
    """Return the cube of random rankings, whose users look less often far below their last click."""
    rng = np.random.default_rng(0)
    user_type = rng.integers(0, n_user_types, n_visits)
    items = np.argsort(rng.random((n_visits, n_items)), axis=1)[:, :n_positions]
    appeal = rng.uniform(0.1, 0.5, (n_user_types, n_items))[user_type[:, None], items]
    clicks = np.zeros(items.shape, dtype=np.bool_)
    above = np.zeros(n_visits)
    for k in range(n_positions):
        clicks[:, k] = rng.random(n_visits) < appeal[:, k] * (k + 1 - above) ** -0.7
        above[clicks[:, k]] = k + 1
    return ClickCube.from_visits(user_type, items, clicks)


def measure_models() -> Iterator[dict[str, float]]:
    """Measure fits and evaluation in a process of its own, with one thread of BLAS.

    Threads of BLAS that wait for each other count as processor time.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__]
    made = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    for line in made.stdout.splitlines():
        yield json.loads(line)


def measure_fits() -> Iterator[dict[str, float]]:
    """Measure the fits of all click models with intervals."""
    cube = browsing_cube(100_000, 10, 200, 20)

    def fit(model: ClickModelName) -> Callable[[], float]:
        fit_click_model(cube.select(user_types=[0]), model, held_out=False)  # compiles
        return processor_seconds(lambda: fit_click_model(cube, model, held_out=False))

    times = interleave({model: fit(model) for model in MODEL_NAMES})
    size = "10 types, 200 items, 20 positions"
    yield {
        f"fit of {model}, {size}, processor seconds (at most 1)": statistics.median(seconds)
        for model, seconds in times.items()
    }


def measure_evaluation() -> Iterator[dict[str, float]]:
    """Compare evaluations of logs of the same cells, one with ten times as many rows."""
    once = browsing_cube(50_000, 2, 20, 5)
    ten_times = merge_cubes([once] * 10)
    evaluate(once)  # compiles
    times = interleave(
        {
            "once": processor_seconds(lambda: evaluate(once)),
            "ten times": processor_seconds(lambda: evaluate(ten_times)),
        }
    )
    large = browsing_cube(100_000, 10, 200, 20)
    yield {
        "evaluation, 2 types, 20 items, 5 positions, processor seconds": statistics.median(times["once"]),
        "evaluation, 10 types, 200 items, 20 positions, processor seconds": processor_seconds(
            lambda: evaluate(large)
        )(),
        "evaluation of ten times the rows over once (about 1)": ratio(times["ten times"], times["once"]),
    }


def peak_megabytes(path: Path) -> float:
    """Return the peak memory of a process that counts a log."""
    command = [sys.executable, "-c", PEAK, str(path), MEMORY_LIMIT]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_logs() -> Iterator[dict[str, float]]:
    """Compare `count_log` with a bare GROUP BY, and measure its peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.parquet"
        with open_session() as session:
            session.run(WRITE.format(n_visits=N_ROWS // 10, path=path, order="visit, slot"))
        times = interleave(
            {
                "bare": processor_seconds(lambda: group_bare(path)),
                "cells": processor_seconds(lambda: count_log(path, LogColumns(session=""))),
                "above": processor_seconds(lambda: count_log(path)),
            }
        )
        peak = peak_megabytes(path)
        with open_session() as session:
            session.run(WRITE.format(n_visits=N_ROWS // 10, path=path, order="slot, visit"))
        scattered_peak = peak_megabytes(path)
    rows = f"{N_ROWS:,} Parquet rows"
    yield {
        f"{rows}, bare GROUP BY, processor seconds": statistics.median(times["bare"]),
        f"{rows} to cells over a bare GROUP BY (at most 1.2)": ratio(times["cells"], times["bare"]),
        f"{rows} to cells with the last click above over a bare GROUP BY (at most 2)": ratio(
            times["above"], times["bare"]
        ),
        f"{rows}, peak memory with a limit of {MEMORY_LIMIT}, MB (at most 800)": peak,
        f"{rows} of scattered visits, the same (at most 800)": scattered_peak,
    }


if __name__ == "__main__":
    for figures in (*measure_fits(), *measure_evaluation()):
        print(json.dumps(figures), flush=True)
