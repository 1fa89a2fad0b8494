"""``banditrank log fit``: fit a click model to a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank import __version__
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import announce_model_compilation, diagnose_log, print_verdict
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank._text import shorten

if TYPE_CHECKING:
    from rich.table import Table

    from banditrank.estimators import ClickModelFit

_MAX_ITEMS = 20


@takes_log
def fit_command(
    log: LogSource,
    model: Annotated[
        str,
        typer.Option(
            help="Click model: auto, single-look, position-based, cascade, dependent-click or user-browsing."
        ),
    ] = "auto",
    shared_positions: Annotated[
        bool, typer.Option("--shared-positions", help="Fit the same positions to all user types.")
    ] = False,
    level: Annotated[
        float, typer.Option(help="Probability that an interval contains the true value.")
    ] = 0.95,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the estimated problem to a TOML file."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Fit a click model: what a position is worth, and how appealing an item.

    Starts with the diagnosis. What the log cannot tell is not printed as a number, and makes no problem file.
    """
    check_output_files(json_file, output=output, inputs=log.inputs)

    from banditrank.estimators import fit_click_model
    from banditrank.logs import withhold_estimates
    from banditrank.logs._estimated_problem import estimate_with_model
    from banditrank.logs._report_tables import describe_unlisted, listed_types

    cube = log.read()
    diagnosis = diagnose_log(cube)
    with announce_model_compilation():
        fit = fit_click_model(
            cube,
            model,  # type: ignore[arg-type] # validates names
            shared_positions=shared_positions,
            level=level,
        )
    known = withhold_estimates(fit, diagnosis)
    estimated = None
    if output is not None:
        estimated = estimate_with_model(cube, fit, diagnosis, name=output.stem)
        estimated.problem.save(output)
    if json_file is not None:
        document: dict[str, Any] = {
            "version": __version__,
            "diagnosis": diagnosis.to_dict(),
            "fit": known.to_dict(),
        }
        if estimated is not None:
            document["problem"] = {"file": str(output), "model": estimated.model}
            document["problem"]["scale"] = estimated.problem.click_scale
        write_json(document, json_file)
    if json_file == "-":
        return
    console = make_console()
    print_verdict(console, diagnosis)
    console.print()
    for line in _heading(known):
        console.print(line)
    types = listed_types(cube)
    console.print(_positions(known, types))
    console.print(_items(known, types))
    if note := describe_unlisted(len(known.user_types)):
        console.print(note)
    if estimated is not None:
        scale = estimated.problem.click_scale
        note = f"; its click rates are clicks per visit divided by its click_scale, {scale:.6g}"
        console.print(
            f"{output}: problem of the {estimated.model} model{note if scale != 1 else ''}", soft_wrap=True
        )


def _heading(fit: "ClickModelFit") -> list[str]:
    lines = [f"Click model: {fit.model}"]
    if fit.selection is not None:
        lines.append(fit.selection.statement)
    test = fit.goodness_of_fit
    if test.p_value == test.p_value:  # not NaN
        found = "does not fit" if test.is_misfit else "no misfit found"
        lines.append(f"Fit: {found} (p = {test.p_value:.2g}, {test.n_cells:,} cells)")
    return [*lines, *(f"Note: {note}" for note in fit.notes)]


def _positions(fit: "ClickModelFit", types: list[int]) -> "Table":
    from banditrank.logs._report_tables import tabulate_positions

    (position, *headings), rows = tabulate_positions(fit, types)
    table = make_table(f"Worth of positions: {fit.worth_meaning}; {fit.level:.0%} intervals")
    table.add_column(position, justify="right")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _items(fit: "ClickModelFit", types: list[int]) -> "Table":
    import numpy as np

    from banditrank.logs._report_tables import format_interval

    shown = min(_MAX_ITEMS, len(fit.items))
    more = f", {shown} of {len(fit.items):,} items" if shown < len(fit.items) else ""
    table = make_table(f"Appeal of items: {fit.appeal_meaning}; {fit.level:.0%} intervals{more}")
    table.add_column("item", overflow="fold")
    for i in types:
        table.add_column(shorten(fit.user_types[i]), overflow="fold")
    order = np.argsort(-np.nan_to_num(fit.item_appeal, nan=-1.0).max(axis=0), kind="stable")
    for j in order[:shown]:
        cells = [
            format_interval(float(fit.item_appeal[i, j]), *map(float, fit.item_intervals[i, j]))
            for i in types
        ]
        table.add_row(shorten(fit.items[j]), *cells)
    return table
