"""Export of a surface with its counts to a file, and import into another store.

The file is one JSON object: ``format``, ``banditrank`` (the version that wrote it), ``exported`` (when),
``version`` (of the counts), ``surface`` (its settings) and ``counts``, a list of cells by name, each on a
line of its own. Rewards are whole multiples of 2⁻²⁰ and so exact in decimal notation. Cells of the arms of
experiments also have an ``arm_code``, and ``arms`` lists the visits and the squared rewards of each.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from banditrank import __version__
from banditrank._checks import check_integer, check_number
from banditrank.engine._counts_replica import CountsReplica
from banditrank.engine._surface import Surface, without_unused_utility
from banditrank.errors import InvalidInputError, UnknownNameError, UnknownSurfaceError
from banditrank.storage._base import Store
from banditrank.storage._cells import CELL, SQUARES, Cells, decode_cells
from banditrank.storage._records import (
    MAX_ARM_CODE,
    REWARD_UNITS,
    SurfaceRecord,
    arm_code_of,
    coded,
    user_type_of,
)

FORMAT = "banditrank surface 1"
_MAX_DISPLAYS = 1 << 40  # of a cell, far below the limit of its type
_CELL = ("user_type", "position", "item", "displays", "rewards")
_ARM = ("user_type", "arm_code", "visits", "squared_rewards")


def export_surface(store: Store, name: str, *, now: datetime | None = None) -> dict[str, Any]:
    """Return a surface and its latest counts as JSON-compatible values.

    Parameters
    ----------
    store
        The surface's store.
    name
        Name of the surface.
    now
        Time of the export; the present by default.

    Raises
    ------
    UnknownSurfaceError
        If the store has no surface of this name.

    Examples
    --------
    >>> from banditrank.storage._memory import MemoryStore
    >>> store = MemoryStore()
    >>> record = store.create_surface("home", Surface("home", items=["a", "b"], n_positions=1).definition)
    >>> import_surface(store, export_surface(store, "home"), name="copy").name
    'copy'
    """
    before = store.read_surface(name)
    version, cells = CountsReplica(store, before.surface_id, _surface(before)).cells()
    after = store.read_surface(name)  # again: it has all items that were counted
    if after.surface_id != before.surface_id:
        raise UnknownSurfaceError("surface", name, ())
    surface = _surface(after)
    decoded = decode_cells(cells)
    is_square = decoded["position"] == SQUARES
    return {
        "format": FORMAT,
        "banditrank": __version__,
        "exported": (datetime.now(UTC) if now is None else now).isoformat(timespec="seconds"),
        "version": version,
        "surface": surface.to_dict(),
        "arms": [
            {
                "user_type": surface.user_types[user_type_of(coded_type)],
                "arm_code": arm_code_of(coded_type),
                "visits": visits,
                "squared_rewards": squares / REWARD_UNITS,
            }
            for coded_type, _, _, visits, squares in decoded[is_square].tolist()
        ],
        "counts": [
            {
                "user_type": surface.user_types[user_type_of(coded_type)],
                "position": position + 1,
                "item": surface.items[item],
                "displays": displays,
                "rewards": rewards / REWARD_UNITS,
                **({"arm_code": code} if (code := arm_code_of(coded_type)) else {}),
            }
            for coded_type, position, item, displays, rewards in decoded[~is_square].tolist()
        ],
    }


def as_text(document: Mapping[str, Any]) -> str:
    """Return an exported surface as JSON, a cell on each line."""
    head = json.dumps({**document, "counts": None}, indent=2, ensure_ascii=False, allow_nan=False)
    lines = [json.dumps(cell, ensure_ascii=False, allow_nan=False) for cell in document["counts"]]
    counts = "[\n    " + ",\n    ".join(lines) + "\n  ]" if lines else "[]"
    return head.removesuffix("null\n}") + counts + "\n}\n"


def read_document(path: Path | str) -> Any:
    """Return the content of a JSON file.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError.from_os("file", "must be readable", path, error) from None
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise InvalidInputError("file", f"must be JSON ({reason})", str(path)) from None


def import_surface(store: Store, document: Any, *, name: str | None = None) -> SurfaceRecord:
    """Create a surface with the counts of an exported one, atomically.

    Parameters
    ----------
    store
        Where the surface is created.
    document
        Exported surface, from `export_surface` or `read_document`.
    name
        Another name for the surface.

    Raises
    ------
    InvalidInputError
        If the document is not an exported surface.
    AlreadyExistsError
        If the store has a surface of this name.
    """
    surface, cells = read_surface(document, name=name)
    return store.create_surface(surface.name, surface.definition, cells=cells)


def read_surface(document: Any, *, name: str | None = None) -> tuple[Surface, bytes]:
    """Return an exported surface, renamed if a name is given, and its counts as encoded cells.

    Raises
    ------
    InvalidInputError
        If the document is not an exported surface.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise InvalidInputError("format", f"must be {FORMAT!r}", found)
    settings = document.get("surface")
    if not isinstance(settings, dict):
        raise InvalidInputError("surface", "must be an object of settings", settings)
    settings = without_unused_utility(settings)
    surface = Surface.from_dict(settings if name is None else {**settings, "name": name})
    arms = _arm_cells(surface, document.get("arms", []))
    cells = _cells(surface, document.get("counts"))
    _check_visits(cells, arms)
    if surface.guarantees_since_version > 0:  # all counts are the first change here
        surface = replace(surface, guarantees_since_version=1 if len(cells) else 0)
    return surface, cells.tobytes() + arms.tobytes()


def _surface(record: SurfaceRecord) -> Surface:
    return Surface.from_definition(record.definition)


def _cells(surface: Surface, counts: object) -> Cells:
    if not isinstance(counts, list):
        raise InvalidInputError("counts", "must be a list of cells", counts)
    types = {name: number for number, name in enumerate(surface.user_types)}
    items = {name: number for number, name in enumerate(surface.items)}
    rows: dict[tuple[int, int, int], tuple[int, int]] = {}
    for number, cell in enumerate(counts):
        where = f"counts[{number}]"
        if not isinstance(cell, dict) or sorted(cell.keys() - {"arm_code"}) != sorted(_CELL):
            raise InvalidInputError(where, f"must be an object of {', '.join(_CELL)}", cell)
        index = (
            _coded_type(where, cell, types, min_code=0),
            check_integer(f"{where}.position", cell["position"], 1, surface.n_positions) - 1,
            _number(f"{where}.item", cell["item"], items),
        )
        if index in rows:
            raise InvalidInputError(where, "must be the only cell of its type, position and item", cell)
        displays = check_integer(f"{where}.displays", cell["displays"], 1, _MAX_DISPLAYS)
        rewards = check_number(f"{where}.rewards", cell["rewards"], 0, displays)
        rows[index] = displays, round(rewards * REWARD_UNITS)
    cells = np.array([(*index, *row) for index, row in sorted(rows.items())], dtype=CELL)
    _check_displays(surface, cells)
    return cells


def _arm_cells(surface: Surface, arms: object) -> Cells:
    """Return the cells with the visits and the squared rewards of the arms."""
    if not isinstance(arms, list):
        raise InvalidInputError("arms", "must be a list of sums", arms)
    types = {name: number for number, name in enumerate(surface.user_types)}
    rows = []
    for number, arm in enumerate(arms):
        where = f"arms[{number}]"
        if not isinstance(arm, dict) or sorted(arm) != sorted(_ARM):
            raise InvalidInputError(where, f"must be an object of {', '.join(_ARM)}", arm)
        visits = check_integer(f"{where}.visits", arm["visits"], 1, _MAX_DISPLAYS)
        max_squares = visits * surface.n_positions**2
        squares = check_number(f"{where}.squared_rewards", arm["squared_rewards"], 0, max_squares)
        user_type = _coded_type(where, arm, types, min_code=1)
        rows.append((user_type, SQUARES, 0, visits, round(squares * REWARD_UNITS)))
    return np.array(rows, dtype=CELL)


def _coded_type(where: str, cell: Mapping[str, Any], types: Mapping[str, int], *, min_code: int) -> int:
    code = check_integer(f"{where}.arm_code", cell.get("arm_code", 0), min_code, MAX_ARM_CODE)
    return coded(_number(f"{where}.user_type", cell["user_type"], types), code)


def _number(where: str, name: object, numbers: Mapping[str, int]) -> int:
    if not isinstance(name, str) or name not in numbers:
        raise UnknownNameError(where, name, numbers)
    return numbers[name]


def _check_visits(cells: Cells, arms: Cells) -> None:
    """Check that the arms have the visits of their cells at the first position."""
    first = cells[(cells["position"] == 0) & (arm_code_of(cells["user_type"]) > 0)]
    shown, counted = np.zeros((2, 1 << 16), dtype=np.int64)  # by user type and code
    np.add.at(shown, first["user_type"], first["displays"])
    np.add.at(counted, arms["user_type"], arms["displays"])
    for coded_type in np.flatnonzero(shown != counted)[:1]:
        rule = f"must have {shown[coded_type]} visits with arm_code {arm_code_of(coded_type)}, as counts"
        raise InvalidInputError("arms", rule, int(counted[coded_type]))


def _check_displays(surface: Surface, cells: Cells) -> None:
    """Check that each position has as many displays, or not more than the one before it if some are short."""
    displays = np.zeros((len(surface.user_types), surface.n_positions), dtype=np.int64)
    np.add.at(displays, (user_type_of(cells["user_type"]), cells["position"]), cells["displays"])
    for name, row in zip(surface.user_types, displays.tolist(), strict=True):
        if not surface.allow_short_rankings and len(set(row)) > 1:
            rule = "must have as many displays at each position, unless allow_short_rankings is true"
            raise InvalidInputError(f"counts of {name}", rule, row)
        if row != sorted(row, reverse=True):
            rule = "must not have more displays at a position than at the one before it"
            raise InvalidInputError(f"counts of {name}", rule, row)
