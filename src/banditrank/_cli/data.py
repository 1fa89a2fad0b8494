"""``banditrank data``: estimate problems from click logs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditrank import __version__
from banditrank._cli.command import OptionErrorCommand, examples
from banditrank._cli.output import JsonOption, check_output_files, make_console, make_table, write_json
from banditrank._cli.reading import (
    MemoryLimitOption,
    TemporaryDirectoryOption,
    ThreadsOption,
    reading_progress,
)
from banditrank.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

    from banditrank.logs.kdd2012._diagnosis import Diagnosis
    from banditrank.logs.kdd2012._extraction import Extraction

data_commands = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)

_ESTIMATORS = ("paper", "likelihood")


@data_commands.callback()
def _help(context: typer.Context) -> None:
    """Estimate ranking problems from click logs."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@data_commands.command(
    "kdd2012",
    cls=OptionErrorCommand,
    epilog=examples(
        "banditrank data kdd2012 --training training.txt --profiles userid_profile.txt",
        "banditrank data kdd2012 --training training.txt --profiles userid_profile.txt -o mine.toml",
    ),
)
def kdd2012_command(
    training: Annotated[Path, typer.Option(metavar="FILE", help="Unpacked training.txt, with 12 columns.")],
    profiles: Annotated[
        Path, typer.Option(metavar="FILE", help="Unpacked userid_profile.txt, with 3 columns.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the estimated problem to a TOML file."),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="Estimator of the problem in --output: paper (Algorithm 1) or likelihood.")
    ] = "paper",
    n_ads: Annotated[
        int, typer.Option("--ads", help="Number of ads to include, the most frequent ones.")
    ] = 5,
    positions: Annotated[
        str, typer.Option(help="Comma-separated positions to include, of 1, 2 and 3.")
    ] = "1,2",
    memory_limit: MemoryLimitOption = "2GB",
    temporary_directory: TemporaryDirectoryOption = None,
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Estimate the paper's Table 1 from the files of KDD Cup 2012.

    Reads the two files of track 2 and prints how many rows were counted or left out and why, the clicks and
    displays of each cell, and the estimates beside the printed table.
    """
    from banditrank.logs._duckdb_session import import_duckdb

    import_duckdb()
    check_output_files(json_file, output=output, inputs=(training, profiles))
    if estimator not in _ESTIMATORS:
        raise UnknownNameError("estimator", estimator, _ESTIMATORS)
    chosen = _positions(positions)

    from banditrank.logs.kdd2012._diagnosis import diagnose
    from banditrank.logs.kdd2012._extraction import extract
    from banditrank.model._catalog import kdd2012

    with reading_progress("reading") as show_progress:
        found = extract(
            training,
            profiles,
            n_ads=n_ads,
            positions=chosen,
            memory_limit=memory_limit,
            temporary_directory=temporary_directory,
            threads=threads,
            on_progress=show_progress,
        )
    diagnosis = diagnose(found)
    if output is not None:
        (diagnosis.paper if estimator == "paper" else diagnosis.likelihood).problem.save(output)
    if json_file is not None:
        heading = {"version": __version__, "training_file": str(training), "profile_file": str(profiles)}
        table_1 = {"table_1": kdd2012().to_dict()}
        write_json({**heading, **diagnosis.to_dict(), "notes": diagnosis.notes(), **table_1}, json_file)
    if json_file != "-":
        _print_diagnosis(diagnosis, training)
        if output is not None:
            typer.echo(f"{output}: problem estimated by {estimator}")


def _positions(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(
            "--positions", "must be whole numbers with commas between them", text
        ) from None


def _print_diagnosis(diagnosis: "Diagnosis", training: Path) -> None:
    found = diagnosis.extraction
    console = make_console()
    console.print(
        f"{training.name}: {found.total.rows:,} rows, {found.n_ads_found:,} ads, "
        f"{found.n_profiles:,} profiles, banditrank {__version__}"
    )
    console.print(_rows(found))
    console.print(_cells(found))
    console.print(_estimates(diagnosis))
    for note in diagnosis.notes():
        console.print(note)
    console.print(
        "paper: Algorithm 1; likelihood: maximum likelihood, which weights cells by displays; Table 1: as "
        "printed in the paper, with ads ordered by rank",
        style="dim",
    )


def _new_table(title: str, first: str, headings: Sequence[str]) -> "Table":
    table = make_table(title)
    table.add_column(first, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _rows(found: "Extraction") -> "Table":
    table = _new_table("Rows of the training file", "", ("rows", "impressions", "clicks"))
    for group in found.row_groups:
        left_out = "" if group.reason == "counted" else "left out: "
        amounts = (group.rows, group.impressions, group.clicks)
        table.add_row(left_out + group.reason, *(f"{amount:,}" for amount in amounts))
    table.add_section()
    total = found.total
    table.add_row(total.reason, f"{total.rows:,}", f"{total.impressions:,}", f"{total.clicks:,}")
    return table


def _cells(found: "Extraction") -> "Table":
    from banditrank.logs.kdd2012._extraction import USER_TYPES

    headings = [f"{user_type}, position {number}" for user_type in USER_TYPES for number in found.positions]
    table = _new_table("Clicks / displays", "ad", headings)
    for j, name in enumerate(found.items):
        displays, clicks = found.counts.displays[:, j].ravel(), found.counts.rewards[:, j].ravel()
        cells = zip(clicks, displays, strict=True)
        table.add_row(
            name,
            *(
                f"{n_clicks:,.0f} / {n_displays:,.0f}" if n_displays else "empty"
                for n_clicks, n_displays in cells
            ),
        )
    return table


def _estimates(diagnosis: "Diagnosis") -> "Table":
    """Return a table of both estimators' values beside the paper's printed ones."""
    from banditrank.logs.kdd2012._extraction import USER_TYPES
    from banditrank.model._catalog import kdd2012

    found, printed = diagnosis.extraction, kdd2012()
    problems = (diagnosis.paper.problem, diagnosis.likelihood.problem, printed)
    sources = ("paper", "likelihood", "Table 1")
    table = _new_table(
        "Estimates", "", [f"{user_type}, {source}" for user_type in USER_TYPES for source in sources]
    )

    def add(name: str, field: str, index: tuple[int, ...], *, in_table_1: bool = True) -> None:
        known = problems if in_table_1 else problems[:2]
        row: list[str] = []
        for i in range(len(USER_TYPES)):
            row += [f"{float(getattr(problem, field)[i, *index]):.3f}" for problem in known]
            row += [""] * (len(problems) - len(known))
        table.add_row(name, *row)

    add("arrival rate", "arrival_rates", ())
    as_printed = found.positions == (1, 2)  # preferences of other positions are not comparable
    for k, number in enumerate(found.positions):
        add(f"position {number}", "position_preferences", (k,), in_table_1=as_printed)
    for j, name in enumerate(found.items):
        add(name, "item_means", (j,), in_table_1=j < printed.n_items)
    return table
