"""Output of ``log count`` and ``log merge``: what a cube holds, and what was left out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank import __version__
from banditrank._cli.output import make_console, make_table, write_json
from banditrank._text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from banditrank.counts import ClickCube

CubeOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="Directory of the cube; an earlier cube is replaced."),
]


def report_counting(cube: "ClickCube", output: Path, json_file: str | None) -> None:
    """Print what a cube holds, and write it as JSON if asked for."""
    if json_file is not None:
        write_json(_document(cube, output), json_file)
    if json_file == "-":
        return
    metadata = cube.metadata
    console = make_console()
    displays, clicks = cube.cells.displays.sum(), cube.cells.clicks.sum()
    visits = f", {cube.n_visits:,.0f} visits" if cube.has_visits else ""
    console.print(
        f"{output}: {displays:,.0f} displays, {clicks:,.0f} clicks{visits}, "
        f"{plural(len(cube.type_values), 'user type')}, {plural(len(cube.items), 'item')}, "
        f"{plural(cube.n_positions, 'position')}, {plural(cube.cells.displays.size, 'cell')}, "
        f"banditrank {__version__}",
        soft_wrap=True,
    )
    retained = cube.lists.visits.sum()
    if 0 < retained < cube.n_visits:
        console.print(
            f"ranking lists of {retained:,.0f} visits, a sample: each stands for "
            f"{cube.n_visits / retained:,.1f} visits",
        )
    guessed: Mapping[str, str] = metadata.get("guessed", {})
    if guessed:
        console.print("guessed columns: " + ", ".join(f"{role} {name}" for role, name in guessed.items()))
    if metadata.get("first_position") == 0 and metadata.get("layout") != "wide":
        console.print("positions start at 0")
    table = make_table("Rows of the log")
    table.add_column("", overflow="fold")
    table.add_column("rows", justify="right")
    table.add_column("first", overflow="fold")
    rows: Mapping[str, int] = metadata.get("rows", {})
    for reason, count in rows.items():
        label = reason if reason == "counted" else f"left out: {reason}"
        table.add_row(label, f"{count:,}", metadata.get("first_rows", {}).get(reason, ""))
    table.add_section()
    table.add_row("all rows", f"{sum(rows.values()):,}", "")
    console.print(table)
    for warning in metadata.get("warnings", []):
        console.print(f"warning: {warning}")


def _document(cube: "ClickCube", output: Path) -> dict[str, Any]:
    return {
        "version": __version__,
        "cube": str(output),
        "displays": float(cube.cells.displays.sum()),
        "clicks": float(cube.cells.clicks.sum()),
        "visits": cube.n_visits if cube.has_visits else None,
        "type_columns": list(cube.type_columns),
        "user_types": list(cube.user_types),
        "n_items": len(cube.items),
        "n_positions": cube.n_positions,
        "periods": list(cube.periods),
        "cells": int(cube.cells.displays.size),
        **cube.metadata,
    }
