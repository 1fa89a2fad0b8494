"""``banditrank log``: count click logs, and merge the counts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditrank import __version__
from banditrank._cli.command import OptionErrorCommand, examples, split_names
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.counts import ClickCube

log_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)

_PROGRESS_STEPS = 1000

OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="Directory of the cube; an earlier cube is replaced."),
]


@log_commands.callback()
def _help(context: typer.Context) -> None:
    """Count click logs, and learn from the counts."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _column(option: str, text: str) -> Any:
    return typer.Option(option, metavar="COLUMN", help=text, show_default="guessed by name")


@log_commands.command(
    "count",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank log count clicks.csv --output cube",
        "banditrank log count clicks.csv --type segment --item item --position slot -o cube",
        "banditrank log count visits.jsonl --items shown --clicked-item chosen --bad-rows drop -o cube",
    ),
)
def count_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="CSV, TSV, JSONL or Parquet files, globs or directories."),
    ],
    output: OutputOption,
    user_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMNS",
            help="Columns of the user type, with commas.",
            show_default="guessed by name",
        ),
    ] = None,
    item: Annotated[str | None, _column("--item", "Column of the item.")] = None,
    position: Annotated[str | None, _column("--position", "Column of the position.")] = None,
    clicked: Annotated[str | None, _column("--clicked", "Column of whether it was clicked: 0 or 1.")] = None,
    session: Annotated[str | None, _column("--session", "Column of the id of the visit.")] = None,
    user: Annotated[str | None, _column("--user", "Column of the id of the user.")] = None,
    time: Annotated[str | None, _column("--time", "Column of the time.")] = None,
    propensity: Annotated[
        str | None, _column("--propensity", "Column of the probability of the display.")
    ] = None,
    displays: Annotated[
        str | None, _column("--displays", "Column of the number of displays of a row.")
    ] = None,
    clicks: Annotated[
        str | None,
        _column("--clicks", "Column of the number of clicks of a row, or of the list of a visit's clicks."),
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Column of the list of a visit's items, or one column for each position, with commas.",
            show_default="guessed by name",
        ),
    ] = None,
    clicked_item: Annotated[
        str | None, _column("--clicked-item", "Column of the clicked items of a visit.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTIONS", help="Columns not to guess, by option: session,user."),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, tsv, jsonl, parquet, open-bandit, yandex or kdd2012.",
            show_default="by the file names",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Delimiter of CSV files.", show_default="that of the header")
    ] = None,
    first_position: Annotated[
        int | None,
        typer.Option(help="Number of the first position: 0 or 1.", show_default="0 if there is one"),
    ] = None,
    n_positions: Annotated[
        int | None, typer.Option("--positions", help="Number of positions to count.", show_default="all")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="Length of periods: hour, day, week or month.", show_default="day, with --time"),
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Time zone in which periods begin.")] = "UTC",
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Count rows from this date or time on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Count rows before this date or time.")
    ] = None,
    single_click: Annotated[
        bool, typer.Option("--single-click", help="Treat several clicks in a visit as bad rows.")
    ] = False,
    bad_rows: Annotated[str, typer.Option(help="What to do with bad rows: refuse or drop.")] = "refuse",
    max_lists: Annotated[
        int, typer.Option(help="Number of visits whose ranking lists are retained, up to 5000000.")
    ] = 20_000,
    engine: Annotated[str, typer.Option(help="Engine that counts: duckdb or spark.")] = "duckdb",
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark master.", show_default="that of Spark's configuration"),
    ] = None,
    memory_limit: Annotated[
        str, typer.Option(help="Memory limit of DuckDB, at least 100MB; it spills to disk.")
    ] = "2GB",
    temporary_directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory that DuckDB spills to.",
            show_default="the system's temporary directory",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--workers", help="Number of threads, up to 1024.", show_default="one per processor"),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Count a click log into a cube, from which all analyses of logs start.

    Prints which columns were guessed, how many rows were counted or left out and why, and what looks wrong. A
    bad row is an error that names its file, line, rule and value, unless bad rows are dropped.
    """
    from banditrank.counts._cube_files import check_cube_path

    check_output_files(json_file, inputs=files)
    _check_cube(output, check_cube_path)
    given: dict[str, Any] = {
        "user_type": split_names(user_type) if user_type else None,
        "items": split_names(items) if items else None,
    }
    if given["items"] and len(given["items"]) == 1:
        given["items"] = given["items"][0]
    given |= {
        "item": item,
        "position": position,
        "clicked": clicked,
        "session": session,
        "user": user,
        "time": time,
    }
    given |= {"propensity": propensity, "displays": displays, "clicks": clicks, "clicked_item": clicked_item}
    _leave_out(given, split_names(without))

    from banditrank.logs import LogColumns, count_log
    from banditrank.simulation._progress import progress_bar

    with progress_bar("counting", _PROGRESS_STEPS, shown=None) as advance:
        finished_steps = 0

        def show_progress(share: float) -> None:
            nonlocal finished_steps
            steps = int(share * _PROGRESS_STEPS) - finished_steps
            advance(steps)
            finished_steps += steps

        cube = count_log(
            files,
            LogColumns(**given),
            engine=engine,  # type: ignore[arg-type] # count_log validates names
            file_format=file_format,
            delimiter=delimiter,
            first_position=first_position,
            n_positions=n_positions,
            period=period,  # type: ignore[arg-type]
            time_zone=time_zone,
            since=since,
            until=until,
            single_click=single_click,
            bad_rows=bad_rows,  # type: ignore[arg-type]
            max_lists=max_lists,
            memory_limit=memory_limit,
            temporary_directory=temporary_directory,
            threads=threads,
            master=master,
            on_progress=show_progress,
        )
    cube.save(output)
    _report(cube, output, json_file)


@log_commands.command(
    "merge",
    cls=OptionErrorCommand,
    epilog=examples("banditrank log merge monday tuesday --output week"),
)
def merge_command(
    cubes: Annotated[list[Path], typer.Argument(metavar="CUBES...", help="Directories of cubes.")],
    output: OutputOption,
    json_file: JsonOption = None,
) -> None:
    """Add the cubes of parts of a log, of which no visit is in two."""
    from banditrank.counts import load_cube, merge_cubes
    from banditrank.counts._cube_files import check_cube_path

    check_output_files(json_file, inputs=cubes)
    _check_cube(output, check_cube_path)
    merged = merge_cubes([load_cube(path) for path in cubes])
    merged.save(output)
    _report(merged, output, json_file)


def _check_cube(output: Path, check: Any) -> None:
    try:
        check(output)
    except InvalidInputError as error:
        raise InvalidInputError("--output", error.rule, error.value) from None


def _leave_out(given: dict[str, Any], roles: Sequence[str]) -> None:
    """Mark columns as absent, so that they are not guessed."""
    names = {"type": "user_type", "clicked-item": "clicked_item"}
    for name in roles:
        role = names.get(name, name)
        if role not in given:
            raise InvalidInputError("--without", "must be options of columns such as session,user", name)
        given[role] = ""


def _report(cube: "ClickCube", output: Path, json_file: str | None) -> None:
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
        f"{len(cube.type_values):,} user types, {len(cube.items):,} items, "
        f"{cube.n_positions} positions, {cube.cells.displays.size:,} cells, "
        f"banditrank {__version__}",
        soft_wrap=True,
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
