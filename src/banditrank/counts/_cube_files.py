"""Click cubes as directories: three Parquet tables, and a JSON file with names and metadata."""

import json
import os
import shutil
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from banditrank._extras import requires
from banditrank.counts._click_cube import (
    MAX_POSITIONS,
    N_FOLDS,
    UNKNOWN,
    ClickCube,
    CubeCells,
    CubeLists,
    CubeVisits,
)
from banditrank.errors import InvalidInputError, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT_VERSION = 1
"""Version of the files; a cube of a newer version is rejected."""

DESCRIPTION_FILE = "cube.json"
"""Name of the JSON file, by which a directory is known to be a cube."""

_TABLES = ("cells", "visits", "lists")
_N_CELL_KEYS = 6


def save_cube(cube: ClickCube, path: str | Path) -> None:
    """Write a cube to a directory, which replaces an earlier cube of the same name.

    The directory is written under another name and renamed at the end: an interruption leaves the earlier
    cube intact.

    Parameters
    ----------
    cube
        The cube.
    path
        Directory to create; its parent must exist.

    Raises
    ------
    InvalidInputError
        If the path exists and is not a cube, or cannot be written.
    MissingDependencyError
        If PyArrow is not installed.
    """
    with requires("logs", "files of click cubes"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional

    check_cube_path(path)
    target = Path(path).absolute()
    new = target.with_name(f".{target.name[:50]}.{os.getpid()}.new")
    old = target.with_name(f".{target.name[:50]}.{os.getpid()}.old")
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for name in _TABLES:
            pq.write_table(_to_arrow(getattr(cube, name)), new / f"{name}.parquet", compression="zstd")
        text = json.dumps(_describe(cube), indent=1, ensure_ascii=False, allow_nan=False)
        (new / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")
        if target.exists():
            target.rename(old)
        new.rename(target)
    except OSError as error:
        if old.exists() and not target.exists():
            old.rename(target)
        raise InvalidInputError.from_os("cube", "must be writable", path, error) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_cube_path(path: str | Path) -> None:
    """Check that a cube can be written to a path: a new name, or an earlier cube.

    Raises
    ------
    InvalidInputError
        If it cannot.
    """
    target = Path(path).absolute()
    if (target.exists() or target.is_symlink()) and not is_cube(target):
        raise InvalidInputError("cube", "must be a new directory or an earlier cube", str(path))
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InvalidInputError("cube", "must be in a directory that is writable", str(path))


def is_cube(path: str | Path) -> bool:
    """Return whether a path is a directory with a cube."""
    try:
        return (Path(path) / DESCRIPTION_FILE).is_file()
    except OSError:
        return False


def is_cube_file(path: str | Path) -> bool:
    """Return whether a path is a file of a cube, not the directory with the cube."""
    names = {DESCRIPTION_FILE, *(f"{name}.parquet" for name in _TABLES)}
    return Path(path).name in names and is_cube(Path(path).parent)


def load_cube(path: str | Path) -> ClickCube:
    """Read a cube that `ClickCube.save` wrote.

    Parameters
    ----------
    path
        The directory.

    Raises
    ------
    InvalidInputError
        If there is no cube, its files are damaged, or it was written by a newer version.
    MissingDependencyError
        If PyArrow is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> cube = ClickCube.from_visits([0, 0], [[0, 1], [1, 0]], [[1, 0], [0, 0]])
    >>> with TemporaryDirectory() as directory:
    ...     cube.save(f"{directory}/cube")
    ...     load_cube(f"{directory}/cube").n_visits
    2.0
    """
    with requires("logs", "files of click cubes"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional

    directory = Path(path)
    if not is_cube(directory):
        raise InvalidInputError("cube", f"must be a directory with {DESCRIPTION_FILE}", str(path))
    try:
        description = json.loads((directory / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        _check_version(description["version"])
        tables = {name: pq.read_table(directory / f"{name}.parquet") for name in _TABLES}
        cube = _from_parts(description, tables)
    except InvalidInputError:
        raise
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)  # PyArrow's message is the path
        reason = "a file is missing" if missing else one_line(error).lower()
        raise InvalidInputError("cube", f"must be readable ({reason})", str(path)) from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        pa.ArrowException,
    ):
        raise InvalidInputError("cube", "must have undamaged files", str(path)) from None
    _check_consistency(cube, str(path))
    return cube


def _check_version(version: object) -> None:
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        rule = f"must be of a version from 1 to {FORMAT_VERSION}: upgrade banditrank"
        raise InvalidInputError("cube", rule, version)


def _describe(cube: ClickCube) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "n_positions": cube.n_positions,
        "type_columns": list(cube.type_columns),
        "type_values": [list(values) for values in cube.type_values],
        "items": list(cube.items),
        "periods": list(cube.periods),
        "metadata": dict(cube.metadata),
    }


def _to_arrow(table: CubeCells | CubeVisits | CubeLists) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - heavy, and optional

    columns: dict[str, Any] = {}
    for name, column in table._asdict().items():
        if column.ndim == 2:  # (L, K)
            flat = pa.array(np.ascontiguousarray(column).ravel())
            columns[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
        else:
            columns[name] = pa.array(column)
    return pa.table(columns)


def _from_parts(description: dict[str, Any], tables: dict[str, Any]) -> ClickCube:
    n_positions = int(description["n_positions"])
    if not 1 <= n_positions <= MAX_POSITIONS:
        raise ValueError
    items = tables["lists"]["items"].combine_chunks()
    if items.type.list_size != n_positions or items.null_count:
        raise ValueError
    lists = CubeLists(
        _column(tables["lists"], "fold"),
        _column(tables["lists"], "user_type"),
        np.asarray(items.flatten(), dtype=np.int64).reshape(len(items), n_positions),
        _column(tables["lists"], "clicks"),
        _column(tables["lists"], "visits", np.float64),
    )
    cells = {
        name: _column(tables["cells"], name, np.int64 if number < _N_CELL_KEYS else np.float64)
        for number, name in enumerate(CubeCells._fields)
    }
    visits = {
        name: _column(tables["visits"], name, np.float64 if name == "visits" else np.int64)
        for name in CubeVisits._fields
    }
    return ClickCube(
        _texts(description["type_columns"]),
        tuple(_texts(values) for values in description["type_values"]),
        _texts(description["items"]),
        _texts(description["periods"]),
        n_positions,
        CubeCells(**cells),
        CubeVisits(**visits),
        lists,
        dict(description["metadata"]),
    )


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError
    return tuple(values)


def _column(table: Any, name: str, dtype: Any = np.int64) -> "NDArray[Any]":
    column = table[name].combine_chunks()
    if column.null_count:
        raise ValueError
    values = np.asarray(column)
    if values.dtype != dtype:
        raise ValueError
    return values


def _check_consistency(cube: ClickCube, path: str) -> None:
    """Raise if an index points beyond its names, or a count is not one: files of different cubes."""
    for name in chain(cube.type_columns, *cube.type_values, cube.items, cube.periods):
        if not name.isprintable():
            raise InvalidInputError("cube", "must have printable names", name)
    n_types, n_items, n_periods = len(cube.type_values), len(cube.items), len(cube.periods)
    cells, visits, lists = cube.cells, cube.visits, cube.lists
    widths = {len(values) for values in cube.type_values}
    expected = {max(1, len(cube.type_columns))}
    indices = (
        *((cells.period, 0, n_periods), (cells.fold, UNKNOWN, N_FOLDS), (cells.user_type, 0, n_types)),
        *((cells.item, 0, n_items), (cells.position, 0, cube.n_positions)),
        *((cells.above, UNKNOWN, cube.n_positions), (visits.period, 0, n_periods)),
        *((visits.fold, UNKNOWN, N_FOLDS), (visits.user_type, 0, n_types)),
        *((visits.n_clicks, 0, cube.n_positions + 1), (lists.fold, UNKNOWN, N_FOLDS)),
        *((lists.user_type, 0, n_types), (lists.items, UNKNOWN, n_items)),
        (lists.clicks, 0, 1 << cube.n_positions),
    )
    in_range = all(
        not column.size or (column.min() >= low and column.max() < high) for column, low, high in indices
    )
    amounts = (*cells[_N_CELL_KEYS:], visits.visits, lists.visits)
    are_counts = all(bool((np.isfinite(column) & (column >= 0)).all()) for column in amounts)
    if not in_range or not are_counts or (widths and widths != expected):
        raise InvalidInputError("cube", "must have files that belong together", path)
    if (cells.clicks > cells.displays).any():
        raise InvalidInputError("cube", "must have at most as many clicks as displays", path)
