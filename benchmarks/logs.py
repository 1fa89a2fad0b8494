"""Click logs: rows of a Parquet file to the cells of a cube, compared with a bare GROUP BY of DuckDB.

``LOG_ROWS=3000000`` in the environment sets the number of rows, 20 million by default. Times are processor
seconds, all threads together, because other load changes wall times.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from interleaving import interleave, ratio

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
    ORDER BY visit, slot
) TO '{path}' (FORMAT parquet)
"""
BARE = "SELECT segment, item, position, count(*), sum(clicked) FROM read_parquet('{path}') GROUP BY ALL"
PEAK = """
import resource, sys
from banditrank.logs import count_log
count_log(sys.argv[1], memory_limit=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
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


def measure_logs() -> Iterator[dict[str, float]]:
    """Compare `count_log` with a bare GROUP BY, and measure its peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.parquet"
        with open_session() as session:
            session.run(WRITE.format(n_visits=N_ROWS // 10, path=path))
        times = interleave(
            {
                "bare": processor_seconds(lambda: group_bare(path)),
                "cells": processor_seconds(lambda: count_log(path, LogColumns(session=""))),
                "above": processor_seconds(lambda: count_log(path)),
            }
        )
        peak = subprocess.run(
            [sys.executable, "-c", PEAK, str(path), MEMORY_LIMIT], check=True, capture_output=True, text=True
        )
    rows = f"{N_ROWS:,} Parquet rows"
    yield {
        f"{rows}, bare GROUP BY, processor seconds": statistics.median(times["bare"]),
        f"{rows} to cells over a bare GROUP BY (at most 1.2)": ratio(times["cells"], times["bare"]),
        f"{rows} to cells with the last click above over a bare GROUP BY (at most 2)": ratio(
            times["above"], times["bare"]
        ),
        f"{rows}, peak memory with a limit of {MEMORY_LIMIT}, MB (at most 800)": float(peak.stdout),
    }
