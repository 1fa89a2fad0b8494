"""Small click logs in all formats, with the cube that they must be counted to."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from banditrank.counts import ClickCube
from banditrank.counts._click_cube import aggregate_cells, aggregate_lists, aggregate_visits

ITEMS = tuple(f"item-{number}" for number in range(1, 7))
TYPES = ("new", "old")


def draw_visits(n_visits: int = 60, n_positions: int = 4, seed: int = 1) -> pd.DataFrame:
    """Return a log with a row for each display, positions from 1."""
    rng = np.random.default_rng(seed)
    rows = []
    for visit in range(n_visits):
        who = TYPES[rng.integers(2)]
        for position, item in enumerate(rng.permutation(len(ITEMS))[:n_positions], start=1):
            rows.append(
                {
                    "session": 1000 + visit,
                    "user_id": int(rng.integers(15)),
                    "segment": who,
                    "item": ITEMS[item],
                    "position": position,
                    "clicked": int(rng.random() < 0.6 / position),
                    "ts": pd.Timestamp("2026-01-01") + pd.Timedelta(hours=3 * visit),
                }
            )
    return pd.DataFrame(rows)


def to_wide(log: pd.DataFrame) -> list[dict[str, object]]:
    """Return a row for each visit."""
    return [
        {
            "session": int(visit),
            "segment": rows["segment"].iloc[0],
            "items": rows["item"].tolist(),
            "clicked_items": rows["item"][rows["clicked"] == 1].tolist(),
            "clicks": rows["clicked"].tolist(),
        }
        for visit, rows in log.groupby("session")
    ]


def write_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def expected_cube(log: pd.DataFrame) -> ClickCube:
    """Return the cube of a log, counted in another way, without folds."""
    wide = to_wide(log)
    index = {name: number for number, name in enumerate(ITEMS)}
    return ClickCube.from_visits(
        [TYPES.index(str(row["segment"])) for row in wide],
        [[index[name] for name in row["items"]] for row in wide],
        [row["clicks"] for row in wide],
        user_types=TYPES,
        item_names=ITEMS,
        users=np.zeros(len(wide), dtype=int),
    )


def without_folds(cube: ClickCube) -> ClickCube:
    """Return a cube with all rows in fold 0."""
    return replace(
        cube,
        cells=aggregate_cells(cube.cells._replace(fold=cube.cells.fold * 0)),
        visits=aggregate_visits(cube.visits._replace(fold=cube.visits.fold * 0)),
        lists=aggregate_lists(cube.lists._replace(fold=cube.lists.fold * 0)),
    )


def assert_same_cube(one: ClickCube, other: ClickCube, *, is_exact: bool = True) -> None:
    """Assert that two cubes have the same cells, visits and lists."""
    for name in ("type_values", "items", "periods", "n_positions"):
        assert getattr(one, name) == getattr(other, name), name
    for table in ("cells", "visits", "lists"):
        left, right = getattr(one, table), getattr(other, table)
        for name, a, b in zip(left._fields, left, right, strict=True):
            if is_exact:
                np.testing.assert_array_equal(a, b, err_msg=f"{table}.{name}")
            else:
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{table}.{name}")
