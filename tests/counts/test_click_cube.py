"""Click cubes: additivity, parts, folds, and files."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditrank import InvalidInputError, evaluate
from banditrank.counts import ClickCube, _click_cube, load_cube, merge_cubes
from banditrank.counts._click_cube import UNKNOWN, CubeCells, merge_metadata
from banditrank.counts._cube_files import FORMAT_VERSION
from banditrank.estimators import fit_click_model, select_click_model
from banditrank.logs import assess_user_types, diagnose, log_report

NAMES = [f"item-{number}" for number in range(1, 6)]


def draw(seed: int, n: int = 40) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    items = np.array([rng.permutation(5)[:3] for _ in range(n)])
    items[rng.random(items.shape) < 0.1] = -1
    clicks = rng.random(items.shape) < 0.4
    return rng.integers(0, 2, n), items, clicks, rng.integers(0, 50, n), rng.uniform(0.1, 1, items.shape)


def cube_of(*parts: tuple[np.ndarray, ...]) -> ClickCube:
    types, items, clicks, users, propensities = (np.concatenate(each) for each in zip(*parts, strict=True))
    return ClickCube.from_visits(
        types,
        items,
        clicks,
        user_types=["new", "old"],
        item_names=NAMES,
        users=users,
        propensities=propensities,
    )


def assert_equal(a: ClickCube, b: ClickCube) -> None:
    for name in ("type_columns", "type_values", "items", "periods", "n_positions", "metadata"):
        assert getattr(a, name) == getattr(b, name), name
    for table in ("cells", "visits", "lists"):
        for name, one, other in zip(
            getattr(a, table)._fields, getattr(a, table), getattr(b, table), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_cube_of_two_parts_is_the_sum_of_their_cubes(a: int, b: int) -> None:
    one, other = draw(a), draw(b)
    assert_equal(cube_of(one) + cube_of(other), cube_of(one, other))
    assert_equal(cube_of(one) + cube_of(other), cube_of(other) + cube_of(one))
    assert_equal(merge_cubes([cube_of(one), cube_of(other)]), cube_of(one, other))


def test_cells_agree_with_a_plain_count() -> None:
    types, items, clicks, users, propensities = draw(1)
    cube = cube_of(draw(1))
    expected: dict[tuple[int, ...], np.ndarray] = {}
    for who, shown, clicked, user, chances in zip(types, items, clicks, users, propensities, strict=True):
        hits = [k for k in range(3) if clicked[k] and shown[k] >= 0]
        for k in range(3):
            if shown[k] < 0:
                continue
            above = max((hit + 1 for hit in hits if hit < k), default=0)
            is_hit, weight = k in hits, 1 / chances[k]
            values = [1, is_hit, not hits or k <= hits[-1], is_hit and k == hits[-1]]
            values += [weight, weight**2, weight * is_hit, weight**2 * is_hit]
            key = (0, user % 20, who, shown[k], k, above)
            expected[key] = expected.get(key, 0) + np.array(values, dtype=float)
    keys = list(zip(*cube.cells[:6], strict=True))
    assert keys == sorted(expected)
    for number, key in enumerate(keys):
        np.testing.assert_allclose([column[number] for column in cube.cells[6:]], expected[key])


def test_cubes_with_other_names_are_aligned() -> None:
    a = ClickCube.from_visits([0], [[0, 1]], [[1, 0]], user_types=["b"], item_names=["y", "x"])
    b = ClickCube.from_visits([0], [[0, 1, 2]], [[0, 0, 1]], user_types=["a"], item_names=["z", "y", "x"])
    total = a + b
    assert (total.user_types, total.items, total.n_positions) == (("a", "b"), ("x", "y", "z"), 3)
    assert total.table(total.cells.clicks).sum(axis=(1, 2)).tolist() == [1, 1]
    assert total.lists.items.tolist() == [[2, 1, 0], [1, 0, UNKNOWN]]


def test_cubes_that_do_not_fit_are_rejected() -> None:
    cube = cube_of(draw(1))
    with pytest.raises(InvalidInputError, match="must have the same type columns"):
        cube + replace(cube, type_columns=("other",))
    without = replace(cube, visits=type(cube.visits)(*(column[:0] for column in cube.visits)))
    with pytest.raises(InvalidInputError, match="must both have visits"):
        cube + without
    with pytest.raises(InvalidInputError, match="cubes must be at least one"):
        merge_cubes([])


def test_rows_by_reason_are_added_and_differences_are_left_out() -> None:
    one = {"rows": {"counted": 2, "missing item": 1}, "columns": {"item": "a"}, "period": "day"}
    other = {"rows": {"counted": 3}, "columns": {"item": "b"}, "period": "day"}
    assert merge_metadata(one, other) == {"rows": {"counted": 5, "missing item": 1}, "period": "day"}
    assert merge_metadata(one, {}) == one


def test_parts_are_renumbered() -> None:
    cube = cube_of(draw(2))
    part = cube.select(user_types=[1], items=[3, 0], n_positions=2, folds=[0, 1, 2, 3, 4])
    assert (part.user_types, part.items, part.n_positions) == (("old",), ("item-4", "item-1"), 2)
    chosen = cube.table_by_fold(cube.cells.displays)[:5, 1][:, [3, 0], :2].sum(axis=0)
    np.testing.assert_array_equal(part.table(part.cells.displays)[0], chosen)
    assert part.select(periods=[0]).n_visits == part.n_visits


def test_types_are_regrouped_by_some_of_their_columns() -> None:
    cube = cube_of(draw(3))
    values = (("new", "de"), ("new", "fr"))
    two = replace(cube, type_columns=("age", "country"), type_values=values)
    assert_equal(two.regroup(["age"]).regroup([]), cube.regroup([]))
    assert two.regroup(["country"]).type_values == (("de",), ("fr",))
    assert two.regroup(["age"]).n_visits == cube.n_visits
    with pytest.raises(InvalidInputError, match=r"column must be one of age, country .*got 'contry'"):
        two.regroup(["contry"])


def test_unknown_folds_are_split_at_random() -> None:
    cube = cube_of(draw(4))
    fold = np.full_like(cube.cells.fold, UNKNOWN)
    unknown = replace(cube, cells=cube.cells._replace(fold=fold))
    split = unknown.split_folds(np.random.default_rng(0))
    for name in CubeCells._fields[6:]:
        np.testing.assert_allclose(
            split.table(getattr(split.cells, name)), cube.table(getattr(cube.cells, name)), err_msg=name
        )
    assert set(split.cells.fold) <= set(range(20))
    assert len(set(split.cells.fold)) > 10
    assert cube.split_folds(np.random.default_rng(0)) is cube


def test_visits_without_an_id_are_in_the_fold_of_their_displays() -> None:
    types, items, clicks, _, _ = draw(8, 400)
    cube = ClickCube.from_visits(types, items, clicks)
    parts = (
        part._replace(fold=np.full_like(part.fold, UNKNOWN)) for part in (cube.cells, cube.visits, cube.lists)
    )
    cells, visits, lists = parts
    unknown = replace(cube, cells=cells, visits=visits, lists=lists).regroup(cube.type_columns)
    split = unknown.split_folds(np.random.default_rng(0))
    assert split.n_visits == pytest.approx(400)
    assert split.lists.visits.sum() == 400
    assert all(split.select(folds=[fold]).has_visits for fold in range(20))
    displays, clicked = (split.table_by_fold(values) for values in (split.cells.displays, split.cells.clicks))
    expected = np.zeros((2, *displays.shape))
    for fold, user_type, shown, bits, n in zip(*split.lists, strict=True):
        for position in np.flatnonzero(shown >= 0):
            cell = (fold, user_type, shown[position], position)
            expected[0][cell] += n
            expected[1][cell] += n * (bits >> position & 1)
    np.testing.assert_allclose(displays, expected[0])
    np.testing.assert_allclose(clicked, expected[1])


def test_periods_are_merged() -> None:
    types, items, clicks, _, _ = draw(9, 200)
    cube = ClickCube.from_visits(types, items, clicks)
    assert cube.merge_periods() is cube
    two = ClickCube.from_visits(types, items, clicks, period=np.arange(200) % 2, periods=["a", "b"])
    assert_equal(two.merge_periods(), cube)


def test_a_saved_cube_is_loaded_as_it_was(tmp_path: Path) -> None:
    cube = replace(cube_of(draw(5)), metadata={"rows": {"counted": 3}, "note": "é"})
    cube.save(tmp_path / "cube")
    assert_equal(load_cube(tmp_path / "cube"), cube)
    other = cube_of(draw(6))
    other.save(tmp_path / "cube")
    assert_equal(load_cube(tmp_path / "cube"), other)
    assert [path.name for path in tmp_path.iterdir()] == ["cube"]


def test_nothing_else_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "file").write_text("x")
    cube = cube_of(draw(5))
    for name in ("precious", "file"):
        with pytest.raises(InvalidInputError, match="cube must be a new directory or an earlier cube"):
            cube.save(tmp_path / name)
    with pytest.raises(InvalidInputError, match="cube must be in a directory that is writable"):
        cube.save(tmp_path / "none" / "cube")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "precious"]


def damage(directory: Path, kind: str) -> None:  # noqa: C901 - a case a damage
    description = json.loads((directory / "cube.json").read_text())
    cells = pq.read_table(directory / "cells.parquet")
    match kind:
        case "version":
            description["version"] = FORMAT_VERSION + 1
        case "json":
            (directory / "cube.json").write_text("{")
            return
        case "not an object":
            (directory / "cube.json").write_text("[1]")
            return
        case "deep":
            (directory / "cube.json").write_text("[" * 100_000)
            return
        case "items":
            description["items"] = description["items"][:-1]
        case "names":
            description["items"] = 7
        case "positions":
            description["n_positions"] = 10**30
        case "missing":
            (directory / "visits.parquet").unlink()
        case "cut":
            data = (directory / "cells.parquet").read_bytes()
            (directory / "cells.parquet").write_bytes(data[: len(data) // 2])
        case "column":
            pq.write_table(cells.drop_columns(["above"]), directory / "cells.parquet")
        case "clicks":
            changed = cells.set_column(7, "clicks", [np.asarray(cells["displays"]) + 1])
            pq.write_table(changed, directory / "cells.parquet")
        case "negative":
            changed = cells.set_column(6, "displays", [-np.asarray(cells["displays"])])
            pq.write_table(changed, directory / "cells.parquet")
    (directory / "cube.json").write_text(json.dumps(description))


DAMAGES = {
    "version": "must be of a version from 1 to 1: upgrade banditrank, got 2",
    "json": "must have undamaged files",
    "not an object": "must have undamaged files",
    "deep": "must have undamaged files",
    "items": "must have files that belong together",
    "names": "must have undamaged files",
    "positions": "must have undamaged files",
    "missing": r"must be readable \(a file is missing\)",
    "cut": "must (have undamaged files|be readable)",
    "column": "must have undamaged files",
    "clicks": "must have at most as many clicks as displays",
    "negative": "must have files that belong together",
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_files_are_one_line(tmp_path: Path, kind: str) -> None:
    cube_of(draw(7)).save(tmp_path / "cube")
    damage(tmp_path / "cube", kind)
    with pytest.raises(InvalidInputError, match=f"cube {DAMAGES[kind]}") as caught:
        load_cube(tmp_path / "cube")
    assert "\n" not in str(caught.value)


def test_other_directories_are_not_cubes(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cube must be a directory with cube.json"):
        load_cube(tmp_path)


@pytest.mark.parametrize(
    "analyse", [select_click_model, fit_click_model, diagnose, assess_user_types, evaluate, log_report]
)
def test_cubes_of_too_many_cells_are_not_analysed(
    analyse: Callable[[ClickCube], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_click_cube, "MAX_ANALYSED_CELLS", 2 * 4 * 3 * 3)
    remedy = "with cube.select(items=cube.most_shown_items(4)) or fewer"
    with pytest.raises(InvalidInputError, match=f"at most 72 cells.*{re.escape(remedy)}, got '2 user types"):
        analyse(cube_of(draw(0)))
    monkeypatch.setattr(_click_cube, "MAX_ANALYSED_CELLS", 17)
    with pytest.raises(InvalidInputError, match="keep fewer user types"):
        analyse(cube_of(draw(0)))
