"""``banditrank log types``: which columns are worth being user types."""

from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank import __version__
from banditrank._cli.command import split_names
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import diagnose_log, print_verdict
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json

if TYPE_CHECKING:
    from rich.table import Table

    from banditrank.logs import UserTypeAssessment


@takes_log
def types_command(
    log: LogSource,
    among: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to assess, with commas; they must be type columns of the cube.",
            show_default="all type columns",
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Assess which columns are worth being user types.

    For each column and pair of columns: does telling users apart predict held-out displays better, how many
    clicks would personalized rankings gain, and did the logging policy depend on it among users who are alike
    in the other columns.
    """
    check_output_files(json_file, inputs=log.inputs)

    from banditrank.logs import assess_user_types, find_withheld

    cube = log.read()
    diagnosis = diagnose_log(cube)
    withheld = find_withheld(diagnosis)
    assessment = assess_user_types(cube, split_names(among) if among else None)
    if withheld.rankings:
        assessment = assessment.without_gains()
    if json_file is not None:
        document = {"version": __version__, "diagnosis": diagnosis.to_dict(), **assessment.to_dict()}
        write_json(document, json_file)
    if json_file == "-":
        return
    console = make_console()
    print_verdict(console, diagnosis)
    if withheld.items:
        console.print("Columns are not compared: without click rates no column tells users apart.")
        return
    console.print(assessment.statement, soft_wrap=True)
    console.print(_table(assessment))
    for one in assessment.columns:
        if one.is_confounded:
            console.print(f"{' and '.join(one.columns)}: {one.logging_text}")


def _table(assessment: "UserTypeAssessment") -> "Table":
    table = make_table("Columns")
    table.add_column("columns", overflow="fold")
    table.add_column("user types", justify="right")
    table.add_column("held-out gain per 1,000 displays", justify="right")
    table.add_column("clicks gained per visit", justify="right")
    for one in assessment.columns:
        gain = (
            "cannot be assessed" if isnan(one.held_out_gain) else f"{round(one.held_out_gain, 2) + 0.0:+.2f}"
        )
        table.add_row(", ".join(one.columns), f"{one.n_user_types:,}", gain, one.gain_text)
    return table
