"""``banditrank log diagnose``: what a log can tell."""

from typing import TYPE_CHECKING, Annotated

import typer

from banditrank import __version__
from banditrank._cli.log.source import LogSource, takes_log
from banditrank._cli.log.verdict import diagnose_log, print_verdict
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.counts import ClickCube
    from banditrank.logs import LogDiagnosis


@takes_log
def diagnose_command(
    log: LogSource,
    target: Annotated[
        str, typer.Option(metavar="PERCENT", help="Precision of the worth of positions that is wanted.")
    ] = "10%",
    json_file: JsonOption = None,
) -> None:
    """Diagnose what a log can tell of positions and items, before any estimate.

    Prints a verdict, what was found, and which swaps of items would make the worth of positions known. The
    exit status is 0 if nothing was found, 1 with warnings, and 3 if the worth of positions cannot be known.
    """
    check_output_files(json_file, inputs=log.inputs)
    precision = _parse_percent(target)
    cube = log.read(by_period=True)
    diagnosis = diagnose_log(cube, precision)
    if json_file is not None:
        write_json({"version": __version__, **diagnosis.to_dict()}, json_file)
    if json_file != "-":
        _print_diagnosis(cube, diagnosis)
    raise typer.Exit(diagnosis.exit_code)


def _parse_percent(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InvalidInputError("--target", "must be a percentage such as 10%", text) from None


def _print_diagnosis(cube: "ClickCube", diagnosis: "LogDiagnosis") -> None:
    from banditrank.logs._report_tables import count_types, describe_unlisted, listed_types

    console = make_console()
    print_verdict(console, diagnosis)
    table = make_table("User types")
    table.add_column("user type", overflow="fold")
    for heading in ("displays", "clicks", "items"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("positions that can be compared", overflow="fold")
    for counts, i in zip(count_types(cube), listed_types(cube), strict=True):
        one = diagnosis.user_types[i]
        groups = [", ".join(str(k + 1) for k in group) for group in one.components if len(group) > 1]
        table.add_row(*counts, "; ".join(groups) or "none")
    console.print(table)
    if note := describe_unlisted(len(diagnosis.user_types)):
        console.print(note)
